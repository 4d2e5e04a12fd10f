import type { Json } from './json.ts'
import type { AgentPath } from './subagent.ts'

/** One place a hook changed. `before` is missing where a hook may have removed a secret on purpose. */
export type Change = { readonly path: string; readonly before?: Json; readonly after?: Json }

/**
 * One firing of one hook: what it decided, what it changed, what went wrong. A firing without opinion has none of the
 * three. `hook` is 'hookloop' where the loop itself had to act, such as on a tool that does not exist.
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
  /** It tells of a shadow: nothing came of it. Hooks do not see it in their ledger. */
  readonly shadow?: true
  /** Which subagent it tells of; missing when it is the agent itself. Its steps and calls are those of the subagent. */
  readonly path?: AgentPath
  /** The name of the tool that a subagent called. */
  readonly tool?: string
}

/** An entry of `run.ledger`: one hook invocation with its decision, changes and duration. */
export type TimedLedgerEntry = LedgerEntry & { readonly durationMs: number }

/** A firing without opinion as it is written down, because there are many: step, trigger, hook, mode, time, call. */
export type LedgerRow = Row | readonly [...Row, call: string]
type Row = readonly [step: number, trigger: string, hook: string, mode: LedgerEntry['mode'], durationMs: number]

export function isLedgerRow(value: unknown): value is LedgerRow {
  if (!Array.isArray(value)) return false
  const [step, trigger, hook, mode, durationMs, call = '', more] = value as readonly unknown[]
  return (
    typeof step === 'number' &&
    typeof durationMs === 'number' &&
    more === undefined &&
    [trigger, hook, mode, call].every((text) => typeof text === 'string')
  )
}

export function fromLedgerRow([step, trigger, hook, mode, durationMs, call]: LedgerRow): TimedLedgerEntry {
  return Object.freeze({ step, trigger, hook, mode, ...(call !== undefined && { call }), durationMs })
}
