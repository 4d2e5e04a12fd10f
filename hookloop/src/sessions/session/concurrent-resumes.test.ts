import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentError } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { historyOf } from '../log/history.fixture.ts'
import { isSoak, killPoints } from '../stores/kills.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolBegin } from './dying-store.fixture.ts'
import { doneIn, folder, start, type Place } from './session-processes.fixture.ts'
import { resultsOf } from './session-world.fixture.ts'

const COUNT = 100
const memory = memoryStore()

for (const [kind, open] of [
  ['memory', () => memory],
  ['sqlite', () => sqliteStore(join(folder, 'hundred.db'))],
] as const) {
  test(`of a hundred concurrent resumes of one session one continues, and the others get SESSION_BUSY: ${kind}`, async () => {
    const done: string[] = []
    let rejected = 0
    let release = (): void => undefined
    const allRejected = new Promise<void>((resolve) => (release = resolve))
    const make = (store: SessionStore, wait: Promise<void>) => {
      const act = tool({
        name: 'act',
        description: '',
        input: { type: 'object' },
        execute: async ({ on }) => {
          done.push(on as string)
          await wait
          return on
        },
      })
      const turns = ['a', 'b', 'c'].map((on) => ({ toolCalls: [{ name: 'act', args: { on } }] }))
      const model = scriptedModel(
        ({ messages }) => turns[messages.filter(({ role }) => role === 'assistant').length] ?? 'Done.',
      )
      return createAgent({ model, store, use: [act] })
    }
    const first = open()
    const dying = dyingStore(first, { at: toolBegin, stored: true })
    await Promise.race([make(dying, Promise.resolve()).run('Go.', { session: 's' }), dying.died])
    const before = done.length
    const stores = Array.from({ length: COUNT }, open)
    const ends = await Promise.all(
      stores.map((store) =>
        make(store, allRejected)
          .resume('s')
          .then(
            (run) => run.status as string,
            (error: AgentError) => {
              if (++rejected === COUNT - 1) release()
              return error.code
            },
          ),
      ),
    )
    assert.equal(ends.filter((end) => end === 'completed').length, 1)
    assert.equal(ends.filter((end) => end === 'SESSION_BUSY').length, COUNT - 1)
    assert.ok(done.length > before)
    assert.deepEqual(done, [...new Set(done)])
    const { open: left, state } = historyOf((await first.read('s'))!.lines, 's')
    assert.deepEqual([left, state!.execution!.status], [undefined, 'completed'])
    for (const store of new Set([first, ...stores])) await store.close()
  })
}

const place: Place = { kind: 'sqlite', place: join(folder, 'resumes.db'), world: join(folder, 'resumes.log') }
const store = sqliteStore(place.place)
after(() => store.close())

test('of many processes that resume one session one continues, and the others get SESSION_BUSY', async () => {
  const killed = start(place, ['run', 'one'], { KILL_AT: '2' })
  assert.equal(await killed.ended, 'SIGKILL', killed.errors())
  const barrier = join(folder, 'continue')
  const count = isSoak ? COUNT : 6
  const processes = Array.from({ length: count }, () => start(place, ['resume', 'one'], { WAIT_FOR: barrier }))
  let busy = 0
  await new Promise<void>((resolve) => {
    for (const each of processes) {
      void each.ended.then(() => {
        if (each.lines.includes('SESSION_BUSY') && ++busy === count - 1) resolve()
      })
    }
  })
  writeFileSync(barrier, '')
  await Promise.all(processes.map(({ ended }) => ended))
  assert.deepEqual(
    processes.flatMap(({ lines }) => lines).filter((line) => line !== 'SESSION_BUSY'),
    ['suspended 1'],
  )
  const whats = doneIn(place).map(({ what }) => what)
  assert.deepEqual(whats, [...new Set(whats)])
})

test('a session whose process is killed is resumed by a process with a changed agent, without a lost or repeated effect', async (t) => {
  const ids: string[] = []
  for (const at of killPoints([2, 3, 4, 5, 6, 7, 8, 9, 10, 11], 5)) {
    const child = start(place, ['end', `changed-${at}`], { KILL_AT: String(at), KILL_HOW: 'after' })
    assert.equal(await child.ended, 'SIGKILL', child.errors())
    ids.push(`changed-${at}`)
  }
  const last = start(place, ['end', ids.join(',')], { CHANGED: '1' })
  assert.equal(await last.ended, 0, last.errors())
  for (const id of ids) {
    const { state, open, records } = historyOf((await store.read(id))!.lines, id)
    assert.deepEqual([open, state!.execution!.status], [undefined, 'completed'], id)
    assert.equal(records.filter(({ t }) => t === 'final').length, 1)
    const results = resultsOf(state!)
    const own = doneIn(place).filter(({ session }) => session === id)
    for (const what of ['looka', 'lookb', 'lookc', 'pay!', 'send', 'wirex', 'wirey']) {
      const times = own.filter((each) => each.what === what).length
      const status = results.get(what)?.status
      assert.ok(times <= 1, `${id}: ${what} was done ${times} times`)
      if (times === 1) assert.ok(status === 'ok' || status === 'outcomeUnknown', `${id}: ${what} is ${status}`)
    }
  }
  t.diagnostic(`${ids.length} processes were killed`)
})
