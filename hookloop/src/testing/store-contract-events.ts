import type { AgentEvent } from '../state/event.ts'
import type { SessionStore, SessionWriter, StoredEvent } from '../sessions/stores/store.ts'
import { badIds, codeOf, oddLines, pause, same, type Case } from './store-contract-scene.ts'

/** An event as a store sees it: JSON with a number. */
const event = (seq: number, what: { readonly [name: string]: unknown } = {}): string => JSON.stringify({ seq, ...what })

const events = (from: number, to: number, transient = false): readonly StoredEvent[] =>
  Array.from({ length: to - from + 1 }, (_, i) => ({ text: event(from + i), transient }))

const numbers = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** Reads events until there are so many, and leaves the loop. */
async function take(watched: AsyncIterable<AgentEvent>, count: number): Promise<readonly AgentEvent[]> {
  const taken: AgentEvent[] = []
  for await (const each of watched) if (taken.push(each) === count) break
  return taken
}

async function seqsOf(watched: AsyncIterable<AgentEvent>, count: number): Promise<readonly number[]> {
  return (await take(watched, count)).map(({ seq }) => seq)
}

/** Reads all events until the watcher ends by itself. */
function readToEnd(watched: AsyncIterable<AgentEvent>): { readonly seqs: number[]; readonly ended: Promise<void> } {
  const seqs: number[] = []
  const read = async (): Promise<void> => {
    for await (const each of watched) seqs.push(each.seq)
  }
  return { seqs, ended: read() }
}

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await pause(1)
}

/** The contract of the event log. */
export const eventsContract: readonly Case[] = [
  [
    'a watcher gets all events of a session in order and then each new one, in the writing store and in another',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('watched', { create: true })
      await writer.append(['one'], { events: events(1, 3) })
      const taken = [mine, other].map((each) => seqsOf(each.watch('watched'), 7))
      same(await seqsOf(other.watch('watched'), 3), [1, 2, 3])
      await writer.append(['two', 'three'], { head: { of: 1 }, events: events(4, 5) })
      await writer.append([], { events: events(6, 6) })
      await writer.append(['four'], { events: events(7, 8) })
      for (const each of taken) same(await each, numbers(1, 7))
      same(await other.read('watched'), { head: { of: 1 }, lines: ['one', 'two', 'three', 'four'] })
    },
  ],
  [
    'a watcher starts after the given number; after the last one, and after Infinity, it gets only what is stored from then on',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('part', { create: true })
      for (const [from, to] of [
        [1, 1],
        [2, 5],
        [6, 9],
      ] as const)
        await writer.append(['line'], { events: events(from, to) })
      for (const each of [mine, other]) {
        for (const after of [0, 1, 2, 4, 5, 6, 8])
          same([after, await seqsOf(each.watch('part', { after }), 9 - after)], [after, numbers(after + 1, 9)])
        same(await seqsOf(each.watch('part'), 9), numbers(1, 9))
      }
      const later = [9, 10, Infinity].map((after) => seqsOf(other.watch('part', { after }), 2))
      const now = mine.watch('part', { after: Infinity }) // from this call on, before it is read
      await seqsOf(mine.watch('part', { after: 8 }), 1)
      await writer.append([], { events: events(10, 12) })
      same(
        [await later[0], await later[1]],
        [
          [10, 11],
          [11, 12],
        ],
      )
      same(await seqsOf(now, 3), [10, 11, 12])
      // The other store may learn late what the last event is, and then gets only what follows.
      let first: number | void = undefined
      for (let seq = 13; first === undefined; seq++) {
        await writer.append([], { events: events(seq, seq) })
        first = await Promise.race([later[2]!.then((seqs) => seqs[0]), pause(1)])
      }
      same(first >= 10, true)
    },
  ],
  [
    'a watcher that does not follow ends with the last event, and at once if there is no session',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('read', { create: true })
      for (const first of [1, 3]) await writer.append([], { events: events(first, first + 1) })
      for (const each of [mine, other]) {
        const seqs = async (after: number): Promise<readonly number[]> =>
          seqsOf(each.watch('read', { after, follow: false }), Infinity)
        same([await seqs(0), await seqs(2), await seqs(4), await seqs(Infinity)], [numbers(1, 4), [3, 4], [], []])
        same(await seqsOf(each.watch('none', { follow: false }), Infinity), [])
      }
    },
  ],
  [
    'a watcher waits for a session that does not exist yet, and for the first event',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const taken = [mine, other].map((each) => seqsOf(each.watch('later'), 2))
      const fromNow = seqsOf(mine.watch('later', { after: Infinity }), 2)
      same(await other.read('later'), undefined) // a watcher does not create it
      const writer = await mine.open('later', { create: true })
      await writer.append(['one'])
      await writer.append(['two'], { events: events(1, 2) })
      for (const each of [...taken, fromNow]) same(await each, [1, 2])
    },
  ],
  [
    'a watcher ends when its signal aborts, its store is closed, its reader leaves, or the session is deleted',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('ends', { create: true })
      await writer.append(['one'], { events: events(1, 2) })
      const aborted = new AbortController()
      const byAbort = [mine, other].map((each) => readToEnd(each.watch('ends', { signal: aborted.signal })))
      const byDelete = [mine, other].map((each) => readToEnd(each.watch('ends')))
      const all = [...byAbort, ...byDelete]
      await until(() => all.every(({ seqs }) => seqs.length === 2))
      aborted.abort()
      await Promise.all(byAbort.map(({ ended }) => ended))
      await writer.append(['two'], { events: events(3, 3) })
      await until(() => byDelete.every(({ seqs }) => seqs.length === 3))
      await writer.release()
      same(await other.delete('ends'), true)
      await Promise.all(byDelete.map(({ ended }) => ended))
      same(
        all.map(({ seqs }) => seqs.length),
        [2, 2, 3, 3],
      )
      same(await seqsOf(mine.watch('ends', { signal: AbortSignal.abort() }), 1), [])
      const stream = ReadableStream.from(mine.watch('none')).getReader()
      const reading = stream.read()
      await stream.cancel() // while it waits
      same((await reading).done, true)
      const byClose = [readToEnd(mine.watch('none')), readToEnd(other.watch('none'))]
      const again = await mine.open('held', { create: true })
      await again.append([], { events: events(1, 1) })
      // A reader that has stopped reading without leaving does not keep a store open.
      for (const each of [mine, other]) await each.watch('held')[Symbol.asyncIterator]().next()
      for (const each of [mine, other]) await each.close()
      await Promise.all(byClose.map(({ ended }) => ended))
    },
  ],
  [
    'the events of a deleted session are gone; one that is created again starts with event 1, and a watcher of the first does not get them',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('again', { create: true })
      await writer.append(['one'], { events: events(1, 2) })
      const watching = [mine, other].map((each) => readToEnd(each.watch('again')))
      await until(() => watching.every(({ seqs }) => seqs.length === 2))
      await writer.release()
      await mine.delete('again')
      const next = await mine.open('again', { create: true })
      same(next.eventSeq, 0)
      await next.append(['one'], { events: events(1, 4) })
      await Promise.all(watching.map(({ ended }) => ended))
      same(
        watching.map(({ seqs }) => seqs),
        [
          [1, 2],
          [1, 2],
        ],
      )
      same(await seqsOf(other.watch('again'), 4), [1, 2, 3, 4])
    },
  ],
  [
    'transient events are read until an event starts the next turn, and their numbers are not used again',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      let writer = await mine.open('turns', { create: true })
      await writer.append(['one'], { events: [{ text: event(1), startsTurn: true }, ...events(2, 4, true)] })
      await writer.append([], { events: events(5, 6, true) })
      await writer.append(['two'], { events: [...events(7, 7), ...events(8, 9, true)] })
      const watching = readToEnd(other.watch('turns'))
      same(await seqsOf(other.watch('turns'), 9), numbers(1, 9))
      await until(() => watching.seqs.length === 9)
      await writer.release()
      writer = await other.open('turns')
      same(writer.eventSeq, 9)
      await writer.append(['three'], {
        events: [...events(10, 11, true), { text: event(12), startsTurn: true }, ...events(13, 13, true)],
      })
      const expected = [1, 7, 12, 13]
      same(await seqsOf(mine.watch('turns'), 4), expected)
      same(await seqsOf(other.watch('turns', { after: 3 }), 3), expected.slice(1))
      await until(() => watching.seqs.includes(13))
      same(
        watching.seqs.filter((seq) => seq !== 10 && seq !== 11),
        [...numbers(1, 9), 12, 13],
      )
      await writer.release()
      same((await mine.open('turns')).eventSeq, 13)
    },
  ],
  [
    'eventSeq is the number of the last event when the session was opened',
    async ({ store }) => {
      const sessions = await store()
      let last = 0
      for (const count of [0, 1, 3, 0, 2]) {
        const writer: SessionWriter = await (await store()).open('counted', { create: true })
        same(writer.eventSeq, last)
        if (count > 0) await writer.append([], { events: events(last + 1, last + count) })
        last += count
        await writer.release()
      }
      same(await seqsOf(sessions.watch('counted'), last), numbers(1, last))
    },
  ],
  [
    'an invalid event is rejected with its complete append, and so is an option that append does not have',
    async ({ store }) => {
      const sessions = await store()
      const writer = await sessions.open('strict', { create: true })
      for (const text of ['{"seq":\n1}', '{"seq":1,"of":"\0"}', '{"seq":1,"of":"\ud800"}', 1 as unknown as string]) {
        const rejected = codeOf(() => writer.append(['fine'], { events: [...events(1, 1), { text }] }))
        same([text, await rejected], [text, 'JSON_INVALID'])
      }
      same(await codeOf(() => writer.append(['fine', 'two\nlines'], { events: events(1, 1) })), 'JSON_INVALID')
      const wrong = { title: 'a head as it was passed once' } as { head?: never }
      same(await codeOf(() => writer.append(['fine'], wrong)), 'AGENT_INVALID_OPTION')
      await writer.append(['one'], { events: events(1, 1) })
      same(await sessions.read('strict'), { head: {}, lines: ['one'] })
      same(await seqsOf(sessions.watch('strict'), 1), [1])
    },
  ],
  [
    'an event is read back as the same value, whatever its text is like',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const values = oddLines.map((line, i) => ({ seq: i + 1, line, [line]: [line], long: line.repeat(i * 500) }))
      const writer = await mine.open('odd', { create: true })
      const stored = values.map((value) => ({ text: JSON.stringify(value) }))
      await writer.append(oddLines, { events: stored.slice(0, 4) })
      await writer.append([], { events: stored.slice(4) })
      for (const each of [mine, other]) same(await take(each.watch('odd'), values.length), values)
    },
  ],
  [
    'an event that is not a JSON object with its number makes a watcher reject with SESSION_CORRUPT',
    async ({ store }) => {
      const sessions = await store()
      const texts = ['', 'x', '[]', 'null', '{}', '{"seq":"2"}', '{"seq":3}', '{"seq":2', '{"seq":2.5}']
      for (const [i, text] of texts.entries()) {
        const writer = await sessions.open(`corrupt-${i}`, { create: true })
        await writer.append(['one'], { events: [...events(1, 1), { text }, ...events(3, 3)] })
        const seen: unknown[] = []
        const reading = async (): Promise<void> => {
          for await (const each of sessions.watch(`corrupt-${i}`)) seen.push(each)
        }
        same([text, await codeOf(reading), seen], [text, 'SESSION_CORRUPT', [{ seq: 1 }]])
        same(await seqsOf(sessions.watch(`corrupt-${i}`, { after: 2 }), 1), [3])
      }
    },
  ],
  [
    'an invalid id or number is rejected by watch',
    async ({ store }) => {
      const sessions = await store()
      const first = (watched: AsyncIterable<AgentEvent>): Promise<unknown> => watched[Symbol.asyncIterator]().next()
      for (const id of badIds) same([id, await codeOf(() => first(sessions.watch(id)))], [id, 'SESSION_ID_INVALID'])
      for (const after of [-1, 1.5, Number.NaN, -Infinity, '3' as unknown as number])
        same([after, await codeOf(() => first(sessions.watch('x', { after })))], [after, 'AGENT_INVALID_OPTION'])
    },
  ],
  [
    'slow and fast watchers of a long log miss nothing and get nothing twice while it is written',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const [count, perBatch] = [600, 12]
      const writer = await mine.open('long', { create: true })
      const filler = 'é'.repeat(700)
      const batch = (from: number): readonly StoredEvent[] =>
        numbers(from, from + perBatch - 1).map((seq) => ({ text: event(seq, { filler }), transient: seq % 3 === 0 }))
      await writer.append(['line'], { events: batch(1) })
      const slow = async (sessions: SessionStore, every: number): Promise<readonly number[]> => {
        const seqs: number[] = []
        for await (const each of sessions.watch('long')) {
          const { seq } = each
          if (seqs.push(seq) === count) break
          if (seq % every === 0) await pause(1)
        }
        return seqs
      }
      const reading = [slow(mine, 5), slow(mine, 1_000), slow(other, 5), slow(other, 1_000)]
      for (let from = 1 + perBatch; from <= count; from += perBatch) {
        await writer.append(from % 2 === 0 ? [] : ['line'], { events: batch(from) })
        await pause(0)
      }
      for (const each of reading) same(await each, numbers(1, count))
    },
  ],
]
