import type { TimedLedgerEntry } from '../state/ledger.ts'

/** Whether a hook has decided this, alone or with something else. */
export function has({ decision }: Pick<TimedLedgerEntry, 'decision'>, what: string): boolean {
  return decision?.split('+').includes(what) === true
}

/** Without the fields that are undefined. */
export function defined<T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T
}
