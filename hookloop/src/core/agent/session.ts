import { AgentState } from '../state/agent-state.ts'
import type { AgentEvent } from '../state/event.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { Message } from '../state/message.ts'
import type { Task } from '../../values/tasks.ts'
import type { Warning } from '../state/warning.ts'
import { addUsage, noTokens } from '../state/usage.ts'
import type { RunStream } from './run-stream.ts'
import { fireTrigger } from '../context/fire-trigger.ts'
import type { ResumeOptions } from '../loop/resume.ts'
import type { RunContext } from '../context/run-context.ts'
import type { Run } from './run.ts'

/** How a run in a session waits for its lock, and how it makes way. */
export type WaitOptions = {
  /** How long to wait for a session that another process has locked. Default 0: it rejects with SESSION_BUSY at once. */
  readonly waitMs?: number
  /**
   * Aborted when the process is about to end, for example at SIGTERM: the run is suspended at the end of its step, without being
   * cancelled. `resume` continues it, here or in another process.
   */
  readonly drain?: AbortSignal
}

/**
 * The options of a message in a session.
 *
 * @interface
 */
export type SendOptions = {
  /** Cancels the run. Default none. */
  readonly signal?: AbortSignal
  /** Facts for hooks. They are stored in the session. Default none. */
  readonly metadata?: JsonObject
  /** Whether pieces of the answer are events: see `RunOptions`. Default: `true` for `stream`. */
  readonly deltas?: boolean
  /** What happens if a run waits for an answer: see `RunOptions`. Default `reject`. */
  readonly onNewInput?: 'reject' | 'block'
  /** An id of the request: the same turn is the same run, see `RunOptions`. Default none. */
  readonly turn?: string
} & WaitOptions

/**
 * A stored conversation. Its state is in the store, not in this object: any process can open the same id. Each action locks
 * the session while it runs.
 */
export type Session<O = string> = {
  readonly id: string
  /** The stored state; undefined before the first message. */
  readonly state: () => Promise<AgentState | undefined>
  /** Sends a message and runs the agent. */
  readonly send: (input: string | Message, options?: SendOptions) => Promise<Run<O>>
  readonly stream: (input: string | Message, options?: SendOptions) => RunStream<AgentEvent, O>
  /** Rejects input until the session is resumed. */
  readonly suspend: (reason?: string) => Promise<void>
  /** Resumes a run that was suspended or interrupted. A session without one accepts input again. */
  readonly resume: (options?: ResumeOptions & SendOptions) => Promise<Run<O> | undefined>
  /** The same as events. Rejects if there is no such run. */
  readonly resumeStream: (options?: ResumeOptions & SendOptions) => RunStream<AgentEvent, O>
  /**
   * Stops the run of this session, in whatever process it runs: see `requestStop`. Resolves with true when it has ended, also a
   * run that waits for an answer or was interrupted, and with false if there is none. `waitMs` is how long to wait for another
   * process, which may run a call that cannot be aborted; then it rejects with SESSION_BUSY. Default 30,000.
   */
  readonly stop: (options?: {
    readonly by?: string
    readonly reason?: string
    readonly waitMs?: number
  }) => Promise<boolean>
  /** Deletes the conversation and keeps the metadata. Warnings of hooks at the end of the session are in the next run. */
  readonly clear: () => Promise<void>
  /** Requests a compaction before the next step, from the hook that does it, such as `summarization`. */
  readonly compact: () => Promise<void>
  /** Another session that starts from the current state of this one, or from an earlier one. */
  readonly fork: (options?: {
    readonly at?: number
    readonly as?: string
    readonly message?: string | Message
  }) => Promise<Session<O>>
  /**
   * Goes back to an earlier step, in place: by its `seq` from `listPoints`, or before the answer to the last message. Without
   * `at` or with `message`, `resume()` then answers the message. What is dropped stays stored.
   */
  readonly rewind: (options?: { readonly at?: number; readonly message?: string | Message }) => Promise<void>
  /** Uses another model from now on, by name. */
  readonly changeModel: (model: string) => Promise<void>
  readonly changeSystemPrompt: (text: string) => Promise<void>
  readonly writeMetadata: (key: string, value: Json) => Promise<void>
  /** Replaces the task list of the capability `tasks`, which is metadata under `hookloop.tasks`. */
  readonly updateTasks: (tasks: readonly Task[]) => Promise<void>
  /**
   * Fires `onSessionEnd`. The session stays in the store and can be used again. Returns the warnings of hooks, for example of
   * one that timed out: no run follows that could have them.
   */
  readonly end: (reason?: string, options?: { readonly signal?: AbortSignal }) => Promise<readonly Warning[]>
}

/** Fires a trigger of a session, outside of runs. Rejects when a hook throws. */
export async function fireInSession(
  run: RunContext,
  trigger: 'onSessionStart' | 'onSessionEnd',
  facts: { readonly sessionId: string; readonly source?: string; readonly reason?: string },
): Promise<AgentState> {
  await fireTrigger(run, trigger, facts)
  const { state, spentEarly } = run
  if (spentEarly === noTokens) return state
  return AgentState.patch(state, { spentBefore: addUsage(AgentState.fieldsOf(state).spentBefore, spentEarly) })
}
