import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentError } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { historyOf } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolBegin } from './dying-store.fixture.ts'
import { folder, type Place } from './session-processes.fixture.ts'

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
