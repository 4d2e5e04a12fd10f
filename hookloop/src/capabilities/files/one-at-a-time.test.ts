import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { oneAtATime } from './one-at-a-time.ts'

test('work on one path is done one after the other, also after a failure, and other paths do not wait', async () => {
  const done: string[] = []
  const work = (path: string, name: string, ms: number): Promise<void> =>
    oneAtATime(path, async () => {
      done.push(`${name} begins`)
      await sleep(ms)
      done.push(`${name} ends`)
      if (name === 'first') throw new Error('failed')
    })
  const all = [work('a', 'first', 30), work('a', 'second', 1), work('b', 'other', 1), work('a', 'third', 1)]
  const ends = await Promise.allSettled(all)
  assert.deepEqual(
    done.filter((each) => !each.startsWith('other')),
    ['first begins', 'first ends', 'second begins', 'second ends', 'third begins', 'third ends'],
  )
  assert.ok(done.indexOf('other ends') < done.indexOf('first ends'))
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
  )
})
