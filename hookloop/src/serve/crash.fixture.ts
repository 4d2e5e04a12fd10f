import type { Agent } from '../core/agent/agent.ts'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'

/** An agent that says something, calls a tool, and says what the tool returned. */
export function hangingAgent(execute: () => string | Promise<string>): Agent {
  const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, idempotent: true, execute })
  return createAgent({
    model: scriptedModel(({ messages }) =>
      messages.at(-1)!.role === 'tool' ? 'Done.' : { text: 'I begin.', toolCalls: [{ name: 'work' }] },
    ),
    use: [work],
  })
}
