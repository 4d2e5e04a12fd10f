import { stopError, type Agent, type AgentEvent, type Message } from '../plugin.ts'
import type { RunStream, Session } from '../index.ts'
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

/** A turn in the queue of a runner. */
export type SentTurn = {
  /** Rejects if the turn cannot start, or when the signal aborts. */
  result(options: { readonly signal: AbortSignal }): Promise<unknown>
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
  resume(session: string): Promise<void>
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
  const active = new Map<string, { readonly cancel: (by?: string) => void; readonly ended: Promise<void> }>()
  const closing = new AbortController()
  const handles = new BoundedMap<string, Session>() // a handle fires `onSessionStart` once
  const handleOf = (id: string): Session => handles.getOrAdd(id, () => sessionOf(store, agent, id))

  const start = async (id: string, begin: (signals: Signals) => RunStream<AgentEvent>): Promise<undefined> => {
    if (active.has(id)) throw sessionBusy(id, 'another run in this process')
    const controller = new AbortController()
    const live = begin({ signal: controller.signal, drain: closing.signal })
    const ended = live.run.then(noop, noop) // a run that fails says so in its events
    const cancel = (by?: string): void =>
      controller.abort(stopError({ ...(by !== undefined && { by }), at: Date.now() }))
    active.set(id, { cancel, ended })
    void ended.then(() => active.delete(id))
    return accepted(live)
  }

  return {
    store,
    send: (id, input, options = {}) => start(id, (signals) => handleOf(id).stream(input, { ...options, ...signals })),
    resume: async (id) => {
      if (!active.has(id)) await start(id, (signals) => handleOf(id).resumeStream(signals))
    },
    stop: async (id, { by } = {}) => {
      const own = active.get(id)
      own?.cancel(by)
      if (own !== undefined) return own.ended
      const { status } = (await store.read(id, { after: Infinity }))?.head ?? {}
      if (status === 'running') await handleOf(id).stop({ ...(by !== undefined && { by }) })
    },
    close: async () => {
      closing.abort()
      while (active.size > 0) await Promise.all([...active.values()].map(({ ended }) => ended))
    },
  }
}

type Signals = { readonly signal: AbortSignal; readonly drain: AbortSignal }

/** Resolves with the first event of the run. Rejects if it cannot start. */
async function accepted(live: RunStream<AgentEvent>): Promise<undefined> {
  for await (const { type } of live) if (type !== 'hook' && type !== 'warning') return undefined // further events are in the store
  return undefined
}

function noop(): void {}
