import { hashJson, type Json, type JsonObject } from './json.ts'
import type { AgentPath, OpenChild } from './subagent.ts'
import type { TokenUsage } from './usage.ts'

/** A call the model asked for. `args` is the JSON it sent, or what the tool's schema made of it. */
export type ToolCall<A = JsonObject> = {
  readonly id: string
  readonly name: string
  readonly args: Readonly<A>
}

export type ToolStatus = 'ok' | 'failed' | 'blocked' | 'outcomeUnknown'

/**
 * How a call ended. `by` names who blocked or withheld it. `withheld`: the tool did run, but its output was kept from
 * the model. `outcomeUnknown`: it was begun and cut off, so nobody can say whether it took effect.
 */
export type ToolExecution = {
  readonly status: ToolStatus
  readonly output: Json
  readonly by?: string
  readonly withheld?: true
  readonly truncated?: true
  /** With `outcomeUnknown`: the process that ran it died. */
  readonly interrupted?: true
  /** What the tool itself spent on models. */
  readonly usage?: TokenUsage
}

export type Ask = { readonly by: string; readonly message: string }

/** A call that waits for a person. Its id is bound to the arguments: other arguments, other approval. */
export type Approval = {
  readonly id: string
  readonly toolCall: ToolCall
  readonly message: string
  readonly by: string
  readonly asks: readonly Ask[]
  readonly hash: string
  readonly expiresAt?: number
  /** Which subagent wants to make the call; missing when it is the agent itself. */
  readonly path?: AgentPath
}

/** What a person says: run it, run it with these arguments instead, or do not. */
export type Answer = 'allow' | { readonly allow: JsonObject } | { readonly block: string }
export type Answers = { readonly [approvalId: string]: Answer }

/** A call of the open step: what was asked for, what became of it, what it waits for. */
export type OpenCall = {
  readonly id: string
  readonly name: string
  readonly originalArgs: Json
  readonly args: Json
  readonly approval?: Approval
  readonly answer?: Answer
  /** The subagent that works for it and waits. */
  readonly child?: OpenChild
  /** What was answered to that subagent. */
  readonly answers?: Answers
  readonly result?: ToolExecution
}

export function approvalFor(
  call: ToolCall<Json>,
  asks: readonly Ask[],
  place: { key: string; expiresAt?: number; path?: AgentPath | undefined },
): Approval {
  const hash = hashJson({ name: call.name, args: call.args as Json })
  return Object.freeze({
    id: approvalId(place.key, hash),
    toolCall: Object.freeze(call) as ToolCall,
    message: asks.map((ask) => ask.message).join('; '),
    by: asks.map((ask) => ask.by).join(', '),
    asks: Object.freeze(asks.slice()),
    hash,
    ...(place.expiresAt !== undefined && { expiresAt: place.expiresAt }),
    ...(place.path !== undefined && { path: place.path }),
  })
}

/** Whether an approval still speaks of this call with these arguments at this place. */
export function approvalFits(approval: Approval, call: OpenCall, key: string): boolean {
  const hash = hashJson({ name: call.name, args: call.args })
  const shown = hashJson({ name: approval.toolCall.name, args: approval.toolCall.args })
  return approval.hash === hash && shown === hash && approval.id === approvalId(key, hash)
}

function approvalId(key: string, hash: string): string {
  return `${key}#${hash.slice(0, 16)}`
}
