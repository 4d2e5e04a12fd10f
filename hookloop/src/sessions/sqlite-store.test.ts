import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { storeContract } from '../testing/store-contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import { processContract } from './store-processes.fixture.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-sqlite-'))
after(() => rmSync(folder, { recursive: true, force: true }))

storeContract('sqliteStore', (place) => sqliteStore(join(folder, `${place}.db`), { leaseMs: 400 }), { leaseMs: 400 })

const shared = join(folder, 'shared.db')
const sharedStore = sqliteStore(shared)
after(() => sharedStore.close())
processContract('sqliteStore', () => ({ kind: 'sqlite', place: shared, store: sharedStore }))
