import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, postgresStore, sqliteStore, type SessionStore, type StoredSession } from '../sessions/index.ts'
import { startPostgres, type PostgresServer } from '../sessions/stores/postgres.fixture.ts'

// The stores of scenarios. A database is used again when its sessions are deleted: creating one takes longer than a scenario.

export const storeKinds = ['memory', 'sqlite', 'postgres'] as const
export type StoreKind = (typeof storeKinds)[number]

let kind: StoreKind = 'memory'
const free: SessionStore[] = []
const used: SessionStore[] = []
let opened = 0
let folder: string | undefined
let server: PostgresServer | undefined

/** Which stores this thread uses from now on. */
export function useStores(chosen: StoreKind): void {
  kind = chosen
}

export async function newStore(): Promise<SessionStore> {
  const store = kind === 'memory' ? memoryStore() : (free.pop() ?? (await openStore()))
  used.push(store)
  return store
}

async function openStore(): Promise<SessionStore> {
  const name = `world_${++opened}`
  if (kind === 'postgres') {
    server ??= await startPostgres()
    return postgresStore({ connectionString: server.connectionString, schema: name })
  }
  folder ??= mkdtempSync(join(tmpdir(), 'hookloop-world-'))
  return sqliteStore(join(folder, `${name}.db`))
}

export const ALL_PIECES = { after: -1, before: Infinity }

/** Stores a session as it was in another store. */
export async function storeCopy(
  store: SessionStore,
  id: string,
  { lines, head, pieces }: StoredSession,
): Promise<void> {
  const writer = await store.open(id, { create: true })
  await writer.append(lines, { head, pieces })
  await writer.release()
}

/** Called after each scenario. */
export async function freeStores(): Promise<void> {
  for (const store of used.splice(0)) {
    if (kind === 'memory') continue
    try {
      for (const { id } of await store.list()) await store.delete(id)
      free.push(store)
    } catch {
      await store.close() // a session is still locked
    }
  }
}

export async function closeStores(): Promise<void> {
  for (const store of free.splice(0)) await store.close()
  await server?.stop()
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}
