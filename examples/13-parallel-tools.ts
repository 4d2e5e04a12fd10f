// Tools with `concurrent: true` run in parallel when the model calls several at once; others run one after the other.
// Hooks run in call order in both cases, so the result does not depend on timing.
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent, observe, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

const MS = 20
let [running, most] = [0, 0]

const fetchPage = (concurrent: boolean) =>
  tool({
    name: 'fetch_page',
    description: 'Fetches a page.',
    input: { type: 'object', properties: { page: { type: 'number' } } },
    concurrent,
    async execute({ page }, { signal }) {
      most = Math.max(most, ++running)
      await sleep(MS * (1 + (Number(page) % 2)), undefined, { signal }) // odd pages are slower
      running--
      return `page ${Number(page)}`
    },
  })

const pages = [1, 2, 3, 4, 5, 6]

for (const [concurrent, maxConcurrentTools] of [
  [false, 8],
  [true, 8],
  [true, 2],
] as const) {
  const seen: unknown[] = []
  const agent = createAgent({
    model: scriptedModel([
      { toolCalls: pages.map((page) => ({ name: 'fetch_page', args: { page } })) },
      'I have read them.',
    ]),
    maxConcurrentTools,
    use: [fetchPage(concurrent), observe('afterToolUse', (ctx) => seen.push(ctx.toolCall.args['page']))],
  })
  most = 0
  const started = performance.now()
  await agent.run('Read six pages.')
  const ms = Math.round((performance.now() - started) / 10) * 10
  const how = concurrent ? `together, ${maxConcurrentTools} at most` : 'one after the other'
  console.log(`${how.padEnd(22)} ~${ms} ms, ${most} at once, results in order: ${seen.join(' ')}`)
}
