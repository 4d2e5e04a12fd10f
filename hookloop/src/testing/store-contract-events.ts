import type { Piece, SessionStore, StoredSession } from '../sessions/stores/store.ts'
import { badIds, codeOf, oddLines, pause, same, type Case } from './store-contract-scene.ts'

const all = { after: -1, before: Infinity }

const pieces = (from: number, to: number): readonly Piece[] =>
  Array.from({ length: to - from + 1 }, (_, i) => ({ seq: from + i, text: `piece ${from + i}` }))

async function seqsOf(store: SessionStore, id: string, between = all): Promise<readonly number[] | undefined> {
  return (await store.read(id, { pieces: between }))?.pieces?.map(({ seq }) => seq)
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pause(1)
}

/** Counts the changes of a session, and notes the end. */
function watching(store: SessionStore, id: string) {
  const seen = { changes: 0, ends: 0 }
  const stop = store.watch(
    id,
    () => void seen.changes++,
    () => void seen.ends++,
  )
  return Object.assign(seen, { stop })
}

/** The contract of pieces, and of watching. */
export const eventsContract: readonly Case[] = [
  [
    'pieces are read between two numbers, with lines of the same moment, in the writing store and in another',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('parts', { create: true })
      await writer.append(['one', 'two'], { head: { of: 1 }, pieces: pieces(1, 2) })
      await writer.append([], { pieces: pieces(1_000_000_003, 1_000_000_004) })
      await writer.append(['three'], { pieces: pieces(9_000_000_000_000, 9_000_000_000_000) })
      for (const each of [mine, other]) {
        same(await seqsOf(each, 'parts'), [1, 2, 1_000_000_003, 1_000_000_004, 9_000_000_000_000])
        same(await seqsOf(each, 'parts', { after: 1, before: 1_000_000_004 }), [2, 1_000_000_003])
        same(await seqsOf(each, 'parts', { after: 9_000_000_000_000, before: Infinity }), [])
        same(await each.read('parts'), { head: { of: 1 }, lines: ['one', 'two', 'three'] })
        const found = await each.read('parts', { after: 0, before: 2, pieces: { after: 1, before: 3 } })
        const { key: _key, ...rest } = found as StoredSession
        same(rest, { head: { of: 1 }, lines: ['two'], pieces: [{ seq: 2, text: 'piece 2' }] })
      }
      same(await mine.read('none', { pieces: all }), undefined)
    },
  ],
  [
    'lines are read between two numbers',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('range', { create: true })
      await writer.append(['0', '1', '2'])
      await writer.append(['3', '4'])
      for (const each of [mine, other])
        for (const after of [-1, 0, 1, 2, 3, 4, 7, Infinity])
          for (const before of [0, 1, 2, 3, 4, 5, 9]) {
            const lines = (await each.read('range', { after, before }))?.lines
            same([after, before, lines], [after, before, ['0', '1', '2', '3', '4'].slice(after + 1, before)])
          }
    },
  ],
  [
    'the pieces of a turn are deleted when the next one starts, and those of the same append stay',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      let writer = await mine.open('turns', { create: true })
      await writer.append(['one'], { pieces: pieces(1, 3), startsTurn: true })
      await writer.append([], { pieces: pieces(4, 5) })
      await writer.release()
      writer = await other.open('turns')
      await writer.append(['two'], { pieces: pieces(6, 7), startsTurn: true })
      for (const each of [mine, other]) same(await seqsOf(each, 'turns'), [6, 7])
      await writer.append(['three'], { startsTurn: true })
      for (const each of [mine, other]) same(await seqsOf(each, 'turns'), [])
    },
  ],
  [
    'the key of a session stays the same until it is deleted and created again, and its pieces are gone then',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const keyOf = async (each: SessionStore): Promise<unknown> => (await each.read('again', { pieces: all }))?.key
      let writer = await mine.open('again', { create: true })
      await writer.append(['one'], { pieces: pieces(1, 2) })
      const first = await keyOf(mine)
      await writer.append(['two'])
      same([typeof first, await keyOf(mine), await keyOf(other)], ['string', first, first])
      await writer.release()
      await other.delete('again')
      writer = await mine.open('again', { create: true })
      same([(await keyOf(other)) === first, await seqsOf(other, 'again')], [false, []])
      await writer.append(['one'], { pieces: pieces(1, 1) })
      same(await seqsOf(mine, 'again'), [1])
    },
  ],
  [
    'a watcher is called after every change, also by another store, until it stops; it need not exist yet',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const [own, foreign] = [watching(mine, 'seen'), watching(other, 'seen')]
      const [elsewhere, left] = [watching(mine, 'elsewhere'), watching(mine, 'seen')]
      left.stop()
      const writer = await mine.open('seen', { create: true })
      const changes: (() => Promise<unknown>)[] = [
        async () => writer.append(['one']),
        async () => writer.append([], { pieces: pieces(1, 1) }),
        async () => writer.append(['two'], { head: { of: 1 }, pieces: pieces(2, 2) }),
        async () => writer.append([], { pieces: pieces(3, 3) }),
        async () => {
          await writer.release()
          await mine.delete('seen')
        },
      ]
      for (const change of changes) {
        const before = [own.changes, foreign.changes]
        await change()
        await until(() => own.changes > before[0]! && foreign.changes > before[1]!)
      }
      same([left.changes, elsewhere.changes >= 0, own.ends, foreign.ends], [0, true, 0, 0])
      for (const each of [own, foreign, elsewhere]) each.stop()
    },
  ],
  [
    'a watcher ends once when its store is closed, unless it has stopped',
    async ({ store }) => {
      const sessions = await store()
      const [ends, stopped] = [watching(sessions, 'a'), watching(sessions, 'b')]
      stopped.stop()
      await sessions.close()
      ends.stop()
      same([ends.ends, stopped.ends], [1, 0])
    },
  ],
  [
    'a piece is read back as it was, whatever its text is like',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const stored = oddLines.map((line, i) => ({ seq: i + 1, text: line.repeat(i * 200 + 1) }))
      const writer = await mine.open('odd', { create: true })
      await writer.append(oddLines, { pieces: stored.slice(0, 4) })
      await writer.append([], { pieces: stored.slice(4) })
      for (const each of [mine, other]) same((await each.read('odd', { pieces: all }))?.pieces, stored)
    },
  ],
  [
    'an invalid id is rejected by watch',
    async ({ store }) => {
      const sessions = await store()
      for (const id of badIds) same([id, await codeOf(() => watching(sessions, id))], [id, 'SESSION_ID_INVALID'])
    },
  ],
]
