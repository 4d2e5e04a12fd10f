import type { EntryWarning } from '../../core/state/ledger.ts'
import { checkOptions, invalidOption } from '../../values/check-options.ts'
import { describeValue } from '../../values/describe-value.ts'
import type { SessionStore } from '../stores/store.ts'
import { BaseContext } from '../../core/hooks/base-context.ts'
import type { HookHost } from '../../core/hooks/hook-host.ts'

/** Waits that are shorter than this are not reported. */
const REPORTED_MS = 100

/** The report of a wait, if it was long enough. */
function waitWarnings(waitedMs: number, why: string): readonly EntryWarning[] | undefined {
  if (waitedMs < REPORTED_MS) return undefined
  return [{ code: 'LIMIT_WAITED', message: `Waited ${waitedMs} ms: ${why}.` }]
}

/** The context of a guard with the report of a wait. */
export function withWait<C extends object>(ctx: C, waitedMs: number, why: string): C {
  const warnings = waitWarnings(waitedMs, why)
  return warnings === undefined ? ctx : (BaseContext.change(ctx as never, { warnings }) as never)
}

/** Adds the report of a wait before a model call to the record of the call. */
export function noteWait(ctx: object, hook: string, [waitedMs, why]: readonly [waitedMs: number, why: string]): void {
  const warnings = waitWarnings(waitedMs, why)
  if (warnings === undefined) return
  const place = { plan: { trigger: 'aroundInference' }, call: undefined } as const
  hostOf(ctx).note(place, { name: hook, mode: 'transform' }, waitedMs, { warnings })
}

export function hostOf(ctx: object): HookHost {
  return BaseContext.hostOf(ctx as BaseContext)
}

/** Options of every limit over processes. */
export type LimitOptions<Of> = {
  /** Where it is counted, for all processes that use the store. */
  readonly store: SessionStore
  /** What is limited: a text, such as the name of a tenant, or a function that returns one. Default: the conversation for `budget`, all runs for `runLimit`, each model for the others. */
  readonly key?: string | ((of: Of) => string)
  /** How long to wait until there is room. 0: not at all. Default 60,000. */
  readonly maxWaitMs?: number
  /** The name in the ledger and in the store. Two limits of one kind in one agent need different names. Default: the kind. */
  readonly name?: string
}

const names: readonly (keyof LimitOptions<never>)[] = ['store', 'key', 'maxWaitMs', 'name']

/** Checks the names of the options of a limit: with a wrong one it would limit nothing. */
export function checkLimit<O extends LimitOptions<never>>(
  where: string,
  options: O,
  own: readonly Exclude<keyof O & string, keyof LimitOptions<never>>[],
): void {
  checkOptions(where, options, [...names, ...own])
}

/**
 * What is limited. Throws if a key function returns no text: otherwise all runs without a key would share one limit
 * unnoticed.
 */
export function keyFor<T>(where: string, key: string | ((of: T) => string), of: T): string {
  const made: unknown = typeof key === 'function' ? key(of) : key
  if (typeof made === 'string' && made !== '') return made
  throw invalidOption(where, `"key" must be, or return, a non-empty string, not ${describeValue(made)}`, made)
}
