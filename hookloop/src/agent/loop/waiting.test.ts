import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Waiting } from './waiting.ts'

test('what is still waited for is given up, whichever of the others ended before', async () => {
  const waiting = new Waiting()
  const never = new Promise<string>(() => undefined)
  const ended: string[] = []
  for (const work of [never, Promise.resolve('done'), Promise.reject<string>(new Error('broken')), never]) {
    waiting.for(work).then(
      (value) => ended.push(value),
      (error: Error) => ended.push(error.message),
    )
  }
  await nextTurn()
  waiting.giveUp(new Error('over'))
  await nextTurn()
  assert.deepEqual(ended, ['done', 'broken', 'over', 'over'])
})
