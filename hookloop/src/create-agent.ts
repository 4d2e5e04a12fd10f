import { buildAgent, type Agent, type AgentOptions } from './agent/build-agent.ts'
import { completion } from './capabilities/completion.ts'
import { guards } from './capabilities/guards.ts'

/**
 * Puts an agent together. It ends when the model is done and within 20 steps, 32,768 tokens and 300 seconds, unless it
 * brings its own `completion` or `guards`.
 */
export function createAgent(options: AgentOptions): Agent {
  return buildAgent(options, [completion(), guards()])
}
