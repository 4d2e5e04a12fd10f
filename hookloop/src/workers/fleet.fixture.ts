import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { historyOf } from '../sessions/log/history.fixture.ts'
import { postgresStore } from '../sessions/stores/postgres-store.ts'
import { startPostgres, type PostgresServer } from '../sessions/stores/postgres.fixture.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { freePort } from '../system/network/free-port.fixture.ts'
import type { Fleet } from './fleet.ts'
import type { TurnReport } from './turn-driver.ts'
import { fleet as fleetOnPostgres } from './postgres/fleet.ts'
import { fleet as fleetOnRestate } from './restate/fleet.ts'
import { noRestate, startRestate, type RestateServer } from './restate/restate.fixture.ts'

export type EngineName = 'restate' | 'postgres'

/** The engines that tests can use here. */
export const engines: readonly EngineName[] = noRestate === false ? ['postgres', 'restate'] : ['postgres']
if (noRestate !== false) console.error(`Tests of workers on Restate were not run: ${noRestate}`)

/** What a worker says: what it does with a turn, or what it holds. */
export type WorkerReport =
  | TurnReport
  | {
      readonly type: 'holds'
      readonly running: number
      readonly resources: readonly string[]
      readonly heapUsed: number
      readonly rss: number
    }

export type TestWorker = ChildProcess & { readonly reports: readonly WorkerReport[]; readonly port: number }

export type WorkerPlace = {
  readonly port?: number
  readonly host?: string
  readonly database?: string
  readonly through?: readonly string[]
}

/** Less than a test may last, so that a test that fails says for what it waited, and ends. */
const MAX_WAIT_MS = 240_000

/** Waits for something that other processes cause. */
export async function until(what: string, isTrue: () => boolean): Promise<void> {
  const end = performance.now() + MAX_WAIT_MS
  while (!isTrue()) {
    if (performance.now() > end) throw new Error(`This did not happen in ${MAX_WAIT_MS / 1_000} s: ${what}.`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A database, an engine, a client, and workers that are processes. */
export class TestFleet {
  readonly engine: EngineName
  readonly database: PostgresServer
  readonly restate: RestateServer | undefined
  readonly store: SessionStore
  readonly sessions: Fleet
  readonly #world = join(mkdtempSync(join(tmpdir(), 'hookloop-fleet-')), 'world')
  /** Where Restate reaches workers that have no port of their own. */
  readonly port: number
  readonly #closeSessions: () => Promise<void>
  readonly #workers = new Set<ChildProcess>()
  readonly #registered = new Set<number>()

  private constructor(
    engine: EngineName,
    parts: Pick<TestFleet, 'database' | 'restate' | 'store' | 'sessions'> & {
      port: number
      close: () => Promise<void>
    },
  ) {
    this.engine = engine
    this.database = parts.database
    this.restate = parts.restate
    this.store = parts.store
    this.sessions = parts.sessions
    this.port = parts.port
    this.#closeSessions = parts.close
    writeFileSync(this.#world, '')
  }

  static async start(engine: EngineName, options: { readonly agent?: string } = {}): Promise<TestFleet> {
    const database = await startPostgres()
    const { connectionString } = database
    const restate = engine === 'restate' ? await startRestate() : undefined
    const store = postgresStore({ connectionString })
    if (restate !== undefined) {
      const sessions = fleetOnRestate({ ingress: restate.ingress, store, ...options })
      return new TestFleet(engine, {
        database,
        restate,
        store,
        sessions,
        port: await freePort(),
        close: async () => undefined,
      })
    }
    const sessions = await fleetOnPostgres({ connectionString, store, ...options })
    return new TestFleet(engine, { database, restate, store, sessions, port: 0, close: () => sessions.close() })
  }

  /**
   * Starts a worker. Resolves when it is ready. `database`: how it reaches the database. `host`: how Restate reaches it. `through`: a
   * command that starts it. With a port of its own, it is a new deployment in Restate.
   */
  async worker(
    env: { readonly [name: string]: string } = {},
    {
      database = this.database.connectionString,
      through = [],
      port = this.port,
      host = `127.0.0.1:${port}`,
    }: WorkerPlace = {},
  ): Promise<TestWorker> {
    const isKnown = this.restate === undefined || this.#registered.has(port)
    const admin = isKnown ? '' : this.restate.admin
    this.#registered.add(port)
    const file = join(import.meta.dirname, 'worker-process.fixture.ts')
    const options = ['--conditions=hookloop-source', '--disable-warning=ExperimentalWarning', '--expose-gc']
    if (env['CLOCK_MS'] !== undefined) options.push('--import', join(import.meta.dirname, 'shifted-clock.fixture.ts'))
    const args = [this.engine, database, this.#world, String(port), admin, host]
    const [command, ...all] = [...through, process.execPath, ...options, file, ...args]
    const reports: WorkerReport[] = []
    const child = Object.assign(
      spawn(command!, all, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }),
      { reports, port },
    )
    let said = ''
    child.stderr.on('data', (text) => (said += String(text)))
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => void (line.startsWith('{') && reports.push(JSON.parse(line) as WorkerReport)))
    this.#workers.add(child)
    child.once('exit', () => this.#workers.delete(child))
    await new Promise<void>((resolve, reject) => {
      lines.on('line', (line) => line === 'ready' && resolve())
      child.once('exit', (code) => reject(new Error(`The worker ended with ${code}: ${said}`)))
    })
    return child
  }

  /** Asks a worker to end, and lets a call end that it holds. Resolves with its exit code. */
  async drain(worker: ChildProcess): Promise<number | null> {
    const ended = once(worker, 'exit')
    worker.kill('SIGTERM')
    worker.kill('SIGURG')
    const [code] = (await ended) as [number | null]
    return code
  }

  /** Ends a worker as kill -9 does. */
  async kill(worker: ChildProcess): Promise<void> {
    worker.kill('SIGKILL')
    await once(worker, 'exit')
  }

  /** The calls of the tool: the session, the step, and the key of each. */
  calls(): readonly { readonly session: string; readonly step: number; readonly key: string; readonly pid: number }[] {
    const lines = readFileSync(this.#world, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    return lines.map((line) => {
      const [session = '', step, key = '', pid] = line.split(' ')
      return { session, step: Number(step), key, pid: Number(pid) }
    })
  }

  /** What a session came to: its status, how often it ended, and the outcomes of its calls. */
  async outcome(id: string) {
    const { records, state } = historyOf((await this.store.read(id))!.lines, id)
    const ends = records.filter((record) => record.t === 'final').length
    const { steps = [], status } = state?.execution ?? {}
    const results = [...steps].flatMap((step) => step.toolExecutions.map((each) => each.status))
    const isWaiting = records.findLast(({ t }) => t === 'pause' || t === 'resume' || t === 'final')?.t === 'pause'
    return { status: isWaiting ? 'suspended' : status, ends, results }
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => this.kill(worker)))
  }

  async stop(): Promise<void> {
    await this.killAll()
    await this.#closeSessions()
    await this.store.close()
    await this.restate?.stop()
    await this.database.stop()
  }
}
