import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import type { Agent } from '../../core/agent/agent.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { readRuns } from '../log/read-runs.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolEnd } from './dying-store.fixture.ts'
import { exportSession } from './export-session.ts'
import { forkSession, listPoints } from './fork-session.ts'
import { rewindSession } from './rewind-session.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-removed-'))
after(() => rmSync(folder, { recursive: true }))

/** A session whose process died when its payment had been made. Then lines of it were removed from the database. */
async function paidSession(name: string, remove: string) {
  const path = join(folder, `${name}.db`)
  const first = sqliteStore(path)
  let paid = 0
  const agentOn = (store: SessionStore): Agent => {
    const model = scriptedModel(({ messages }) =>
      messages.length === 1 ? { toolCalls: [{ name: 'pay', args: {} }] } : 'Done.',
    )
    const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, execute: () => `${++paid} paid` })
    return createAgent({ model, store, use: [pay] })
  }
  const dying = dyingStore(first, { at: toolEnd, stored: true })
  void agentOn(dying).run('Pay.', { session: 's' })
  await dying.died
  await first.close()
  const database = new DatabaseSync(path)
  assert.ok(Number(database.prepare(`DELETE FROM lines WHERE n ${remove}`).run().changes) > 0)
  database.close()
  const store = sqliteStore(path)
  return { store, agent: agentOn(store), paid: () => paid }
}

const uses: { readonly [what: string]: (store: SessionStore, agent: Agent) => Promise<unknown> } = {
  resume: (_, agent) => agent.resume('s'),
  run: (_, agent) => agent.run('Pay again.', { session: 's' }),
  state: (_, agent) => agent.session('s').state(),
  readRuns: (store) => readRuns(store, 's'),
  listPoints: (store) => listPoints(store, 's'),
  fork: (store) => forkSession(store, 's'),
  rewind: (store) => rewindSession(store, 's'),
  export: (store) => exportSession(store, 's'),
}

suite('removed lines at the end of a session are noticed, and no call is made again', () => {
  for (const [what, remove] of [
    ['the last lines', '= (SELECT max(n) FROM lines)'],
    ['all lines', 'IS NOT NULL'],
  ] as const) {
    test(`without ${what}, a session is damaged: it does not restart`, async () => {
      const { store, agent, paid } = await paidSession(what.replace(' ', '-'), remove)
      for (const [name, use] of Object.entries(uses))
        await assert.rejects(use(store, agent), { code: 'SESSION_CORRUPT' }, name)
      assert.equal(paid(), 1)
      await store.close()
    })
  }
})
