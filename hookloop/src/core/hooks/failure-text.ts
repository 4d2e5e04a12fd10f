import { AgentError, messageOf, toAgentError, type ErrorCode } from '../../errors.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { keyPatterns, redactor } from '../../values/secrets.ts'
import type { PlannedHook } from './hook-plans.ts'
import type { HookTrigger } from './triggers.ts'

/** The `value` of an error of an action: how it failed, as text that a model may read. */
export type FailedAction = { readonly how: string }

/** The error of a run in which a hook failed. It names the hook and keeps the code; a model reads a short text. */
export function hookError({ name, mode, action }: PlannedHook, trigger: HookTrigger, cause: AgentError): AgentError {
  const failed = `${mode === 'guard' ? 'Guard' : 'Hook'} "${name}" failed at ${trigger}`
  const details = { value: cause.value, cause: cause.cause ?? cause }
  const error = new AgentError(cause.code, `${failed}: ${cause.message}`, details)
  return setModelText(error, `${failed}: ${failureText(cause, action !== undefined)}`)
}

/**
 * How a hook failed, for the model. Messages of actions contain commands, addresses, paths and output of this machine, so the
 * model gets none of them; the ledger has the complete message. Of an error in code it gets the first line without keys.
 */
export function failureText(error: AgentError, isAction: boolean): string {
  const { how } = (error.value ?? {}) as Partial<FailedAction>
  if (typeof how === 'string') return `it ${how}`
  const short = shortTexts[error.code]
  if (short !== undefined) return short
  if (isAction && error.code !== 'HOOK_OUTCOME_INVALID') return 'it failed'
  const thrown = error.cause as { readonly syscall?: unknown; readonly code?: unknown } | undefined
  if (typeof thrown?.syscall === 'string') return `it failed with ${String(thrown.code)}` // the message contains paths
  return redact(error.message.split('\n')[0]!.replace(quotedCommand, 'a command failed')) as string
}

/** What `exec`, `execSync` and libraries like them write: the command line with its arguments. */
const quotedCommand = /Command (?:failed|timed out|was killed)[^:]*:.*/i

const redact = redactor(keyPatterns)

const shortTexts: { readonly [code in ErrorCode]?: string } = {
  HOOK_TIMED_OUT: 'it timed out',
  CONFIG_UNTRUSTED: 'its files are not trusted',
  RUN_CANCELLED: 'it was cancelled',
}

const texts = new WeakMap<object, string>()

/** Remembers what a model may read instead of the message of an error. */
function setModelText<T extends object>(error: T, text: string): T {
  texts.set(error, text)
  return error
}

/** The message of an error, or what a model may read instead. */
export function modelText(error: unknown): string {
  return (typeof error === 'object' && error !== null ? texts.get(error) : undefined) ?? messageOf(error)
}

/** The error of a hook, for the ledger. */
export function errorOpinion(thrown: unknown): Pick<LedgerEntry, 'error' | 'code'> {
  const { message, code } = toAgentError(thrown, 'HOOK_FAILED')
  return { error: message, code }
}
