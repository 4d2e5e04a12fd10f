import type { Capability } from '../../agent/capability.ts'
import { checkOptions, checkPositiveIntegers, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { isTool, tool, type Tool } from '../../agent/tool.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { loadTools, readLoaded, useTool, type Loaded } from './loaded.ts'
import { indexTools, type ToolSearch } from './search-tools.ts'

export type ToolRegistryOptions = {
  /** The tools. They are tools of the agent like any others: guards, patterns and schemas apply to them. */
  readonly tools: readonly Tool[]
  /** Those that are offered from the beginning, by name; `*` stands for anything. */
  readonly always?: readonly string[]
  /** How many may be loaded at once. Beyond that, those that were not used for longest are unloaded. */
  readonly maxLoaded?: number
  /** How many a search finds, unless the model says otherwise. */
  readonly searchLimit?: number
}

export const toolRegistryPolicy = Object.freeze({
  tools: undefined,
  always: Object.freeze([] as readonly string[]),
  maxLoaded: 20,
  searchLimit: 10,
})

export const TOOLS_KEY = 'hookloop.tools'

const TOOL = 'tools'

/** Hundreds of tools without hundreds of descriptions in the prompt: the model searches and loads what it needs. */
export function toolRegistry(options: ToolRegistryOptions): Capability {
  checkOptions('toolRegistry', options, Object.keys(toolRegistryPolicy))
  const { tools, always, maxLoaded, searchLimit } = { ...toolRegistryPolicy, ...definedOptions(options) }
  checkPositiveIntegers('toolRegistry', { maxLoaded, searchLimit }, ['maxLoaded', 'searchLimit'])
  if (!Array.isArray(tools) || tools.length === 0 || !tools.every(isTool)) {
    throw invalidOption('toolRegistry', '"tools" must be a list of tools, as made by tool()', tools)
  }
  const registry = new Registry(tools, { shown: shownAlways(tools, always), maxLoaded, searchLimit })
  const doorway = registryTool(registry)
  return {
    name: 'toolRegistry',
    hooks: [hideHook(registry), loadHook(registry, doorway), useHook(registry), explainHook(registry)],
    tools: [doorway, ...tools],
    isWhole: true, // or a subagent would be sent all of them
    notes: [
      `Tool registry: ${tools.length} tools, ${tools.length - registry.hidden.size} always offered, up to ${maxLoaded} loaded.`,
    ],
  }
}

/** The tools that a state has loaded, in the order in which they are offered. */
export function getLoadedTools(state: AgentState): readonly string[] {
  return readLoaded(state.metadata[TOOLS_KEY]).names
}

function shownAlways(tools: readonly Tool[], always: readonly string[]): ReadonlySet<string> {
  if (!Array.isArray(always)) throw invalidOption('toolRegistry', '"always" must be a list of names', always)
  const shown = always.flatMap((pattern) => {
    const fits = typeof pattern === 'string' ? toNameTest(pattern) : () => false
    const found = tools.filter(({ name }) => fits(name))
    if (found.length > 0) return found.map(({ name }) => name)
    throw invalidOption(
      'toolRegistry',
      `"always" names ${JSON.stringify(pattern)}, and no tool of "tools" is called so`,
      pattern,
    )
  })
  return new Set(shown)
}

type Limits = { readonly shown: ReadonlySet<string>; readonly maxLoaded: number; readonly searchLimit: number }

/** The tools and how to find them. It holds nothing of a run: what is loaded is in the state. */
class Registry {
  readonly tools: ReadonlyMap<string, Tool>
  /** Those that are offered only when they are loaded. */
  readonly hidden: ReadonlySet<string>
  readonly limits: Limits
  readonly #splits = new WeakMap<readonly string[], Split>()
  readonly #loaded = new WeakMap<JsonObject, Loaded>()
  #search: ToolSearch | undefined

  constructor(tools: readonly Tool[], limits: Limits) {
    this.tools = new Map(tools.map((each) => [each.name, each]))
    this.hidden = new Set(tools.flatMap(({ name }) => (limits.shown.has(name) ? [] : [name])))
    this.limits = limits
  }

  /** What a state has loaded. The same in most steps as in the one before, so it is read once. */
  loaded(state: AgentState): Loaded {
    const kept = state.metadata[TOOLS_KEY]
    if (!isJsonObject(kept)) return readLoaded(undefined)
    const known = this.#loaded.get(kept)
    if (known !== undefined) return known
    const loaded = readLoaded(kept, (name) => this.hidden.has(name))
    this.#loaded.set(kept, loaded)
    return loaded
  }

  search(query: string, limit: number): readonly Tool[] {
    this.#search ??= indexTools([...this.tools.values()]) // with the first search: many runs do without
    return this.#search(query, limit)
  }

  /** The tools of a request, apart. Requests mostly begin with the same list, so it is taken apart once. */
  split(offered: readonly string[]): Split {
    const known = this.#splits.get(offered)
    if (known !== undefined) return known
    const split = {
      shown: offered.filter((name) => !this.hidden.has(name)),
      hidden: new Set(offered.filter((name) => this.hidden.has(name))),
    }
    this.#splits.set(offered, split)
    return split
  }
}

type Split = { readonly shown: readonly string[]; readonly hidden: ReadonlySet<string> }

/** Takes what is not loaded out of the request. Late, so that what other hooks do to the list of tools is done. */
function hideHook(registry: Registry): Hook {
  return hook(
    'beforeInference',
    (ctx) => {
      const { shown, hidden } = registry.split(ctx.request.tools)
      if (hidden.size === 0) return ctx
      const loaded = registry.loaded(ctx.state).names.filter((name) => hidden.has(name))
      return ctx.withRequest({ tools: [...shown, ...loaded] })
    },
    { name: 'toolRegistry.hide', priority: -200 },
  )
}

function loadHook(registry: Registry, doorway: Tool<JsonObject, JsonObject>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const { action, names } = ctx.toolCall.args
      if (action !== 'load' || ctx.toolExecution.status !== 'ok') return ctx
      const wanted = (Array.isArray(names) ? names : []).filter((name) => registry.hidden.has(name as string))
      return ctx.withState((state) => {
        const { unloaded: _gone, ...now } = loadTools(registry.loaded(state), wanted, registry.limits.maxLoaded)
        return state.withMetadata(TOOLS_KEY, now)
      })
    },
    { name: 'toolRegistry.load', priority: 100, tool: doorway },
  )
}

function useHook(registry: Registry): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const loaded = registry.loaded(ctx.state)
      const used = useTool(loaded, ctx.toolCall.name)
      return used === loaded ? ctx : ctx.withState((state) => state.withMetadata(TOOLS_KEY, used))
    },
    { name: 'toolRegistry.use', priority: 100, when: ({ toolCall }) => registry.hidden.has(toolCall.name) },
  )
}

/** A tool that is not offered is not run, whoever calls it. The model is told how it comes by it. */
function explainHook(registry: Registry): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const { name } = ctx.toolCall
      const { status, output } = ctx.toolExecution
      if (status !== 'failed' || output !== `The tool "${name}" was not offered in this step.`) return ctx
      const isLoaded = registry.loaded(ctx.state).names.includes(name)
      const how = isLoaded ? 'It is loaded: call it in your next step' : `Load it first: ${wordLoad(name)}`
      return ctx.withOutput(`The tool "${name}" was not run, because it was not offered in this step. ${how}.`)
    },
    { name: 'toolRegistry.explain', priority: 200, when: ({ toolCall }) => registry.hidden.has(toolCall.name) },
  )
}

function wordLoad(name: string): string {
  return `call ${TOOL} with ${JSON.stringify({ action: 'load', names: [name] })}, then "${name}" in the step after that`
}

const MAX_LIMIT = 100

function registryTool(registry: Registry): Tool<JsonObject, JsonObject> {
  const { maxLoaded } = registry.limits
  return tool({
    name: TOOL,
    description:
      `There are ${registry.hidden.size} more tools than you see here. Search for what you want to do, then load what fits by name; ` +
      'from your next step on you can call it like any other tool. Load several at once if you need them. ' +
      `At most ${maxLoaded} are loaded at a time; those that you have not used for longest are unloaded.`,
    input: {
      type: 'object',
      properties: {
        action: {
          type: 'string',
          enum: ['list', 'search', 'describe', 'load'],
          description: 'list: names. search: needs query. describe: arguments, needs names. load: needs names.',
        },
        query: { type: 'string', maxLength: 400, description: 'What you want to do, in a few words.' },
        names: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: maxLoaded },
        limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, description: 'How many to list or to find.' },
      },
      required: ['action'],
      additionalProperties: false,
    },
    execute: (args, { state }) => actions[args['action'] as Action](registry, args as Args, registry.loaded(state)),
  })
}

type Action = 'list' | 'search' | 'describe' | 'load'
type Args = { readonly query?: string; readonly names?: readonly string[]; readonly limit?: number }

const actions: { readonly [A in Action]: (registry: Registry, args: Args, loaded: Loaded) => unknown } = {
  list({ tools }, { limit = MAX_LIMIT }, loaded) {
    const names = [...tools.keys()].slice(0, limit)
    const rest = tools.size - names.length
    return [
      `${tools.size} tools. Loaded: ${loaded.names.join(', ') || 'none'}.`,
      ...names,
      ...(rest > 0 ? [`… and ${rest} more: search for what you need.`] : []),
    ].join('\n')
  },

  search(registry, { query = '', limit = registry.limits.searchLimit }, loaded) {
    if (query.trim() === '') throw new Error('"query" is missing: say what you want to do, in a few words.')
    const found = registry.search(query, limit)
    if (found.length === 0) return 'Nothing fits. Try other words, or list all names.'
    return found.map((each) => wordTool(registry, each, loaded)).join('\n')
  },

  describe(registry, { names = [] }) {
    return toolsNamed(registry, names).map(({ name, description, inputSchema }) => ({
      name,
      description,
      arguments: inputSchema,
    }))
  },

  load(registry, { names = [] }, loaded) {
    const wanted = toolsNamed(registry, names).map(({ name }) => name)
    const hidden = wanted.filter((name) => registry.hidden.has(name))
    const { unloaded } = loadTools(loaded, hidden, registry.limits.maxLoaded)
    const gone = unloaded.length === 0 ? '' : ` Unloaded to make room: ${unloaded.join(', ')}.`
    return `Loaded: ${wanted.join(', ')}. You can call them from your next step on.${gone}`
  },
}

const MAX_WORDS = 160

function wordTool({ hidden }: Registry, { name, description }: Tool, loaded: Loaded): string {
  const line = description.replace(/\s+/g, ' ').trim()
  const words = line.length <= MAX_WORDS ? line : `${line.slice(0, MAX_WORDS).toWellFormed()}…`
  const isThere = !hidden.has(name) || loaded.names.includes(name)
  return `${name}${isThere ? ' (loaded)' : ''}: ${words}`
}

/** All of them, or what there is instead of the first that is none. */
function toolsNamed(registry: Registry, names: readonly string[]): readonly Tool[] {
  if (names.length === 0) throw new Error('"names" is missing: say which tools, by name.')
  return [...new Set(names)].map((name) => {
    const found = registry.tools.get(name)
    if (found !== undefined) return found
    const near = registry.search(name, 3).map((each) => each.name)
    const instead = near.length === 0 ? 'Search for what you need.' : `Did you mean: ${near.join(', ')}?`
    throw new Error(`There is no tool ${JSON.stringify(name.slice(0, 128))}. ${instead}`)
  })
}
