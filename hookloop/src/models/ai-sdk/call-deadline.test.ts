import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { beforeEach, test, type TestContext } from 'node:test'
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

test('the default timeout of a call is ten minutes', (t) => {
  const deadline = new CallDeadline(new AbortController().signal)
  t.mock.timers.tick(599_999)
  assert.ok(!deadline.signal.aborted)
  t.mock.timers.tick(1)
  assert.equal((deadline.expired as AgentError | undefined)?.code, 'MODEL_TIMED_OUT')
})

test('a cancellation rejects the work with its own reason', async () => {
  const run = new AbortController()
  const deadline = new CallDeadline(run.signal)
  const waiting = deadline.within(never)
  run.abort('enough')
  await assert.rejects(waiting, (reason) => reason === 'enough')
  assert.equal(deadline.expired, undefined)
})

test('no listener is left on the signal of the run or of the deadline', async () => {
  const run = new AbortController()
  const deadline = new CallDeadline(run.signal)
  await deadline.within(Promise.resolve())
  deadline.clear()
  assert.deepEqual([...getEventListeners(run.signal, 'abort'), ...getEventListeners(deadline.signal, 'abort')], [])
})
