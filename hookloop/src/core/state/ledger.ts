import type { ErrorCode } from '../../errors.ts'
import type { Json } from '../../values/json.ts'
import type { AgentPath } from './subagent.ts'
import type { WarningCode } from './warning.ts'

/** A problem that stopped nothing. `definedAt` is the file or script that it is about, if that is not the hook itself. */
export type EntryWarning = { readonly code: WarningCode; readonly message: string; readonly definedAt?: string }

/** One change by a hook. `before` is omitted where a hook may have removed a secret. */
export type Change = {
  readonly path: string
  readonly before?: Json
  readonly after?: Json
  /** The text of messages that were added to the conversation, shortened. */
  readonly added?: string
}

/**
 * One invocation of one hook: what it decided, changed, warned about, failed with or spent. `hook` is 'hookloop' where the loop
 * itself acted, for example on a tool that does not exist.
 */
export type LedgerEntry = {
  readonly step: number
  readonly trigger: string
  readonly hook: string
  readonly mode: 'transform' | 'guard' | 'observe' | 'loop'
  readonly call?: string
  readonly decision?: string
  readonly message?: string
  readonly value?: Json
  readonly changes?: readonly Change[]
  readonly error?: string
  /** The code of the error. */
  readonly code?: ErrorCode
  /** Problems that stopped nothing. `run.warnings` has them, and the errors of hooks. */
  readonly warnings?: readonly EntryWarning[]
  /** Where the hook is defined, if it decided or changed something or failed: file and line, or the file and its script. */
  readonly definedAt?: string
  /** The hook only keeps records for a capability. */
  readonly bookkeeping?: true
  /** The hook runs in shadow mode: its decision was recorded, not applied. Hooks do not see these entries. */
  readonly shadow?: true
  /** The path of the subagent that it belongs to; undefined for the agent itself. Steps and calls are those of the subagent. */
  readonly path?: AgentPath
  /** The name of the tool that a subagent called. */
  readonly tool?: string
}

/** An entry of `run.ledger`: one hook invocation with its decision, changes and duration. */
export type TimedLedgerEntry = LedgerEntry & { readonly durationMs: number }
