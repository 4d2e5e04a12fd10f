import { checkOptions } from '../../values/check-options.ts'
import { storeFailed, type SessionStore } from '../../sessions/stores/store.ts'
import { createFleet, type Fleet } from '../fleet.ts'
import type { RejectedTurn, TurnResult } from '../turn.ts'
import { fromStored, jobIdOf, openQueue, QUEUE, toStored, type QueueOptions, type Stored } from './queue.ts'

/**
 * Options of `fleet`.
 *
 * @interface
 */
export type FleetOptions = QueueOptions & {
  /** The store that the workers use. */
  readonly store: SessionStore
  /** Which agent of the workers takes new sessions, by its key in `agents`. Default: the only one. */
  readonly agent?: string
}

/** How often it is checked whether a turn has a result: rarely for one that takes long. */
const [MIN_PAUSE_MS, MAX_PAUSE_MS] = [20, 500]

/**
 * Sessions that workers on Postgres run.
 *
 * @example
 * const sessions = await fleet({ connectionString: process.env.DATABASE_URL, store })
 * const sent = await sessions.send('build', 'Build it.', { turn: 'request-42' })
 */
export async function fleet(options: FleetOptions): Promise<Fleet & { close(): Promise<void> }> {
  checkOptions('fleet', options, ['connectionString', 'schema', 'store', 'agent'])
  const { store } = options
  const boss = await openQueue('fleet', options, { supervises: false })
  const sessions = createFleet({
    store,
    agent: options.agent,
    enqueue: async (turn) => {
      await boss.send(QUEUE, toStored(turn), { id: jobIdOf(turn), singletonKey: turn.session }).catch(queueFailed)
    },
    resultOf: async (turn, signal) => {
      const id = jobIdOf(turn)
      const startedAt = performance.now()
      for (;;) {
        const [job] = await boss.findJobs(QUEUE, { id }).catch(queueFailed)
        if (job?.state === 'completed') return fromStored(job.output as unknown as Stored<TurnResult | RejectedTurn>)
        if (job === undefined || job.state === 'failed' || job.state === 'cancelled')
          return { status: 'rejected', code: 'STORE_FAILED', message: `The turn "${turn.turn}" is not in the queue.` }
        signal?.throwIfAborted()
        const pauseMs = Math.max(MIN_PAUSE_MS, (performance.now() - startedAt) / 10)
        await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, MAX_PAUSE_MS)))
      }
    },
  })
  return { ...sessions, close: () => boss.stop({ graceful: false }) }
}

function queueFailed(error: unknown): never {
  throw storeFailed('The queue cannot be read or written', error)
}
