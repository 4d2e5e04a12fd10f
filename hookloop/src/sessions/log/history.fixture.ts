import { readSession } from './read-session.ts'
import { SessionReader } from './session-reader.ts'
import type { NumberedRecord } from './session-records.ts'

export type History = SessionReader & { readonly records: readonly NumberedRecord[] }

/** What the lines of a session amount to, and all its records. */
export function historyOf(lines: readonly string[], id?: string): History {
  const records = [...new SessionReader().decode(lines)]
  return Object.assign(readSession(lines, id), { records })
}
