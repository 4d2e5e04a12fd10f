import type { Capability } from '../../agent/capability.ts'
import { invalidOption } from '../../agent/check-options.ts'
import type { Tool } from '../../agent/tool.ts'
import type { JsonObject } from '../../state/json.ts'
import type { FilePart, Message, TextPart } from '../../state/message.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import { Connection } from './connection.ts'
import { listOf } from './content.ts'
import { loadSdk } from './load-sdk.ts'
import { callOffered, offeredTool } from './offered-tools.ts'
import { resourceTools } from './resource-tools.ts'
import { getPrompt, readResource } from './resources.ts'
import { chooseTools, type ServerTool } from './server-tools.ts'
import { readSettings, type McpOptions } from './settings.ts'
import { cleaned } from './words.ts'

/** Which server is meant; needed when there are several. */
export type McpAim = { readonly server?: string; readonly signal?: AbortSignal }

/** What a tool said: its words, or its structured content as JSON if there are none. */
export type McpAnswer = { readonly text: string; readonly isError: boolean }

/** The tools of MCP servers as a capability. The servers run until it is closed. */
export interface Mcp extends Capability, AsyncDisposable {
  /** The resources a server lists, as it describes them. */
  resources(aim?: McpAim): Promise<readonly JsonObject[]>
  readResource(uri: string, aim?: McpAim): Promise<readonly (TextPart | FilePart)[]>
  /** The prompts a server lists, as it describes them. */
  prompts(aim?: McpAim): Promise<readonly JsonObject[]>
  prompt(name: string, args?: { readonly [name: string]: string }, aim?: McpAim): Promise<readonly Message[]>
  /** Calls a tool that is offered, by the name its server gives it. No hook sees that, and nobody is asked. */
  call(tool: string, args?: JsonObject, aim?: McpAim): Promise<McpAnswer>
  /** Ends the servers and everything they have started. Calls after that fail. */
  close(): Promise<void>
}

const MAX_INSTRUCTIONS = 4_096

/**
 * Connects servers of the Model Context Protocol. Their tools appear as `mcp__<server>__<tool>` and pass the same hooks as
 * any other. Fails if a server cannot be connected, unless it is not `required`; then nothing is left running.
 */
export async function mcp(options: McpOptions): Promise<Mcp> {
  const settings = readSettings(options)
  const sdk = await loadSdk()
  const connections = settings.map((each) => new Connection(sdk, each))
  const opened = await Promise.all(connections.map(openServer))
  const failed = opened.find(({ failure, connection }) => failure !== undefined && connection.settings.required)
  if (failed !== undefined) {
    await Promise.all(connections.map((each) => each.close()))
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `mcp: ${failed.failure} Set { required: false } to go on without it.`,
      {
        value: failed.connection.settings.name,
      },
    )
  }
  return new Servers(opened)
}

/** A server after the attempt to connect it. */
type Opened = {
  readonly connection: Connection
  readonly failure?: string
  readonly chosen: readonly ServerTool[]
  readonly notes: readonly string[]
  readonly instructions: string
  readonly has: { readonly resources: boolean; readonly prompts: boolean }
}

async function openServer(connection: Connection): Promise<Opened> {
  const { settings } = connection
  try {
    const { client, listed } = await connection.open()
    const { tools, notes } = chooseTools(listed.items, settings)
    const { resources, prompts } = client.getServerCapabilities() ?? {}
    const cut = `The list of tools of the MCP server "${settings.name}" has no end; ${listed.items.length} were read.`
    return {
      connection,
      chosen: tools,
      notes: listed.isWhole ? notes : [...notes, cut],
      instructions: cleaned(client.getInstructions() ?? '', MAX_INSTRUCTIONS),
      has: { resources: resources !== undefined, prompts: prompts !== undefined },
    }
  } catch (thrown) {
    const failure = messageOf(thrown)
    const has = { resources: false, prompts: false }
    return { connection, failure, chosen: [], notes: [`${failure} It is left out.`], instructions: '', has }
  }
}

/** An agent takes what a capability has of its own; methods on the prototype are for whoever made it. */
class Servers implements Mcp {
  readonly name = 'mcp'
  readonly tools: readonly Tool[]
  readonly hooks: readonly Hook[]
  readonly notes: readonly string[]
  readonly #connections: readonly Connection[]
  readonly #chosen: ReadonlyMap<Connection, readonly ServerTool[]>

  constructor(opened: readonly Opened[]) {
    const there = opened.filter(({ failure }) => failure === undefined)
    const open = there.filter(({ connection }) => connection.settings.resources)
    const told = there.filter(({ connection, instructions }) => connection.settings.instructions && instructions !== '')
    this.#connections = there.map(({ connection }) => connection)
    this.#chosen = new Map(there.map(({ connection, chosen }) => [connection, chosen]))
    this.tools = [
      ...there.flatMap(({ connection, chosen }) => chosen.map((each) => offeredTool(connection, each))),
      ...resourceTools(
        open.filter(({ has }) => has.resources).map(({ connection }) => connection),
        open.filter(({ has }) => has.prompts).map(({ connection }) => connection),
      ),
    ]
    this.hooks = told.length === 0 ? [] : [instructionsHook(told.map(instructionWords))]
    this.notes = opened.flatMap((each) => [...each.notes, ...noteOf(each)])
  }

  async resources({ server, signal }: McpAim = {}): Promise<readonly JsonObject[]> {
    return listOf((await this.#at(server).list('resources/list', 'resources', { signal })).items)
  }

  readResource(uri: string, { server, signal }: McpAim = {}): Promise<readonly (TextPart | FilePart)[]> {
    return readResource(this.#at(server), uri, { signal })
  }

  async prompts({ server, signal }: McpAim = {}): Promise<readonly JsonObject[]> {
    return listOf((await this.#at(server).list('prompts/list', 'prompts', { signal })).items)
  }

  prompt(
    name: string,
    args: { readonly [name: string]: string } = {},
    { server, signal }: McpAim = {},
  ): Promise<readonly Message[]> {
    return getPrompt(this.#at(server), name, args, { signal })
  }

  async call(name: string, args: JsonObject = {}, { server, signal }: McpAim = {}): Promise<McpAnswer> {
    const connection = this.#at(server)
    const tools = this.#chosen.get(connection)!
    const tool = tools.find(({ ownName }) => ownName === name)
    if (tool === undefined) {
      const names = tools.map(({ ownName }) => ownName).join(', ') || 'none'
      throw invalidOption('mcp', `"${connection.settings.name}" offers no such tool. It has: ${names}`, name)
    }
    return callOffered(connection, tool, { args, signal })
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((each) => each.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #at(server: string | undefined): Connection {
    const names = this.#connections.map(({ settings }) => settings.name)
    if (server === undefined && names.length === 1) return this.#connections[0]!
    const found = this.#connections.find(({ settings }) => settings.name === server)
    if (found !== undefined) return found
    throw invalidOption('mcp', `"server" must be one of those connected: ${names.join(', ') || 'none'}`, server)
  }
}

function instructionsHook(words: readonly string[]): Hook {
  return hook(
    'beforeInference',
    (ctx) => ctx.withRequest({ system: [ctx.request.system, ...words].filter((each) => each !== '').join('\n\n') }),
    { name: 'mcp.instructions', priority: 100 },
  )
}

function instructionWords({ connection, instructions }: Opened): string {
  return `About the tools mcp__${connection.settings.name}__*, their server says:\n${instructions}`
}

function noteOf({ connection: { settings }, failure, instructions }: Opened): readonly string[] {
  if (failure !== undefined || settings.instructions || instructions === '') return []
  return [`The MCP server "${settings.name}" says, and the model is not told: ${instructions}`]
}
