// The web server runs no agent: it sends messages to workers, and shows pages what they do.
import { createServer } from 'node:http'
import { fleet as fleetOnPostgres } from 'hookloop/pg-workers'
import { fleet as fleetOnRestate } from 'hookloop/restate'
import { serve, toNodeListener } from 'hookloop/serve'
import { postgresStore } from 'hookloop/sessions'

const connectionString = process.env['DATABASE_URL']!
const ingress = process.env['RESTATE_INGRESS']
const store = postgresStore({ connectionString })
const sessions =
  ingress === undefined ? await fleetOnPostgres({ connectionString, store }) : fleetOnRestate({ ingress, store })

const handle = serve(sessions, {
  user: (request) => request.headers.get('x-forwarded-user') ?? undefined, // set by the proxy that your users log in to
})
const server = createServer(toNodeListener(handle)).listen(Number(process.env['PORT'] ?? 3000))

process.once('SIGTERM', () => {
  server.close(() => process.exit(0))
  server.closeIdleConnections()
})
