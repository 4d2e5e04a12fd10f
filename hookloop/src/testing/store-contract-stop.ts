import type { StopRequest } from '../core/state/stop-request.ts'
import type { SessionWriter } from '../sessions/stores/store.ts'
import { badIds, codeOf, pause, same, write, type Case } from './store-contract-scene.ts'

const running = { status: 'running' } as const
const request = (by: string): StopRequest => ({ by, reason: `"${by}" \n; --`, at: 1_700_000_000_000 })

/** The requests that a writer gets, from now on. */
function listen(writer: SessionWriter): StopRequest[] {
  const heard: StopRequest[] = []
  writer.onStop((each) => void heard.push(each))
  return heard
}

async function heardOnce(heard: readonly StopRequest[]): Promise<void> {
  while (heard.length === 0) await pause(1)
}

/** The contract of requests to stop a run. */
export const stopContract: readonly Case[] = [
  [
    'a request to stop a run reaches its writer once, from its own store and from another',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      for (const [i, from] of [mine, other].entries()) {
        const writer = await mine.open(`run ${i}`, { create: true })
        await writer.append(['one'], { head: running })
        const [heard, deaf] = [listen(writer), await mine.open(`other ${i}`, { create: true })]
        const unheard = listen(deaf)
        same(await from.requestStop(`run ${i}`, request('jane')), true)
        await heardOnce(heard)
        same([heard, unheard], [[request('jane')], []])
        same(await other.read(`run ${i}`), { head: running, lines: ['one'] })
      }
    },
  ],
  [
    'of several requests to stop a run the first one counts',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('twice', { create: true })
      await writer.append(['one'], { head: running })
      same(await other.requestStop('twice', request('first')), true)
      same(await mine.requestStop('twice', request('second')), true)
      const heard = listen(writer)
      await heardOnce(heard)
      same(heard, [request('first')])
      await writer.release()
      same(listen(await other.open('twice')), [request('first')])
    },
  ],
  [
    'a request to stop a run that no process works on reaches the next writer at once, and every one until the run has ended',
    async ({ store }) => {
      const sessions = await store()
      for (const status of ['running', 'suspended']) {
        await write(sessions, status, ['one'], { status })
        same(await (await store()).requestStop(status, request('jane')), true)
        for (let i = 0; i < 3; i++) {
          const writer = await (await store()).open(status)
          same(listen(writer), [request('jane')])
          await writer.append(['more'])
          await writer.append([], { head: running })
          await writer.release()
        }
        await write(sessions, status, ['end'], { status: 'cancelled' })
        await write(sessions, status, ['next'], running)
        same(listen(await sessions.open(status)), [])
      }
    },
  ],
  [
    'a request to stop a session without a run returns false and does not affect the next run',
    async ({ store }) => {
      const sessions = await store()
      same(await sessions.requestStop('none', request('jane')), false)
      same(await sessions.read('none'), undefined)
      await write(sessions, 'empty', [])
      for (const status of ['idle', 'completed', 'stopped', 'failed', 'cancelled', 5, null])
        await write(sessions, `ended ${status}`, ['one'], { status })
      for (const { id } of await sessions.list()) {
        same([id, await sessions.requestStop(id, request('jane'))], [id, false])
        const writer = await sessions.open(id)
        await writer.append(['two'], { head: running })
        same(listen(writer), [])
      }
    },
  ],
  [
    'a request is accepted while a session is locked, for the run that may be about to start, and only for that one',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const writer = await mine.open('start', { create: true })
      same(await other.requestStop('start', request('jane')), true)
      const heard = listen(writer)
      await heardOnce(heard)
      same(heard, [request('jane')])
      await writer.release()
      const next = await other.open('start')
      same(listen(next), [])
      await next.append(['one'], { head: running })
      await next.release()
      same(listen(await mine.open('start')), [])
    },
  ],
  [
    'a session is listed with the process that has it locked, since when, and with the request to stop its run',
    async ({ store }) => {
      const [mine, other] = [await store(), await store()]
      const before = Date.now()
      await write(mine, 'used', ['one'], running)
      const [free] = await other.list()
      same([free?.lock, free?.stop], [undefined, undefined])
      const writer = await mine.open('used')
      await other.requestStop('used', request('jane'))
      const [used] = await other.list()
      same([used?.lock?.owner.includes(String(process.pid)), used?.stop], [true, request('jane')])
      same(Math.abs(used!.lock!.since - before) < 60_000, true)
      await writer.append(['end'], { head: { status: 'cancelled' } })
      await writer.release()
      const [ended] = await other.list()
      same([ended?.lock, ended?.stop], [undefined, undefined])
    },
  ],
  [
    'a session that is deleted and created again has no request to stop',
    async ({ store }) => {
      const sessions = await store()
      await write(sessions, 'again', ['one'], running)
      await sessions.requestStop('again', request('jane'))
      await sessions.delete('again')
      await write(sessions, 'again', ['one'], running)
      same(listen(await sessions.open('again')), [])
      for (const id of badIds) same(await codeOf(() => sessions.requestStop(id, request('jane'))), 'SESSION_ID_INVALID')
    },
  ],
]
