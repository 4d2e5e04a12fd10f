import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { HookMemory } from '../../hook-files/claude/run/hook-memory.ts'
import type { RanHandler } from '../../hook-files/claude/run/run-event.ts'
import { WakeQueue } from './wake-queue.ts'

/** A background hook that has ended with a message for the model. */
async function ended(memory: HookMemory, wakes: WakeQueue, words: string, session = 's'): Promise<void> {
  const ran = { answer: { wakes: words }, durationMs: 1 } as unknown as RanHandler
  memory.follow(session, Promise.resolve(ran), { stop: new AbortController(), onWake: wakes.add })
  await soon()
}

test('messages of background hooks are taken once, by their own session', async () => {
  const [memory, wakes] = [new HookMemory(), new WakeQueue()]
  const { signal } = wakes
  await ended(memory, wakes, 'one')
  await ended(memory, wakes, 'two')
  await ended(memory, wakes, 'other', 't')
  assert.ok(signal.aborted)
  assert.deepEqual([wakes.take('s'), wakes.take('s'), wakes.signal.aborted], [['one', 'two'], [], false])
})

test('a message that the model has received does not wake it', async () => {
  const [memory, wakes] = [new HookMemory(), new WakeQueue()]
  await ended(memory, wakes, 'early')
  assert.deepEqual(memory.takeLate('s'), ['early'])
  assert.deepEqual(wakes.take('s'), [])
})

test('after eight wakes in a row the user has to write first', async () => {
  const [memory, wakes] = [new HookMemory(), new WakeQueue()]
  const taken: unknown[] = []
  for (let i = 0; i < 10; i++) {
    await ended(memory, wakes, 'again')
    taken.push(wakes.take('s'))
  }
  assert.deepEqual(taken, [...Array.from({ length: 8 }, () => ['again']), 'limitReached', 'limitReached'])
  wakes.reset()
  await ended(memory, wakes, 'again')
  assert.deepEqual(wakes.take('s'), ['again'])
})
