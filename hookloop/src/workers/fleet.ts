import { AgentError } from '../errors.ts'
import { isId } from '../values/is-id.ts'
import { checkArgument, checkOptions } from '../values/check-options.ts'
import type { AgentEvent, Answer, Message } from '../plugin.ts'
import type { JsonObject } from '../values/json.ts'
import { answerApproval } from '../sessions/session/approvals.ts'
import { requestStop } from '../sessions/session/request-stop.ts'
import { watchSession, type WatchOptions } from '../sessions/log/watch-session.ts'
import { checkSessionId, type SessionStore } from '../sessions/stores/store.ts'
import type { RejectedTurn, Turn, TurnResult } from './turn.ts'

/** How a message is sent to a session. */
export type SendTurnOptions = {
  /** An id of the request: the same turn is the same run. Default: a new one. */
  readonly turn?: string
  /** Which agent of the workers takes a new session. Default: the `agent` of the fleet, or the only one. */
  readonly agent?: string
  /** Facts for hooks, such as the user. Default none. */
  readonly metadata?: JsonObject
  /** What happens if a run of the session waits for an answer. Default `reject`. */
  readonly onNewInput?: 'reject' | 'block'
  /** `false`: pieces of the answer are not stored. Default true. */
  readonly deltas?: boolean
}

/** A turn that workers drive. */
export interface SentTurn {
  readonly session: string
  readonly turn: string
  /**
   * Resolves when its run has ended or waits for an answer. Rejects if it could not start, or when the signal aborts. While the
   * engine cannot be reached, it waits.
   */
  result(options?: { readonly signal?: AbortSignal }): Promise<TurnResult>
}

/** Sessions that workers run. Any process with access to the store can use it, and none needs an agent. */
export interface Fleet {
  readonly store: SessionStore
  /** Sends a message. Resolves when the engine has stored it: it will run, whatever fails. */
  send(session: string, input: string | Message, options?: SendTurnOptions): Promise<SentTurn>
  /** Answers a question; the run then resumes. */
  answer(
    session: string,
    answer: { readonly approval: string; readonly answer: Answer; readonly by?: string },
  ): Promise<void>
  /** Resumes a run that was suspended or interrupted. */
  resume(session: string): Promise<void>
  /** Stops the run of a session, if there is one. Resolves when it has ended. */
  stop(session: string, options?: { readonly by?: string; readonly reason?: string }): Promise<void>
  /** The events of a session, from any process. */
  watch(session: string, options?: WatchOptions): AsyncIterable<AgentEvent>
}

/** What an engine brings: everything else is the same for all of them. */
export type Engine = {
  readonly store: SessionStore
  /** Which agent takes new sessions by default. */
  readonly agent?: string | undefined
  /** Stores a turn so that it is driven to its end. The same `turn` is stored once. */
  readonly enqueue: (turn: Turn) => Promise<void>
  /** The result of a turn that was stored. Rejects with `STORE_FAILED` if the engine cannot be reached. */
  readonly resultOf: (turn: Pick<Turn, 'session' | 'turn'>, signal?: AbortSignal) => Promise<TurnResult | RejectedTurn>
}

/** How long an answer waits for the worker that asks: it stores the question a moment before it releases the session. */
const WAIT_MS = 5_000

/** A fleet on an engine. */
export function createFleet({ store, agent, enqueue, resultOf }: Engine): Fleet {
  const resume = async (session: string): Promise<void> => {
    await enqueue({ session: checkSessionId(session), turn: crypto.randomUUID(), sentAt: Date.now() })
  }
  return {
    store,
    send: async (session, input, options = {}) => {
      checkOptions('send', options, ['turn', 'agent', 'metadata', 'onNewInput', 'deltas'])
      const { turn = crypto.randomUUID() } = options
      checkArgument('send', ['turn', turn], isId(turn), 'a text of 1 to 256 characters')
      const named = agent === undefined ? options : { agent, ...options }
      await enqueue({ ...named, session: checkSessionId(session), turn, input, sentAt: Date.now() })
      const result: SentTurn['result'] = async ({ signal } = {}) =>
        accepted(await whenReached(() => resultOf({ session, turn }, signal), signal))
      return { session, turn, result }
    },
    answer: async (session, given) => {
      await answerApproval(store, { waitMs: WAIT_MS, ...given, session })
      await resume(session)
    },
    resume,
    stop: async (session, options = {}) => {
      if (!(await requestStop(store, { ...options, session }))) return
      const turn = crypto.randomUUID()
      await enqueue({ session, turn }) // after the run; it ends a run that no worker has
      await whenReached(() => resultOf({ session, turn }))
    },
    watch: (session, options) => watchSession(store, session, options),
  }
}

const MAX_PAUSE_MS = 2_000

/** Asks again while the engine cannot be reached: it has the turn, so there will be a result. */
async function whenReached<T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await ask()
    } catch (error) {
      signal?.throwIfAborted()
      const isUnreachable = error instanceof AgentError && error.code === 'STORE_FAILED' && !isRejection(error.value)
      if (!isUnreachable) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/** The status of an HTTP response that would be the same again. */
function isRejection(status: unknown): boolean {
  return typeof status === 'number' && status >= 400 && status < 500
}

function accepted(result: TurnResult | RejectedTurn): TurnResult {
  if (result.status === 'rejected') throw new AgentError(result.code, result.message)
  return result
}
