import { checkOptions } from '../../state/check-options.ts'
import { checkStore, storeFailed, type SessionStore } from '../../sessions/stores/store.ts'
import { createFleet, type Fleet } from '../fleet.ts'
import type { RejectedTurn, Turn, TurnResult } from '../turn.ts'
import { jobIdOf, openQueue, QUEUE, type QueueOptions } from './queue.ts'

/** Options of `fleet`. */
export type FleetOptions = QueueOptions & {
  /** The store that the workers use. */
  readonly store: SessionStore
  /** Which agent of the workers takes new sessions, by its key in `agents`. Default: the only one. */
  readonly agent?: string
}

const MAX_PAUSE_MS = 500

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
  checkStore('fleet', store)
  const boss = await openQueue('fleet', options, { supervises: false })
  const sessions = createFleet({
    store,
    agent: options.agent,
    enqueue: async (turn) => {
      await boss.send(QUEUE, turn, { id: jobIdOf(turn), singletonKey: turn.session }).catch(queueFailed)
    },
    resultOf: async (turn, signal) => {
      const id = jobIdOf(turn)
      for (let pauseMs = 20; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
        const [job] = await boss.findJobs<Turn>(QUEUE, { id }).catch(queueFailed)
        if (job?.state === 'completed') return job.output as unknown as TurnResult | RejectedTurn
        if (job === undefined || job.state === 'failed' || job.state === 'cancelled')
          return { status: 'rejected', code: 'STORE_FAILED', message: `The turn "${turn.turn}" is not in the queue.` }
        signal?.throwIfAborted()
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    },
  })
  return { ...sessions, close: () => boss.stop({ graceful: false }) }
}

function queueFailed(error: unknown): never {
  throw storeFailed('The queue cannot be read or written', error)
}
