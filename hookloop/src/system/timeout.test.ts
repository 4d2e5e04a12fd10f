import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { mock, test } from 'node:test'
import { abortable, Deadline, waitAtMost, withTimeout } from './timeout.ts'

const never = new Promise<never>(() => undefined)
const tooLate = (): Error => new Error('too late')

test('withTimeout returns what the work returns, rejects as it does, and rejects with its own error when time is up', async () => {
  assert.equal(await withTimeout(Promise.resolve('done'), 1_000, tooLate), 'done')
  await assert.rejects(withTimeout(Promise.reject(new Error('broken')), 1_000, tooLate), /broken/)
  await assert.rejects(withTimeout(never, 0, tooLate), /too late/)
})

test('work that rejects after the timeout is not an unhandled rejection', async () => {
  const { promise, reject } = Promise.withResolvers<never>()
  await assert.rejects(withTimeout(promise, 0, tooLate), /too late/)
  reject(new Error('later'))
  await new Promise(setImmediate)
})

test('waitAtMost resolves with nothing when time is up, and rejects as the work does', async () => {
  assert.equal(await waitAtMost(Promise.resolve('done'), 1_000), 'done')
  assert.equal(await waitAtMost(never, 0), undefined)
  await assert.rejects(waitAtMost(Promise.reject(new Error('broken')), 1_000), /broken/)
})

test('no timer is left when the work is done', async (t) => {
  const cleared = t.mock.method(globalThis, 'clearTimeout')
  await withTimeout(Promise.resolve(), 1_000, tooLate)
  await waitAtMost(Promise.resolve(), 1_000)
  new Deadline().clear()
  assert.equal(cleared.mock.callCount(), 3)
})

test('a limit that is longer than a timer can wait does not fire at once', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const waiting = withTimeout(never, Infinity, tooLate)
    const rejected = assert.rejects(waiting, /too late/)
    const deadline = new Deadline()
    deadline.start(1e12, tooLate)
    mock.timers.tick(2 ** 31 - 2)
    assert.equal(deadline.expired, undefined)
    mock.timers.tick(1)
    assert.ok(deadline.expired)
    await rejected
  } finally {
    mock.timers.reset()
  }
})

test('abortable rejects with the reason of the signal, also when it has aborted before, and leaves no listener', async () => {
  const controller = new AbortController()
  assert.equal(await abortable(Promise.resolve('done'), controller.signal), 'done')
  assert.equal(await abortable(Promise.resolve('done'), undefined), 'done')
  assert.deepEqual(getEventListeners(controller.signal, 'abort'), [])
  const waiting = abortable(never, controller.signal)
  controller.abort(new Error('stopped'))
  await assert.rejects(waiting, /stopped/)
  await assert.rejects(abortable(never, controller.signal), /stopped/)
})

test('a deadline aborts its signal with the error when time is up', async () => {
  const deadline = new Deadline()
  deadline.start(0, tooLate)
  await assert.rejects(abortable(never, deadline.signal), /too late/)
  assert.match(deadline.expired!.message, /too late/)
})

test('a deadline aborts with its parent, has not expired then, and leaves nothing on it', () => {
  const parent = new AbortController()
  const cleared = new Deadline(parent.signal)
  cleared.clear()
  assert.deepEqual(getEventListeners(parent.signal, 'abort'), [])
  const deadline = new Deadline(parent.signal)
  parent.abort('stopped')
  assert.equal(deadline.signal.reason, 'stopped')
  assert.equal(deadline.expired, undefined)
  assert.equal(new Deadline(parent.signal).signal.reason, 'stopped')
  assert.equal(cleared.signal.aborted, false)
})
