import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { HookMemory } from '../../hook-files/claude/run/hook-memory.ts'
import type { RanHandler } from '../../hook-files/claude/run/run-event.ts'
import { Wakes } from './wake-queue.ts'

/** A hook in the background that has ended with these words for the model. */
async function ended(memory: HookMemory, wakes: Wakes, words: string, session = 's'): Promise<void> {
  const ran = { answer: { wakes: words }, durationMs: 1 } as unknown as RanHandler
  memory.follow(session, Promise.resolve(ran), { stop: new AbortController(), onWake: wakes.add })
  await soon()
}

test('what hooks want to be heard is taken once, and by its own session', async () => {
  const [memory, wakes] = [new HookMemory(), new Wakes()]
  const { signal } = wakes
  await ended(memory, wakes, 'one')
  await ended(memory, wakes, 'two')
  await ended(memory, wakes, 'other', 't')
  assert.ok(signal.aborted)
  assert.deepEqual([wakes.take('s'), wakes.take('s'), wakes.signal.aborted], [['one', 'two'], [], false])
})

test('what was heard in a turn already wakes nobody', async () => {
  const [memory, wakes] = [new HookMemory(), new Wakes()]
  await ended(memory, wakes, 'early')
  assert.deepEqual(memory.takeLate('s'), ['early'])
  assert.deepEqual(wakes.take('s'), [])
})

test('after eight in a row somebody has to say something', async () => {
  const [memory, wakes] = [new HookMemory(), new Wakes()]
  const taken: unknown[] = []
  for (let i = 0; i < 10; i++) {
    await ended(memory, wakes, 'again')
    taken.push(wakes.take('s'))
  }
  assert.deepEqual(taken, [...Array.from({ length: 8 }, () => ['again']), 'tired', 'tired'])
  wakes.reset()
  await ended(memory, wakes, 'again')
  assert.deepEqual(wakes.take('s'), ['again'])
})
