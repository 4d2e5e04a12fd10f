import {
  hook,
  type Capability,
  type FilePart,
  type Hook,
  type Message,
  type TextPart,
  type Tool,
} from '../../plugin.ts'
import { invalidOption } from '../../values/check-options.ts'
import type { JsonObject } from '../../values/json.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { Connection } from './connection.ts'
import { cleanText } from './clean-text.ts'
import { objectsIn } from './content.ts'
import { loadSdk } from './load-sdk.ts'
import { callOffered, offeredTool } from './offered-tools.ts'
import { getPrompt, readResource, resourceTools } from './resource-tools.ts'
import { chooseTools, type ServerTool } from './server-tools.ts'
import { readSettings, type McpOptions } from './settings.ts'

type RequestOptions = {
  /** The name of the server; required if there are several. */
  readonly server?: string
  readonly signal?: AbortSignal
}

/** The result of a tool: its text, or its structured content as JSON if it has no text. */
export type McpToolResult = { readonly text: string; readonly isError: boolean }

/** The capability that `mcp` returns. The servers run until it is closed. */
export interface Mcp extends Capability, AsyncDisposable {
  /** Lists the resources of a server. */
  resources(options?: RequestOptions): Promise<readonly JsonObject[]>
  /** Reads a resource as message parts. */
  readResource(uri: string, options?: RequestOptions): Promise<readonly (TextPart | FilePart)[]>
  /** Lists the prompts of a server. */
  prompts(options?: RequestOptions): Promise<readonly JsonObject[]>
  /** The messages of a prompt, filled in with arguments. */
  prompt(
    name: string,
    args?: { readonly [name: string]: string },
    options?: RequestOptions,
  ): Promise<readonly Message[]>
  /** Calls an offered tool by the server's own name for it. No hook runs, and no approval is requested. */
  call(tool: string, args?: JsonObject, options?: RequestOptions): Promise<McpToolResult>
  /** Ends the servers and their process groups. Later calls fail. */
  close(): Promise<void>
}

const MAX_INSTRUCTIONS = 4_096

/**
 * Connects MCP servers and offers their tools as `mcp__<server>__<tool>`. All hooks apply to them. Rejects if a `required`
 * server cannot be connected; no process is left running then.
 *
 * @example
 * const servers = await mcp({
 *   servers: { tracker: { url: 'https://mcp.example.com', headers: { authorization: `Bearer ${token}` } } },
 *   ask: ['create_*', 'delete_*'],
 * })
 * const agent = createAgent({ model, use: [servers] })
 * // …
 * await servers.close()
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
      `mcp: ${failed.failure} Set { required: false } to continue without it.`,
      {
        value: failed.connection.settings.name,
      },
    )
  }
  return new Servers(opened)
}

/** A server after the attempt to connect to it. */
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
    const cut = `The list of tools of the MCP server "${settings.name}" is too long; ${listed.items.length} were read.`
    return {
      connection,
      chosen: tools,
      notes: listed.isComplete ? notes : [...notes, cut],
      instructions: cleanText(client.getInstructions() ?? '', MAX_INSTRUCTIONS),
      has: { resources: resources !== undefined, prompts: prompts !== undefined },
    }
  } catch (thrown) {
    const failure = messageOf(thrown)
    const has = { resources: false, prompts: false }
    return { connection, failure, chosen: [], notes: [`${failure} It is left out.`], instructions: '', has }
  }
}

/** An agent reads only own properties of a capability. The methods on the prototype are for the application. */
class Servers implements Mcp {
  readonly name = 'mcp'
  readonly tools: readonly Tool[]
  readonly hooks: readonly Hook[]
  readonly notes: readonly string[]
  readonly warnings: readonly string[]
  readonly #connections: readonly Connection[]
  readonly #chosen: ReadonlyMap<Connection, readonly ServerTool[]>

  constructor(opened: readonly Opened[]) {
    const connected = opened.filter(({ failure }) => failure === undefined)
    const readable = connected.filter(({ connection }) => connection.settings.resources)
    const instructed = connected.filter(
      ({ connection, instructions }) => connection.settings.instructions && instructions !== '',
    )
    this.#connections = connected.map(({ connection }) => connection)
    this.#chosen = new Map(connected.map(({ connection, chosen }) => [connection, chosen]))
    this.tools = [
      ...connected.flatMap(({ connection, chosen }) => chosen.map((each) => offeredTool(connection, each))),
      ...resourceTools(
        readable.filter(({ has }) => has.resources).map(({ connection }) => connection),
        readable.filter(({ has }) => has.prompts).map(({ connection }) => connection),
      ),
    ]
    this.hooks = instructed.length === 0 ? [] : [instructionsHook(instructed.map(instructionText))]
    this.notes = opened.flatMap((each) => [...each.notes, ...noteOf(each)])
    this.warnings = opened.flatMap((each) => each.notes)
  }

  async resources(options: RequestOptions = {}): Promise<readonly JsonObject[]> {
    const { connection, signal } = this.#at(options)
    return objectsIn((await connection.list('resources/list', 'resources', { signal })).items)
  }

  readResource(uri: string, options: RequestOptions = {}): Promise<readonly (TextPart | FilePart)[]> {
    const { connection, signal } = this.#at(options)
    return readResource(connection, uri, { signal })
  }

  async prompts(options: RequestOptions = {}): Promise<readonly JsonObject[]> {
    const { connection, signal } = this.#at(options)
    return objectsIn((await connection.list('prompts/list', 'prompts', { signal })).items)
  }

  prompt(
    name: string,
    args: { readonly [name: string]: string } = {},
    options: RequestOptions = {},
  ): Promise<readonly Message[]> {
    const { connection, signal } = this.#at(options)
    return getPrompt(connection, name, args, { signal })
  }

  async call(name: string, args: JsonObject = {}, options: RequestOptions = {}): Promise<McpToolResult> {
    const { connection, signal } = this.#at(options)
    const tools = this.#chosen.get(connection)!
    const tool = tools.find(({ ownName }) => ownName === name)
    if (tool === undefined) {
      const names = tools.map(({ ownName }) => ownName).join(', ') || 'none'
      throw invalidOption('mcp', `"${connection.settings.name}" has no tool "${name}". It has: ${names}`, name)
    }
    return callOffered(connection, tool, { args, signal })
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((each) => each.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #at({ server, signal }: RequestOptions): { connection: Connection; signal: AbortSignal | undefined } {
    const names = this.#connections.map(({ settings }) => settings.name)
    const isOnly = server === undefined && names.length === 1
    const connection = this.#connections.find(({ settings }) => isOnly || settings.name === server)
    if (connection !== undefined) return { connection, signal }
    throw invalidOption('mcp', `"server" must be one of the connected servers: ${names.join(', ') || 'none'}`, server)
  }
}

function instructionsHook(texts: readonly string[]): Hook {
  return hook(
    'beforeInference',
    (ctx) => ctx.withRequest({ system: [ctx.request.system, ...texts].filter((each) => each !== '').join('\n\n') }),
    { name: 'mcp.instructions', bookkeeping: true, priority: 100 },
  )
}

function instructionText({ connection, instructions }: Opened): string {
  return `Instructions of the MCP server for the tools mcp__${connection.settings.name}__*:\n${instructions}`
}

function noteOf({ connection: { settings }, failure, instructions }: Opened): readonly string[] {
  if (failure !== undefined || settings.instructions || instructions === '') return []
  return [`The MCP server "${settings.name}" has instructions that the model does not get: ${instructions}`]
}
