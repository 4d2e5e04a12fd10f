import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { batchAfter, batchOf, wholeBatches } from './batches.fixture.ts'
import { sqliteStore } from './sqlite-store.ts'
import { start } from './store-processes.fixture.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-hostile-'))
after(() => rmSync(root, { recursive: true, force: true }))

/** A database with two sessions of three lines each. */
async function scene(): Promise<string> {
  const path = join(mkdtempSync(join(root, 'store-')), 'sessions.db')
  const store = sqliteStore(path)
  for (const id of ['good', 'bad']) {
    const writer = await store.open(id, { create: true })
    await writer.append(['one'])
    await writer.append(['two'], { head: { id } })
    await writer.append(['three'])
    await writer.release()
  }
  await store.close()
  return path
}

function sql(path: string, text: string): void {
  const database = new DatabaseSync(path)
  database.exec(text)
  database.close()
}

const ofSession = "session = (SELECT key FROM sessions WHERE id = 'bad')"

const wholeStore: readonly [what: string, code: string, attack: (path: string) => void][] = [
  ['is no database', 'SESSION_CORRUPT', (path) => writeFileSync(path, 'x'.repeat(9000))],
  ['is cut', 'SESSION_CORRUPT', (path) => truncateSync(path, 5000)],
  ['is cut in its header', 'SESSION_CORRUPT', (path) => truncateSync(path, 50)],
  ['is of a newer version', 'STATE_VERSION', (path) => sql(path, 'PRAGMA user_version = 99')],
  ['is of an older version', 'STATE_VERSION', (path) => sql(path, 'PRAGMA user_version = 5')],
  ['is the database of something else', 'SESSION_CORRUPT', (path) => sql(path, 'PRAGMA application_id = 7')],
  ['has lost a table', 'SESSION_CORRUPT', (path) => sql(path, 'DROP TABLE lines')],
  [
    'has a trigger',
    'SESSION_CORRUPT',
    (path) => sql(path, 'CREATE TRIGGER t AFTER INSERT ON lines BEGIN DELETE FROM sessions; END'),
  ],
  [
    'has a view in place of a table',
    'SESSION_CORRUPT',
    (path) => sql(path, 'DROP TABLE lines; CREATE VIEW lines AS SELECT 1 AS session'),
  ],
]

suite('a database that was changed', () => {
  for (const [what, code, attack] of wholeStore) {
    test(`D11: a database that ${what} is rejected with ${code} and not changed`, async () => {
      const path = await scene()
      attack(path)
      const before = readFileSync(path)
      const store = sqliteStore(path)
      await assert.rejects(store.list(), { code })
      await assert.rejects(store.read('good'), { code })
      await assert.rejects(store.open('new', { create: true }), { code })
      await store.close()
      assert.ok(readFileSync(path).equals(before))
    })
  }

  const ofOne: readonly [what: string, change: string][] = [
    ['has lost a line', `DELETE FROM lines WHERE ${ofSession} AND n = 1`],
    ['has lost its first line', `DELETE FROM lines WHERE ${ofSession} AND n = 0`],
    ['has lost its last line', `DELETE FROM lines WHERE ${ofSession} AND n = 2`],
    ['has a line too many', `UPDATE sessions SET length = 2 WHERE id = 'bad'`],
    ['has a line in a place of its own', `UPDATE lines SET n = n + 5 WHERE ${ofSession} AND n = 2`],
    ['has a huge epoch', `UPDATE sessions SET epoch = 9223372036854775807 WHERE id = 'bad'`],
  ]
  for (const [what, change] of ofOne) {
    test(`D11: a session that ${what} cannot be opened or cannot be read, and hides no other`, async () => {
      const path = await scene()
      sql(path, change)
      const store = sqliteStore(path)
      await assert.rejects(
        store.open('bad').then(() => store.read('bad')),
        { code: 'SESSION_CORRUPT' },
      )
      assert.deepEqual((await store.read('good'))?.lines, ['one', 'two', 'three'])
      assert.deepEqual((await store.list()).map(({ id }) => id).toSorted(), ['bad', 'good'])
      const writer = await store.open('good')
      await writer.append(['four'])
      await store.close()
    })
  }

  test('D11: a session whose head cannot be read is listed as such, and pollutes nothing', async () => {
    const path = await scene()
    const store = sqliteStore(path)
    for (const head of ['', 'null', '[1]', '{"a":', '7']) {
      sql(path, `UPDATE sessions SET head = '${head}' WHERE id = 'bad'`)
      const listed = await store.list()
      assert.match(listed.find(({ id }) => id === 'bad')!.problem!, /its head is not a JSON object/)
      assert.deepEqual(listed.find(({ id }) => id === 'good')!.head, { id: 'good' })
    }
    sql(path, `UPDATE sessions SET head = '{"__proto__":{"polluted":true},"of":1}' WHERE id = 'bad'`)
    assert.deepEqual((await store.read('bad'))?.head, { of: 1 })
    assert.equal('polluted' in {}, false)
    await store.close()
  })

  test('D16: no stored lease locks a session for ever', async () => {
    const path = await scene()
    const store = sqliteStore(path)
    const held = `owner = 'elsewhere - - 1 - x'`
    for (const at of [Date.now() + 3_601_000, Date.now() - 1, 0, -5, '9e999']) {
      sql(path, `UPDATE sessions SET ${held}, expires_at = ${at} WHERE id = 'bad'`)
      await (await store.open('bad')).release()
    }
    sql(path, `UPDATE sessions SET ${held}, expires_at = ${Date.now() + 30_000} WHERE id = 'bad'`)
    await assert.rejects(store.open('bad'), { code: 'SESSION_BUSY', message: /process 1 on elsewhere/ })
    await store.close()
  })
})

test('D01: complete batches are read from a database that was cut off at any byte', async () => {
  const path = join(root, 'wal.db')
  const store = sqliteStore(path)
  const writer = await store.open('torn', { create: true })
  for (let i = 0; i < 12; i++) await writer.append(...batchOf(i))
  const copy = join(root, 'copy.db')
  const log = readFileSync(`${path}-wal`)
  let most = 0
  for (let length = 0; length <= log.length; length += 1361) {
    copyFileSync(path, copy)
    writeFileSync(`${copy}-wal`, log.subarray(0, length))
    rmSync(`${copy}-shm`, { force: true })
    const torn = sqliteStore(copy)
    const session = await torn.read('torn')
    const kept = session === undefined ? 0 : wholeBatches(session)
    assert.ok(kept >= most)
    most = kept
    await torn.close()
  }
  assert.ok(most >= 11)
  await store.close()
})

test('D01: several processes make the database at once', async () => {
  const path = join(root, 'new', 'deeper', 'sessions.db')
  const place = { kind: 'sqlite', place: path, store: sqliteStore(path) } as const
  mkdirSync(dirname(path), { recursive: true })
  const barrier = new DatabaseSync(path)
  barrier.exec('BEGIN EXCLUSIVE')
  const started = [1, 2, 3, 4].map((i) => start(place, ['write', `s${i}`, '3']).said())
  await pause(400)
  barrier.close()
  const all = await Promise.all(started)
  assert.deepEqual(all.map(String), ['0,1,2', '0,1,2', '0,1,2', '0,1,2'])
  assert.equal((await place.store.list()).length, 4)
  await place.store.close()
})

test('D15: the database is for its owner alone, with all that lies beside it', async () => {
  const before = process.umask(0o022)
  try {
    const path = join(root, 'private', 'deeper', 'sessions.db')
    const store = sqliteStore(path)
    const writer = await store.open('private', { create: true })
    await writer.append(['secret'])
    const modeOf = (each: string): string => (statSync(each).mode & 0o777).toString(8)
    const files = readdirSync(dirname(path)).map((name) => `${name} ${modeOf(join(dirname(path), name))}`)
    await store.close()
    assert.deepEqual(files.toSorted(), ['sessions.db 600', 'sessions.db-shm 600', 'sessions.db-wal 600'])
    assert.deepEqual([modeOf(dirname(path)), modeOf(join(root, 'private'))], ['700', '700'])
  } finally {
    process.umask(before)
  }
})

test('D15: a link or a folder in place of the database is rejected', async () => {
  const path = await scene()
  symlinkSync(path, `${path}-link`)
  for (const wrong of [`${path}-link`, dirname(path)])
    await assert.rejects(sqliteStore(wrong).list(), { code: 'STORE_FAILED', message: /is not a file/ })
})

test('D14: on a full disk the append fails, and what was stored before is complete', async () => {
  const path = join(root, 'full.db')
  const place = { kind: 'sqlite', place: path, store: sqliteStore(path) } as const
  const said = await start(place, ['write', 'full', '5000'], {}, `trap '' XFSZ; ulimit -f 1000`).said()
  assert.equal(said.at(-1), 'STORE_FAILED')
  assert.equal(wholeBatches((await place.store.read('full'))!), said.length - 1)
  const writer = await place.store.open('full')
  await writer.append(...batchOf(batchAfter((await place.store.read('full'))!.lines)))
  await place.store.close()
})

test('a closed store and an invalid path are rejected with a code', async () => {
  const store = sqliteStore(join(root, 'closed.db'))
  await store.close()
  await assert.rejects(store.list(), { code: 'STORE_FAILED', message: /closed/ })
  for (const path of ['', ':memory:']) assert.throws(() => sqliteStore(path), { code: 'AGENT_INVALID_OPTION' })
  assert.throws(() => sqliteStore('x.db', { leaseMs: 1 }), { code: 'AGENT_INVALID_OPTION' })
})

test('SQLite is loaded when it is first used, without a warning', () => {
  const script = `
    const { sqliteStore } = await import(${JSON.stringify(fileURLToPath(new URL('../index.ts', import.meta.url)))})
    const loaded = () => process.moduleLoadList.some((name) => name.includes('NativeModule sqlite'))
    const store = sqliteStore(${JSON.stringify(join(root, 'quiet.db'))})
    const before = loaded()
    await store.list()
    await store.close()
    console.log(before, loaded())`
  const run = spawnSync(process.execPath, ['--conditions=hookloop-source', '--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  assert.deepEqual([run.stdout, run.stderr], ['false true\n', ''])
})
