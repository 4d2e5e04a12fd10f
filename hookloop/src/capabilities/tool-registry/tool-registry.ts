import { hook, toNameTest, tool, type AgentState, type Capability, type Hook, type Tool } from '../../plugin.ts'
import { invalidOption, readOptions } from '../../values/check-options.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { indexTools, type ToolSearch } from './search-tools.ts'
import { shorten } from '../../values/text.ts'
import { objectSchema } from '../../values/schema.ts'

/** Options of `toolRegistry`. */
export type ToolRegistryOptions = {
  /** The tools. They are tools of the agent like any others: guards, patterns and schemas apply to them. Required. */
  readonly tools: readonly Tool[]
  /** Names of tools that are always offered; `*` matches anything. Default none. */
  readonly always?: readonly string[]
  /** The number of tools loaded at once. Beyond it, the least recently used are unloaded. Default 20. */
  readonly maxLoadedTools?: number
  /** The number of search results, if the model does not set a limit. Default 10. */
  readonly maxSearchResults?: number
}

export const toolRegistryDefaults = Object.freeze({
  tools: undefined,
  always: Object.freeze([] as readonly string[]),
  maxLoadedTools: 20,
  maxSearchResults: 10,
})

export const TOOLS_KEY = 'hookloop.tools'

const TOOL = 'tools'

/**
 * Offers many tools without sending all their descriptions: the model searches the registry and loads the tools it needs.
 *
 * @example
 * createAgent({ model, use: [toolRegistry({ tools: hundredsOfTools, always: ['read_*'] })] })
 */
export function toolRegistry(options: ToolRegistryOptions): Capability {
  const { tools, always, ...limits } = readOptions('toolRegistry', options, toolRegistryDefaults)
  const registry = new Registry(tools, { shown: shownAlways(tools, always), ...limits })
  const registryAccess = registryTool(registry)
  return {
    name: 'toolRegistry',
    hooks: [hideHook(registry), loadHook(registry, registryAccess), useHook(registry), explainHook(registry)],
    tools: [registryAccess, ...tools],
    inheritAllHooks: true, // otherwise a subagent would be sent all tools
    notes: [
      `Tool registry: ${tools.length} tools, ${tools.length - registry.hidden.size} always offered, up to ${limits.maxLoadedTools} loaded.`,
    ],
  }
}

/** The names of the tools that are loaded in a state, in the order in which they are offered. */
export function getLoadedTools(state: AgentState): readonly string[] {
  return readLoaded(state.metadata[TOOLS_KEY]).names
}

function shownAlways(tools: readonly Tool[], always: readonly string[]): ReadonlySet<string> {
  const shown = always.flatMap((pattern) => {
    const fits = toNameTest(pattern)
    const found = tools.filter(({ name }) => fits(name))
    if (found.length > 0) return found.map(({ name }) => name)
    throw invalidOption('toolRegistry', `"always" has "${pattern}", which matches no tool in "tools"`, pattern)
  })
  return new Set(shown)
}

type Limits = {
  readonly shown: ReadonlySet<string>
  readonly maxLoadedTools: number
  readonly maxSearchResults: number
}

/** The tools and their index. The state of a run, such as what is loaded, is in its `AgentState`. */
class Registry {
  readonly tools: ReadonlyMap<string, Tool>
  /** The tools that are offered only when loaded. */
  readonly hidden: ReadonlySet<string>
  readonly limits: Limits
  #search: ToolSearch | undefined

  constructor(tools: readonly Tool[], limits: Limits) {
    this.tools = new Map(tools.map((each) => [each.name, each]))
    this.hidden = new Set(tools.flatMap(({ name }) => (limits.shown.has(name) ? [] : [name])))
    this.limits = limits
  }

  /** The loaded tools of a state. */
  loaded(state: AgentState): Loaded {
    return readLoaded(state.metadata[TOOLS_KEY], (name) => this.hidden.has(name))
  }

  search(query: string, limit: number): readonly Tool[] {
    this.#search ??= indexTools([...this.tools.values()]) // built with the first search: many runs have none
    return this.#search(query, limit)
  }
}

/** Removes tools that are not loaded from the request. Runs late, after other hooks have changed the list of tools. */
function hideHook(registry: Registry): Hook {
  return hook(
    'beforeInference',
    (ctx) => {
      const offered = new Set(ctx.request.tools)
      const loaded = registry.loaded(ctx.state).names.filter((name) => offered.has(name))
      const shown = ctx.request.tools.filter((name) => !registry.hidden.has(name))
      return shown.length === offered.size ? ctx : ctx.withRequest({ tools: [...shown, ...loaded] })
    },
    { name: 'toolRegistry.hide', bookkeeping: true, priority: -200 },
  )
}

function loadHook(registry: Registry, registryAccess: Tool<JsonObject, JsonObject>): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const { action, names } = ctx.toolCall.args
      if (action !== 'load' || ctx.toolExecution.status !== 'ok') return ctx
      const wanted = (Array.isArray(names) ? names : []).filter((name) => registry.hidden.has(name as string))
      return ctx.withState((state) => {
        const { unloaded: _gone, ...now } = loadTools(registry.loaded(state), wanted, registry.limits.maxLoadedTools)
        return state.withMetadata(TOOLS_KEY, now)
      })
    },
    { name: 'toolRegistry.load', bookkeeping: true, priority: 100, tool: registryAccess },
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
    {
      name: 'toolRegistry.use',
      bookkeeping: true,
      priority: 100,
      when: ({ toolCall }) => registry.hidden.has(toolCall.name),
    },
  )
}

/** A tool that is not offered is not executed. This tells the model how to load it. */
function explainHook(registry: Registry): Hook {
  return hook(
    'afterToolUse',
    (ctx) => {
      const { name } = ctx.toolCall
      const { status, output } = ctx.toolExecution
      if (status !== 'failed' || output !== `The tool "${name}" was not offered in this step.`) return ctx
      const isLoaded = registry.loaded(ctx.state).names.includes(name)
      const how = isLoaded ? 'It is loaded: call it in your next step' : `Load it first: ${howToLoad(name)}`
      return ctx.withOutput(`The tool "${name}" was not executed, because it was not offered in this step. ${how}.`)
    },
    {
      name: 'toolRegistry.explain',
      bookkeeping: true,
      priority: 200,
      when: ({ toolCall }) => registry.hidden.has(toolCall.name),
    },
  )
}

function howToLoad(name: string): string {
  return `call ${TOOL} with ${JSON.stringify({ action: 'load', names: [name] })}, then "${name}" in the step after that`
}

const MAX_LIMIT = 100

function registryTool(registry: Registry): Tool<JsonObject, JsonObject> {
  const { maxLoadedTools } = registry.limits
  return tool({
    name: TOOL,
    description:
      `There are ${registry.hidden.size} more tools that are not listed. Search for what you want to do, then load matching tools by name; ` +
      'you can call them from your next step on. Load several at once if you need them. ' +
      `At most ${maxLoadedTools} are loaded at a time; the least recently used are unloaded.`,
    input: objectSchema(
      {
        action: {
          type: 'string',
          enum: ['list', 'search', 'describe', 'load'],
          description: 'list: names. search: needs query. describe: arguments, needs names. load: needs names.',
        },
        query: { type: 'string', maxLength: 400, description: 'What you want to do, in a few words.' },
        names: { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: maxLoadedTools },
        limit: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, description: 'The number of results.' },
      },
      ['action'],
    ),
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

  search(registry, { query = '', limit = registry.limits.maxSearchResults }, loaded) {
    if (query.trim() === '') throw new Error('"query" is missing: describe in a few words what you want to do.')
    const found = registry.search(query, limit)
    if (found.length === 0) return 'No tool matches. Try other words, or list all names.'
    return found.map((each) => describeTool(registry, each, loaded)).join('\n')
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
    const { unloaded } = loadTools(loaded, hidden, registry.limits.maxLoadedTools)
    const gone = unloaded.length === 0 ? '' : ` Unloaded: ${unloaded.join(', ')}.`
    return `Loaded: ${wanted.join(', ')}. You can call them from your next step on.${gone}`
  },
}

const MAX_DESCRIPTION_CHARS = 160

function describeTool({ hidden }: Registry, { name, description }: Tool, loaded: Loaded): string {
  const line = description.replace(/\s+/g, ' ').trim()
  const isOffered = !hidden.has(name) || loaded.names.includes(name)
  return `${name}${isOffered ? ' (loaded)' : ''}: ${shorten(line, MAX_DESCRIPTION_CHARS)}`
}

/** The tools with these names. Throws for an unknown name, with similar ones. */
function toolsNamed(registry: Registry, names: readonly string[]): readonly Tool[] {
  if (names.length === 0) throw new Error('"names" is missing: list the names of the tools.')
  return [...new Set(names)].map((name) => {
    const found = registry.tools.get(name)
    if (found !== undefined) return found
    const similar = registry.search(name, 3).map((each) => each.name)
    const instead = similar.length === 0 ? 'Search for what you need.' : `Did you mean: ${similar.join(', ')}?`
    throw new Error(`There is no tool ${JSON.stringify(name.slice(0, 128))}. ${instead}`)
  })
}

/** The tools that a conversation has loaded. */
type Loaded = {
  /** In the order in which they were loaded and are offered. */
  readonly names: readonly string[]
  /** The same, least recently used first. */
  readonly byUse: readonly string[]
}

/** The loaded tools in a state. Unknown names are skipped: the state may be older than the list of tools. */
function readLoaded(stored: Json | undefined, isKnown: (name: string) => boolean = () => true): Loaded {
  if (!isJsonObject(stored)) return nothing
  const names = known(stored['names'], isKnown)
  const used = known(stored['byUse'], (name) => names.includes(name))
  return { names, byUse: [...names.filter((name) => !used.includes(name)), ...used] }
}

const nothing: Loaded = Object.freeze({ names: Object.freeze([]), byUse: Object.freeze([]) })

function known(list: Json | undefined, isKnown: (name: string) => boolean): readonly string[] {
  if (!Array.isArray(list)) return []
  return [...new Set((list as readonly Json[]).filter((name) => typeof name === 'string' && isKnown(name)))] as string[]
}

/** Loads more tools. New ones are appended, so that the prompt cache stays valid; the least recently used are unloaded. */
function loadTools(
  { names, byUse }: Loaded,
  requested: readonly string[],
  max: number,
): Loaded & { readonly unloaded: readonly string[] } {
  const wanted = [...new Set(requested)]
  const all = [...names, ...wanted.filter((name) => !names.includes(name))]
  const order = [...byUse.filter((name) => !wanted.includes(name)), ...wanted]
  const unloaded = order.slice(0, Math.max(0, order.length - max))
  const stays = (name: string): boolean => !unloaded.includes(name)
  return { names: all.filter(stays), byUse: order.filter(stays), unloaded }
}

/** Marks a tool as used. */
function useTool(loaded: Loaded, name: string): Loaded {
  if (!loaded.names.includes(name) || loaded.byUse.at(-1) === name) return loaded
  return { names: loaded.names, byUse: [...loaded.byUse.filter((each) => each !== name), name] }
}
