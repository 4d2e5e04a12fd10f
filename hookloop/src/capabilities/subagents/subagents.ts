import type { Agent } from '../../agent/agent.ts'
import { agentTool, type AgentSpec, type Delegation } from '../../agent/subagents/agent-tool.ts'
import type { Capability, Use } from '../../agent/capability.ts'
import { isAgent } from '../../agent/subagents/known-agents.ts'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { defineAgent, definitionLimits, type AgentDefinition } from '../../state/agent-definition.ts'
import type { ModelSettings, ModelSource } from '../../state/inference.ts'

/** An agent that is made of its parent, defined in code. What is left out, it has from there. */
export type SubagentDefinition = Omit<AgentDefinition, 'name' | 'model' | 'instructions'> & {
  readonly name?: string
  readonly instructions?: string
  readonly model?: ModelSource
  readonly settings?: ModelSettings
  /** Capabilities, hooks and tools of its own. */
  readonly use?: readonly Use[]
}

/** An agent that is whole: as made by `createAgent`, with a word on when to use it. */
export type WholeSubagent = { readonly description: string; readonly agent: Agent<unknown> }

export type SubagentsOptions = {
  /** By the name under which the model chooses one. */
  readonly agents: {
    readonly [name: string]: SubagentDefinition | AgentDefinition | WholeSubagent | Agent<unknown>
  }
  /** How deep agents may be inside each other. Default 3. */
  readonly maxDepth?: number
  /** Capabilities, hooks and tools that every agent gets that is defined here, such as `retry()`. */
  readonly use?: readonly Use[]
  /** What short names of models stand for: `{ haiku: 'anthropic/claude-haiku-4-5' }`. */
  readonly models?: { readonly [alias: string]: ModelSource }
  /** What other programs call tools. The name itself goes first. */
  readonly toolAliases?: { readonly [name: string]: string }
  /** Whether several may work at the same time. Default true. */
  readonly concurrent?: boolean
  /** How much of an answer the model is given. */
  readonly maxOutputChars?: number
}

/** What applies unless it is told otherwise. */
export const subagentsPolicy = Object.freeze({
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

const SPAWN = 'spawn_subagent'

/**
 * Agents that work for this one, each in a conversation of its own, under the guards, the approval and the budget of the
 * run they are part of. The model calls them with `spawn_subagent`.
 */
export function subagents(options: SubagentsOptions): Capability {
  checkOptions('subagents', options, ['agents', ...Object.keys(subagentsPolicy)])
  const policy = { ...subagentsPolicy, ...definedOptions(options) }
  const agents = new Map(
    Object.entries(checkedAgents(options.agents)).map(([name, each]) => [name, toMember(name, each)]),
  )
  if (!Number.isInteger(policy.maxDepth) || policy.maxDepth < 1) {
    throw invalidOption('subagents', '"maxDepth" must be a whole number from 1 up', policy.maxDepth)
  }
  const specs = new SpecBook(policy)
  const spawn = agentTool({
    name: SPAWN,
    description: describe(agents),
    input: {
      type: 'object',
      properties: {
        subagent: { type: 'string', enum: [...agents.keys()], description: 'Which agent is to do it.' },
        prompt: {
          type: 'string',
          minLength: 1,
          description: 'Everything it has to know: what to do, what is known already, and what to answer.',
        },
      },
      required: ['subagent', 'prompt'],
      additionalProperties: false,
    },
    concurrent: policy.concurrent,
    maxOutputChars: policy.maxOutputChars,
    to: (args, { depth, tools }): Delegation => {
      const { subagent: name, prompt } = args as { subagent: string; prompt: string }
      const member = agents.get(name)
      if (member === undefined)
        throw new Error(`There is no subagent "${name}". There are: ${[...agents.keys()].join(', ')}.`)
      if (depth >= policy.maxDepth) {
        throw new Error(`Agents are at most ${policy.maxDepth} deep inside each other here. Do it yourself.`)
      }
      return { name, input: prompt, to: specs.specOf(member, { depth, tools }) }
    },
  })
  return { name: 'subagents', tools: [spawn], models: modelsOf(agents, policy), notes: notesOf(agents, policy) }
}

type Policy = Required<Omit<SubagentsOptions, 'agents'>>
type Member = { readonly description: string; readonly to: Agent<unknown> | SubagentDefinition }

/** What agents are made of, once for each place they may be in: a stack of hooks is put together only once, too. */
class SpecBook {
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
  const deepest = at.depth + 1 >= policy.maxDepth ? [SPAWN] : []
  return Object.freeze({
    instructions,
    ...(tools !== undefined && {
      tools: tools.map((name) => (at.tools.includes(name) ? name : (aliasOf(name) ?? name))),
    }),
    disallowedTools: [...disallowedTools.flatMap((name) => [name, aliasOf(name) ?? name]), ...deepest],
    ...(model !== undefined && { model }),
    ...(settings !== undefined && { settings }),
    use: [...policy.use, ...use],
    ...(Object.keys(limits).length > 0 && { limits }),
  })
}

/** A short name that stands for nothing here is that of another program: the agent then uses its parent's model. */
function modelOf(model: ModelSource | undefined, { models }: Policy): ModelSource | undefined {
  if (typeof model !== 'string') return model
  if (model === 'inherit') return undefined
  if (Object.hasOwn(models, model)) return models[model]
  return model.includes('/') ? model : undefined
}

function checkedAgents(agents: unknown): SubagentsOptions['agents'] {
  if (typeof agents === 'object' && agents !== null && Object.keys(agents).length > 0) return agents as never
  throw invalidOption('subagents', '"agents" must have at least one agent, by name', agents)
}

const definitionFields = ['name', 'description', 'instructions', 'tools', 'disallowedTools', 'model', 'settings', 'use']

function toMember(name: string, given: SubagentsOptions['agents'][string]): Member {
  const where = `subagents: "${name}"`
  if (typeof given !== 'object' || given === null) throw invalidOption(where, 'it must be a definition', given)
  if (isAgent(given)) return { description: `The agent "${name}".`, to: given }
  if ('agent' in given) {
    checkOptions(where, given, ['description', 'agent'])
    if (!isAgent(given.agent))
      throw invalidOption(where, '"agent" must be an agent, as made by createAgent()', given.agent)
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
  throw invalidOption(where, '"description" says when to use it, and is missing', description)
}

function describe(agents: ReadonlyMap<string, Member>): string {
  const lines = [...agents].map(([name, { description }]) => `- ${name}: ${description}`)
  return [
    'Lets another agent do a piece of work and gives you its answer. It knows nothing of this conversation, and you see nothing of its own.',
    'Calls in one message are worked on at the same time.',
    'The agents:',
    ...lines,
  ].join('\n')
}

/** Models that are named are looked at when the agent is put together, and not when one is first needed. */
function modelsOf(agents: ReadonlyMap<string, Member>, policy: Policy): readonly ModelSource[] {
  return [...agents.values()].flatMap(({ to }) =>
    isAgent(to) ? [] : (modelOf((to as SubagentDefinition).model, policy) ?? []),
  )
}

function notesOf(agents: ReadonlyMap<string, Member>, policy: Policy): readonly string[] {
  const unknown = [...agents].flatMap(([name, { to }]) => {
    const { model } = isAgent(to) ? { model: undefined } : (to as SubagentDefinition)
    if (typeof model !== 'string' || model === 'inherit' || modelOf(model, policy) !== undefined) return []
    return [`The subagent "${name}" asks for the model "${model}", which "models" does not have: it uses its parent's.`]
  })
  return [`Subagents: ${[...agents.keys()].join(', ')}; at most ${policy.maxDepth} deep.`, ...unknown]
}
