import type { Step } from '../state/execution.ts'
import { checkedSettings } from '../state/model-settings.ts'
import type { LanguageModel, ModelSettings, ModelSource, ToModel, ToolDescription } from '../state/inference.ts'
import { describeValue } from '../../values/describe-value.ts'
import { isThenable } from '../../values/thenable.ts'
import { AgentError, clause } from '../../errors.ts'
import { isHook, type Hook } from '../hooks/hook.ts'
import { toNameTest } from '../hooks/patterns.ts'
import { HookPlans } from '../hooks/hook-plans.ts'
import type { ApprovalPolicy, Budget, Capability, Redact, Use, UsePart } from './capability.ts'
import { joinRedactors } from '../../values/secrets.ts'
import { checkSpec, type AgentSpec, type ChildLimits } from './agent-tool.ts'
import { isTool, type Tool } from './tool.ts'

/** The options of an agent. */
export type PlainAgentOptions = {
  /** The name in `describe()`. Default `agent`. */
  readonly name?: string
  /** A model of the AI SDK, your own implementation, or a name such as `anthropic/claude-sonnet-5-5`. */
  readonly model: ModelSource
  /** The system prompt of new conversations; a continued conversation has its own. Default none. */
  readonly instructions?: string
  /** Capabilities, hooks and tools, in order of registration. Lists in it are flattened, falsy values ignored. Default none. */
  readonly use?: readonly Use[]
  /** Sent with every request, such as `{ temperature: 0 }`. Default none. */
  readonly settings?: ModelSettings
  /** How many `concurrent` tools run at once. Default 8. */
  readonly maxConcurrentTools?: number
}

/** Reads the typed answer from the steps of a run, or returns the error. */
export type AnswerReader = (
  steps: readonly Step[],
) => Promise<{ readonly value: unknown } | { readonly error: AgentError }>

/** How an agent produces a typed answer: the capability that asks the model for it, and the function that reads it. */
export type OutputPlan = {
  readonly capability: (model: LanguageModel, hasTools: boolean) => Capability
  readonly reader: AnswerReader
}

/** What a run needs of its agent. Immutable, shared by all its runs. */
export type AgentParts = {
  readonly name: string
  readonly model: LanguageModel
  readonly toModel: ToModel
  readonly instructions: string
  readonly settings: ModelSettings | undefined
  readonly plans: HookPlans
  /** A Map, because a model may call a tool "constructor". */
  readonly tools: ReadonlyMap<string, Tool>
  readonly toolNames: readonly string[]
  readonly descriptions: ReadonlyMap<string, ToolDescription>
  readonly descriptionList: readonly ToolDescription[]
  readonly approval: ApprovalPolicy
  /** Applied to user input and tool results; missing when nothing is redacted. */
  readonly redact: Redact | undefined
  readonly maxConcurrentTools: number
  /** Missing when the answer is plain text. */
  readonly reader: AnswerReader | undefined
  readonly notes: readonly string[]
  readonly warnings: readonly string[]
  readonly capabilities: readonly Capability[]
  /** The nesting depth: 0 for a root agent. */
  readonly level: number
  /** The budgets of its ancestors and its own, by level. */
  readonly budgets: readonly Budget[]
  /** Creates the parts of a subagent that is defined in terms of this agent. It does not get the hooks. */
  readonly derive: (spec: AgentSpec, name: string) => AgentParts
}

/** What an agent has by default, and how models are created from names. */
export type AgentDefaults = {
  readonly capabilities: readonly Capability[]
  readonly toModel: ToModel
  /** How a typed answer is produced; without it, the answer is the text. */
  readonly output?: OutputPlan
  /** Limits as a capability, for subagents. */
  readonly limits?: (limits: ChildLimits) => Capability
}

/** The parts of each agent: an agent itself does not expose them. */
const agents = new WeakMap<object, AgentParts>()
/** The store of each agent that has one. Its type is known above this layer. */
const stores = new WeakMap<object, unknown>()

export function rememberAgent(agent: object, parts: AgentParts, store: unknown): void {
  agents.set(agent, parts)
  if (store !== undefined) stores.set(agent, store)
}

/** The store that an agent was created with, if any. */
export function storeOf(agent: object): unknown {
  return stores.get(agent)
}

/** Whether a value is an agent of `createAgent`. */
export function isAgent(value: unknown): boolean {
  return isObject(value) && agents.has(value)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

export function partsOf(agent: object): AgentParts {
  const parts = isObject(agent) ? agents.get(agent) : undefined
  if (parts !== undefined) return parts
  throw new AgentError('AGENT_INVALID_OPTION', '"agent" must be an agent created by createAgent().', { value: agent })
}

/** Creates the parts of an agent. Throws AGENT_INVALID_OPTION, HOOK_DUPLICATE or TOOL_DUPLICATE. */
export function createParts(options: PlainAgentOptions, defaults: AgentDefaults): AgentParts {
  const { capabilities, toModel, output } = defaults
  const { name = 'agent', instructions = '', use = [], settings, maxConcurrentTools = 8 } = options
  const model = toModel(options.model)
  const brought = flatUse(use).map(toCapability)
  const hasTools = brought.some(({ tools = [] }) => tools.length > 0)
  const own = output === undefined ? brought : [...brought, output.capability(model, hasTools)]
  checkNames(own)
  for (const source of own.flatMap((each) => each.models ?? [])) toModel(source)
  const names = new Set(own.map((each) => each.name))
  const all = [...capabilities.filter((each) => !names.has(each.name)), ...own]
  const tools = toolsOf(all)
  const toolNames = Object.freeze([...tools.keys()])
  const descriptions = new Map([...tools.values()].map((each) => [each.name, describeTool(each)]))
  const parts: AgentParts = Object.freeze({
    name,
    model,
    toModel,
    instructions,
    settings: settings === undefined ? undefined : checkedSettings('createAgent', settings),
    plans: new HookPlans(
      all.flatMap((each) => each.hooks ?? []),
      toolNames,
    ),
    tools,
    toolNames,
    descriptions,
    descriptionList: Object.freeze([...descriptions.values()]),
    approval: joinPolicies(all.flatMap((each) => each.approval ?? [])),
    redact: joinRedactors(all.flatMap((each) => each.redact ?? [])),
    maxConcurrentTools,
    reader: output?.reader,
    notes: all.flatMap((each) => each.notes ?? []),
    warnings: all.flatMap((each) => each.warnings ?? []),
    capabilities: all,
    level: 0,
    budgets: [joinBudgets(all.flatMap((each) => each.budget ?? []))],
    derive: (spec, name): AgentParts => derive(parts, { spec, name, defaults }),
  })
  return parts
}

/** A subagent defined in terms of its parent: by default with its model and tools, and without limits of its own. */
function derive(
  from: AgentParts,
  { spec, name, defaults }: { readonly spec: AgentSpec; readonly name: string; readonly defaults: AgentDefaults },
): AgentParts {
  checkSpec(`subagent "${name}"`, spec)
  const { capabilities, toModel, limits } = defaults
  const own = flatUse(spec.use ?? []).map(toCapability)
  const ownTools = new Set(own.flatMap(({ tools = [] }) => tools.map((each) => each.name)))
  const brought = inheritedTools(from, (tool) => isGiven(spec, tool) && !ownTools.has(tool))
  const limited = spec.limits === undefined || limits === undefined ? [] : [limits(spec.limits)]
  return createParts(
    {
      name,
      model: spec.model ?? from.model,
      instructions: spec.instructions ?? '',
      use: [...brought, ...limited, ...own],
      maxConcurrentTools: from.maxConcurrentTools,
      ...(spec.settings === undefined ? from.settings && { settings: from.settings } : { settings: spec.settings }),
    },
    { capabilities: capabilities.filter((each) => each.budget === undefined), toModel, ...(limits && { limits }) },
  )
}

/** Whether a subagent gets a tool of its parent: all by default, none with an empty list. */
function isGiven({ tools, disallowedTools = [] }: AgentSpec, tool: string): boolean {
  return (tools === undefined || isNamed(tools, tool)) && !isNamed(disallowedTools, tool)
}

function isNamed(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => (pattern.includes('*') ? toNameTest(pattern)(tool) : pattern === tool))
}

/** Tools of the parent, each with the transforms that its capability has bound to it. */
function inheritedTools({ capabilities }: AgentParts, isWanted: (name: string) => boolean): readonly Capability[] {
  return capabilities.flatMap(({ tools = [], hooks = [], inheritAllHooks = false }) => {
    const wanted = tools.filter(({ name }) => isWanted(name))
    if (wanted.length === 0) return []
    const goAlong = inheritAllHooks && wanted.length === tools.length
    const bound = hooks.filter((each) => each.mode === 'transform' && (goAlong || isBoundTo(each, wanted)))
    return [{ name: '', tools: wanted, hooks: bound }]
  })
}

function isBoundTo({ tool }: Hook, tools: readonly Tool[]): boolean {
  if (typeof tool === 'string' || tool instanceof RegExp) return tools.some(({ name }) => toNameTest(tool)(name))
  return typeof tool === 'object' && tools.some(({ name }) => name === tool.name)
}

/** The smallest amount of each kind. */
function joinBudgets(budgets: readonly Budget[]): Budget {
  const smallest = (key: 'tokens' | 'costUsd' | 'toolCalls' | 'steps'): Budget => {
    const amounts = budgets.flatMap((each) => each[key] ?? [])
    return amounts.length === 0 ? {} : { [key]: Math.min(...amounts) }
  }
  const [time] = budgets.flatMap((each) => each.time ?? []).toSorted((a, b) => a.ms - b.ms)
  const amounts = { ...smallest('tokens'), ...smallest('costUsd'), ...smallest('toolCalls'), ...smallest('steps') }
  return Object.freeze({ ...amounts, ...(time !== undefined && { time }) })
}

const noApprover: ApprovalPolicy = {
  answer: 'block',
  asksAbout: () => false,
  expiresInMs: undefined,
  onUnknownOutcome: 'tell',
}

/** The last policy defines the approver. Tools that any policy asks about are asked about; the shortest expiry applies. */
function joinPolicies(policies: readonly ApprovalPolicy[]): ApprovalPolicy {
  const last = policies.at(-1)
  if (last === undefined) return noApprover
  const times = policies.flatMap(({ expiresInMs }) => expiresInMs ?? [])
  return {
    answer: last.answer,
    asksAbout: (name) => policies.some((policy) => policy.asksAbout(name)),
    expiresInMs: times.length === 0 ? undefined : Math.min(...times),
    onUnknownOutcome: policies.some((policy) => policy.onUnknownOutcome === 'ask') ? 'ask' : 'tell',
  }
}

/** The fields of a capability. A copy of a hook, or a function that was not called, has others. */
const capabilityParts: readonly string[] = [
  'name',
  'hooks',
  'tools',
  'approval',
  'redact',
  'models',
  'budget',
  'inheritAllHooks',
  'beforeResume',
  'slashCommands',
  'notes',
  'warnings',
]

/** The parts of a list, which may have lists and falsy values in it. */
export function flatUse(use: readonly Use[]): readonly UsePart[] {
  return use.flatMap((each) => {
    if (!each) return []
    return isList(each) ? flatUse(each) : [each]
  })
}

function isList(use: Use): use is readonly Use[] {
  return Array.isArray(use)
}

/** A single hook or tool becomes a capability without a name. */
function toCapability(use: UsePart): Capability {
  if (isHook(use)) return { name: '', hooks: [use] }
  if (isTool(use)) return { name: '', tools: [use] }
  const isCapability =
    isObject(use) && 'name' in use && Object.keys(use).every((part) => capabilityParts.includes(part))
  if (isCapability && areAll(use.hooks, isHook) && areAll(use.tools, isTool)) return use
  const hint = typeof use === 'function' ? '. Call the function' : isThenable(use) ? '. Await it' : ''
  throw invalid(
    `"use" takes hooks, tools and capabilities, created by hook(), guard(), observe(), tool() and the like, not ${describeValue(use)}${hint}`,
    use,
  )
}

function areAll(list: readonly unknown[] | undefined, is: (value: unknown) => boolean): boolean {
  return list === undefined || list.every(is)
}

/** Two capabilities with one name are rejected: dropping one would drop its limits or rules. */
function checkNames(capabilities: readonly Capability[]): void {
  const seen = new Set<string>([''])
  for (const { name, approval } of capabilities) {
    if (name !== '' && seen.has(name) && approval === undefined) {
      throw invalid(`"${name}" was added twice. Put all its options into one ${name}({ … })`, name)
    }
    seen.add(name)
  }
}

function toolsOf(capabilities: readonly Capability[]): ReadonlyMap<string, Tool> {
  const tools = new Map<string, Tool>()
  for (const each of capabilities.flatMap((capability) => capability.tools ?? [])) {
    if (tools.has(each.name)) {
      throw new AgentError('TOOL_DUPLICATE', `Two tools have the name "${each.name}". Rename one.`, {
        value: each.name,
      })
    }
    tools.set(each.name, each)
  }
  return tools
}

function describeTool({ name, description, inputSchema }: Tool): ToolDescription {
  return Object.freeze({ name, description, inputSchema })
}

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `The agent cannot be created: ${clause(why)}.`, { value })
}
