import { stopError, type Agent, type AgentEvent, type Message } from '../plugin.ts'
import type { AgentError, Run, RunStream, Session } from '../index.ts'
import { BoundedMap } from '../values/bounded-map.ts'
import type { JsonObject } from '../values/json.ts'
import { sessionOf } from '../sessions/session/session.ts'
import { sessionBusy, type SessionStore } from '../sessions/stores/store.ts'

/** How a turn is sent. */
export type TurnOptions = {
  /** The id of the turn, for the `input` event. Default none. */
  readonly turn?: string
  /** Facts for hooks. Default none. */
  readonly metadata?: JsonObject
  /** What happens if a run of the session waits for an answer or was interrupted. Default `reject`. */
  readonly onNewInput?: 'reject' | 'block'
  /** `false`: pieces of the answer are not stored. Default true. */
  readonly deltas?: boolean
}

/** A turn that a runner has accepted. */
export type SentTurn = {
  /** Rejects if the turn cannot start, or when the signal aborts. */
  result(options: { readonly signal: AbortSignal }): Promise<unknown>
  /** Resolves with the error if the run ends without an event that says so, because its store has failed. */
  readonly lost?: Promise<AgentError | undefined>
}

/**
 * Runs the turns of sessions, in this process or elsewhere. What happens in a run is read with `watchSession`, so a runner only
 * has to start it.
 */
export interface SessionRunner {
  readonly store: SessionStore
  /**
   * Resolves when the turn is accepted, not when it has ended. Rejects with SESSION_BUSY while another turn runs, unless the
   * runner has a queue: then it returns what says whether the turn could start.
   */
  send(session: string, input: string | Message, options?: TurnOptions): Promise<SentTurn | undefined>
  /** Resumes a run that was suspended or interrupted. Resolves when it runs, also if it already does. */
  resume(session: string): Promise<SentTurn | undefined | void>
  /** Stops the run of a session, if there is one, in whatever process. Resolves when it has ended. `by` is for the record. */
  stop(session: string, options?: { readonly by?: string }): Promise<void>
}

/** A runner in this process. */
export interface AgentRunner extends SessionRunner {
  /** Suspends all runs after their current step, and resolves when none runs. They can be resumed. */
  close(): Promise<void>
}

/**
 * Runs an agent in this process.
 *
 * @example
 * const runner = agentRunner(agent, sqliteStore('sessions.db'))
 * const handle = serve(runner, { user })
 * process.once('SIGTERM', () => void runner.close())
 */
export function agentRunner(agent: Agent<unknown>, store: SessionStore): AgentRunner {
  const active = new Map<
    string,
    { readonly cancel: (by?: string) => void; readonly sent: SentTurn; readonly lost: Lost }
  >()
  const closing = new AbortController()
  const handles = new BoundedMap<string, Session>() // a handle fires `onSessionStart` once
  const handleOf = (id: string): Session => handles.getOrAdd(id, () => sessionOf(store, agent, id))

  const start = async (id: string, begin: (signals: Signals) => RunStream<AgentEvent>): Promise<SentTurn> => {
    if (active.has(id)) throw sessionBusy(id, 'another run in this process')
    const controller = new AbortController()
    const live = begin({ signal: controller.signal, drain: closing.signal })
    const lost = live.run.then(storeFailure, noop) // any other failure is an event
    const sent = { result: async () => undefined, lost }
    const cancel = (by?: string): void =>
      controller.abort(stopError({ ...(by !== undefined && { by }), at: Date.now() }))
    active.set(id, { cancel, sent, lost })
    void lost.then(() => active.delete(id))
    await accepted(live)
    return sent
  }

  return {
    store,
    send: (id, input, options = {}) => start(id, (signals) => handleOf(id).stream(input, { ...options, ...signals })),
    resume: async (id) => active.get(id)?.sent ?? start(id, (signals) => handleOf(id).resumeStream(signals)),
    stop: async (id, { by } = {}) => {
      const own = active.get(id)
      own?.cancel(by)
      if (own !== undefined) {
        await own.lost
        return
      }
      const { status } = (await store.read(id, { after: Infinity }))?.head ?? {}
      if (status === 'running') await handleOf(id).stop({ ...(by !== undefined && { by }) })
    },
    close: async () => {
      closing.abort()
      while (active.size > 0) await Promise.all([...active.values()].map(({ lost }) => lost))
    },
  }
}

type Lost = Promise<AgentError | undefined>
type Signals = { readonly signal: AbortSignal; readonly drain: AbortSignal }

/** Resolves with the first event of the run. Rejects if it cannot start. */
async function accepted(live: RunStream<AgentEvent>): Promise<undefined> {
  for await (const { type } of live) if (type !== 'hook' && type !== 'warning') return undefined // further events are in the store
  return undefined
}

function storeFailure(run: Run): AgentError | undefined {
  return run.status === 'failed' && run.reason === 'persistenceFailed' ? run.error : undefined
}

function noop(): undefined {}
