import type { AgentPath } from '../plugin.ts'
import type { Approval, FinalRecord, TimedLedgerEntry, ToolExecution } from '../index.ts'
import type { Json, JsonObject } from '../values/json.ts'
import { errorCodes, type ErrorCode } from '../errors.ts'

// What a page may know of a run, whatever protocol it uses.

/** What a stream shows beside the answer. */
export type ShownOptions = {
  /** Decisions of hooks. */
  readonly showHooks?: boolean
  /** Whether the user may answer a question. Default: yes. */
  readonly mayAnswer?: (approval: Approval) => boolean
}

/** The result of a call whose run has ended before it. */
export const neverRan: ToolExecution = Object.freeze({
  status: 'failed',
  output: 'The run ended before this call had a result.',
})

/** What a user reads about a failure. The message of an error may contain paths, addresses or keys. */
export function failureText(code: ErrorCode | undefined): string {
  return code === undefined ? 'The run has failed.' : `${errorCodes[code]} (${code})`
}

/** How a run has ended. */
export function shownEnd({ status, reason, message }: FinalRecord): JsonObject {
  return { status, reason, ...(status === 'stopped' && { message }) }
}

/** A decision. Hooks that did nothing are not shown, and no values: they are for developers. */
export function shownDecision(entry: TimedLedgerEntry, { showHooks = false }: ShownOptions): JsonObject | undefined {
  const { hook, trigger, decision, message, shadow } = entry
  if (!showHooks || decision === undefined) return undefined
  return { hook, trigger, decision, ...(message !== undefined && { message }), ...(shadow && { shadow }) }
}

/** What a question is about, beside its call. */
export function shownApproval({ by, hash, trigger, interruptions }: Approval): JsonObject {
  return {
    by,
    hash,
    ...(trigger !== undefined && { trigger }),
    ...(interruptions !== undefined && { interruptions }),
  }
}

/** Arguments that were streamed. They may be incomplete. */
export function parsedArgs(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

/** The same for all events of a call, which may be that of a subagent. */
export function callKey(id: string, path: AgentPath = []): string {
  return [...path.map(({ step, call }) => `${step} ${call}`), id].join('\n')
}
