import { flatUse } from '../../core/agent/agent-parts.ts'
import type { Agent } from '../../core/agent/agent.ts'
import type { Capability, UsePart } from '../../core/agent/capability.ts'
import { partsOf } from '../../core/agent/agent-parts.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { retry } from '../../capabilities/retry.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { defined } from '../../hook-files/defined.ts'
import type { CliContext } from '../cli-context.ts'
import { fileHooks, type FileHooks, type HooksFlags } from '../run/file-hooks.ts'
import { UsageError } from '../usage-error.ts'
import { suggestModels } from './available-providers.ts'
import { didYouMean } from './did-you-mean.ts'
import { loadAgent, type CreateAgentOptions } from './load-agent.ts'

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
  /** Answers approvals, for agents without an `approval` of their own. */
  readonly approver?: Capability | undefined
  /** Whether an approval suspends the run if there is no approver. */
  readonly canSuspend?: boolean
  /** The hooks in files, if they are loaded already. */
  readonly hooks?: FileHooks
}

type CliAgent = {
  readonly agent: Agent<unknown>
  readonly usesApprover: boolean
  /** Warnings about hooks in files, which were printed already. */
  readonly reported: readonly string[]
}

/**
 * Creates the agent that the command line describes, with the hooks in files that apply in this folder: every command that
 * runs or judges an agent uses it. HOOKLOOP_MODEL is the model if none is named.
 */
export async function createCliAgent(
  flags: AgentFlags & HooksFlags,
  cli: CliContext,
  given: CliAgentOptions = {},
): Promise<CliAgent> {
  const { env, command } = cli
  const { approver, canSuspend = true, hooks } = given
  const options = { approver, canSuspend, hooks: hooks ?? (await fileHooks(flags, cli)) }
  const file =
    flags.agent === undefined
      ? { options: { name: 'hookloop', use: [retry(), summarization()] } }
      : await loadAgent(flags.agent)
  if ('agent' in file) return extendAgent(file.agent, flags, options)
  const model = flags.model ?? file.options.model ?? (env['HOOKLOOP_MODEL'] || undefined)
  if (model === undefined) {
    const problem = flags.agent === undefined ? 'No model was named.' : `The agent file ${flags.agent} names no model.`
    throw new UsageError(`${problem} ${await suggestModels(env, command)}`)
  }
  return explainErrors(flags.agent, () => newAgent({ ...file.options, model }, flags, options))
}

type Surroundings = {
  readonly approver: Capability | undefined
  readonly canSuspend: boolean
  readonly hooks: FileHooks
}

function newAgent(agentOptions: CreateAgentOptions, flags: AgentFlags, options: Surroundings): CliAgent {
  const { system, temperature } = flags
  const use = flatUse(agentOptions.use ?? [])
  const hasApproval = use.some((each) => 'approval' in each)
  const { added, ...more } = additions(use, { flags, options, hasApproval })
  const agent = createAgent({
    ...agentOptions,
    use: [...use, ...added],
    ...(system !== undefined && { instructions: system }),
    ...(temperature !== undefined && { settings: { ...agentOptions.settings, temperature } }),
  })
  return { agent, ...more }
}

/** An agent from createAgent() can only be extended: the model, the system prompt and the settings cannot change. */
function extendAgent(built: Agent<unknown>, flags: AgentFlags, options: Surroundings): CliAgent {
  for (const name of ['model', 'system', 'temperature'] as const) {
    if (flags[name] === undefined) continue
    throw new UsageError(
      `--${name} cannot change an agent that createAgent() has created. ` +
        `Export the options from ${flags.agent!} instead: export default { … }`,
    )
  }
  const hasApproval = built.describe().approval !== 'block'
  return explainErrors(flags.agent, () => {
    const { added, ...more } = additions(partsOf(built).capabilities, { flags, options, hasApproval })
    return { agent: built.with(...added), ...more }
  })
}

type Adding = { readonly flags: AgentFlags; readonly options: Surroundings; readonly hasApproval: boolean }

/** What the command line adds to an agent: limits, the approver, and hooks from files unless the agent has them itself. */
function additions(
  use: readonly UsePart[],
  { flags, options: { approver, canSuspend, hooks }, hasApproval }: Adding,
): Omit<CliAgent, 'agent'> & { readonly added: readonly Capability[] } {
  const own = hasApproval ? undefined : (approver ?? (canSuspend ? approval('suspend') : undefined))
  const ofFiles = hooks({ answer: own?.approval?.answer, use })
  const added = [
    ...limitsOf(flags),
    ...(own === undefined ? [] : [own]),
    ...ofFiles.filter(({ name }) => use.every((each) => each.name !== name)),
  ]
  return {
    added,
    usesApprover: approver !== undefined && !hasApproval,
    reported: ofFiles.flatMap(({ warnings = [] }) => warnings),
  }
}

function limitsOf({ maxSteps, maxTokens, maxCost, maxTime }: AgentFlags): readonly Capability[] {
  const limits = defined({ maxSteps, maxTokens, maxCost, maxTimeMs: maxTime && maxTime * 1000 })
  return Object.keys(limits).length === 0 ? [] : [guards(limits)]
}

/** Puts the agent file in front of an error, and suggests a model for an unknown one. */
function explainErrors(file: string | undefined, build: () => CliAgent): CliAgent {
  try {
    return build()
  } catch (thrown) {
    if (!(thrown instanceof AgentError)) throw thrown
    const { code, value } = thrown
    const suggestion = code === 'MODEL_UNKNOWN' ? didYouMean(String(value)) : undefined
    if (file === undefined && suggestion === undefined) throw thrown
    const hasGuards = code === 'AGENT_INVALID_OPTION' && value === 'guards'
    const other = hasGuards ? 'it has guards() already. Set the limits there.' : thrown.message
    const message = suggestion === undefined ? other : `Unknown model "${String(value)}". Did you mean ${suggestion}?`
    throw new UsageError(file === undefined ? message : `The agent file ${file}: ${message}`, { cause: thrown })
  }
}
