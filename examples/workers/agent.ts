import { appendFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { createAgent, tool } from 'hookloop'
import { postgresStore } from 'hookloop/sessions'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

export const connectionString = process.env['DATABASE_URL']!
export const store = postgresStore({ connectionString })

const build = tool({
  name: 'build',
  description: 'Builds a part of the house.',
  input: z.object({ part: z.string() }),
  execute: async ({ part }, { state }) => {
    const { house } = state.metadata as { house: string }
    appendFileSync('built.txt', `${house}: ${part} (process ${process.pid})\n`)
    await wait(2_000)
    return `${part}: built`
  },
})

// Offline, from a script. With a key in the environment: model: 'anthropic/claude-sonnet-5-5'
const parts = ['foundation', 'walls', 'windows', 'roof']
const model = scriptedModel(({ messages }) => {
  const part = parts[messages.filter(({ role }) => role === 'tool').length]
  return part === undefined ? 'The house is built.' : { toolCalls: [{ name: 'build', args: { part } }] }
})

export default createAgent({ model, store, use: [build] })
