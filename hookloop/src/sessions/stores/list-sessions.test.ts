import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from './memory-store.ts'
import { sqliteStore } from './sqlite-store.ts'
import type { ListOptions, PruneOptions, SessionStore } from './store.ts'
import { pruneSessions } from './list-sessions.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-list-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const stores: { readonly [name: string]: () => SessionStore } = {
  memoryStore,
  sqliteStore: () => sqliteStore(join(folder, 'sessions.db')),
}

for (const [name, open] of Object.entries(stores)) {
  test(`${name} rejects a filter with an unknown name, and deletes nothing`, async () => {
    const store = open()
    await createAgent({ model: scriptedModel(['Done.']), store }).run('Go.', { session: 's' })
    const wrong = { olderThan: new Date(Date.now() + 60_000), statuses: ['failed'] } as unknown as PruneOptions
    await assert.rejects(pruneSessions(store, wrong), {
      code: 'AGENT_INVALID_OPTION',
      message: /"statuses".*mean "status"/,
    })
    await assert.rejects(store.list({ from: 's' } as unknown as ListOptions), /list: unknown option "from"/)
    assert.deepEqual(
      (await store.list()).map(({ id }) => id),
      ['s'],
    )
    await store.close()
  })
}
