import type { Agent } from '../agent/build-agent.ts'
import type { Capability } from '../agent/capability.ts'
import { guards, type Limits } from '../capabilities/guards.ts'
import { retry } from '../capabilities/retry.ts'
import { createAgent } from '../create-agent.ts'
import { AgentError } from '../errors.ts'
import type { Environment } from '../models/providers.ts'
import { didYouMean } from './did-you-mean.ts'
import { loadAgent, type CreateAgentOptions } from './load-agent.ts'
import { modelsToName } from './models.ts'
import { UsageError } from './usage-error.ts'

/** What the command line says about the agent. */
export type AgentFlags = {
  readonly model?: string
  readonly agent?: string
  readonly system?: string
  readonly temperature?: number
  readonly maxSteps?: number
  readonly maxTokens?: number
  readonly maxCost?: number
  /** In seconds. */
  readonly maxTime?: number
}

export type Surroundings = { readonly env: Environment; readonly command: string }

/** The agent that the command line describes. `HOOKLOOP_MODEL` is for those that name no model. */
export async function agentFor(flags: AgentFlags, { env, command }: Surroundings): Promise<Agent<unknown>> {
  const fallback = (env['HOOKLOOP_MODEL'] ?? '') === '' ? undefined : env['HOOKLOOP_MODEL']
  if (flags.agent === undefined) {
    const model = flags.model ?? fallback
    if (model === undefined) throw new UsageError(`Which model? ${await modelsToName(env, command)}`)
    return guessing(() => createAgent(withFlags({ name: 'hookloop run', model, use: [retry()] }, flags)))
  }
  const file = await loadAgent(flags.agent)
  if ('agent' in file) return limitedAgent(file.agent, flags)
  const model = flags.model ?? file.options.model ?? fallback
  if (model === undefined) {
    throw new UsageError(`--agent ${flags.agent} names no model. ${await modelsToName(env, command)}`)
  }
  return sayingWhere(flags.agent, () => guessing(() => createAgent(withFlags({ ...file.options, model }, flags))))
}

/** A model that there is not may be one that is written in another way. */
function guessing(build: () => Agent<unknown>): Agent<unknown> {
  try {
    return build()
  } catch (thrown) {
    if (!(thrown instanceof AgentError) || thrown.code !== 'MODEL_UNKNOWN') throw thrown
    const guess = didYouMean(String(thrown.value))
    if (guess === undefined) throw thrown
    throw new UsageError(`"${String(thrown.value)}" names no model. Did you mean ${guess}?`, { cause: thrown })
  }
}

function withFlags(options: CreateAgentOptions, flags: AgentFlags): CreateAgentOptions {
  const { system, temperature } = flags
  return {
    ...options,
    use: [...(options.use ?? []), ...limitsOf(flags)],
    ...(system !== undefined && { instructions: system }),
    ...(temperature !== undefined && { settings: { ...options.settings, temperature } }),
  }
}

/** An agent that is put together already can be given limits, and nothing else. */
function limitedAgent(agent: Agent<unknown>, flags: AgentFlags): Agent<unknown> {
  for (const name of ['model', 'system', 'temperature'] as const) {
    if (flags[name] === undefined) continue
    throw new UsageError(
      `--${name} cannot change an agent that is put together already. ` +
        `Let ${flags.agent!} export its options: export default { … } instead of createAgent({ … }).`,
    )
  }
  return sayingWhere(flags.agent!, () => agent.with(...limitsOf(flags)))
}

function limitsOf({ maxSteps, maxTokens, maxCost, maxTime }: AgentFlags): readonly Capability[] {
  const limits: Limits = {
    ...(maxSteps !== undefined && { maxSteps }),
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxCost !== undefined && { maxCost }),
    ...(maxTime !== undefined && { maxTimeMs: maxTime * 1000 }),
  }
  return Object.keys(limits).length === 0 ? [] : [guards(limits)]
}

function sayingWhere(file: string, build: () => Agent<unknown>): Agent<unknown> {
  try {
    return build()
  } catch (thrown) {
    if (!(thrown instanceof AgentError || thrown instanceof UsageError)) throw thrown
    const hasGuards =
      thrown instanceof AgentError && thrown.code === 'AGENT_INVALID_OPTION' && thrown.value === 'guards'
    const words = hasGuards ? 'it has guards of its own. Set the limits there.' : thrown.message
    throw new UsageError(`--agent ${file}: ${words}`, { cause: thrown })
  }
}
