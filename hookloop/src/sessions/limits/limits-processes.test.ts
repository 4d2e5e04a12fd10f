import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { after, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { postgresStore } from '../stores/postgres-store.ts'
import { startPostgres } from '../stores/postgres.fixture.ts'
import { openStore } from './shared-store.fixture.ts'
import type { SessionStore } from '../stores/store.ts'
import { valueOf } from './limits.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-limits-'))
const server = await startPostgres()
const children: Worker[] = []
after(async () => {
  for (const { child } of children) child.kill('SIGKILL')
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Worker = {
  readonly child: ChildProcessByStdio<Writable, Readable, null>
  readonly said: readonly string[]
  tell(...commands: readonly string[]): void
  /** Resolves when it has said so many lines like this one. Returns them. Rejects when a run of it has failed. */
  heard(line: RegExp, count?: number): Promise<readonly string[]>
  end(signal?: NodeJS.Signals): Promise<void>
}

async function worker(kind: string, place: string, limit: string): Promise<Worker> {
  const file = fileURLToPath(new URL('limits-process.fixture.ts', import.meta.url))
  const args = ['--conditions=hookloop-source', '--no-warnings', file, kind, place, limit]
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const said: string[] = []
  const output = createInterface({ input: child.stdout }).on('line', (line) => said.push(line))
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()))
  const made: Worker = {
    child,
    said,
    tell: (...commands) => void child.stdin.write(`${commands.join('\n')}\n`),
    async heard(line, count = 1) {
      for (;;) {
        const found = said.filter((each) => line.test(each))
        if (found.length >= count) return found
        const failed = said.find((each) => each.startsWith('failed '))
        if (failed !== undefined) throw new Error(failed)
        await new Promise((resolve) => output.once('line', resolve))
      }
    },
    async end(signal = 'SIGKILL') {
      child.kill(signal)
      await ended
    },
  }
  children.push(made)
  await made.heard(/^ready/)
  return made
}

for (const kind of ['sqlite', 'postgres'])
  suite(`limits that processes share over ${kind}`, () => {
    let count = 0
    const open = async (): Promise<{ store: SessionStore; start: (limit: string) => Promise<Worker> }> => {
      const place = kind === 'postgres' ? await database(++count) : join(folder, `${kind}-${++count}`)
      const store = openStore(kind, place)
      after(() => store.close())
      return { store, start: (limit) => worker(kind, place, limit) }
    }

    test('a run whose process is killed with kill -9 in a model call spends its reservation when it is resumed, once', async () => {
      const { store, start } = await open()
      const [first, second] = await Promise.all([start('budget'), start('budget')])
      first.tell('run s')
      await first.heard(/^called s/)
      await first.end()
      const reserved = (): Promise<number> =>
        valueOf(store, 'budget ann').then((value) => Object.keys((value as { reserved: object }).reserved).length)
      assert.equal(await reserved(), 1)
      second.tell('resume s')
      await second.heard(/^called s/)
      assert.equal(await reserved(), 1)
      second.tell('answer s')
      await second.heard(/^ended s completed/)
      assert.deepEqual(await valueOf(store, 'budget ann'), {
        period: 0,
        costUsd: 0,
        tokens: 1_000,
        reserved: {},
        answer: 600,
      })
      await second.end()
    })

    test('runs that were killed with kill -9 free their places, and count once when they are resumed', async () => {
      const { store, start } = await open()
      const [first, second] = await Promise.all([start('runs'), start('runs')])
      first.tell('run a', 'run b')
      await first.heard(/^called/, 2)
      second.tell('run c')
      await first.end()
      await second.heard(/^called c/)
      second.tell('resume a')
      await second.heard(/^called a/)
      assert.equal(await places(store, 'runLimit all'), 2)
      second.tell('resume b')
      second.tell('answer c')
      await second.heard(/^ended c completed 1/)
      await second.heard(/^called b/)
      assert.equal(await places(store, 'runLimit all'), 2)
      second.tell('answer a', 'answer b')
      await second.heard(/^ended [ab] completed/, 2)
      assert.equal(await places(store, 'runLimit all'), 0)
      await second.end()
    })

    test('calls of two processes are at most as many as the limit of the model, and the next one follows', async () => {
      const { store, start } = await open()
      const [first, second] = await Promise.all([start('calls'), start('calls')])
      first.tell('run a', 'run b')
      await first.heard(/^called/, 2)
      second.tell('run c')
      first.tell('answer a')
      await second.heard(/^called c/)
      assert.equal(await places(store, 'callLimit test/gated'), 2)
      first.tell('answer b')
      second.tell('answer c')
      await Promise.all([first.heard(/^ended b/), second.heard(/^ended c completed/)])
      assert.equal(await places(store, 'callLimit test/gated'), 0)
      await Promise.all([first.end(), second.end()])
    })

    test('when one process is answered 429, no process calls the model until the time is over, and a success ends that', async () => {
      const { store, start } = await open()
      const [first, second] = await Promise.all([start('rate'), start('rate')])
      first.tell('run a')
      await first.heard(/^called a/)
      first.tell('reject a')
      await first.heard(/^ended a failed/)
      second.tell('run b')
      await second.heard(/^ended b failed/) // it would have to wait for five minutes
      assert.deepEqual(await second.heard(/^called/, 0), [])
      await store.update('rateLimit test/gated', (rate) => ({ ...(rate as object), blockedUntil: 0 }))
      second.tell('run c')
      await second.heard(/^called c/)
      second.tell('answer c')
      await second.heard(/^ended c completed/)
      assert.equal(((await valueOf(store, 'rateLimit test/gated')) as { failures: number }).failures, 0)
      await Promise.all([first.end(), second.end()])
    })

    test('four processes that change one value 50 times at once each lose no change', async () => {
      const { store, start } = await open()
      const workers = await Promise.all([0, 1, 2, 3].map(() => start('rate')))
      for (const each of workers) each.tell('add 50')
      await Promise.all(workers.map((each) => each.heard(/^added/)))
      assert.equal(await valueOf(store, 'count'), 200)
      await Promise.all(workers.map((each) => each.end()))
    })
  })

test('fifty connections to Postgres that change one value at once lose no change, and none fails', async () => {
  const connectionString = await database(100)
  const stores = Array.from({ length: 50 }, () => postgresStore({ connectionString }))
  await stores[0]!.list() // makes the tables
  await Promise.all(stores.map((each) => each.update('count', (value) => Number(value ?? 0) + 1)))
  assert.equal(await valueOf(stores[0]!, 'count'), 50)
  await Promise.all(stores.map((each) => each.close()))
})

async function places(store: SessionStore, name: string): Promise<number> {
  return Object.keys((await valueOf(store, name)) as object).length
}

/** A database of its own on the server. */
async function database(number: number): Promise<string> {
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: server.connectionString })
  await client.connect()
  await client.query(`CREATE DATABASE limits${number}`)
  await client.end()
  return server.connectionString.replace('/postgres?', `/limits${number}?`)
}
