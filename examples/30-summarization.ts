// A conversation that grows too long is summarized: rarely, in large parts, and never between a call and its result.
// Pinned messages stay unchanged. If the summary fails, the run continues without it.
import { createAgent, guards, tool } from 'hookloop'
import { summarization } from 'hookloop/summarization'
import { scriptedModel } from 'hookloop/testing'

const readLog = tool({
  name: 'read_log',
  description: 'Reads a page of the log.',
  input: { type: 'object', properties: { page: { type: 'number' } }, required: ['page'] },
  execute: ({ page }) => `page ${JSON.stringify(page)}: ${'all quiet. '.repeat(80)}`,
})

function agentWith(writer: ReturnType<typeof scriptedModel>) {
  let page = 0
  const model = scriptedModel(
    () => (++page <= 24 ? { toolCalls: [{ name: 'read_log', args: { page } }] } : 'Nothing happened on 24 pages.'),
    { usage: { inputTokens: 0 } }, // it does not say how much it read, so that is guessed
  )
  const agent = createAgent({
    model,
    use: [
      readLog,
      guards({ maxSteps: 50, maxTokens: null }),
      summarization({
        model: writer,
        maxMessageTokens: 600,
        maxBufferTokens: 1_200,
        maxSummaryTokens: 60,
        pin: ({ role, content }) =>
          role === 'user' && content.some((part) => part.type === 'text' && part.text.startsWith('Read')),
      }),
    ],
  })
  return { agent, model }
}

let summaries = 0
const { agent, model } = agentWith(scriptedModel(() => `The log was read, part ${++summaries}. All quiet.`))
const live = agent.stream('Read the log, and never touch the database.')
for await (const event of live) {
  if (event.type === 'compacted')
    console.log(`step ${event.step + 1}: ${event.before} messages replaced by ${event.after}`)
}
const { state, text } = await live.run
const longest = Math.max(...model.requests.map(({ messages }) => messages.length))
console.log(`\n${text} At most ${longest} of ${2 * 24 + 2} messages were sent.`)
console.log('messages after the summary:')
for (const { content } of state.messages.slice(0, 2)) {
  for (const part of content) if (part.type === 'text') console.log(`  ${part.text.replaceAll('\n\n', ' ')}`)
}

const broken = agentWith(scriptedModel(() => ({ error: 'the writer is down' })))
const run = await broken.agent.run('Read the log.')
const skipped = run.ledger.filter(({ decision, mode }) => mode === 'loop' && decision === 'skipped')
console.log(`\nwithout a summary: ${run.status}, tried at steps ${skipped.map(({ step }) => step + 1).join(', ')}`)
console.log(skipped[0]?.message)
