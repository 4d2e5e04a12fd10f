import type { PgBoss } from 'pg-boss'
import { checkOptions, checkPositiveIntegers } from '../../values/check-options.ts'
import { TurnDriver, type SessionWorker, type WorkerOptions } from '../turn-driver.ts'
import { expiryOf, type RejectedTurn, type Turn, type TurnResult } from '../turn.ts'
import {
  fromStored,
  jobIdOf,
  openQueue,
  QUEUE,
  toStored,
  type QueueOptions,
  type Stored,
  type TurnJob,
} from './queue.ts'

/**
 * Options of `serveSessions`.
 *
 * @interface
 */
export type ServeSessionsOptions = WorkerOptions &
  QueueOptions & {
    /** How many runs at a time. Default 10. */
    readonly maxRuns?: number
  }

/**
 * Serves sessions as a worker on Postgres alone: it drives the turns that `fleet` sends, one at a time per session. If it dies,
 * another worker continues; the session in the store has what has happened.
 *
 * @example
 * const worker = await serveSessions({ agent, connectionString: process.env.DATABASE_URL })
 * process.once('SIGTERM', () => void worker.close())
 */
export async function serveSessions(options: ServeSessionsOptions): Promise<SessionWorker> {
  checkOptions('serveSessions', options, ['agent', 'agents', 'onTurn', 'connectionString', 'schema', 'maxRuns'])
  const { maxRuns = 10 } = options
  checkPositiveIntegers('serveSessions', { maxRuns }, ['maxRuns'])
  const driver = new TurnDriver('serveSessions', options)
  const boss = await openQueue('serveSessions', options, { supervises: true })

  const drive: Drive = async ([job]) => {
    const turn = fromStored(job!.data)
    // Not the signal of the job: it would cancel a run that lasts longer than the job may, or than a worker may take to end.
    const result = await driver.drive(turn)
    const expiry = expiryOf(turn, result)
    if (expiry !== undefined) {
      const { due, delayMs } = expiry
      const startAfter = delayMs(Date.now()) / 1_000 // not a time: the database has its own clock
      await boss.send(QUEUE, toStored(due), { id: jobIdOf(due), startAfter, singletonKey: turn.session })
    }
    return toStored(result)
  }
  await takeTurns(boss, drive, () => (driver.isDraining ? 0 : maxRuns))
  return driver.worker({
    check: () => boss.schemaVersion(),
    close: () => boss.stop({ graceful: true, timeout: 600_000 }),
  })
}

type Drive = (jobs: readonly TurnJob[]) => Promise<Stored<TurnResult | RejectedTurn>>

/** A turn that is driven again, or at a later time, comes without a notification. */
const POLLING = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 1 }

/**
 * Drives turns of the queue, so many at a time. A turn that is sent wakes all places of all workers that wait for one, so only
 * one of each worker waits: the next one is added when it gets a turn.
 */
async function takeTurns(boss: PgBoss, drive: Drive, maxRuns: () => number): Promise<void> {
  const free = new Set<string>()
  let [busy, isAdding] = [0, false]
  const add = async (): Promise<void> => {
    isAdding = true
    try {
      const id: string = await boss.work<Stored<Turn>, Stored<TurnResult | RejectedTurn>>(
        QUEUE,
        POLLING,
        async (jobs) => {
          free.delete(id)
          busy++
          if (free.size === 0 && !isAdding && busy < maxRuns()) void add().catch(() => undefined) // the queue was closed
          try {
            return await drive(jobs)
          } finally {
            busy--
            end(id)
          }
        },
      )
      free.add(id)
    } finally {
      isAdding = false
    }
  }
  /** A place whose turn has ended looks for the next one, or it is removed, and the one that is free does. */
  const end = (id: string): void => {
    if (free.size > 0 || isAdding) void boss.offWork(QUEUE, { id }).then(() => free.forEach(wake))
    else {
      free.add(id)
      setImmediate(wake, id)
    }
  }
  const wake = (id: string): void => boss.notifyWorker(id)
  await add()
}
