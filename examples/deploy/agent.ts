import { createAgent } from 'hookloop'

export default createAgent({
  name: 'support',
  model: 'anthropic/claude-sonnet-5-5',
  instructions: 'You answer questions of customers.',
})
