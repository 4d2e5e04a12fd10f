import type { EntryWarning } from '../../state/ledger.ts'
import { checkArgument, checkOptions, invalidOption } from '../../state/check-options.ts'
import { describeValue } from '../../state/describe-value.ts'
import { checkStore } from '../stores/store.ts'
import { BaseContext } from '../../hooks/base-context.ts'
import type { HookHost } from '../../hooks/hook-host.ts'

/** Waits that are shorter than this are not reported. */
const REPORTED_MS = 100

/** The report of a wait, if it was long enough. */
export function waitWarnings(waitedMs: number, why: string): readonly EntryWarning[] | undefined {
  if (waitedMs < REPORTED_MS) return undefined
  return [{ code: 'LIMIT_WAITED', message: `Waited ${waitedMs} ms: ${why}.` }]
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

type LimitOptions = { readonly store: unknown; readonly name?: string; readonly key?: unknown }

/** Checks the options of a limit over processes: a store, a key, a name, and numbers with the smallest that is valid. */
export function checkLimit<O extends LimitOptions>(
  where: string,
  options: O,
  numbers: { readonly [option in Exclude<keyof O, keyof LimitOptions>]-?: number },
): void {
  checkOptions(where, options, ['store', 'key', 'name', ...Object.keys(numbers)])
  checkStore(where, options.store)
  const { name = where, key = where } = options
  checkArgument(where, ['name', name], typeof name === 'string' && name !== '', 'a non-empty string')
  const isKey = (typeof key === 'string' && key !== '') || typeof key === 'function'
  checkArgument(where, ['key', key], isKey, 'a non-empty string or a function')
  for (const [option, min] of Object.entries<number>(numbers)) {
    const value = options[option as keyof O] as unknown
    const isCount = option === 'maxCalls' || option === 'maxRuns'
    const isNumber = isCount ? Number.isSafeInteger(value) : typeof value === 'number'
    const isValid = (isNumber && (value as number) >= min) || (value === undefined && !isCount)
    checkArgument(where, [option, value], isValid, `a ${isCount ? 'whole ' : ''}number, ${min} or more`)
  }
}

/**
 * What is limited. Throws if a key function returns no text: otherwise all runs without a key would share one limit
 * unnoticed.
 */
export function keyFor<T>(where: string, key: string | ((of: T) => string), of: T): string {
  if (typeof key === 'string') return key
  const made: unknown = key(of)
  if (typeof made === 'string' && made !== '') return made
  throw invalidOption(where, `the function "key" must return a non-empty string, not ${describeValue(made)}`, made)
}
