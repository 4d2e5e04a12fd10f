// A streamed answer. If an attempt fails halfway, `retracted` says: discard what you have shown of it.
// A guard with `stream: 'window'` releases text as it passes it; what it blocks is never shown.
import { AgentError, createAgent, guard, retry, type AgentEvent } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

// A stream that breaks off, and a second attempt

const cut = { chunks: ['The sky ', 'is gre'], error: new AgentError('MODEL_UNREACHABLE', 'The connection broke.') }
const flaky = createAgent({ model: scriptedModel([cut, 'The sky is blue.']), use: [retry({ backoffMs: 1 })] })

let shown = ''
for await (const event of flaky.stream('What color is the sky?')) {
  if (event.type === 'inferenceStarted') console.log(`attempt ${event.attempt} at ${event.model}`)
  if (event.type === 'text') shown += event.delta
  if (event.type === 'retracted') {
    console.log(`  discard "${shown}": ${event.why}`)
    shown = ''
  }
}
console.log(`  shown at the end: "${shown}"`)

// A guard that reads along

const noKeys = guard(
  'afterInference',
  (ctx) => (/sk-\w+/.test(ctx.response.text) ? ctx.block('It names a key.') : ctx),
  { name: 'no-keys', stream: 'window' },
)

const long = 'There is a lot to say about how this works, and all of it is harmless. '.repeat(12)
const writing = (text: string) => ({ chunks: text.match(/.{1,20}/gs) ?? [], delayMs: 1 })
const careful = createAgent({
  model: scriptedModel(({ messages }) =>
    writing(JSON.stringify(messages).includes('the key') ? `${long}The key is sk-live-12345. ${long}` : long),
  ),
  use: [noKeys],
})

for (const question of ['How does it work?', 'And the key?']) {
  console.log(question)
  for await (const event of careful.stream(question)) watch(event)
}

function watch(event: AgentEvent): void {
  if (event.type === 'text') {
    const secret = event.delta.includes('sk-') ? ' WITH THE KEY' : ''
    console.log(`  + ${event.delta.length} characters${secret}`)
  }
  if (event.type === 'retracted') console.log(`  discard all of it: ${event.why}`)
  if (event.type === 'responded') console.log(`  at the end: ${event.text.slice(0, 50)}`)
}
