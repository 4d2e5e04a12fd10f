import { oddLines, same, write, type Case } from './store-contract-scene.ts'

/** The contract of reading parts of a session. */
export const partsContract: readonly Case[] = [
  [
    'what was read does not change with later appends, and a writer reads what it appended',
    async ({ store }) => {
      const sessions = await store()
      await write(sessions, 'given', ['one'], { of: 1 })
      const writer = await sessions.open('given')
      const [before, own] = [await sessions.read('given'), await writer.read()]
      await writer.append(['two'])
      same([writer.length, writer.head], [1, { of: 1 }])
      same([before?.lines, own.lines], [['one'], ['one']])
      same(await writer.read(), { head: { of: 1 }, lines: ['one', 'two'] })
    },
  ],
  [
    'only the lines after a number are read if it is given, also of several appends and by another store',
    async ({ store }) => {
      const sessions = await store()
      const writer = await sessions.open('part', { create: true })
      const lines = Array.from({ length: 12 }, (_, i) => `line ${i}`)
      for (const [from, to] of [
        [0, 1],
        [1, 5],
        [5, 6],
        [6, 12],
      ] as const)
        await writer.append(lines.slice(from, to), { to })
      for (const after of [-1, 0, 1, 3, 4, 5, 10, 11, 12, Infinity]) {
        const part = { head: { to: 12 }, lines: lines.slice(after + 1) }
        same([after, await writer.read({ after })], [after, part])
        same([after, await (await store()).read('part', { after })], [after, part])
      }
      await writer.release()
      same(await (await sessions.open('part')).read({ after: 9 }), { head: { to: 12 }, lines: lines.slice(10) })
      same(await sessions.read('none', { after: 3 }), undefined)
    },
  ],
  [
    'pages are added and replaced from a number on, with the lines that refer to them',
    async ({ store }) => {
      const sessions = await store()
      const writer = await sessions.open('paged', { create: true })
      same((await writer.read({ pages: true })).pages, [])
      const changes = [
        { keep: 0, add: ['a', 'b'] },
        { keep: 2, add: ['c', oddLines.join(' ')] },
        { keep: 1, add: ['d'] },
        { keep: 2, add: [] },
        { keep: 2, add: ['e', 'f'] },
        { keep: 0, add: ['g'] },
      ]
      let pages: string[] = []
      for (const [i, { keep, add }] of changes.entries()) {
        pages = [...pages.slice(0, keep), ...add]
        await writer.append([`line ${i}`], i === 0 ? { of: 'pages' } : undefined, { keep, add })
        const expected = { head: { of: 'pages' }, lines: [`line ${i}`], pages }
        same(await writer.read({ after: i - 1, pages: true }), expected)
        same(await (await store()).read('paged', { after: i - 1, pages: true }), expected)
      }
      same(Object.keys((await sessions.read('paged'))!).toSorted(), ['head', 'lines'])
      await writer.release()
      same((await sessions.read('paged'))?.lines.length, changes.length)
      await sessions.delete('paged')
      const again = await sessions.open('paged', { create: true })
      same(await again.read({ pages: true }), { head: {}, lines: [], pages: [] })
    },
  ],
]
