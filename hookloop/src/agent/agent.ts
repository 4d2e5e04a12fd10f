import { AgentState } from '../state/agent-state.ts'
import type { Emit, AgentEvent } from '../state/event.ts'
import type { ModelSettings, ModelSource, ToModel, ToolDescription } from '../state/inference.ts'
import { exactJson, type JsonObject } from '../state/json.ts'
import type { Message } from '../state/message.ts'
import { fromSavedRun, type SavedRun } from '../state/saved-run.ts'
import { liveEffects, type EffectsFactory } from '../effects/effects.ts'
import { AgentError } from '../errors.ts'
import { isHook, type Hook } from '../hooks/hook.ts'
import { toNameTest } from '../hooks/patterns.ts'
import { HookStack } from '../hooks/stack.ts'
import { beginRun, inputFor, readyState, stateFor } from './loop/start.ts'
import type { AgentDescription } from './agent-description.ts'
import type { AgentSpec, ChildLimits } from './subagents/agent-tool.ts'
import type { ApprovalPolicy, Budget, Capability, Redact, Use } from './capability.ts'
import { checkOptions } from './check-options.ts'
import { describeAgent } from './describe-agent.ts'
import { rememberAgent } from './subagents/known-agents.ts'
import { iterateRun, streamRun, type RunStream } from './run-stream.ts'
import { RunContext } from './loop/run-context.ts'
import type { AgentParts, OutputPlan } from './agent-parts.ts'
import { checkResume, resumeRun, type ResumeOptions } from './loop/resume.ts'
import type { Run } from './run.ts'
import type { Session } from './session.ts'
import { isTool, type Tool } from './tool.ts'

/** What an agent is made of. */
export type PlainAgentOptions = {
  /** Shown in descriptions; nothing depends on it. */
  readonly name?: string
  /** A model of the AI SDK, one of your own, or a name such as `anthropic/claude-sonnet-5-5`. */
  readonly model: ModelSource
  /** The system prompt a conversation begins with. */
  readonly instructions?: string
  /** Capabilities, hooks and tools, in order of registration. */
  readonly use?: readonly Use[]
  /** Settings for the model, such as `{ temperature: 0 }`. */
  readonly settings?: ModelSettings
  /** How many tools that may run together do so at most. Default 8. */
  readonly maxConcurrentTools?: number
}

/** How one run is to go. */
export type RunOptions = {
  /** Facts for hooks to read, such as who asks. The model does not see them. */
  readonly metadata?: JsonObject
  /** Cancels the run. */
  readonly signal?: AbortSignal
  /** A finished run, or its state, to go on talking from. */
  readonly from?: Run<unknown> | SavedRun | AgentState
  /** `false`: `stream` tells everything but an answer while it is written; the model is asked for it in one piece. */
  readonly deltas?: boolean
  /** How effects happen: live, recorded or replayed. */
  readonly effects?: EffectsFactory
  /** The session to run in: what happens is kept in the agent's store, and the conversation goes on from there. */
  readonly session?: string
}

/** An immutable agent. It holds nothing of a run, so one serves any number of them at once. */
export type Agent<O = string> = {
  /** Another agent with more in it; this one stays as it is. */
  readonly with: (...use: readonly Use[]) => Agent<O>
  /** Resolves with every status, also `failed`; rejects only when the run cannot begin. */
  readonly run: (input: string | Message, options?: RunOptions) => Promise<Run<O>>
  /** The run as events. Breaking out of the loop lets it go on. */
  readonly stream: (input: string | Message, options?: RunOptions) => RunStream<AgentEvent, O>
  /** The run step by step. Breaking out of the loop pauses it: `resume` goes on. */
  readonly iterate: (input: string | Message, options?: RunOptions) => RunStream<AgentState, O>
  /**
   * Goes on with a suspended run, here or in another process, or, by its id, with a session: where a person was waited
   * for, or where the process died. Rejects, before anything runs, if it may not.
   */
  readonly resume: (
    from: Run<unknown> | SavedRun | string,
    options?: ResumeOptions & Omit<RunOptions, 'from' | 'metadata'>,
  ) => Promise<Run<O>>
  /** The same as events, as `stream` gives them. */
  readonly resumeStream: (
    from: Run<unknown> | SavedRun | string,
    options?: ResumeOptions & Omit<RunOptions, 'from' | 'metadata'>,
  ) => RunStream<AgentEvent, O>
  /** A conversation that is kept in the agent's store, new or known. Without an id, one is made up. */
  readonly session: (id?: string) => Session<O>
  /** What the agent consists of, and what will apply. */
  readonly describe: () => AgentDescription
}

/** What an agent has unless it brings its own, and how models are made of what names them. */
export type AgentDefaults = {
  readonly capabilities: readonly Capability[]
  readonly toModel: ToModel
  /** How a typed answer is come to; without it, the answer is the text. */
  readonly output?: OutputPlan
  /** Limits as a capability, for agents that are made of others. */
  readonly limits?: (limits: ChildLimits) => Capability
  /** How runs are kept in sessions, if the agent has a store. */
  readonly sessions?: SessionPort
}

/** How one run in a session is to go. */
export type SessionRunOptions = ResumeOptions & RunOptions & Watching & { readonly session: string }

/** Keeps runs in sessions. */
export type SessionPort = {
  readonly run: (parts: AgentParts, input: Message, how: SessionRunOptions) => Promise<Run>
  readonly resume: (parts: AgentParts, how: SessionRunOptions) => Promise<Run>
  readonly session: (parts: AgentParts, id: string | undefined) => Session
}

/** Puts an agent together from its options. */
export function buildAgent(options: PlainAgentOptions, defaults: AgentDefaults): Agent {
  const parts = takeApart(options, defaults)
  const start = (input: string | Message, given: RunOptions = {}, live: Watching = {}): Promise<Run> => {
    try {
      checkOptions('run', given, runOptions)
      const message = inputFor(parts, input) // first: what is prepared listens to the signal until it has run
      const { session } = given
      if (session !== undefined) return sessionsOf(defaults).run(parts, message, { ...given, ...live, session })
      return beginRun(prepare(parts, given, live), message)
    } catch (refusal) {
      return Promise.reject(refusal)
    }
  }
  const goOn = async (from: Run<unknown> | SavedRun | string, given?: ResumeOptions, emit?: Emit): Promise<Run> =>
    typeof from === 'string'
      ? sessionsOf(defaults).resume(parts, { ...given, ...(emit && { emit }), session: from })
      : resume(parts, from, given, emit)
  const agent = Object.freeze({
    with: (...use) => buildAgent({ ...options, use: [...(options.use ?? []), ...use] }, defaults),
    run: (input, given) => start(input, given),
    stream: (input, given) => streamRun((emit) => start(input, given, { emit })),
    iterate: (input, given) => iterateRun((pauses) => start(input, given, { pauses })),
    resume: (from, given) => goOn(from, given),
    resumeStream: (from, given) => streamRun((emit) => goOn(from, given, emit)),
    session: (id) => sessionsOf(defaults).session(parts, id),
    describe: () => describeAgent(parts),
  } satisfies Agent)
  rememberAgent(agent, parts)
  return agent
}

const runOptions: readonly string[] = [
  'metadata',
  'signal',
  'from',
  'deltas',
  'effects',
  'session',
] satisfies (keyof RunOptions)[]

/** Who watches a run. */
export type Watching = { readonly emit?: Emit; readonly pauses?: RunContext['pauses'] }

function sessionsOf({ sessions }: AgentDefaults): SessionPort {
  if (sessions !== undefined) return sessions
  throw invalidRun('a session needs a store: createAgent({ store: sqliteStore(path), … })')
}

function invalidRun(why: string): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `The run cannot begin: ${why}.`)
}

/** Everything that can be refused is refused here, before anything runs. */
function prepare(parts: AgentParts, given: RunOptions = {}, { emit, pauses }: Watching = {}): RunContext {
  const from = given.from && readyState(stateOf(given.from))
  const effects = effectsFor(given, emit)
  const state = stateFor(parts, { from, agentId: () => effects.newId(), metadata: given.metadata })
  const cancellable = given.signal !== undefined
  return new RunContext(parts, effects, state, {
    pauses,
    streams: emit !== undefined && given.deltas !== false,
    cancellable,
  })
}

async function resume(
  parts: AgentParts,
  from: Run<unknown> | SavedRun,
  given: ResumeOptions & RunOptions = {},
  emit?: Emit,
): Promise<Run> {
  const { state, ledger } = savedOf(from)
  const effects = effectsFor(given, emit)
  const answers = await checkResume(parts, state, { ...given, now: effects.now() })
  const streams = emit !== undefined && given.deltas !== false
  const options = { ledger, cancellable: given.signal !== undefined, streams }
  return resumeRun(new RunContext(parts, effects, state, options), answers)
}

function effectsFor(
  { effects = liveEffects(), signal }: Pick<RunOptions, 'effects' | 'signal'>,
  emit: Emit | undefined,
) {
  return effects({ signal: signal ?? new AbortController().signal, emit })
}

/** The state and the ledger of a run, live or saved. */
export function savedOf(from: Run<unknown> | SavedRun): ReturnType<typeof fromSavedRun> {
  return isRun(from) ? { state: from.state, ledger: from.ledger } : fromSavedRun(from)
}

function isRun(from: Run<unknown> | SavedRun | null | undefined): from is Run<unknown> {
  return from?.state instanceof AgentState
}

function stateOf(from: Run<unknown> | SavedRun | AgentState): AgentState {
  return from instanceof AgentState ? from : savedOf(from).state
}

function takeApart(options: PlainAgentOptions, defaults: AgentDefaults): AgentParts {
  const { capabilities, toModel, output } = defaults
  const { instructions = '', use = [], settings, maxConcurrentTools = 8 } = options
  const model = toModel(options.model)
  if (typeof instructions !== 'string') throw invalid('"instructions" must be a text', instructions)
  if (!Number.isInteger(maxConcurrentTools) || maxConcurrentTools < 1) {
    throw invalid('"maxConcurrentTools" must be a whole number from 1 up', maxConcurrentTools)
  }
  const brought = use.map(toCapability)
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
    name: options.name ?? 'agent',
    model,
    toModel,
    instructions,
    settings: settings && (exactJson(settings, 'settings') as ModelSettings),
    stack: new HookStack(
      all.flatMap((each) => each.hooks ?? []),
      toolNames,
    ),
    tools,
    toolNames,
    descriptions,
    descriptionList: Object.freeze([...descriptions.values()]),
    approval: joinPolicies(all.flatMap((each) => each.approval ?? [])),
    redact: joinRedactions(all.flatMap((each) => each.redact ?? [])),
    maxConcurrentTools,
    reader: output?.reader,
    notes: all.flatMap((each) => each.notes ?? []),
    capabilities: all,
    level: 0,
    budgets: [joinBudgets(all.flatMap((each) => each.budget ?? []))],
    derive: (spec, name): AgentParts => derive(parts, { spec, name, defaults }),
  })
  return parts
}

/** An agent that is made of another: with its model and its tools unless told otherwise, and with limits only if told. */
function derive(
  from: AgentParts,
  { spec, name, defaults }: { readonly spec: AgentSpec; readonly name: string; readonly defaults: AgentDefaults },
): AgentParts {
  const { capabilities, toModel, limits } = defaults
  const own = (spec.use ?? []).map(toCapability)
  const ownTools = new Set(own.flatMap(({ tools = [] }) => tools.map((each) => each.name)))
  const brought = inheritedTools(from, (tool) => isGiven(spec, tool) && !ownTools.has(tool))
  const limited = spec.limits === undefined || limits === undefined ? [] : [limits(spec.limits)]
  return takeApart(
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

/** Left out is everything; an empty list is nothing. */
function isGiven({ tools, disallowedTools = [] }: AgentSpec, tool: string): boolean {
  return (tools === undefined || isNamed(tools, tool)) && !isNamed(disallowedTools, tool)
}

function isNamed(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => (pattern.includes('*') ? toNameTest(pattern)(tool) : pattern === tool))
}

/** Tools, each with the hooks that its capability has bound to it: without them it would not do what it says. */
function inheritedTools({ capabilities }: AgentParts, isWanted: (name: string) => boolean): readonly Capability[] {
  return capabilities.flatMap(({ tools = [], hooks = [], isWhole = false }) => {
    const wanted = tools.filter(({ name }) => isWanted(name))
    if (wanted.length === 0) return []
    const goAlong = isWhole && wanted.length === tools.length
    const bound = hooks.filter((each) => each.mode === 'transform' && (goAlong || isBoundTo(each, wanted)))
    return [{ name: '', tools: wanted, hooks: bound }]
  })
}

function isBoundTo({ tool }: Hook, tools: readonly Tool[]): boolean {
  if (typeof tool === 'string' || tool instanceof RegExp) return tools.some(({ name }) => toNameTest(tool)(name))
  return typeof tool === 'object' && tools.some(({ name }) => name === tool.name)
}

/** Of two budgets, the smaller one. */
function joinBudgets(budgets: readonly Budget[]): Budget {
  const smallest = (key: keyof Budget): Budget => {
    const amounts = budgets.flatMap((each) => each[key] ?? [])
    return amounts.length === 0 ? {} : { [key]: Math.min(...amounts) }
  }
  return Object.freeze({ ...smallest('tokens'), ...smallest('costUsd'), ...smallest('toolCalls') })
}

const nobody: ApprovalPolicy = {
  answer: 'deny',
  asksAbout: () => false,
  expiresInMs: undefined,
  onUnknownOutcome: 'tell',
}

/** The last policy says how a person is reached; what any of them asks about is asked, and the shortest time holds. */
function joinPolicies(policies: readonly ApprovalPolicy[]): ApprovalPolicy {
  const last = policies.at(-1)
  if (last === undefined) return nobody
  const times = policies.flatMap(({ expiresInMs }) => expiresInMs ?? [])
  return {
    answer: last.answer,
    asksAbout: (name) => policies.some((policy) => policy.asksAbout(name)),
    expiresInMs: times.length === 0 ? undefined : Math.min(...times),
    onUnknownOutcome: policies.some((policy) => policy.onUnknownOutcome === 'ask') ? 'ask' : 'tell',
  }
}

function joinRedactions(all: readonly Redact[]): Redact | undefined {
  return all.length === 0 ? undefined : (value) => all.reduce((rest, redact) => redact(rest), value)
}

/** What a capability may consist of; a copy of a hook, or a function somebody forgot to call, is none. */
const capabilityParts: readonly string[] = [
  'name',
  'hooks',
  'tools',
  'approval',
  'redact',
  'models',
  'budget',
  'isWhole',
  'slashCommands',
  'notes',
]

/** Hooks and tools on their own are capabilities of one. */
function toCapability(use: Use): Capability {
  if (isHook(use)) return { name: '', hooks: [use] }
  if (isTool(use)) return { name: '', tools: [use] }
  const capability = use as Capability | undefined
  const parts = typeof capability === 'object' && capability !== null ? Object.keys(capability) : []
  const fits = parts.includes('name') && parts.every((part) => capabilityParts.includes(part))
  if (fits && (capability!.hooks ?? []).every(isHook) && (capability!.tools ?? []).every(isTool)) return capability!
  throw invalid(
    '"use" takes hooks, tools and capabilities, as made by hook(), guard(), observe(), tool() and the like',
    use,
  )
}

/** Of two capabilities of one name, one would have to go, and with it limits or rules that somebody relies on. */
function checkNames(capabilities: readonly Capability[]): void {
  const seen = new Set<string>([''])
  for (const { name, approval } of capabilities) {
    if (name !== '' && seen.has(name) && approval === undefined) {
      throw invalid(
        `it has "${name}" already. Put everything into one ${name}({ … }), where the agent is created`,
        name,
      )
    }
    seen.add(name)
  }
}

function toolsOf(capabilities: readonly Capability[]): ReadonlyMap<string, Tool> {
  const tools = new Map<string, Tool>()
  for (const each of capabilities.flatMap((capability) => capability.tools ?? [])) {
    if (tools.has(each.name)) {
      throw new AgentError('TOOL_DUPLICATE', `Two tools are called "${each.name}". Rename one.`, { value: each.name })
    }
    tools.set(each.name, each)
  }
  return tools
}

function describeTool({ name, description, inputSchema }: Tool): ToolDescription {
  return Object.freeze({ name, description, inputSchema })
}

function invalid(why: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `The agent cannot be built: ${why}.`, { value })
}
