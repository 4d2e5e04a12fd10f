import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { checkLease } from './lock-owner.ts'
import { sqliteStore } from './sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-owners-'))
after(() => rmSync(folder, { recursive: true, force: true }))

test('D16: an owner counts as dead only where its pid means something', async () => {
  const path = join(folder, 'sessions.db')
  const [store, database] = [sqliteStore(path), new DatabaseSync(path, { timeout: 5_000 })]
  const claims = async (
    owner: { where?: string; pid?: unknown; started?: string },
    ageMs: number,
    leaseMs = 30_000,
  ): Promise<string> => {
    const held = await store.open('held', { create: true })
    const row = database.prepare('SELECT owner FROM sessions').get()!
    const [host, boot, namespace, own, start] = String(row['owner']).split(' ')
    const { where = `${host} ${boot} ${namespace}`, pid = own, started = start } = owner
    await held.release()
    database
      .prepare('UPDATE sessions SET owner = ?, expires_at = ?')
      .run(`${where} ${String(pid)} ${started} another-store`, Date.now() - ageMs + leaseMs)
    const outcome = await store.open('held').then(
      (writer) => writer.release().then(() => 'taken'),
      (error: { code: string }) => error.code,
    )
    database.exec('UPDATE sessions SET owner = NULL')
    return outcome
  }
  const elsewhere = `${hostname()} another-boot -`
  const outcomes = {
    lives: await claims({}, 0),
    'silent for too long': await claims({}, 31_000),
    'is from the future': await claims({}, -3_601_000),
    'has a longer lease': await claims({}, 31_000, 60_000),
    'has an endless lease': await claims({}, 0, 2 ** 53 - 1),
    'is dead': await claims({ pid: 2 ** 22 + 1 }, 0),
    'has a pid that is used again': await claims({ started: '1' }, 0),
    'is dead elsewhere': await claims({ pid: 2 ** 22 + 1, where: elsewhere }, 0),
    'is silent elsewhere': await claims({ pid: 2 ** 22 + 1, where: elsewhere }, 31_000),
    'is everybody': await claims({ pid: -1 }, 0),
    'has no process': await claims({ pid: null }, 31_000),
  }
  database.close()
  await store.close()
  assert.deepEqual(outcomes, {
    lives: 'SESSION_BUSY',
    'silent for too long': 'taken',
    'is from the future': 'taken',
    'has a longer lease': 'SESSION_BUSY',
    'has an endless lease': 'taken',
    'is dead': 'taken',
    'has a pid that is used again': 'taken',
    'is dead elsewhere': 'SESSION_BUSY',
    'is silent elsewhere': 'taken',
    'is everybody': 'SESSION_BUSY',
    'has no process': 'taken',
  })
})

test('an invalid lease is rejected', () => {
  for (const leaseMs of [0, -1, 1.5, Number.NaN, Infinity, '30' as unknown as number])
    assert.throws(() => checkLease(leaseMs), { code: 'AGENT_INVALID_OPTION' })
})
