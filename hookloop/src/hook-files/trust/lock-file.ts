import { isBusy, loadSqlite, makeFile } from '../../sessions/stores/sqlite-database.ts'

/**
 * Locks a file for this process and returns a function that unlocks it; undefined if another process has locked it for all of
 * the time. SQLite locks it, and nothing is written to it. A process that is stopped keeps its lock, and one that ends loses it.
 */
export function lockFile(path: string, timeoutMs: number): (() => void) | undefined {
  const { DatabaseSync } = loadSqlite()
  makeFile(path)
  const database = new DatabaseSync(path, { timeout: timeoutMs })
  try {
    database.exec('BEGIN IMMEDIATE')
    return () => database.close()
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw error
  }
}
