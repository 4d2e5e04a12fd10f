import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, suite, test } from 'node:test'
import pg from 'pg'
import { hashText } from '../../values/json.ts'
import { answerApproval } from './approvals.ts'
import { replay } from '../replay/replay.ts'
import { drive, eventfulAgent } from './eventful-run.fixture.ts'
import { exportSession } from './export-session.ts'
import { forkSession, listPoints } from './fork-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { postgresStore } from '../stores/postgres-store.ts'
import { startPostgres } from '../stores/postgres.fixture.ts'
import { NO_SUM } from '../log/session-log.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'

// Sessions that were changed, in every store that other programs can write to: every use rejects them with a code,
// and what is stored stays as it is.

const folder = mkdtempSync(join(tmpdir(), 'hookloop-hostile-'))
const server = await startPostgres()
const pool = new pg.Pool({ connectionString: server.connectionString, allowExitOnIdle: true })
after(async () => {
  await pool.end()
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

const nothing = { note: () => undefined }

/** A session that waits for an approval. */
const lines = await (async () => {
  const store = memoryStore()
  await drive(eventfulAgent(store, nothing), store)
  const all = (await store.read('eventful'))!.lines
  return all.slice(0, all.findIndex((line) => line.includes('"t":"pause"')) + 1)
})()

/** The lines with one of them changed and valid checksums, as an attacker could write them. */
function forged(at: number, change: (body: string) => string): readonly string[] {
  let sum = NO_SUM
  return lines.map((line, i) => {
    const body = line.replace(/,"sum":"\w+"}$/, '}')
    const changed = i === at ? change(body) : body
    sum = hashText(`${sum}${changed}`).slice(0, 16)
    return `${changed.slice(0, -1)},"sum":"${sum}"}`
  })
}

const middle = Math.floor(lines.length / 2)
const last = lines.length - 1
const step = lines.findLastIndex((line) => line.includes('"t":"step"'))
const attacks: { readonly [what: string]: readonly [code: string, lines: readonly string[]] } = {
  'a line that was edited': ['SESSION_CORRUPT', lines.with(middle, lines[middle]!.replace(/[a-z]/, 'X'))],
  'a last line that was cut': ['SESSION_CORRUPT', lines.with(last, lines[last]!.slice(0, -20))],
  'a line that is missing': ['SESSION_CORRUPT', lines.toSpliced(middle, 1)],
  'a line that is there twice': ['SESSION_CORRUPT', lines.toSpliced(middle, 0, lines[middle]!)],
  'two lines in another order': [
    'SESSION_CORRUPT',
    lines.with(middle, lines[middle + 1]!).with(middle + 1, lines[middle]!),
  ],
  'no beginning': ['SESSION_CORRUPT', lines.slice(1)],
  'a line that is no JSON': ['SESSION_CORRUPT', lines.with(middle, 'rm -rf /')],
  'a huge time': ['SESSION_CORRUPT', forged(last, (body) => body.replace(/"at":\d+/, '"at":1e308'))],
  'an endless time': ['SESSION_CORRUPT', forged(last, (body) => body.replace(/"at":\d+/, '"at":1e999'))],
  'a huge count': ['SESSION_CORRUPT', forged(step, (body) => body.replace(/"keep":\d+/, '"keep":9007199254740993'))],
  'a key "__proto__"': ['SESSION_CORRUPT', forged(last, (body) => `${body.slice(0, -1)},"__proto__":{"polluted":1}}`)],
  'a newer version': ['STATE_VERSION', forged(0, (body) => body.replace('"version":4', '"version":5'))],
}

const reads: { readonly [name: string]: (store: SessionStore) => Promise<unknown> } = {
  state: (store) => eventfulAgent(store, nothing).session('eventful').state(),
  points: (store) => listPoints(store, 'eventful'),
  fork: (store) => forkSession(store, 'eventful'),
  export: (store) => exportSession(store, 'eventful'),
  replay: async (store) => replay((await store.read('eventful'))!, { agent: eventfulAgent(store, nothing) }),
}
const writes: typeof reads = {
  resume: (store) => eventfulAgent(store, nothing).resume('eventful'),
  run: (store) => eventfulAgent(store, nothing).run('Go.', { session: 'eventful' }),
  clear: (store) => eventfulAgent(store, nothing).session('eventful').clear(),
  answer: (store) => answerApproval(store, { session: 'eventful', approval: 'x', answer: 'allow' }),
}

type Kind = {
  readonly open: (name: string) => SessionStore
  /** Everything that is stored, to the byte. */
  readonly bytes: (name: string) => unknown
  /** The lines and the head, without who has it now. */
  readonly kept: (name: string) => unknown
}
const kinds: { readonly [kind: string]: Kind } = {
  SQLite: {
    open: (name) => sqliteStore(join(folder, `${name}.db`)),
    bytes: (name) => filesOf(`${name}.db`),
    kept: (name) => {
      const database = new DatabaseSync(join(folder, `${name}.db`), { readOnly: true })
      const rows = [
        database.prepare('SELECT * FROM lines').all(),
        database.prepare('SELECT id, head FROM sessions').all(),
      ]
      database.close()
      return rows
    },
  },
  Postgres: {
    open: (schema) => postgresStore({ pool, schema }),
    bytes: (schema) => tables(schema, '*'),
    kept: (schema) => tables(schema, 'id, head, length'),
  },
}

async function tables(schema: string, columns: string): Promise<readonly unknown[]> {
  const all = [`SELECT * FROM ${schema}.lines ORDER BY session, n`, `SELECT ${columns} FROM ${schema}.sessions`]
  return Promise.all(all.map(async (query) => (await pool.query(query)).rows as unknown))
}

/** A database and its log, without the index of the log. */
function filesOf(database: string): readonly (readonly [name: string, bytes: string])[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(database) && !name.endsWith('-shm'))
    .toSorted()
    .map((name) => [name, readFileSync(join(folder, name), 'latin1')] as const)
}

let scenes = 0

for (const [kind, { open, bytes, kept }] of Object.entries(kinds)) {
  suite(`a session in ${kind}`, () => {
    for (const [what, [code, changed]] of Object.entries(attacks)) {
      test(`D09, D11, D12: with ${what} is rejected with ${code} by every use and not changed`, async () => {
        const name = `scene_${scenes++}`
        const store = open(name)
        const writer = await store.open('eventful', { create: true })
        await writer.append(changed, { head: { title: 'hostile' } })
        await writer.release()
        const before = { bytes: await bytes(name), kept: await kept(name) }
        for (const [how, use] of Object.entries(reads)) await assert.rejects(use(store), { code }, how)
        assert.deepEqual(await bytes(name), before.bytes)
        for (const [how, use] of Object.entries(writes)) await assert.rejects(use(store), { code }, how)
        assert.deepEqual(await kept(name), before.kept)
        assert.equal('polluted' in {}, false)
        await store.close()
      })
    }
  })
}
