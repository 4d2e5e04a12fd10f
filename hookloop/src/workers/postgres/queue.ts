import type { Job, PgBoss } from 'pg-boss'
import { AgentError, messageOf } from '../../errors.ts'
import { checkArgument } from '../../values/check-options.ts'
import { cannotUse } from '../../sessions/stores/postgres-connect.ts'
import type { Turn } from '../turn.ts'

/** Where the turns are stored. */
export type QueueOptions = {
  /** The address of the database. */
  readonly connectionString: string
  /** The schema of the queue's tables, which are created if they are missing. Default `hookloop_turns`. */
  readonly schema?: string
}

export type TurnJob = Job<Stored<Turn>>

/** A value as Postgres can store it: its JSON rejects NUL and half a surrogate pair, which messages and answers may contain. */
export type Stored<T extends object> = T | { readonly json: string }

export function toStored<T extends object>(value: T): Stored<T> {
  const json = JSON.stringify(value)
  return /\\u(?:0000|d[89a-f])/i.test(json) ? { json } : value
}

export function fromStored<T extends object>(stored: Stored<T>): T {
  return 'json' in stored ? (JSON.parse(stored.json) as T) : stored
}

export const QUEUE = 'turns'

/** A worker that sends no sign of life for this long is dead. The queue allows no less. */
const HEARTBEAT_SECONDS = 10

/** A connection that answers nothing for this long is broken: packets may get lost without an error. */
const QUERY_TIMEOUT_MS = 15_000

/** Queries of the queue are short. One more connection listens. */
const MAX_CONNECTIONS = 4

/** How long a turn waits for a worker, or for the turns before it. The queue deletes turns that wait longer, without a word. */
const RETENTION_SECONDS = 10 * 365 * 24 * 3_600

/** In one queue, the turns of one session are driven in order, one at a time. A turn is tried again until it has a result. */
const policy = {
  policy: 'key_strict_fifo',
  notify: true,
  heartbeatSeconds: HEARTBEAT_SECONDS,
  expireInSeconds: 24 * 3_600 - 1,
  retentionSeconds: RETENTION_SECONDS,
  retryLimit: 1_000_000,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 10,
} as const

/** Connects to the queue, and creates it if it is missing. `supervises`: whether this process looks for dead workers. */
export async function openQueue(
  caller: string,
  { connectionString, schema = 'hookloop_turns' }: QueueOptions,
  { supervises }: { readonly supervises: boolean },
): Promise<PgBoss> {
  const isText = typeof connectionString === 'string' && connectionString !== ''
  checkArgument(caller, ['connectionString', connectionString], isText, 'the address of a Postgres database')
  checkArgument(caller, ['schema', schema], /^[a-z_][a-z0-9_]*$/.test(schema), 'the name of a schema in lower case')
  const { PgBoss: Boss } = await loadQueue()
  // What pg-boss does not know, it passes to `pg`.
  const connection = { query_timeout: QUERY_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelayMillis: 10_000 }
  const boss = new Boss({
    ...connection,
    connectionString,
    schema,
    max: MAX_CONNECTIONS,
    useListenNotify: supervises,
    supervise: supervises,
    schedule: false,
    superviseIntervalSeconds: 5,
    monitorIntervalSeconds: 5,
  })
  boss.on('error', () => undefined) // calls report it, and the connection is opened again
  try {
    await boss.start()
    if ((await boss.getQueue(QUEUE)) === null) await boss.createQueue(QUEUE, policy).catch(ignoreExisting)
    return boss
  } catch (error) {
    const isLate = messageOf(error) === 'Query read timeout'
    const late = `no answer within ${QUERY_TIMEOUT_MS / 1_000} s. The network may be broken, or another connection has locked the tables in the schema "${schema}"`
    throw cannotUse('The queue in the database', connectionString, isLate ? new Error(late, { cause: error }) : error)
  }
}

/** Two processes may create it at the same time. */
function ignoreExisting(error: unknown): void {
  if ((error as { readonly code?: unknown }).code !== '23505') throw error
}

async function loadQueue(): Promise<typeof import('pg-boss')> {
  try {
    return await import('pg-boss')
  } catch (error) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `hookloop/pg-workers needs a package: npm install pg-boss (${messageOf(error)})`,
      {
        value: 'pg-boss',
        cause: error,
      },
    )
  }
}

/** The id of the job of a turn: the same for the same turn, so that it is stored once. */
export function jobIdOf({ session, turn }: Pick<Turn, 'session' | 'turn'>): string {
  const { createHash } = process.getBuiltinModule('node:crypto')
  const hex = createHash('sha256')
    .update(JSON.stringify([session, turn]))
    .digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  )
}
