import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentError } from '../errors.ts'
import type { Json } from '../state/json.ts'
import { liveEffects, type Effect } from './effects.ts'
import { RecordedEffects, Recorder, recordEffects, type RunEntry } from './record-effects.ts'
import { memoryRecording, type RecordEntry } from './recording.ts'

/** The effects of a run that resumes after these entries, what it performs, and what it records. */
function resumed(entries: readonly RecordEntry[], isClosing = false) {
  const [done, written]: [string[], RunEntry[]] = [[], []]
  const journal = {
    append: (entry: RunEntry) => void written.push(entry),
    flush: () => undefined,
    flushSoon: () => undefined,
  }
  const inner = liveEffects()({ signal: new AbortController().signal, emit: undefined })
  const effects = new RecordedEffects(inner, new Recorder(journal, { entries, isClosing }), { run: 'r', now: 1 })
  const perform = (key: string, kind: Effect['kind'], input: Json = {}, more: Partial<Effect> = {}): unknown =>
    effects.perform({ key, kind, input: () => input, ...more }, () => {
      done.push(key)
      return 'done now'
    })
  return { done, written, perform, effects }
}

const begin = (key: string, kind: string, input: Json = {}): RecordEntry => ({ type: 'begin', key, kind, input })
const end = (key: string, value: Json = 'recorded'): RecordEntry => ({ type: 'end', key, at: 2, value })
const diverged = { code: 'REPLAY_DIVERGED' }

test('after a run has diverged no further effect is performed or recorded, even if a hook swallows the error', () => {
  const { done, written, perform } = resumed([begin('r.2/0/inference', 'inference', 1), end('r.2/0/inference')])
  assert.throws(() => perform('r.2/0/inference', 'inference', 2), diverged)
  for (const kind of ['tool', 'hook', 'inference', 'approval', 'sleep'] as const) {
    assert.throws(() => perform(`r.2/0/1/${kind}`, kind), diverged, kind)
  }
  assert.throws(() => perform('r.2/0/inference', 'inference', 1), diverged)
  assert.deepEqual([done, written], [[], []])
})

test('a call that was not started before is not started while a recorded call was not asked for', () => {
  const entries = [begin('r.2/0/1/tool', 'tool'), end('r.2/0/1/tool')]
  const skips = resumed(entries)
  assert.throws(() => skips.perform('r.2/0/0/tool', 'tool'), diverged)
  const approval = resumed([begin('r.2/0/0/approval', 'approval'), end('r.2/0/0/approval', { block: 'No.' })])
  assert.throws(() => approval.perform('r.2/0/0/tool', 'tool'), diverged)
  const hook = resumed(entries)
  assert.throws(() => hook.perform('r.2/1/afterExecution/mail', 'hook', {}, { mode: 'transform' }), diverged)
  const same = resumed(entries)
  assert.deepEqual(
    [same.perform('r.2/0/1/tool', 'tool'), same.perform('r.2/0/2/tool', 'tool')],
    ['recorded', 'done now'],
  )
  // Observers, what happens inside a call, and other agents of the run have no fixed order.
  const others = resumed(entries)
  others.perform('r.2/0/onStop/watch', 'hook', {}, { mode: 'observe' })
  others.perform('r.2/0/1/tool/1', 'tool')
  others.perform('r/0.0.2/0/0/tool', 'tool')
  assert.equal(others.done.length, 3)
})

test('a call that was started is repeated only if it was idempotent when it started and is so now', () => {
  const unknown = (): Json => 'unknown'
  const started = (idempotent: boolean): RecordEntry => ({
    type: 'begin',
    key: 'r.2/0/0/tool',
    kind: 'tool',
    input: {},
    ...(idempotent && { idempotent }),
  })
  for (const [then, now, result] of [
    [true, true, 'done now'],
    [true, false, 'unknown'],
    [false, true, 'unknown'],
    [false, false, 'unknown'],
  ] as const) {
    const { perform } = resumed([started(then)])
    assert.equal(perform('r.2/0/0/tool', 'tool', {}, { unknown, idempotent: now }), result, `${then} ${now}`)
  }
})

test('a run that closes its step uses the recorded change of a hook, and asks a guard again about another value', () => {
  const entries = ['transform', 'guard'].flatMap((mode) => [begin(mode, 'hook', 1), end(mode)])
  const { perform } = resumed(entries, true)
  assert.equal(perform('transform', 'hook', 2, { mode: 'transform' }), 'recorded')
  assert.equal(perform('guard', 'hook', 2, { mode: 'guard' }), 'done now')
})

test('a run that resumes has the time at which each recorded effect ended', () => {
  const entries = [begin('r.2/0/inference', 'inference'), end('r.2/0/inference')]
  const { effects, perform } = resumed(entries)
  assert.equal(effects.now(), 1)
  perform('r.2/0/inference', 'inference')
  assert.equal(effects.now(), 2)
})

test('an effect that failed fails with the same code, message and value when its run resumes', () => {
  for (const value of [{ status: 503 }, undefined]) {
    const { effects, written } = resumed([])
    const effect: Effect = { key: 'r.2/0/inference', kind: 'inference', input: () => ({}) }
    const fails = (): never => {
      throw new AgentError('MODEL_FAILED', 'busy', { value })
    }
    const failure = (error: unknown): boolean => {
      assert.ok(error instanceof AgentError)
      assert.deepEqual([error.code, error.message, error.value], ['MODEL_FAILED', 'busy', value])
      return true
    }
    assert.throws(() => effects.perform(effect, fails), failure)
    const { done, perform } = resumed(written)
    assert.throws(() => perform(effect.key, effect.kind), failure)
    assert.deepEqual(done, [])
  }
})

test('a recording that has an entry is not used for another run', () => {
  const recording = memoryRecording()
  const start = () => recordEffects(recording)({ signal: new AbortController().signal, emit: undefined })
  start()
  recording.append(begin('r/0/inference', 'inference'))
  assert.throws(start, { code: 'RECORDING_INVALID', message: /already has a run/ })
})

test('recordEffects names itself and the argument at fault', () => {
  assert.throws(() => recordEffects({} as never), { message: /^recordEffects: "recording" must be / })
  assert.throws(() => recordEffects(memoryRecording(), 'live' as never), {
    message: /^recordEffects: "inner" must be /,
  })
})

test('a recorded timeout ends the same wait at the same time, also if the work has failed', async () => {
  const { effects } = resumed([{ type: 'timeout', key: 'r.2/0/0/fits', at: 50, ms: 5 }])
  const aborted: AgentError[] = []
  const limit = { ms: 5, key: () => 'r.2/0/0/fits', abort: (error: AgentError) => void aborted.push(error) }
  const waiting = effects.withTimeout(Promise.reject(new Error('broken')), limit)
  await assert.rejects(waiting, (error) => error === aborted[0] && aborted[0]?.code === 'HOOK_TIMED_OUT')
  assert.equal(effects.now(), 50)
})

test('a wait during which the run had reached its time limit ends the time of the run again', async () => {
  const { effects } = resumed([{ type: 'abort', key: 'r.2/0/0/fits', by: 'limit' }])
  const wait = (key: string): Promise<number> => effects.withTimeout(Promise.resolve(1), { ms: 5, key: () => key })
  await wait('r.2/0/0/parse')
  assert.equal(effects.ended(), undefined)
  await wait('r.2/0/0/fits')
  assert.equal(effects.ended(), 'limit')
})

test('a wait during which the run reaches its time limit is recorded', async () => {
  const { effects, written } = resumed([])
  const { promise, resolve } = Promise.withResolvers<number>()
  const waiting = effects.withTimeout(promise, { ms: 60_000, key: () => 'r.2/0/0/fits' })
  effects.time.expire()
  resolve(1)
  assert.equal(await waiting, 1)
  assert.deepEqual(written, [{ type: 'abort', key: 'r.2/0/0/fits', by: 'limit' }])
})

test('a cancel that an earlier process noticed ends all scopes, and a time limit only its own', () => {
  const stop = { by: 'ann', reason: 'lunch', at: 3 }
  const cancelled = resumed([{ type: 'cancel', check: 1, scope: '/a', stop }]).effects
  assert.deepEqual(
    [cancelled.ended(), cancelled.scope('a').ended(), cancelled.time.stopRequest()],
    ['cancel', 'cancel', stop],
  )
  const limited = resumed([{ type: 'cancel', check: 1, scope: '/a', by: 'limit' }]).effects
  assert.deepEqual([limited.ended(), limited.scope('a').ended()], [undefined, 'limit'])
})

test('of two runs that start with the same recording the second one fails', () => {
  const record = recordEffects(memoryRecording())
  const [first, second] = [1, 2].map(() => record({ signal: undefined, emit: undefined }))
  const effect = { key: 'r/0/tool', kind: 'tool', input: () => ({}) } as const
  assert.equal(
    first!.perform(effect, () => 1),
    1,
  )
  assert.throws(() => second!.perform(effect, () => 1), {
    code: 'RECORDING_FAILED',
    message: /^Another run has started/,
  })
})
