import { approval, createAgent, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
import * as z from 'zod'

const invoice = tool({
  name: 'invoice',
  description: 'Sends an invoice.',
  input: z.object({ to: z.string(), euros: z.number() }),
  ask: true, // the page asks before it is sent
  execute: ({ to, euros }) => `${euros} EUR to ${to}: sent`,
})

// Offline, from a script. With a key in the environment: model: 'anthropic/claude-sonnet-5-5'
const model = scriptedModel(({ messages }) =>
  messages.at(-1)?.role === 'tool'
    ? 'Done. Anything else?'
    : { text: 'I prepare the invoice.', toolCalls: [{ name: 'invoice', args: { to: 'Ann', euros: 120 } }] },
)

export default createAgent({ model, use: [invoice, approval('suspend')] })
