import { checkOptions } from '../values/check-options.ts'
import type { JsonObject } from '../values/json.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { eventsContract } from './store-contract-events.ts'
import { partsContract } from './store-contract-parts.ts'
import { stopContract } from './store-contract-stop.ts'
import {
  badIds,
  codeOf,
  idsOf,
  linesOf,
  oddIds,
  oddLines,
  pause,
  same,
  write,
  type Case,
} from './store-contract-scene.ts'

/**
 * Creates a store. Stores of the same `place` must share their sessions; a new place has none. `leaseMs` is set only in tests of
 * leases: elsewhere a short lease could expire on a busy machine.
 */
export type MakeStore = (place: string, leaseMs?: number) => SessionStore | Promise<SessionStore>

/** Options of `storeContract`. */
export type ContractOptions = {
  /** The lease to test with. Default: leases are not tested. */
  readonly leaseMs?: number
}

/**
 * Defines the tests that every session store must pass, with `node:test`. Call it in a test file of your store. `makeStore` is
 * called several times per place, like several processes would; a place consists of letters, digits and `_`.
 *
 * @example
 * storeContract('myStore', (place, leaseMs) => myStore({ table: place, leaseMs }), { leaseMs: 1_000 })
 */
export function storeContract(name: string, makeStore: MakeStore, options: ContractOptions = {}): void {
  checkOptions('storeContract', options, ['leaseMs'])
  const { suite, test } = process.getBuiltinModule('node:test')
  const prefix = `s${Math.floor(Math.random() * 1e9).toString(36)}`
  suite(`${name} fulfils the contract of a session store`, () => {
    const all = [...contract, ...partsContract, ...eventsContract, ...stopContract]
    const ofLeases = options.leaseMs === undefined ? [] : leaseContract(options.leaseMs)
    for (const [i, [title, check]] of [...all, ...ofLeases].entries()) {
      test(title, async (t) => {
        const stores: SessionStore[] = []
        t.after(async () => {
          for (const store of stores) await store.close()
        })
        await check({
          store: async () => {
            const store = await makeStore(`${prefix}_${i}`, i < all.length ? undefined : options.leaseMs)
            stores.push(store)
            return store
          },
          silence: () => t.mock.timers.enable({ apis: ['setInterval'] }),
        })
      })
    }
  })
}

const contract: readonly Case[] = [
  [
    'a session that does not exist cannot be read, opened or listed; one that is opened with create exists and is empty',
    async ({ store }) => {
      const sessions = await store()
      await sessions.delete('none')
      same(await sessions.read('none'), undefined)
      same(await codeOf(() => sessions.open('none')), 'SESSION_UNKNOWN')
      same(await sessions.list(), [])
      same((await sessions.open('new', { create: true })).length, 0)
      same(await sessions.read('new'), { head: {}, lines: [] })
      same(idsOf(await sessions.list()), ['new'])
    },
  ],
  [
    'a session with the status running is listed as interrupted if no process has it locked',
    async ({ store }) => {
      const [one, other] = [await store(), await store()]
      const writer = await one.open('x', { create: true })
      await writer.append(['{}'], { head: { status: 'running' } })
      same((await other.list())[0]?.head, { status: 'running' })
      await writer.release()
      same((await other.list())[0]?.head, { status: 'interrupted' })
    },
  ],
  [
    'an existing session is opened with its lines, with and without create',
    async ({ store }) => {
      const sessions = await store()
      await write(sessions, 'existing', ['one', 'two'])
      for (const create of [true, false]) {
        const writer = await sessions.open('existing', { create })
        same([writer.length, await linesOf(sessions, 'existing')], [2, ['one', 'two']])
        await writer.release()
      }
    },
  ],
  [
    'D10: lines and heads are read back unchanged and in order, also by another store, whatever they look like',
    async ({ store }) => {
      const lines = [...oddLines, 'x'.repeat(1_000_000)]
      const head = Object.fromEntries(oddLines.map((line, i) => [`${line} ${i}`, line]))
      await write(await store(), 'odd', lines, head)
      const writer = await (await store()).open('odd')
      for (const line of lines) await writer.append([line])
      same(await (await store()).read('odd'), { head, lines: [...lines, ...lines] })
    },
  ],
  [
    'a head stays until another one is stored, with lines or alone',
    async ({ store }) => {
      const sessions = await store()
      const writer = await sessions.open('head', { create: true })
      const seen: unknown[] = []
      const look = async (): Promise<void> => void seen.push(await sessions.read('head'))
      await writer.append(['one'], { head: { title: 'first', of: [1, null, { deep: true }] } })
      await look()
      await writer.append(['two'])
      await look()
      await writer.append([], { head: { title: 'second \ud800 "\'' } })
      await look()
      same(seen, [
        { head: { title: 'first', of: [1, null, { deep: true }] }, lines: ['one'] },
        { head: { title: 'first', of: [1, null, { deep: true }] }, lines: ['one', 'two'] },
        { head: { title: 'second \ud800 "\'' }, lines: ['one', 'two'] },
      ])
      same((await sessions.list())[0]?.head, { title: 'second \ud800 "\'' })
    },
  ],
  [
    'sessions do not affect each other',
    async ({ store }) => {
      const sessions = await store()
      const [a, b] = [await sessions.open('a', { create: true }), await sessions.open('b', { create: true })]
      for (let i = 0; i < 5; i++) {
        await a.append([`a${i}`], { head: { of: 'a' } })
        await b.append([`b${i}`], { head: { of: 'b' } })
      }
      same((await sessions.read('a'))?.lines, ['a0', 'a1', 'a2', 'a3', 'a4'])
      same((await sessions.read('b'))?.head, { of: 'b' })
    },
  ],
  [
    'D03: of several concurrent opens of a session one succeeds, and the others reject with SESSION_BUSY',
    async ({ store }) => {
      const stores = await Promise.all([store(), store(), store(), store()])
      await write(stores[0], 'wanted', ['one'])
      const opened = await Promise.all(stores.map((each) => codeOf(() => each.open('wanted'))))
      same(opened.toSorted(), ['SESSION_BUSY', 'SESSION_BUSY', 'SESSION_BUSY', 'none'])
    },
  ],
  [
    'D03: a session is locked until its writer releases it, and can be opened right after that',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('taken', { create: true })
      await writer.append(['one'])
      same(await codeOf(() => other.open('taken', { create: true })), 'SESSION_BUSY')
      same(await codeOf(() => mine.open('taken')), 'SESSION_BUSY')
      same((await other.read('taken'))?.lines, ['one'])
      await writer.release()
      await writer.release()
      same((await other.open('taken')).length, 1)
    },
  ],
  [
    'a writer that was released cannot append',
    async ({ store }) => {
      const sessions = await store()
      const writer = await sessions.open('gone', { create: true })
      await writer.release()
      same(await codeOf(() => writer.append(['late'])), 'SESSION_FENCED')
      await write(sessions, 'gone', ['one'])
      same(await codeOf(() => writer.append(['later'])), 'SESSION_FENCED')
      same((await sessions.read('gone'))?.lines, ['one'])
    },
  ],
  [
    'a store that is closed releases its sessions',
    async ({ store }) => {
      const closed = await store()
      const writer = await closed.open('left', { create: true })
      await writer.append(['one'])
      await closed.close()
      same((await (await store()).open('left')).length, 1)
    },
  ],
  [
    'the session that was written last is listed first',
    async ({ store }) => {
      const sessions = await store()
      const started = Date.now()
      for (const id of ['a', 'b', 'c', 'a']) {
        await write(sessions, id, ['one'], { id })
        await pause(20)
      }
      const listed = await sessions.list()
      same(idsOf(listed), ['a', 'c', 'b'])
      same(listed[0]?.head, { id: 'a' })
      same(
        listed.every(({ updatedAt }) => Math.abs(updatedAt - started) < 60_000),
        true,
      )
    },
  ],
  [
    'a locked session cannot be deleted; a deleted one is gone and can be created again',
    async ({ store }) => {
      const [sessions, other] = [await store(), await store()]
      const writer = await sessions.open('old', { create: true })
      await writer.append(['one'], { head: { old: true } })
      same(await codeOf(() => other.delete('old')), 'SESSION_BUSY')
      await writer.release()
      await other.delete('old')
      same(await sessions.read('old'), undefined)
      same(await sessions.list(), [])
      same((await other.open('old', { create: true })).length, 0)
      same(await sessions.read('old'), { head: {}, lines: [] })
    },
  ],
  [
    'D08: an id that is empty, too long or has control characters is rejected by every method',
    async ({ store }) => {
      const sessions = await store()
      for (const id of badIds) {
        const calls = [
          () => sessions.open(id, { create: true }),
          () => sessions.read(id),
          () => sessions.delete(id),
          () => sessions.open(id),
        ]
        for (const call of calls) same([id, await codeOf(call)], [id, 'SESSION_ID_INVALID'])
      }
      same(await sessions.list(), [])
    },
  ],
  [
    'D08: an id is any other text: it stays itself, and no two ids are the same session',
    async ({ store }) => {
      const [sessions, other] = [await store(), await store()]
      const ids = [...new Set(oddIds)]
      for (const id of ids) await write(sessions, id, [`line of ${id}`], { id })
      for (const id of ids) same(await other.read(id), { head: { id }, lines: [`line of ${id}`] })
      same(idsOf(await other.list()).toSorted(), ids.toSorted())
      for (const id of ids) {
        const writer = await other.open(id)
        same([id, writer.length], [id, 1])
        await writer.release()
        await other.delete(id)
        same(await sessions.read(id), undefined)
      }
      same(await sessions.list(), [])
    },
  ],
  [
    'D13: a head cannot change the prototype of what reads it',
    async ({ store }) => {
      const sessions = await store()
      await write(sessions, 'strict', ['one'], JSON.parse('{"__proto__":{"polluted":true},"of":1}') as JsonObject)
      same(await sessions.read('strict'), { head: { of: 1 }, lines: ['one'] })
      same('polluted' in {}, false)
    },
  ],
  [
    'D02: nothing is lost when two stores append in turn',
    async ({ store }) => {
      const add = async (sessions: SessionStore): Promise<void> => {
        for (let done = 0; done < 20;) {
          try {
            const writer = await sessions.open('count', { create: true })
            await writer.append([String(Number((await linesOf(sessions, 'count'))?.at(-1) ?? 0) + 1)])
            await writer.release()
            done++
          } catch (error) {
            if ((error as { code?: string }).code !== 'SESSION_BUSY') throw error
            await pause(1)
          }
        }
      }
      const stores = await Promise.all([store(), store()])
      await Promise.all(stores.map(add))
      const { lines = [] } = (await stores[0].read('count')) ?? {}
      same([lines.length, lines.at(-1)], [40, '40'])
    },
  ],
]

function leaseContract(leaseMs: number): readonly Case[] {
  return [
    [
      'D16: the lock of a writer that does not renew its lease is taken over when the lease expires, and the writer cannot append',
      async ({ store, silence }) => {
        const [silent, next] = [await store(), await store()]
        silence()
        const writer = await silent.open('silent', { create: true })
        await writer.append(['one'], { head: { by: 'silent' } })
        same(await codeOf(() => next.open('silent')), 'SESSION_BUSY')
        await pause(leaseMs * 1.5)
        const successor = await next.open('silent')
        same([successor.length, await linesOf(next, 'silent')], [1, ['one']])
        same(await codeOf(() => writer.append(['lost', 'lost'], { head: { by: 'fenced' } })), 'SESSION_FENCED')
        same(await codeOf(() => writer.append([], { head: { by: 'fenced' } })), 'SESSION_FENCED')
        same(await codeOf(() => writer.append([], { pieces: [{ seq: 1, text: 'fenced' }] })), 'SESSION_FENCED')
        same(await next.read('silent'), { head: { by: 'silent' }, lines: ['one'] })
        await successor.append(['two'], { head: { by: 'next' } })
        same(await codeOf(() => writer.append(['lost'])), 'SESSION_FENCED')
        await writer.release()
        await successor.append(['three'], { pieces: [{ seq: 1, text: 'next' }] })
        const pieces = { after: 0, before: 9 }
        same((await next.read('silent', { pieces }))?.pieces, [{ seq: 1, text: 'next' }])
        same(await next.read('silent'), { head: { by: 'next' }, lines: ['one', 'two', 'three'] })
        same(await codeOf(() => silent.open('silent')), 'SESSION_BUSY')
      },
    ],
    [
      'D16: a writer that is idle but alive keeps its lock',
      async ({ store }) => {
        const [mine, other] = [await store(), await store()]
        const writer = await mine.open('idle', { create: true })
        await pause(leaseMs * 2)
        same(await codeOf(() => other.open('idle')), 'SESSION_BUSY')
        await writer.append(['one'])
      },
    ],
  ]
}
