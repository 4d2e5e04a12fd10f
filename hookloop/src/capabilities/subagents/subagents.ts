import {
  agentTool,
  isAgent,
  type Agent,
  type AgentSpec,
  type Capability,
  type Delegation,
  type ModelSettings,
  type ModelSource,
  type Use,
} from '../../plugin.ts'
import { isJsonObject } from '../../values/json.ts'
import { optionTypes } from '../../values/option-types.ts'
import { checkOptions, definedOptions, invalidOption, readOptions } from '../../values/check-options.ts'
import { defineAgent, definitionLimits, type AgentDefinition } from './agent-definition.ts'
import { objectSchema } from '../../values/schema.ts'

/** A subagent defined in code. What is omitted is inherited from the parent. */
export type SubagentDefinition = Omit<AgentDefinition, 'name' | 'model' | 'instructions'> & {
  /** Shown in descriptions. Default: its key in `agents`. */
  readonly name?: string
  /** The system prompt. Default: empty. */
  readonly instructions?: string
  /** The model. Default: the model of the parent. */
  readonly model?: ModelSource
  /** Model settings. Default: those of the parent. */
  readonly settings?: ModelSettings
  /** Its own capabilities, hooks and tools. Default none. */
  readonly use?: readonly Use[]
}

/** An agent made by `createAgent`, with a description of when to use it. */
export type DescribedAgent = { readonly description: string; readonly agent: Agent<unknown> }

/** Options of `subagents`. */
export type SubagentsOptions = {
  /** The agents by the name with which the model selects them. Required. */
  readonly agents: {
    readonly [name: string]: SubagentDefinition | AgentDefinition | DescribedAgent | Agent<unknown>
  }
  /** How deep agents may be nested. Default 3. */
  readonly maxDepth?: number
  /** Capabilities, hooks and tools for every subagent defined here, such as `retry()`. Default none. */
  readonly use?: readonly Use[]
  /** Aliases of models: `{ haiku: 'anthropic/claude-haiku-4-5' }`. Default none. */
  readonly models?: { readonly [alias: string]: ModelSource }
  /** Names that other programs use for tools. An exact name takes precedence. Default: those of Claude Code. */
  readonly toolAliases?: { readonly [name: string]: string }
  /** Whether several subagents may run at the same time. Default true. */
  readonly concurrent?: boolean
  /** The length of the answer that the model gets. Default 65,536. */
  readonly maxOutputChars?: number
}

export const subagentsDefaults = Object.freeze({
  maxDepth: 3,
  use: Object.freeze([]),
  models: Object.freeze({}) as { readonly [alias: string]: ModelSource },
  toolAliases: Object.freeze({
    Bash: 'bash',
    Read: 'read_file',
    Write: 'write_file',
    Edit: 'edit_file',
    LS: 'list_dir',
    Glob: 'search_files',
    Grep: 'search_files',
    TodoWrite: 'todo_write',
    Skill: 'load_skill',
    Task: 'spawn_subagent',
    Agent: 'spawn_subagent',
  }),
  concurrent: true,
  maxOutputChars: 65_536,
})

const types = { models: optionTypes.any, toolAliases: optionTypes.any }

const SPAWN = 'spawn_subagent'

/**
 * Lets the model delegate work to other agents with the tool `spawn_subagent`. Each has its own conversation, and runs
 * under the guards, the approval and the budget of its parent.
 *
 * @example
 * createAgent({
 *   model,
 *   use: [subagents({ agents: { reviewer: { description: 'Reviews code.', instructions: 'Review the diff.', tools: ['read_file'] } } })],
 * })
 */
export function subagents(options: SubagentsOptions): Capability {
  const policy = readOptions('subagents', options, { agents: undefined, ...subagentsDefaults }, types)
  const agents = new Map(
    Object.entries(checkedAgents(policy.agents)).map(([name, each]) => [name, toMember(name, each)]),
  )
  const specs = new SpecCache(policy)
  const spawn = agentTool({
    name: SPAWN,
    description: describe(agents),
    input: objectSchema(
      {
        subagent: { type: 'string', enum: [...agents.keys()], description: 'The agent to use.' },
        prompt: {
          type: 'string',
          minLength: 1,
          description: 'Everything it needs to know: what to do, what is already known, and what to answer.',
        },
      },
      ['subagent', 'prompt'],
    ),
    concurrent: policy.concurrent,
    maxOutputChars: policy.maxOutputChars,
    to: (args, { depth, tools }): Delegation => {
      const { subagent: name, prompt } = args as { subagent: string; prompt: string }
      const member = agents.get(name)
      if (member === undefined)
        throw new Error(`There is no subagent "${name}". Available: ${[...agents.keys()].join(', ')}.`)
      if (depth >= policy.maxDepth) {
        throw new Error(`Subagents may be nested at most ${policy.maxDepth} deep. Do it yourself.`)
      }
      return { name, input: prompt, to: specs.specOf(member, { depth, tools }) }
    },
  })
  return { name: 'subagents', tools: [spawn], models: modelsOf(agents, policy), notes: notesOf(agents, policy) }
}

type Policy = Required<Omit<SubagentsOptions, 'agents'>>
type Member = { readonly description: string; readonly to: Agent<unknown> | SubagentDefinition }

/** Caches the spec of an agent for each place it is called from, so that its hooks are combined only once. */
class SpecCache {
  readonly #policy: Policy
  readonly #specs = new Map<Member, Map<string, Delegation['to']>>()

  constructor(policy: Policy) {
    this.#policy = policy
  }

  specOf(member: Member, at: { readonly depth: number; readonly tools: readonly string[] }): Delegation['to'] {
    if (isAgent(member.to)) return member.to
    const ofMember = this.#specs.get(member) ?? new Map<string, Delegation['to']>()
    this.#specs.set(member, ofMember)
    const key = JSON.stringify([at.depth + 1 >= this.#policy.maxDepth, at.tools])
    const spec = ofMember.get(key) ?? toSpec(member.to as SubagentDefinition, this.#policy, at)
    ofMember.set(key, spec)
    return spec
  }
}

function toSpec(
  definition: SubagentDefinition,
  policy: Policy,
  at: { readonly depth: number; readonly tools: readonly string[] },
): AgentSpec {
  const { instructions = '', tools, disallowedTools = [], settings, use = [] } = definition
  const { toolAliases } = policy
  const aliasOf = (name: string): string | undefined =>
    Object.hasOwn(toolAliases, name) ? toolAliases[name] : undefined
  const model = modelOf(definition.model, policy)
  const limits = definedOptions(Object.fromEntries(definitionLimits.map((limit) => [limit, definition[limit]])))
  const atLimit = at.depth + 1 >= policy.maxDepth ? [SPAWN] : []
  return Object.freeze({
    instructions,
    ...(tools !== undefined && {
      tools: tools.map((name) => (at.tools.includes(name) ? name : (aliasOf(name) ?? name))),
    }),
    disallowedTools: [...disallowedTools.flatMap((name) => [name, aliasOf(name) ?? name]), ...atLimit],
    ...(model !== undefined && { model }),
    ...(settings !== undefined && { settings }),
    use: [...policy.use, ...use],
    ...(Object.keys(limits).length > 0 && { limits }),
  })
}

/** An unknown alias belongs to another program: the agent then uses the model of its parent. */
function modelOf(model: ModelSource | undefined, { models }: Policy): ModelSource | undefined {
  if (typeof model !== 'string') return model
  if (model === 'inherit') return undefined
  if (Object.hasOwn(models, model)) return models[model]
  return model.includes('/') ? model : undefined
}

function checkedAgents(agents: unknown): SubagentsOptions['agents'] {
  if (isJsonObject(agents) && Object.keys(agents).length > 0) return agents as never
  throw invalidOption('subagents', '"agents" must have at least one agent, by name: { reviewer: { … } }', agents)
}

const definitionFields = ['name', 'description', 'instructions', 'tools', 'disallowedTools', 'model', 'settings', 'use']

function toMember(name: string, given: SubagentsOptions['agents'][string]): Member {
  const where = `subagents: "${name}"`
  if (typeof given !== 'object' || given === null)
    throw invalidOption(where, 'it must be an agent or a definition of one', given)
  if (isAgent(given)) return { description: `The agent "${name}".`, to: given }
  if ('agent' in given) {
    checkOptions(where, given, ['description', 'agent'])
    if (!isAgent(given.agent))
      throw invalidOption(where, '"agent" must be an agent, as returned by createAgent()', given.agent)
    return { description: textOf(where, given.description), to: given.agent }
  }
  checkOptions(where, given, [...definitionFields, ...definitionLimits])
  const definition = definedOptions(given as SubagentDefinition)
  const { model, settings: _settings, use: _use, instructions = '', ...rest } = definition
  defineAgent({ ...rest, name, instructions, ...(typeof model === 'string' && { model }) })
  return { description: definition.description, to: definition }
}

function textOf(where: string, description: unknown): string {
  if (typeof description === 'string' && description.trim() !== '') return description
  throw invalidOption(where, '"description" must say when to use it', description)
}

function describe(agents: ReadonlyMap<string, Member>): string {
  const lines = [...agents].map(([name, { description }]) => `- ${name}: ${description}`)
  return [
    'Delegates work to another agent and returns its answer. It does not see this conversation, and you do not see its own.',
    'Calls in one message run at the same time.',
    'Agents:',
    ...lines,
  ].join('\n')
}

/** Checked when the agent is created, not when a model is first needed. */
function modelsOf(agents: ReadonlyMap<string, Member>, policy: Policy): readonly ModelSource[] {
  return [...agents.values()].flatMap(({ to }) =>
    isAgent(to) ? [] : (modelOf((to as SubagentDefinition).model, policy) ?? []),
  )
}

function notesOf(agents: ReadonlyMap<string, Member>, policy: Policy): readonly string[] {
  const unknown = [...agents].flatMap(([name, { to }]) => {
    const { model } = isAgent(to) ? { model: undefined } : (to as SubagentDefinition)
    if (typeof model !== 'string' || model === 'inherit' || modelOf(model, policy) !== undefined) return []
    return [`The model "${model}" of the subagent "${name}" is not in "models": it uses the model of its parent.`]
  })
  return [`Subagents: ${[...agents.keys()].join(', ')}; nested at most ${policy.maxDepth} deep.`, ...unknown]
}
