import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { beforeEach, test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { AgentError } from '../../errors.ts'
import { CallDeadline } from './call-deadline.ts'

const never = new Promise<never>(() => undefined)

beforeEach((t) => (t as TestContext).mock.timers.enable({ apis: ['setTimeout'] }))

test('work that takes too long is rejected, and its signal aborts', async (t) => {
  const deadline = new CallDeadline(new AbortController().signal, { timeoutMs: 10 })
  const waiting = deadline.within(never)
  t.mock.timers.tick(10)
  await assert.rejects(waiting, { code: 'MODEL_TIMED_OUT', value: { afterMs: 10 } })
  assert.ok(deadline.signal.aborted)
  assert.match(deadline.expired!.message, /did not finish within 10 ms/)
})

test('the idle timeout of a stream starts again with each piece', async (t) => {
  const deadline = new CallDeadline(new AbortController().signal, { idleTimeoutMs: 60 })
  for (let piece = 0; piece < 4; piece++) {
    deadline.touch()
    t.mock.timers.tick(59)
  }
  assert.equal(deadline.expired, undefined)
  t.mock.timers.tick(1)
  await assert.rejects(deadline.within(never), { message: /sent nothing for 60 ms/ })
})

test('the idle timeout does not apply to a call that is not streamed', async (t) => {
  const deadline = new CallDeadline(new AbortController().signal, { idleTimeoutMs: 5 })
  t.mock.timers.tick(1_000)
  assert.equal(await deadline.within(Promise.resolve('done')), 'done')
})

test('the default timeout of a call is ten minutes', (t) => {
  const deadline = new CallDeadline(new AbortController().signal)
  t.mock.timers.tick(599_999)
  assert.ok(!deadline.signal.aborted)
  t.mock.timers.tick(1)
  assert.equal((deadline.expired as AgentError | undefined)?.code, 'MODEL_TIMED_OUT')
})

test('a call that has ended does not time out', (t) => {
  const deadline = new CallDeadline(new AbortController().signal, { timeoutMs: 10, idleTimeoutMs: 5 })
  deadline.touch()
  deadline.clear()
  t.mock.timers.tick(1_000)
  assert.equal(deadline.expired, undefined)
})

test('a cancellation rejects the work with its own reason', async () => {
  const run = new AbortController()
  const deadline = new CallDeadline(run.signal)
  const waiting = deadline.within(never)
  run.abort('enough')
  await assert.rejects(waiting, (reason) => reason === 'enough')
  assert.equal(deadline.expired, undefined)
})

test('work is rejected at once if the run was cancelled before', async () => {
  await assert.rejects(new CallDeadline(AbortSignal.abort('before')).within(never), (reason) => reason === 'before')
})

test('no listener is left on the signal of the run or of the deadline', async () => {
  const run = new AbortController()
  const deadline = new CallDeadline(run.signal)
  await deadline.within(Promise.resolve())
  deadline.clear()
  assert.deepEqual([...getEventListeners(run.signal, 'abort'), ...getEventListeners(deadline.signal, 'abort')], [])
})

test('a timeout longer than the longest timer does not fire at once', async (t) => {
  t.mock.timers.reset() // only real timers have a longest delay
  const deadline = new CallDeadline(new AbortController().signal, { timeoutMs: 1e12, idleTimeoutMs: Infinity })
  deadline.touch()
  await delay(5)
  assert.equal(deadline.expired, undefined)
  deadline.clear()
})
