import assert from 'node:assert/strict'
import * as z from 'zod'
import { tool } from '../agent/tool.ts'
import { fallback } from '../capabilities/fallback.ts'
import { retry } from '../capabilities/retry.ts'
import { createAgent } from '../create-agent.ts'
import type { Run } from '../agent/run.ts'
import { failureOf, rows, scenario, shownText, streamed, type Row } from './provider-suite.fixture.ts'

// What goes wrong on the way to a provider and back, for every provider, run and streamed.

const FOX = 'The quick brown fox jumps over the lazy dog.'
const quick = retry({ backoffMs: 1 })

scenario('a provider that wants to wait is waited for, and asked again', async ({ mode, model, server, run }) => {
  server.next({ error: { message: 'Slow down.' }, status: 429, retryAfter: 0.06 }, { content: FOX })
  const begun = performance.now()
  const { run: ended, events } = await run(createAgent({ model, use: [quick] }))
  assert.equal(ended.text, FOX)
  assert.ok(performance.now() - begun >= 59)
  assert.match(failedAttempts(ended).join(), /^attempt 1, .* answered 429: Slow down\.$/)
  if (mode === 'stream') assert.equal(events.filter((event) => event.type === 'inferenceStarted').length, 2)
})

scenario('a failure says its kind, its status and how long to wait', async ({ row, model, server, run }) => {
  server.next({ error: { message: 'Slow down.' }, status: 429, retryAfter: 7 })
  const error = failureOf(await run(createAgent({ model })))
  assert.equal(error.code, 'MODEL_RATE_LIMITED')
  assert.deepEqual(error.value, { provider: row.name, model: row.modelId, status: 429, retryAfterMs: 7_000 })
  assert.match(error.message, new RegExp(`^${row.name}/${row.modelId} answered 429: Slow down\\.`))
})

scenario('a provider that fails twice is asked a third time', async ({ model, server, run }) => {
  const failing = { error: { message: 'Internal error' }, status: 500 }
  server.next(failing, failing, { content: FOX })
  const { run: ended } = await run(createAgent({ model, use: [quick] }))
  assert.equal(ended.text, FOX)
  assert.match(failedAttempts(ended).join(), /^attempt 1, .* answered 500: .*,attempt 2, .* answered 500: .*$/)
})

scenario('another provider answers when one fails', async ({ row, model, server, run, told }) => {
  const other = rows[(rows.indexOf(row) + 1) % rows.length]!
  server.next({ error: { message: 'Internal error' }, status: 500 }, { content: FOX })
  const backup = other.create(server.url, 'key')(other.modelId)
  const { run: ended } = await run(createAgent({ model, use: [fallback([backup])] }))
  assert.equal(ended.text, FOX)
  assert.deepEqual(
    server.requests.map(({ path }) => path.split(':')[0]),
    [row.path, other.path],
  )
  assert.deepEqual(told()[0], ['user: Go.'])
})

for (const ending of ['cut', 'ended'] as const) {
  const broken = { says: { content: FOX }, upTo: 'The quick brown', ending }

  scenario(`an answer that is ${ending} in the middle is no answer`, async ({ mode, model, server, run }) => {
    server.next(broken)
    const { code } = failureOf(await run(createAgent({ model })))
    // Half of a JSON text that was sent in order can only be seen as nonsense.
    assert.equal(code, mode === 'run' && ending === 'ended' ? 'MODEL_REPLY_INVALID' : 'MODEL_UNREACHABLE')
  })

  scenario(
    `an answer that is ${ending} in the middle is asked for again, and shown once`,
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

scenario('a call that was cut off is not made', async ({ model, server, run, calls }) => {
  const { act, done } = actor()
  const call = { name: 'act', arguments: '{"what":"rm -rf build and nothing else"}', id: 'c1' }
  server.next({ says: calls(call), upTo: 'rm -rf', withinEvent: true, ending: 'ended' })
  const { code } = failureOf(await run(createAgent({ model, use: [act] })))
  assert.match(code, /^MODEL_(UNREACHABLE|REPLY_INVALID)$/)
  assert.deepEqual(done, [])
})

scenario('an answer that ends before it begins is no answer', async ({ mode, model, server, run }) => {
  server.next(mode === 'run' ? { body: '' } : { headers: { 'content-type': 'text/event-stream' }, body: '' })
  const { code } = failureOf(await run(createAgent({ model })))
  assert.equal(code, mode === 'run' ? 'MODEL_REPLY_INVALID' : 'MODEL_UNREACHABLE')
})

scenario('a provider that does not begin in time is hung up on', async ({ model, server, run }) => {
  server.next({ body: undefined })
  const error = failureOf(await run(createAgent({ model, settings: { timeoutMs: 2_000 } })))
  assert.equal(error.code, 'MODEL_TIMED_OUT')
  assert.match(error.message, /did not finish within 2000 ms/)
  await server.requests[0]!.hungUp()
})

scenario('a provider that stops in the middle is hung up on', async ({ mode, model, server, run }) => {
  server.next({ says: { content: FOX }, upTo: 'The quick brown', ending: 'stalled' })
  const settings = mode === 'run' ? { timeoutMs: 2_000 } : { idleTimeoutMs: 2_000 }
  const error = failureOf(await run(createAgent({ model, settings })))
  assert.equal(error.code, 'MODEL_TIMED_OUT')
  assert.match(error.message, mode === 'run' ? /did not finish within 2000 ms/ : /was silent for 2000 ms/)
  await server.requests[0]!.hungUp()
})

scenario(
  'only a stream can be silent: an answer in one piece may take its time',
  async ({ mode, model, server, run }) => {
    server.next({ says: { content: FOX }, body: (said) => said, afterMs: 80 })
    const { run: ended } = await run(createAgent({ model, settings: { idleTimeoutMs: 30 } }))
    assert.equal(ended.status, mode === 'run' ? 'completed' : 'failed')
  },
)

scenario('a stream that is slow but never silent is read to its end', async ({ mode, model, server, run }) => {
  const content = FOX.repeat(8)
  server.next({ says: { content }, body: (said) => said, piecesEveryMs: 800 })
  const begun = performance.now()
  const { run: ended } = await run(createAgent({ model, settings: { idleTimeoutMs: 2_000 } }))
  assert.equal(ended.text, content)
  if (mode === 'stream') assert.ok(performance.now() - begun > 2_000)
})

scenario('a time limit holds for each attempt', async ({ model, server, run }) => {
  server.next({ body: undefined }, { content: FOX })
  const { run: ended } = await run(createAgent({ model, use: [quick], settings: { timeoutMs: 3_000 } }))
  assert.equal(ended.text, FOX)
  assert.match(failedAttempts(ended).join(), /^attempt 1, .* did not finish within 3000 ms\.$/)
})

scenario('an answer that is not JSON is told as such, whatever it says', async ({ row, mode, model, server, run }) => {
  const nonsense = '{"oops": the socket timed out, the context window is too long, rate limit'
  server.next(mode === 'run' ? { body: nonsense } : streamed(nonsense))
  const error = failureOf(await run(createAgent({ model })))
  assert.equal(error.code, 'MODEL_REPLY_INVALID', row.name)
})

scenario('an answer that is JSON but none is told as such', async ({ mode, model, server, run }) => {
  const nonsense = '{"choices":"none","candidates":7,"output":3,"content":false,"type":4}'
  server.next(mode === 'run' ? { body: nonsense } : streamed(nonsense))
  assert.equal(failureOf(await run(createAgent({ model }))).code, 'MODEL_REPLY_INVALID')
})

scenario('a page of a proxy in the place of an answer is told as such', async ({ model, server, run }) => {
  server.next({ status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' })
  const error = failureOf(await run(createAgent({ model })))
  assert.equal(error.code, 'MODEL_OVERLOADED')
})

scenario(
  'arguments that are not quite JSON are mended, and that is said',
  async ({ mode, model, server, run, calls }) => {
    const { act, done } = actor()
    const says = calls({ name: 'act', arguments: '{"what":"tidy up"}', id: 'c1' })
    server.next({ says, body: (said) => said.replaceAll('tidy up\\"}', 'tidy up\\",}') }, { content: 'Done.' })
    const { run: ended, events } = await run(createAgent({ model, use: [act] }))
    assert.deepEqual([ended.text, done], ['Done.', [{ what: 'tidy up' }]])
    if (mode === 'stream') assert.match(events.find((event) => event.type === 'warning')?.message ?? '', /mended/)
  },
  { only: writesArguments },
)

scenario(
  'arguments that cannot be read are told to the model',
  async ({ model, server, run, calls, told }) => {
    const { act, done } = actor()
    const says = calls({ name: 'act', arguments: '{"what":"rm -r"}', id: 'c1' })
    server.next({ says, body: (said) => said.replaceAll('rm -r\\"}', 'rm -r') }, { content: 'Sorry.' })
    const { run: ended } = await run(createAgent({ model, use: [act] }))
    assert.deepEqual([ended.text, done], ['Sorry.', []])
    assert.equal(told()[1]![1], 'call c1 act {"unreadable":"{\\"what\\":\\"rm -r"}')
    assert.match(told()[1]![2]!, /^result c1 .*JSON/)
  },
  { only: writesArguments },
)

/** Where arguments come as text. Elsewhere they are part of the JSON of the answer, and cannot be wrong on their own. */
function writesArguments({ wire }: Row, mode: string): boolean {
  return wire === 'responses' || wire === 'chat' || (wire === 'messages' && mode === 'stream')
}

scenario('a run that is cancelled before the answer begins hangs up', async ({ model, server, run }) => {
  const controller = new AbortController()
  server.next({ body: undefined })
  const running = run(createAgent({ model, use: [quick] }), 'Go.', { signal: controller.signal })
  await server.received(1)
  controller.abort()
  assert.equal((await running).run.status, 'cancelled')
  await server.requests[0]!.hungUp()
})

scenario('a run that is cancelled in the middle of an answer hangs up', async ({ mode, model, server, run }) => {
  const controller = new AbortController()
  server.next({ says: { content: FOX }, upTo: 'The quick brown', ending: 'stalled' })
  const running = run(createAgent({ model, use: [quick] }), 'Go.', {
    signal: controller.signal,
    onEvent: (event) => event.type === 'text' && controller.abort(),
  })
  await server.received(1)
  await server.requests[0]!.toldHalf
  if (mode === 'run') controller.abort()
  assert.equal((await running).run.status, 'cancelled')
  await server.requests[0]!.hungUp()
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

/** The attempts that failed, as the ledger has them. */
function failedAttempts({ ledger }: Run): readonly string[] {
  return ledger.filter(({ decision }) => decision === 'failed').map(({ message = '' }) => message)
}
