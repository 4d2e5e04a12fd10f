import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mock, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { observe } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { explain } from '../explain/explain.ts'
import { startedTimers } from '../../system/started-timers.fixture.ts'
import { BackgroundWork } from './background-work.ts'

test('an observer that is still running 5 s after the end of a run is reported, once', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const errors: unknown[] = []
    const { promise, reject } = Promise.withResolvers<never>()
    const work = new BackgroundWork()
    work.watch(promise, (error) => errors.push(error))
    const draining = work.drainObservers()
    mock.timers.tick(5_000)
    await draining
    assert.match(String(errors), /still running 5 s after the end of the run, and was left behind/)
    reject(new Error('later'))
    await new Promise(setImmediate)
    assert.equal(errors.length, 1)
    assert.equal(work.drainObservers(), undefined)
  } finally {
    mock.timers.reset()
  }
})

test('the signal of an observer aborts at its own timeout, and the run has a warning', async () => {
  const reasons: unknown[] = []
  const waits = observe(
    'beforeStep',
    async ({ signal }) => {
      await once(signal, 'abort')
      reasons.push(signal.reason)
      await new Promise(() => undefined)
    },
    { name: 'waits', timeoutMs: 1 },
  )
  const other = observe('beforeStep', ({ signal }) => void reasons.push(signal.aborted), { name: 'other' })
  const run = await createAgent({ model: scriptedModel(['Done.']), use: [waits, other] }).run('Go.')
  assert.equal(run.status, 'completed')
  assert.match(String(reasons), /^false,.*1 ms/)
  assert.match(run.warnings.map(({ message }) => message).join(), /"waits" failed at beforeStep: .*1 ms/)
  assert.match(explain(run), /waits/)
})

test('the timeout of an observer does not keep the process alive', async () => {
  const timersWith = async (options: { readonly timeoutMs?: number }): Promise<number> => {
    const [started, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const waits = observe('beforeStep', () => (setImmediate(() => started.resolve()), ended.promise), options)
    let running: Promise<unknown> | undefined
    const left = await startedTimers(async () => {
      running = createAgent({ model: scriptedModel(['Done.']), use: [waits] }).run('Go.')
      await started.promise
    })
    const timers = left()
    ended.resolve()
    await running
    return timers
  }
  assert.equal(await timersWith({ timeoutMs: 50_000 }), await timersWith({}))
})
