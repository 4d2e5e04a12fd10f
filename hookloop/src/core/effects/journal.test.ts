import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentError } from '../../errors.ts'
import { AgentState } from '../state/agent-state.ts'
import type { Json } from '../../values/json.ts'
import { noTokens } from '../state/usage.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { doing, effectOf, keyOf, processOf } from './effects.fixture.ts'
import { Suspended } from './journal.ts'
import { keyId } from './keys.ts'

test('an effect that is recorded is not performed again, and has its recorded time', async () => {
  const done: string[] = []
  const first = processOf()
  await first.clock.advance(500)
  await doing(done, first, effectOf(keyOf('a', 'model')), { text: 'hi' })
  const second = processOf(first.records)
  assert.deepEqual(await doing(done, second, effectOf(keyOf('a', 'model')), 'other'), { text: 'hi' })
  assert.deepEqual([done, second.effects.now(), second.records], [['a'], 1500, []])
})

test('the begin of an effect that must not repeat is stored before it happens, and its end with the next begin', async () => {
  const first = processOf()
  const seen: unknown[] = []
  const see = (): null => (seen.push(first.stored.map(({ t }) => t)), null)
  await first.effects.perform(effectOf(keyOf('a')), see)
  await first.effects.perform(effectOf(keyOf('b')), see)
  await first.effects.perform(effectOf(keyOf('c', 'model')), see)
  assert.deepEqual(seen, [['begin'], ['begin', 'end', 'begin'], ['begin', 'end', 'begin']])
  assert.deepEqual(first.records.map(({ t }) => t).join(), 'begin,end,begin,end,end')
})

test('an effect whose result cannot be had again is stored before its result is used', async () => {
  const first = processOf()
  await first.effects.perform(effectOf(keyOf('a', 'hook')), () => null)
  assert.deepEqual(
    first.stored.map(({ t }) => t),
    ['end'],
  )
})

test('an error is a result: another process gets the same code, message, value and time', async () => {
  const first = processOf()
  const error = new AgentError('MODEL_FAILED', 'overloaded', { value: { status: 529 } })
  const failing = (process: typeof first) =>
    process.effects.perform(effectOf(keyOf('a', 'model')), () => Promise.reject(error))
  await first.clock.advance(50)
  await assert.rejects(failing(first), error)
  const second = processOf(first.records)
  await assert.rejects(failing(second), { code: 'MODEL_FAILED', message: 'overloaded', value: { status: 529 } })
  assert.equal(second.effects.now(), 1050)
})

test('neither a suspension nor a failure of the store is recorded', async () => {
  for (const thrown of [
    new Suspended(),
    new AgentError('STORE_FAILED', 'full'),
    new AgentError('SESSION_FENCED', 'other'),
  ]) {
    const first = processOf()
    const throwing = first.effects.perform(effectOf(keyOf('a', 'ask')), () => Promise.reject(thrown))
    await assert.rejects(throwing, (error) => error === thrown)
    assert.deepEqual(
      first.records.map(({ t }) => t),
      ['begin'],
    )
  }
})

test('an effect whose begin cannot be stored is not performed', async () => {
  const done: string[] = []
  const full = new AgentError('STORE_FAILED', 'full')
  const first = processOf([], {
    flush: () => {
      throw full
    },
  })
  await assert.rejects(doing(done, first, effectOf(keyOf('a'))), full)
  assert.deepEqual(done, [])
})

test('an effect that has begun and has no end gets its unknown result as its end, or happens again without one', async () => {
  const done: string[] = []
  const first = processOf()
  void first.effects.perform(effectOf(keyOf('a')), () => new Promise<never>(() => undefined))
  await Promise.resolve()
  const unknown = { unknown: () => 'unknown' }
  const second = processOf(first.stored)
  assert.equal(await doing(done, second, effectOf(keyOf('a'), unknown)), 'unknown')
  assert.deepEqual(
    second.records.map(({ t }) => t),
    ['end'],
  )
  const third = processOf([...first.stored, ...second.records])
  assert.equal(await doing(done, third, effectOf(keyOf('a'))), 'unknown')
  assert.deepEqual(done, [])
  assert.equal(await doing(done, processOf(first.stored), effectOf(keyOf('a'))), 'done')
  assert.deepEqual(done, ['a'])
})

test('a sleep continues for the rest of its time', async () => {
  const clock = fakeClock({ startAt: 1000 })
  const first = processOf([], { clock })
  void first.effects.sleep(keyOf('nap', 'sleep'), 100)
  await clock.advance(60)
  const second = processOf(first.stored, { clock })
  let awake = false
  const sleeping = second.effects.sleep(keyOf('nap', 'sleep'), 100).then(() => (awake = true))
  await clock.advance(39)
  assert.equal(awake, false)
  await clock.advance(1)
  await sleeping
  assert.equal(second.effects.now(), 1100)
})

test('a timeout that is recorded ends the same wait at the same time, also if the work answers now', async () => {
  const first = processOf()
  const limit = { ms: 100, key: keyOf('hook', 'timeout') }
  const waiting = assert.rejects(first.effects.withTimeout(new Promise(() => undefined), limit), {
    code: 'HOOK_TIMED_OUT',
  })
  await first.clock.advance(100)
  await waiting
  const second = processOf(first.records)
  await assert.rejects(second.effects.withTimeout(Promise.reject(new Error('other')), limit), {
    code: 'HOOK_TIMED_OUT',
    message: 'No answer within 100 ms.',
    value: { hook: '', ms: 100 },
  })
  assert.equal(second.effects.now(), 1100)
})

test('a cancel is noticed at the same check by another process', () => {
  const first = processOf()
  assert.equal(first.effects.checkEnd(), undefined)
  first.cancel()
  assert.equal(first.effects.checkEnd(), 'cancel')
  const second = processOf(first.records)
  void second.log.apply({ t: 'end', at: 1, key: keyOf('a', 'model'), value: null }) // not read yet: it repeats the run
  assert.deepEqual(
    [second.effects.checkEnd(), second.effects.checkEnd(), second.effects.checkEnd()],
    [undefined, 'cancel', 'cancel'],
  )
})

test('what happens is live once everything recorded was asked for, or something new was done', async () => {
  const first = processOf()
  for (const name of ['a', 'b']) await doing([], first, effectOf(keyOf(name, 'model')))
  const isLive = async (names: readonly string[]): Promise<boolean> => {
    const second = processOf(first.records)
    for (const name of names) await doing([], second, effectOf(keyOf(name, 'model')))
    return second.effects.journal.isLive
  }
  assert.deepEqual(await Promise.all([isLive([]), isLive(['a']), isLive(['a', 'b']), isLive(['c'])]), [
    false,
    false,
    true,
    true,
  ])
})

test('what effects have cost that no hook or call asked for is counted, without what an effect that has ended includes', async () => {
  const first = processOf()
  const usage = { ...noTokens, inputTokens: 10 }
  const costs = (costUsd: number): Json => ({ usage: { ...usage, costUsd } })
  await doing([], first, effectOf(keyOf('', 'model')), costs(1))
  await doing([], first, effectOf(keyOf('h', 'infer')), costs(2))
  await doing([], first, effectOf(keyOf('a', 'attempt')), costs(4))
  await doing([], first, effectOf(keyOf('a')), costs(4))
  const { log } = processOf(first.records)
  const { costUsd, inputTokens } = log.unreadUsage('')
  assert.deepEqual([costUsd, inputTokens, log.isAllRead], [7, 30, false])
  log.root.entries.get(keyId(keyOf('', 'model')))!.isRead = true
  assert.equal(log.unreadUsage('').costUsd, 6)
  log.apply({ t: 'step', at: 2000, change: {} }, true, AgentState.create({ agentId: 'a' }))
  assert.deepEqual([log.isAllRead, log.unreadUsage('').costUsd, log.root.entries.size], [true, 0, 0])
})
