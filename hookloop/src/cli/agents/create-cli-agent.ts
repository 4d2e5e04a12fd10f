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
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { FileHooks } from '../run/file-hooks.ts'
import { UsageError } from '../usage-error.ts'
import { agentWithStore } from './agent-with-store.ts'
import { suggestModels } from './available-providers.ts'
import { didYouMean } from './did-you-mean.ts'
import { loadAgent, type CreateAgentOptions } from './load-agent.ts'

/** The options of the command line that describe the agent. */
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

type CliAgentOptions = {
  readonly env: Environment
  readonly command: string
  readonly store?: SessionStore | undefined
  /** Answers approvals, for agents without an `approval` of their own. */
  readonly approver?: Capability | undefined
  /** Whether an approval suspends the run if there is no approver. */
  readonly canSuspend?: boolean
  readonly hooks?: FileHooks | undefined
}

type CliAgent = {
  readonly agent: Agent<unknown>
  /** Whether the given approver is asked. */
  readonly usesApprover: boolean
}

/** Creates the agent that the command line describes. HOOKLOOP_MODEL is the model if none is named. */
export async function createCliAgent(flags: AgentFlags, options: CliAgentOptions): Promise<CliAgent> {
  const { env, command } = options
  const fallback = env['HOOKLOOP_MODEL'] || undefined
  if (flags.agent === undefined) {
    const model = flags.model ?? fallback
    if (model === undefined) throw new UsageError(`No model was named. ${await suggestModels(env, command)}`)
    return suggesting(() => newAgent({ name: 'hookloop', model, use: [retry(), summarization()] }, { flags, options }))
  }
  const file = await loadAgent(flags.agent)
  if ('agent' in file) return builtAgent(file.agent, { flags, options })
  const model = flags.model ?? file.options.model ?? fallback
  if (model === undefined) {
    throw new UsageError(`--agent ${flags.agent} names no model. ${await suggestModels(env, command)}`)
  }
  return namingFile(flags.agent, () => suggesting(() => newAgent({ ...file.options, model }, { flags, options })))
}

/** Adds a suggestion to the error about an unknown model. */
function suggesting(build: () => CliAgent): CliAgent {
  try {
    return build()
  } catch (thrown) {
    if (!(thrown instanceof AgentError) || thrown.code !== 'MODEL_UNKNOWN') throw thrown
    const suggestion = didYouMean(String(thrown.value))
    if (suggestion === undefined) throw thrown
    throw new UsageError(`Unknown model "${String(thrown.value)}". Did you mean ${suggestion}?`, { cause: thrown })
  }
}

type Creating = { readonly flags: AgentFlags; readonly options: CliAgentOptions }

function newAgent({ store: _own, ...agentOptions }: CreateAgentOptions, { flags, options }: Creating): CliAgent {
  const { store, approver } = options
  const { system, temperature } = flags
  const { use = [] } = agentOptions
  const hasApproval = use.some((each) => 'approval' in each)
  const agent = createAgent({
    ...agentOptions,
    use: [...use, ...additions({ flags, options }, { hasApproval, use })],
    ...(store !== undefined && { store }),
    ...(system !== undefined && { instructions: system }),
    ...(temperature !== undefined && { settings: { ...agentOptions.settings, temperature } }),
  })
  return { agent, usesApprover: approver !== undefined && !hasApproval }
}

/** An agent from createAgent() can only be extended: the model, the system prompt and the settings cannot change. */
function builtAgent(built: Agent<unknown>, { flags, options }: Creating): CliAgent {
  for (const name of ['model', 'system', 'temperature'] as const) {
    if (flags[name] === undefined) continue
    throw new UsageError(
      `--${name} cannot change an agent that createAgent() has created. ` +
        `Export the options from ${flags.agent!} instead: export default { … }`,
    )
  }
  const { store, approver } = options
  const hasApproval = built.describe().approval !== 'deny'
  return namingFile(flags.agent!, () => {
    const agent = built.with(...additions({ flags, options }, { hasApproval, use: partsOf(built).capabilities }))
    return {
      agent: store === undefined ? agent : agentWithStore(agent, store),
      usesApprover: approver !== undefined && !hasApproval,
    }
  })
}

/** What the command line adds to an agent: limits, the approver, and hooks from files unless the agent has them itself. */
function additions(
  { flags, options: { approver, canSuspend = false, hooks } }: Creating,
  { hasApproval, use }: { readonly hasApproval: boolean; readonly use: readonly Use[] },
): readonly Capability[] {
  const own = hasApproval ? undefined : (approver ?? (canSuspend ? approval('suspend') : undefined))
  const ofFiles = hooks?.({ answer: own?.approval?.answer, use }) ?? []
  return [
    ...limitsOf(flags),
    ...(own === undefined ? [] : [own]),
    ...ofFiles.filter(({ name }) => use.every((each) => each.name !== name)),
  ]
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

/** Puts the agent file in front of the error. */
function namingFile(file: string, build: () => CliAgent): CliAgent {
  try {
    return build()
  } catch (thrown) {
    if (!(thrown instanceof AgentError || thrown instanceof UsageError)) throw thrown
    const hasGuards =
      thrown instanceof AgentError && thrown.code === 'AGENT_INVALID_OPTION' && thrown.value === 'guards'
    const message = hasGuards ? 'it has guards() already. Set the limits there.' : thrown.message
    throw new UsageError(`--agent ${file}: ${message}`, { cause: thrown })
  }
}
