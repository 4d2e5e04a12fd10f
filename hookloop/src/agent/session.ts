import { AgentState } from '../state/agent-state.ts'
import type { AgentEvent } from '../state/event.ts'
import type { Json, JsonObject } from '../state/json.ts'
import type { Message } from '../state/message.ts'
import { addUsage, noTokens } from '../state/usage.ts'
import type { AgentError } from '../errors.ts'
import { Invocation } from '../hooks/invocation.ts'
import { HookFailure } from '../hooks/run-hooks.ts'
import type { RunStream } from './run-stream.ts'
import type { RunContext } from './loop/run-context.ts'
import type { ResumeOptions } from './loop/resume.ts'
import type { Run } from './run.ts'

/** How a message in a session is to be worked on. */
export type SendOptions = {
  readonly signal?: AbortSignal
  /** Facts for hooks to read, kept from here on. */
  readonly metadata?: JsonObject
  /** `false`: an answer is not shown while it is written. */
  readonly deltas?: boolean
}

/**
 * A conversation that is kept. It lives in the store, not in this object: any process may make one for the same id, and
 * whoever acts on it holds the session for as long as the action takes.
 */
export type Session<O = string> = {
  readonly id: string
  /** The state as it is kept now; nothing before the first message. */
  readonly state: () => Promise<AgentState | undefined>
  /** Says something, and runs. */
  readonly send: (input: string | Message, options?: SendOptions) => Promise<Run<O>>
  readonly stream: (input: string | Message, options?: SendOptions) => RunStream<AgentEvent, O>
  /** Takes no input until it is resumed. */
  readonly suspend: (reason?: string) => Promise<void>
  /** Goes on with a run that waits or was cut off; a session that was only suspended takes input again. */
  readonly resume: (options?: ResumeOptions & SendOptions) => Promise<Run<O> | undefined>
  /** The same, seen as it happens. Rejects if there is no such run. */
  readonly resumeStream: (options?: ResumeOptions & SendOptions) => RunStream<AgentEvent, O>
  /** Forgets the conversation; metadata stays. */
  readonly clear: () => Promise<void>
  /** Has the conversation summed up before its next step, by whatever hook does that: `summarization`. */
  readonly compact: () => Promise<void>
  /** Another session that begins where this one is, or was. */
  readonly fork: (options?: {
    readonly at?: number
    readonly as?: string
    readonly message?: string | Message
  }) => Promise<Session<O>>
  /** Uses another model from now on, by its name. */
  readonly changeModel: (model: string) => Promise<void>
  readonly changeSystemPrompt: (text: string) => Promise<void>
  readonly writeMetadata: (key: string, value: Json) => Promise<void>
  /** The list of tasks, as metadata under `hookloop.tasks`, where the capability `tasks` finds it. */
  readonly updateTasks: (tasks: Json) => Promise<void>
  /** Fires `onSessionEnd`. The session stays where it is, and may be begun again. */
  readonly end: (reason?: string) => Promise<void>
}

/** Fires a trigger that belongs to a session and not to a run. A hook that throws there rejects. */
export async function fireInSession(
  run: RunContext,
  trigger: 'onSessionStart' | 'onSessionEnd',
  facts: { readonly sessionId: string; readonly source?: string; readonly reason?: string },
): Promise<AgentState> {
  const plan = run.parts.stack.plan(trigger)
  if (plan.empty) return run.state
  const firing = new Invocation(run, plan, run.state, facts)
  try {
    await run.transformOrThrow(firing, plan)
  } catch (thrown) {
    throw thrown instanceof HookFailure ? (thrown.error satisfies AgentError) : thrown
  }
  await run.judge(firing, plan)
  const { state, spentEarly } = run
  if (spentEarly === noTokens) return state
  return AgentState.patch(state, { spentBefore: addUsage(AgentState.fieldsOf(state).spentBefore, spentEarly) })
}
