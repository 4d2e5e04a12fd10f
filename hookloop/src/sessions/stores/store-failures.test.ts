import assert from 'node:assert/strict'
import { chmodSync, copyFileSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { tool } from '../../core/agent/tool.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { sqliteStore } from './sqlite-store.ts'
import type { SessionStore } from './store.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-failures-'))
after(() => rmSync(root, { recursive: true }))

/** An agent whose tool does something to the store in the second of its four steps. */
function agentWith(store: SessionStore, damage: () => void) {
  let calls = 0
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object' },
    execute: () => {
      if (++calls === 2) damage()
      return `done ${calls}`
    },
  })
  const call = { toolCalls: [{ name: 'work', args: {} }] }
  return {
    agent: createAgent({ model: scriptedModel([call, call, call, 'Done.']), store, use: [work] }),
    calls: () => calls,
  }
}

type Case = readonly [what: string, damage: (path: string) => void, message: RegExp]

async function failsWith(store: SessionStore, damage: () => void, message: RegExp): Promise<void> {
  const { agent, calls } = agentWith(store, damage)
  const run = await agent.run('Go.', { session: 's' })
  assert.ok(run.status === 'failed', run.status)
  assert.equal(run.error.code, 'STORE_FAILED')
  assert.match(run.error.message, message)
  assert.equal(calls(), 2, 'the run ends at the next write')
}

suite('a run whose store fails ends with STORE_FAILED and the cause', () => {
  const ofSqlite: readonly Case[] = [
    ['its database is deleted', (path) => rmSync(path), /x\.db cannot be used: it was deleted or moved/],
    [
      'its database is moved',
      (path) => renameSync(path, `${path}.old`),
      /x\.db cannot be used: it was deleted or moved/,
    ],
    [
      'its database is replaced by a copy',
      (path) => {
        copyFileSync(path, `${path}.copy`)
        renameSync(`${path}.copy`, path)
      },
      /x\.db cannot be used: it was replaced by another file/,
    ],
    [
      'all files of its database are deleted',
      (path) => {
        for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`)
      },
      /was deleted or moved/,
    ],
  ]
  for (const [what, damage, message] of ofSqlite)
    test(`SQLite: ${what}`, async () => {
      const folder = mkdtempSync(join(root, 'sqlite-'))
      const path = join(folder, 'x.db')
      const store = sqliteStore(path)
      await failsWith(store, () => damage(path), message)
      await store.close()
    })

  const fs = process.getBuiltinModule('node:fs')
  for (const code of ['ENOSPC', 'EACCES']) {
    const fail = (): never => {
      throw Object.assign(new Error(`${code}: as the system says it`), { code })
    }
    test(`SQLite: a database cannot be created because of ${code}`, async (t) => {
      const store = sqliteStore(join(mkdtempSync(join(root, 'sqlite-')), 'x.db'))
      t.mock.method(fs, 'openSync', fail)
      await assert.rejects(agentWith(store, () => undefined).agent.run('Go.', { session: 's' }), {
        code: 'STORE_FAILED',
        message: new RegExp(code),
      })
    })
  }
})

test('a run completes, and its session is stored, if the permissions of its files are removed while it has them open', async () => {
  const folder = mkdtempSync(join(root, 'modes-'))
  const path = join(folder, 'x.db')
  const store = sqliteStore(path)
  const setModes = (mode: number): void => [path, `${path}-wal`].forEach((name) => chmodSync(name, mode))
  const { agent } = agentWith(store, () => setModes(0))
  assert.equal((await agent.run('Go.', { session: 's' })).status, 'completed')
  setModes(0o600)
  assert.equal((await agent.session('s').state())?.execution?.status, 'completed')
  await store.close()
})

test('a run completes, and its session is stored, if a program for backups empties the log of its database by a checkpoint', async () => {
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite')
  const path = join(mkdtempSync(join(root, 'sqlite-')), 'x.db')
  const store = sqliteStore(path)
  const { agent } = agentWith(store, () => {
    const backup = new DatabaseSync(path)
    backup.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    assert.equal(statSync(`${path}-wal`).size, 0)
    backup.close()
  })
  assert.equal((await agent.run('Go.', { session: 's' })).status, 'completed')
  await store.close()
  const again = sqliteStore(path)
  assert.equal((await again.list())[0]?.id, 's')
  await again.close()
})
