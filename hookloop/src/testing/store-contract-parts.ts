import type { ListedSession, SessionFilter, SessionStore } from '../sessions/stores/store.ts'
import { pause, idsOf, codeOf, same, write, type Case } from './store-contract-scene.ts'
import { pruneSessions } from '../sessions/stores/list-sessions.ts'

/** The contract of reading parts of a session. */
export const partsContract: readonly Case[] = [
  [
    'what was read does not change with later appends',
    async ({ store }) => {
      const sessions = await store()
      await write(sessions, 'given', ['one'], { of: 1 })
      const writer = await sessions.open('given')
      const before = await sessions.read('given')
      await writer.append(['two'])
      same([writer.length, writer.head], [1, { of: 1 }])
      same(before?.lines, ['one'])
      same(await sessions.read('given'), { head: { of: 1 }, lines: ['one', 'two'] })
    },
  ],
  [
    'sessions are listed in pages, also if some were written in the meantime',
    async ({ store }) => {
      const sessions = await store()
      const ids = ['a', 'b', 'c', 'd', 'e', 'f', 'g']
      for (const id of ids) await write(sessions, id, ['one'], { id })
      const pages: string[][] = []
      let after: ListedSession | undefined
      for (;;) {
        const page = await sessions.list({ limit: 3, ...(after !== undefined && { after }) })
        if (page.length === 0) break
        pages.push(page.map(({ id }) => id))
        after = page.at(-1)
        if (pages.length === 1) {
          await pause(20)
          await write(sessions, 'c', ['two'])
        }
      }
      same(
        pages
          .flat()
          .filter((id) => id !== 'c')
          .toSorted(),
        ids.filter((id) => id !== 'c'),
      )
      same(
        pages.every((page) => page.length <= 3),
        true,
      )
      const all = idsOf(await sessions.list())
      same([all[0], all.length], ['c', 7])
      same(idsOf(await sessions.list({ after: all[2]!, limit: 2 })), all.slice(3, 5))
      same(await sessions.list({ after: 'none' }), [])
    },
  ],
  [
    'sessions are listed by status, agent and user, in pages as well',
    async ({ store }) => {
      const sessions = await store()
      const heads = [
        ['a', { status: 'completed', agent: 'clerk', user: 'ann' }],
        ['b', { status: 'running', agent: 'clerk', user: 'bob' }],
        ['c', { status: 'suspended', agent: 'clerk', user: 'ann' }],
        ['d', { status: 'running', agent: 'cook', user: 'ann' }],
        ['e', { status: 5, agent: null, user: ['ann'] }],
        ['f', { status: 'completed', agent: "x' OR 1=1 --", user: '%' }],
      ] as const
      for (const [id, head] of heads) await write(sessions, id, ['one'], head)
      const writer = await sessions.open('d')
      const found = async (options: SessionFilter): Promise<string> => {
        return idsOf(await sessions.list(options))
          .toSorted()
          .join('')
      }
      same(await found({}), 'abcdef')
      same(await found({ user: 'ann' }), 'acd')
      same(await found({ agent: 'clerk' }), 'abc')
      same(await found({ status: 'running' }), 'd')
      same(await found({ status: 'interrupted' }), 'b')
      same(await found({ status: ['interrupted', 'suspended'] }), 'bc')
      same(await found({ status: ['running', 'completed'] }), 'adf')
      same(await found({ status: ['running', 'interrupted', 'suspended'] }), 'bcd')
      same(await found({ status: 'interrupted', agent: 'cook' }), '')
      same(await found({ status: 'completed', user: 'ann', agent: 'clerk' }), 'a')
      same(await found({ user: '%' }), 'f')
      same(await found({ agent: "x' OR 1=1 --" }), 'f')
      same(await found({ status: [] }), '')
      same(await codeOf(() => sessions.list({ statuses: [] } as SessionFilter)), 'AGENT_INVALID_OPTION')
      same((await sessions.list({ status: 'interrupted', limit: 1 })).length, 1)
      await writer.append(['two'], { head: { status: 'completed', agent: 'cook' } })
      same([await found({ status: 'completed' }), await found({ user: 'ann' })], ['adf', 'ac'])
      await writer.release()
    },
  ],
  [
    'old sessions are deleted, but not those that are locked, have an open run or were written since',
    async ({ store }) => {
      const sessions = await store()
      for (const [id, status] of [
        ['a', 'completed'],
        ['b', 'suspended'],
        ['c', 'failed'],
        ['d', 'running'],
      ] as const)
        await write(sessions, id, ['one'], { status, user: id === 'c' ? 'ann' : 'bob' })
      const locked = await sessions.open('a')
      await pause(20)
      const border = new Date()
      await pause(20)
      await write(sessions, 'new', ['one'], { status: 'completed' })
      same(await pruneSessions(sessions, { olderThan: border, user: 'nobody' }), [])
      same(await pruneSessions(sessions, { olderThan: 60_000 }), [])
      same(await pruneSessions(sessions, { olderThan: border }), ['c'])
      await locked.release()
      same(await sessions.delete('new', { before: border.getTime() }), false)
      same(
        (
          await pruneSessions(sessions, { olderThan: border, status: ['completed', 'suspended', 'interrupted'] })
        ).toSorted(),
        ['a', 'b', 'd'],
      )
      same(idsOf(await sessions.list()), ['new'])
      const unknownName = { befor: border.getTime() } as { readonly before?: number }
      same(await codeOf(() => sessions.delete('new', unknownName)), 'AGENT_INVALID_OPTION')
    },
  ],
  [
    'a shared value is changed by several stores at once without losing a change',
    async ({ store }) => {
      const stores = await Promise.all([store(), store(), store()])
      const add = async (each: SessionStore): Promise<void> => {
        for (let i = 0; i < 15; i++) await each.update('ann@acme.example', (value) => Number(value ?? 0) + 1)
      }
      await Promise.all(stores.map(add))
      same(await stores[0].update('ann@acme.example', (value) => value!), 45)
      same(await stores[1].update('Bob', (value) => [value ?? null, { deep: 'x' }]), [null, { deep: 'x' }])
      same(await stores[2].update('bob', (value) => value ?? 'none'), 'none')
      const failing = stores[0].update('Bob', () => {
        throw new Error('not now')
      })
      same((await codeOf(() => failing)) === 'none', false)
      same(await stores[1].update('Bob', (value) => value!), [null, { deep: 'x' }])
      same(await stores[0].list(), [])
    },
  ],
]
