import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import { hangingAgent } from './crash.fixture.ts'
import { toNodeListener } from './node-listener.ts'
import { serve } from './serve.ts'

// Serves an agent whose tool never ends, until it is killed.

const handle = serve(
  hangingAgent(() => new Promise(() => process.stdout.write('working\n'))),
  { store: sqliteStore(process.argv[2]!), user: () => 'ann' },
)
const server = createServer(toNodeListener(handle))
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`))
