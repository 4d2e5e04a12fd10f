import type { Agent } from '../../agent/agent.ts'
import type { Capability, Use } from '../../agent/capability.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards, type Limits } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import type { Environment } from '../../models/providers.ts'
import { didYouMean } from './did-you-mean.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { HooksHere } from '../run/file-hooks.ts'
import { keptIn } from './agent-with-store.ts'
import { loadAgent, type CreateAgentOptions } from './load-agent.ts'
import { modelsToName } from '../commands/models.ts'
import { UsageError } from '../usage-error.ts'

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

export type Surroundings = {
  readonly env: Environment
  readonly command: string
  /** Where its sessions are kept. */
  readonly store?: SessionStore | undefined
  /** How a person is reached, for agents that do not say so themselves. */
  readonly asks?: Capability | undefined
  /** Whether questions may wait when there is nobody to ask. */
  readonly waits?: boolean
  /** Hooks in files. */
  readonly hooks?: HooksHere | undefined
}

/** An agent that is ready to be run by this command. */
export type ReadyAgent = {
  readonly agent: Agent<unknown>
  /** Whether its questions are asked the way that was handed in; else it has a way of its own, or nobody is asked. */
  readonly isAskedHere: boolean
}

/** The agent that the command line describes. `HOOKLOOP_MODEL` is for those that name no model. */
export async function agentFor(flags: AgentFlags, around: Surroundings): Promise<ReadyAgent> {
  const { env, command } = around
  const fallback = (env['HOOKLOOP_MODEL'] ?? '') === '' ? undefined : env['HOOKLOOP_MODEL']
  if (flags.agent === undefined) {
    const model = flags.model ?? fallback
    if (model === undefined) throw new UsageError(`Which model? ${await modelsToName(env, command)}`)
    return guessing(() => newAgent({ name: 'hookloop', model, use: [retry(), summarization()] }, { flags, around }))
  }
  const file = await loadAgent(flags.agent)
  if ('agent' in file) return builtAgent(file.agent, { flags, around })
  const model = flags.model ?? file.options.model ?? fallback
  if (model === undefined) {
    throw new UsageError(`--agent ${flags.agent} names no model. ${await modelsToName(env, command)}`)
  }
  return sayingWhere(flags.agent, () => guessing(() => newAgent({ ...file.options, model }, { flags, around })))
}

/** A model that there is not may be one that is written in another way. */
function guessing(build: () => ReadyAgent): ReadyAgent {
  try {
    return build()
  } catch (thrown) {
    if (!(thrown instanceof AgentError) || thrown.code !== 'MODEL_UNKNOWN') throw thrown
    const guess = didYouMean(String(thrown.value))
    if (guess === undefined) throw thrown
    throw new UsageError(`"${String(thrown.value)}" names no model. Did you mean ${guess}?`, { cause: thrown })
  }
}

type Wishes = { readonly flags: AgentFlags; readonly around: Surroundings }

function newAgent({ store: _theirs, ...options }: CreateAgentOptions, { flags, around }: Wishes): ReadyAgent {
  const { store, asks, waits = false } = around
  const { system, temperature } = flags
  const hasOwn = (options.use ?? []).some((each) => 'approval' in each)
  const agent = createAgent({
    ...options,
    use: [
      ...(options.use ?? []),
      ...limitsOf(flags),
      ...approvalsFor({ hasOwn, asks, waits }),
      ...hooksFor(around, { hasOwn, use: options.use ?? [] }),
    ],
    ...(store !== undefined && { store }),
    ...(system !== undefined && { instructions: system }),
    ...(temperature !== undefined && { settings: { ...options.settings, temperature } }),
  })
  return { agent, isAskedHere: asks !== undefined && !hasOwn }
}

/** How a person is reached, unless the agent says so itself. */
function approvalsFor(how: { hasOwn: boolean; asks: Capability | undefined; waits: boolean }): readonly Capability[] {
  if (how.hasOwn) return []
  return how.asks !== undefined ? [how.asks] : how.waits ? [approval('suspend')] : []
}

/** Hooks in files, unless the agent has them itself. Those that answer questions do so before a person is asked. */
function hooksFor(
  { hooks, asks, waits = false }: Surroundings,
  { hasOwn, use }: { readonly hasOwn: boolean; readonly use: readonly Use[] },
): readonly Capability[] {
  const answer = hasOwn ? undefined : (asks?.approval?.answer ?? (waits ? 'suspend' : undefined))
  return (hooks?.({ answer, use }) ?? []).filter(({ name }) => use.every((each) => each.name !== name))
}

/** An agent that is put together already can be given limits, somebody to ask and a store, and nothing else. */
function builtAgent(built: Agent<unknown>, { flags, around }: Wishes): ReadyAgent {
  for (const name of ['model', 'system', 'temperature'] as const) {
    if (flags[name] === undefined) continue
    throw new UsageError(
      `--${name} cannot change an agent that is put together already. ` +
        `Let ${flags.agent!} export its options: export default { … } instead of createAgent({ … }).`,
    )
  }
  const { store, asks, waits = false } = around
  const hasOwn = built.describe().approval !== 'deny'
  return sayingWhere(flags.agent!, () => {
    const use = partsOf(built).capabilities
    const agent = built.with(
      ...limitsOf(flags),
      ...approvalsFor({ hasOwn, asks, waits }),
      ...hooksFor(around, { hasOwn, use }),
    )
    return { agent: store === undefined ? agent : keptIn(agent, store), isAskedHere: asks !== undefined && !hasOwn }
  })
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

function sayingWhere(file: string, build: () => ReadyAgent): ReadyAgent {
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
