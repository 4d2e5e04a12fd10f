import { hashJson, type Json, type JsonObject } from '../../values/json.ts'
import type { AgentPath } from './subagent.ts'
import type { TokenUsage } from './usage.ts'

/** A tool call of the model. `args` is the JSON it sent or, for guards and tools, the parsed value. */
export type ToolCall<A = JsonObject> = {
  readonly id: string
  readonly name: string
  readonly args: Readonly<A>
}

export type ToolStatus = 'ok' | 'failed' | 'blocked' | 'outcomeUnknown'

/**
 * The result of a tool call. `by` is the hook that blocked or withheld it. `withheld`: the tool ran, but the model does not
 * get its output. `outcomeUnknown`: it was started and interrupted, so it may or may not have taken effect.
 */
export type ToolExecution = {
  /** The name of the tool. In the result that an around hook makes up, it may be left out. */
  readonly name?: string
  readonly status: ToolStatus
  readonly output: Json
  readonly by?: string
  readonly withheld?: true
  readonly truncated?: true
  /**
   * It did not run, without a decision about it: an unknown tool, arguments that do not fit, a hook that failed, or a run that
   * was stopped before.
   */
  readonly rejected?: true
  /** With `outcomeUnknown`: its process died. */
  readonly interrupted?: true
  /** Model usage of the tool itself. */
  readonly usage?: TokenUsage
}

/** The same execution with its output withheld. The status still says that it ran. */
export function withheldExecution(execution: ToolExecution, by: string, message: string): ToolExecution {
  const { name, status } = execution
  const output = `[withheld by "${by}": ${message}]`
  return Object.freeze({ ...(name !== undefined && { name }), status, output, by, withheld: true })
}

/** The same execution with the name of its tool. */
export function namedExecution(execution: ToolExecution, name: string): ToolExecution & { readonly name: string } {
  if (execution.name === name) return execution as ToolExecution & { readonly name: string }
  return Object.freeze({ ...execution, name })
}

const MAX_FAILURE_CHARS = 65_536

/** A failure. The message may come from user code, so its size is limited as well. */
export function failedExecution(message: string, maxChars = MAX_FAILURE_CHARS): ToolExecution {
  if (message.length <= maxChars) return Object.freeze({ status: 'failed', output: message })
  return Object.freeze({ status: 'failed', output: shortenOutput(message, maxChars), truncated: true })
}

export function blockedExecution(by: string, message: string): ToolExecution {
  return Object.freeze({ status: 'blocked', output: message, by })
}

/** A call that had not started when the run was stopped. */
export function stoppedExecution(by?: { readonly source: string; readonly message: string }): ToolExecution {
  if (by === undefined) return rejectedExecution(blockedExecution('hookloop', 'Not run: the run ended first.'))
  return rejectedExecution(blockedExecution(by.source, `Not run: the run was stopped by "${by.source}": ${by.message}`))
}

/** A call that did not run, without a decision about it. */
export function rejectedExecution(execution: ToolExecution): ToolExecution {
  return Object.freeze({ ...execution, rejected: true })
}

/** The start and the end of a text, where errors usually are. */
export function shortenOutput(text: string, maxChars: number): string {
  const head = Math.ceil(maxChars / 4)
  const tail = maxChars - head
  const cut = text.length - head - tail
  return `${text.slice(0, head)}\n[… ${cut} characters left out …]\n${text.slice(text.length - tail)}`.toWellFormed()
}

export type Ask = { readonly by: string; readonly message: string }

/** The triggers besides `beforeToolUse` at which a guard can ask. */
export const askTriggers = ['onUserInput', 'beforeStep', 'beforeInference', 'onStop'] as const
export type AskTrigger = (typeof askTriggers)[number]

/** A tool call that waits for approval. Its id is bound to the arguments and to the tool as it was described. */
export type Approval = {
  /** The trigger, if it is not about a tool call: `toolCall` then has its name, and what is to be approved. */
  readonly trigger?: AskTrigger
  readonly id: string
  readonly toolCall: ToolCall
  readonly message: string
  readonly by: string
  readonly asks: readonly Ask[]
  readonly hash: string
  /** A hash of the name, description and schema of the tool. If they have changed, the approver is asked again. */
  readonly tool?: string
  readonly expiresAt?: number
  /** How long it waits in all, as the clocks of two machines may differ. */
  readonly expiresInMs?: number
  /** The path of the subagent that makes the call; undefined for the agent itself. */
  readonly path?: AgentPath
  /** How often a process died while it ran the call. It may have taken effect, so the approver is asked again. */
  readonly interruptions?: number
}

/** The answer of an approver: run the call, run it with other arguments, or block it. */
export type Answer = 'allow' | { readonly allow: JsonObject } | { readonly block: string }
/** Answers to pending approvals by their id, for `agent.resume(run, { answers })`. */
export type Answers = { readonly [approvalId: string]: Answer }

/** A question to an approver, bound to exactly what is asked: its id is a hash of it. */
export function approvalFor(
  call: ToolCall<Json>,
  asks: readonly Ask[],
  place: {
    /** Where in its run it is asked. */
    readonly key: string
    readonly trigger?: AskTrigger | undefined
    readonly tool?: string | undefined
    readonly expiresAt?: number
    readonly expiresInMs?: number
    readonly interruptions?: number | undefined
    readonly path?: AgentPath | undefined
  },
): Approval {
  const { key, trigger, expiresAt, expiresInMs, interruptions, tool, path } = place
  const hash = askedHash(call, { asks, tool })
  return Object.freeze({
    id: `${key}#${hash.slice(0, 16)}`,
    toolCall: Object.freeze(call) as ToolCall,
    message: asks.map((ask) => ask.message).join('; '),
    by: asks.map((ask) => ask.by).join(', '),
    asks: Object.freeze(asks.slice()),
    hash,
    ...(trigger !== undefined && { trigger }),
    ...(tool !== undefined && { tool }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(expiresInMs !== undefined && { expiresInMs }),
    ...(interruptions !== undefined && { interruptions }),
    ...(path !== undefined && path.length > 0 && { path }),
  })
}

/** A hash of all that is asked: the call, the tool as it was described, and the questions. */
export function askedHash(
  { name, args }: Pick<ToolCall<Json>, 'name' | 'args'>,
  { asks, tool }: { readonly [K in 'asks' | 'tool']?: Approval[K] | undefined },
): string {
  return hashJson({
    name,
    args: args as Json,
    asks: (asks ?? []).map(({ by, message }) => [by, message]),
    ...(tool !== undefined && { tool }),
  })
}

/** The problem with an answer, if there is one. */
export function answerProblem(
  { interruptions, trigger }: Pick<Approval, 'interruptions' | 'trigger'>,
  answer: Answer,
): string | undefined {
  if (answer === 'allow' || 'block' in answer) return undefined
  if (trigger !== undefined)
    return `A question at ${trigger} has no arguments to edit. Answer with 'allow' or { block: 'reason' }.`
  if (interruptions === undefined) return undefined
  return 'The call may have taken effect with the arguments that are shown. Run it again with the same arguments, or block it.'
}
