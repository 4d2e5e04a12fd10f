import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oneAtATime } from './change-files.ts'

test('changes of one path run one after the other, also after a failure, and other paths do not wait', async () => {
  const done: string[] = []
  const blocked = Promise.withResolvers<void>()
  const work = (path: string, name: string, wait: Promise<void> = Promise.resolve()): Promise<void> =>
    oneAtATime(path, async () => {
      done.push(`${name} starts`)
      await wait
      done.push(`${name} ends`)
      if (name === 'first') throw new Error('failed')
    })
  const all = [work('a', 'first', blocked.promise), work('a', 'second'), work('b', 'other'), work('a', 'third')]
  await all[2]
  blocked.resolve()
  const ends = await Promise.allSettled(all)
  assert.deepEqual(
    done.filter((each) => !each.startsWith('other')),
    ['first starts', 'first ends', 'second starts', 'second ends', 'third starts', 'third ends'],
  )
  assert.ok(done.indexOf('other ends') < done.indexOf('first ends'))
  assert.deepEqual(
    ends.map(({ status }) => status),
    ['rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
  )
})
