import { postgresStore } from '../stores/postgres-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'

/** A store that several processes open: SQLite at a path, or Postgres. */
export function openStore(kind: string, place: string): SessionStore {
  return kind === 'sqlite' ? sqliteStore(place) : postgresStore({ connectionString: place })
}
