import assert from 'node:assert/strict'
import * as z from 'zod'
import { tool } from '../core/agent/tool.ts'
import { fallback } from '../capabilities/fallback.ts'
import { retry } from '../capabilities/retry.ts'
import { createAgent } from '../create-agent.ts'
import type { Run } from '../core/agent/run.ts'
import { failureOf, rows, scenario, shownText, streamed, type Row } from './provider-suite.fixture.ts'

// Failures between the agent and a provider, for every provider, run and streamed.

const FOX = 'The quick brown fox jumps over the lazy dog.'
const quick = retry({ backoffMs: 1 })

scenario('a call is retried when the provider asks to wait', async ({ mode, model, server, run }) => {
  server.next({ error: { message: 'Slow down.' }, status: 429, retryAfter: 0.06 }, { content: FOX })
  const { run: ended, events } = await run(createAgent({ model, use: [quick] }))
  assert.equal(ended.text, FOX)
  assert.match(failedAttempts(ended).join(), /^attempt 1, .* answered 429: Slow down\.$/)
  if (mode === 'stream') assert.equal(events.filter((event) => event.type === 'inferenceStarted').length, 2)
})

scenario('a failure has a code, a status and a wait', async ({ row, model, server, run }) => {
  server.next({ error: { message: 'Slow down.' }, status: 429, retryAfter: 7 })
  const error = failureOf(await run(createAgent({ model })))
  assert.equal(error.code, 'MODEL_RATE_LIMITED')
  assert.deepEqual(error.value, { provider: row.name, model: row.modelId, status: 429, retryAfterMs: 7_000 })
  assert.match(error.message, new RegExp(`^${row.name}/${row.modelId} answered 429: Slow down\\.`))
})

scenario('a provider that fails twice is called a third time', async ({ model, server, run }) => {
  const failing = { error: { message: 'Internal error' }, status: 500 }
  server.next(failing, failing, { content: FOX })
  const { run: ended } = await run(createAgent({ model, use: [quick] }))
  assert.equal(ended.text, FOX)
  assert.match(failedAttempts(ended).join(), /^attempt 1, .* answered 500: .*,attempt 2, .* answered 500: .*$/)
})

scenario('fallback calls another provider when one fails', async ({ row, model, server, run, sent }) => {
  const other = rows[(rows.indexOf(row) + 1) % rows.length]!
  server.next({ error: { message: 'Internal error' }, status: 500 }, { content: FOX })
  const backup = other.create(server.url, 'key')(other.modelId)
  const { run: ended } = await run(createAgent({ model, use: [fallback([backup])] }))
  assert.equal(ended.text, FOX)
  assert.deepEqual(
    server.requests.map(({ path }) => path.split(':')[0]),
    [row.path, other.path],
  )
  assert.deepEqual(sent()[0], ['user: Go.'])
})

for (const ending of ['cut', 'ended'] as const) {
  const broken = { says: { content: FOX }, upTo: 'The quick brown', ending }

  scenario(`a reply that is ${ending} in the middle fails`, async ({ mode, model, server, run }) => {
    server.next(broken)
    const { code } = failureOf(await run(createAgent({ model })))
    // A truncated JSON text that was sent completely can only be recognized as invalid.
    assert.equal(code, mode === 'run' && ending === 'ended' ? 'MODEL_REPLY_INVALID' : 'MODEL_UNREACHABLE')
  })

  scenario(
    `a reply that is ${ending} in the middle is retried, and shown once`,
    async ({ mode, model, server, run }) => {
      server.next(broken, { content: FOX })
      const { run: ended, events } = await run(createAgent({ model, use: [quick] }))
      assert.deepEqual([ended.status, ended.text], ['completed', FOX])
      if (mode === 'run') return
      assert.equal(events.filter((event) => event.type === 'retracted').length, 1)
      assert.equal(shownText(events), FOX)
    },
  )
}

scenario('a truncated tool call is not executed', async ({ model, server, run, calls }) => {
  const { act, done } = actor()
  const call = { name: 'act', arguments: '{"what":"rm -rf build and nothing else"}', id: 'c1' }
  server.next({ says: calls(call), upTo: 'rm -rf', withinEvent: true, ending: 'ended' })
  const { code } = failureOf(await run(createAgent({ model, use: [act] })))
  assert.match(code, /^MODEL_(UNREACHABLE|REPLY_INVALID)$/)
  assert.deepEqual(done, [])
})

scenario('an empty response fails', async ({ mode, model, server, run }) => {
  server.next(mode === 'run' ? { body: '' } : { headers: { 'content-type': 'text/event-stream' }, body: '' })
  const { code } = failureOf(await run(createAgent({ model })))
  assert.equal(code, mode === 'run' ? 'MODEL_REPLY_INVALID' : 'MODEL_UNREACHABLE')
})

scenario('a provider that does not reply in time is disconnected', async ({ model, server, run }) => {
  server.next({ body: undefined })
  const error = failureOf(await run(createAgent({ model, settings: { timeoutMs: 2_000 } })))
  assert.equal(error.code, 'MODEL_TIMED_OUT')
  assert.match(error.message, /did not finish within 2000 ms/)
  await server.requests[0]!.disconnected()
})

scenario('a provider that stops in the middle is disconnected', async ({ mode, model, server, run }) => {
  server.next({ says: { content: FOX }, upTo: 'The quick brown', ending: 'stalled' })
  const settings = mode === 'run' ? { timeoutMs: 2_000 } : { idleTimeoutMs: 2_000 }
  const error = failureOf(await run(createAgent({ model, settings })))
  assert.equal(error.code, 'MODEL_TIMED_OUT')
  assert.match(error.message, mode === 'run' ? /did not finish within 2000 ms/ : /sent nothing for 2000 ms/)
  await server.requests[0]!.disconnected()
})

scenario('the idle timeout applies to streams only', async ({ mode, model, server, run }) => {
  server.next({ says: { content: FOX }, body: (said) => said, afterMs: 80 })
  const { run: ended } = await run(createAgent({ model, settings: { idleTimeoutMs: 30 } }))
  assert.equal(ended.status, mode === 'run' ? 'completed' : 'failed')
})

scenario('a slow stream within the idle timeout is read to its end', async ({ model, server, run }) => {
  const content = FOX.repeat(8) // in four pieces, which take 3200 ms
  server.next({ says: { content }, body: (said) => said, piecesEveryMs: 800 })
  const { run: ended } = await run(createAgent({ model, settings: { idleTimeoutMs: 2_000 } }))
  assert.equal(ended.text, content)
})

scenario('the timeout applies to each attempt', async ({ model, server, run }) => {
  server.next({ body: undefined }, { content: FOX })
  const { run: ended } = await run(createAgent({ model, use: [quick], settings: { timeoutMs: 3_000 } }))
  assert.equal(ended.text, FOX)
  assert.match(failedAttempts(ended).join(), /^attempt 1, .* did not finish within 3000 ms\.$/)
})

scenario(
  'a reply that is not JSON is MODEL_REPLY_INVALID, whatever its text',
  async ({ row, mode, model, server, run }) => {
    const nonsense = '{"oops": the socket timed out, the context window is too long, rate limit'
    server.next(mode === 'run' ? { body: nonsense } : streamed(nonsense))
    const error = failureOf(await run(createAgent({ model })))
    assert.equal(error.code, 'MODEL_REPLY_INVALID', row.name)
  },
)

scenario('JSON of another shape is MODEL_REPLY_INVALID', async ({ mode, model, server, run }) => {
  const nonsense = '{"choices":"none","candidates":7,"output":3,"content":false,"type":4}'
  server.next(mode === 'run' ? { body: nonsense } : streamed(nonsense))
  assert.equal(failureOf(await run(createAgent({ model }))).code, 'MODEL_REPLY_INVALID')
})

scenario('an error page of a proxy is classified by its status', async ({ model, server, run }) => {
  server.next({ status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' })
  const error = failureOf(await run(createAgent({ model })))
  assert.equal(error.code, 'MODEL_OVERLOADED')
})

scenario(
  'almost valid JSON arguments are repaired, with a warning',
  async ({ mode, model, server, run, calls }) => {
    const { act, done } = actor()
    const says = calls({ name: 'act', arguments: '{"what":"tidy up"}', id: 'c1' })
    server.next({ says, body: (said) => said.replaceAll('tidy up\\"}', 'tidy up\\",}') }, { content: 'Done.' })
    const { run: ended, events } = await run(createAgent({ model, use: [act] }))
    assert.deepEqual([ended.text, done], ['Done.', [{ what: 'tidy up' }]])
    if (mode === 'stream') assert.match(events.find((event) => event.type === 'warning')?.message ?? '', /repaired/)
  },
  { only: writesArguments },
)

scenario(
  'unreadable arguments are returned to the model as an error',
  async ({ model, server, run, calls, sent }) => {
    const { act, done } = actor()
    const says = calls({ name: 'act', arguments: '{"what":"rm -r"}', id: 'c1' })
    server.next({ says, body: (said) => said.replaceAll('rm -r\\"}', 'rm -r') }, { content: 'Sorry.' })
    const { run: ended } = await run(createAgent({ model, use: [act] }))
    assert.deepEqual([ended.text, done], ['Sorry.', []])
    assert.equal(sent()[1]![1], 'call c1 act {"unreadable":"{\\"what\\":\\"rm -r"}')
    assert.match(sent()[1]![2]!, /^result c1 .*JSON/)
  },
  { only: writesArguments },
)

/** Providers that send arguments as text. With others they are part of the JSON of the reply. */
function writesArguments({ wire }: Row, mode: string): boolean {
  return wire === 'responses' || wire === 'chat' || (wire === 'messages' && mode === 'stream')
}

scenario('a run that is cancelled before the reply disconnects', async ({ model, server, run }) => {
  const controller = new AbortController()
  server.next({ body: undefined })
  const running = run(createAgent({ model, use: [quick] }), 'Go.', { signal: controller.signal })
  await server.received(1)
  controller.abort()
  assert.equal((await running).run.status, 'cancelled')
  await server.requests[0]!.disconnected()
})

scenario('a run that is cancelled during the reply disconnects', async ({ mode, model, server, run }) => {
  const controller = new AbortController()
  server.next({ says: { content: FOX }, upTo: 'The quick brown', ending: 'stalled' })
  const running = run(createAgent({ model, use: [quick] }), 'Go.', {
    signal: controller.signal,
    onEvent: (event) => event.type === 'text' && controller.abort(),
  })
  await server.received(1)
  await server.requests[0]!.halfSent
  if (mode === 'run') controller.abort()
  assert.equal((await running).run.status, 'cancelled')
  await server.requests[0]!.disconnected()
  assert.equal(server.requests.length, 1)
})

function actor() {
  const done: unknown[] = []
  const act = tool({
    name: 'act',
    description: 'Does something.',
    input: z.object({ what: z.string() }),
    execute: (args) => (done.push(args), 'done'),
  })
  return { act, done }
}

/** The failed attempts in the ledger. */
function failedAttempts({ ledger }: Run): readonly string[] {
  return ledger.filter(({ decision }) => decision === 'failed').map(({ message = '' }) => message)
}
