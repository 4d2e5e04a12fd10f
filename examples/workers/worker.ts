import { serveSessions } from 'hookloop/pg-workers'
import agent, { connectionString } from './agent.ts'

const worker = await serveSessions({
  agent,
  connectionString,
  maxRuns: 2,
  onTurn: ({ type, session, status }) => console.log(session, type, status ?? ''),
})
console.log(`process ${process.pid} is ready`)

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void worker.close().then(() => process.exit()))
