import { fleet } from 'hookloop/pg-workers'
import { connectionString, store } from './agent.ts'

const sessions = await fleet({ connectionString, store })

const houses = process.argv.slice(2)
const results = houses.map(async (house) => {
  const sent = await sessions.send(house, 'Build a house.', { turn: 'first', metadata: { house } })
  const { status, text } = await sent.result()
  console.log(`${house}: ${status}. ${text}`)
})
await Promise.all(results)

await sessions.close()
await store.close()
