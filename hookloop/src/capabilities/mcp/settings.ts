import { pathToFileURL } from 'node:url'
import { checkOptions, definedOptions, invalidOption } from '../../values/check-options.ts'
import { toNameTest, type NamePattern } from '../../plugin.ts'

export const mcpDefaults: Required<McpServerOptions> = Object.freeze({
  tools: Object.freeze(['*']),
  ask: true,
  concurrent: false,
  required: true,
  resources: true,
  instructions: false,
  roots: Object.freeze([]),
  connectTimeoutMs: 30_000,
  callTimeoutMs: 60_000,
  maxReconnects: 10,
  maxTools: 128,
  maxOutputChars: 65_536,
  maxMessageBytes: 16_777_216,
})

/** Options for all servers. Those of a single server override them. */
export type McpServerOptions = {
  /** Which tools of the server are offered, by the server's own names: strings with `*`, or RegExps. Default: all. */
  readonly tools?: readonly NamePattern[]
  /** Which calls need approval: all, none, or those of the named tools. The server's own annotations are ignored. Default true. */
  readonly ask?: boolean | readonly NamePattern[]
  /** Which tools may run at the same time as other calls. Default false. */
  readonly concurrent?: boolean | readonly NamePattern[]
  /** Whether `mcp` rejects if the server cannot be connected. Otherwise the server is left out, and a note says why. Default true. */
  readonly required?: boolean
  /** Whether the model may read the resources and prompts of the server. Default true. */
  readonly resources?: boolean
  /** Whether the instructions of the server are added to the system prompt. Otherwise they are a note. Default false. */
  readonly instructions?: boolean
  /** Folders to work in, for servers that request the roots: paths or `file:` URLs. Default none. */
  readonly roots?: readonly string[]
  /** The time until the tools of a server are known. Default 30,000. */
  readonly connectTimeoutMs?: number
  /** The time a call may take. Default 60,000. */
  readonly callTimeoutMs?: number
  /** How often a server that has ended is started again, over the lifetime of the capability. Default 10. */
  readonly maxReconnects?: number
  /** How many tools of a server are offered. Default 128. */
  readonly maxTools?: number
  /** The length of a result; a longer one is shortened to head and tail. Default 65,536. */
  readonly maxOutputChars?: number
  /** The longest message that is read; a longer one closes the connection. Default 16,777,216. */
  readonly maxMessageBytes?: number
}

/** A server that is started as a process, and speaks over its standard input and output. */
export type StdioServer = {
  readonly command: string
  readonly args?: readonly string[]
  /** Environment variables, in addition to the few that every program needs. */
  readonly env?: { readonly [name: string]: string }
  readonly cwd?: string
}

/** A server at a URL, over streamable HTTP. */
export type HttpServer = {
  readonly url: string | URL
  readonly headers?: { readonly [name: string]: string }
  readonly fetch?: typeof globalThis.fetch
}

/** One server: a command to start or a URL, with its options. */
export type McpServer = McpServerOptions & (StdioServer | HttpServer)

/**
 * Options of `mcp`. Those besides `servers` are defaults for every server.
 *
 * @interface
 */
export type McpOptions = McpServerOptions & {
  /** By name. Their tools are called `mcp__<name>__<tool>`. */
  readonly servers: { readonly [name: string]: McpServer }
}

/** A server with all its options resolved. */
export type ServerSettings = Required<Omit<McpServerOptions, 'tools' | 'ask' | 'concurrent'>> & {
  readonly name: string
  readonly endpoint: StdioServer | (Omit<HttpServer, 'url'> & { readonly url: URL })
  readonly patterns: readonly { readonly text: string; readonly test: (name: string) => boolean }[]
  readonly asks: (toolName: string) => boolean
  /** Whether all calls need approval: then reading resources and prompts does too. */
  readonly asksAlways: boolean
  readonly isConcurrent: (toolName: string) => boolean
  /** Texts that must not appear in any message. */
  readonly secrets: readonly string[]
}

/** A server name has no double underscore, so that the name of a tool can be split in only one way. */
const SERVER_NAME = /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/
const MAX_SERVER_NAME = 40

const sharedOptions = Object.keys(mcpDefaults)

/** The settings of each server. An error about options names the server. */
export function readSettings(options: McpOptions): readonly ServerSettings[] {
  checkOptions('mcp', options, ['servers', ...sharedOptions])
  const { servers, ...shared } = options
  return Object.entries(servers).map(([name, server]) => readServer(name, server, definedOptions(shared)))
}

function readServer(name: string, server: McpServer, shared: McpServerOptions): ServerSettings {
  const where = `mcp server ${JSON.stringify(name)}`
  if (!SERVER_NAME.test(name) || name.length > MAX_SERVER_NAME) {
    const rule = `its name must be 1 to ${MAX_SERVER_NAME} letters, digits, - and single _ between them`
    throw invalidOption(where, rule, name)
  }
  if ('command' in server) {
    const { command, args, env, cwd, ...own } = server
    checkOptions(where, own, sharedOptions)
    const endpoint = { command, ...definedOptions({ args, env, cwd }) } as StdioServer
    return resolveSettings(name, endpoint, { ...shared, ...definedOptions(own) })
  }
  const { url, headers, fetch, ...own } = server
  checkOptions(where, own, sharedOptions)
  const endpoint = { url: parseUrl(where, url), ...definedOptions({ headers, fetch }) } as HttpServer & { url: URL }
  return resolveSettings(name, endpoint, { ...shared, ...definedOptions(own) })
}

function resolveSettings(
  name: string,
  endpoint: ServerSettings['endpoint'],
  options: McpServerOptions,
): ServerSettings {
  const { tools, ask, concurrent, roots, ...rest } = { ...mcpDefaults, ...options }
  return {
    ...rest,
    name,
    endpoint,
    patterns: tools.map((pattern) => ({ text: String(pattern), test: toNameTest(pattern) })),
    asks: toSelection(ask),
    asksAlways: ask === true,
    isConcurrent: toSelection(concurrent),
    roots: roots.map((root) => toFileUrl(`mcp server "${name}"`, root)),
    secrets: Object.values(('command' in endpoint ? endpoint.env : endpoint.headers) ?? {}),
  }
}

function parseUrl(where: string, given: string | URL): URL {
  const url = URL.parse(String(given))
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw invalidOption(where, '"url" must be an http: or https: URL', undefined)
  }
  // fetch would reject it later with a message that contains the password.
  if (url.username === '' && url.password === '') return url
  throw invalidOption(where, '"url" must not contain a user name or password. Use { headers } instead', undefined)
}

function toFileUrl(where: string, root: string): string {
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(root)) return pathToFileURL(root).href
  if (/^file:\/\//i.test(root)) return root
  throw invalidOption(where, '"roots" must be paths or file: URLs', root)
}

function toSelection(choice: boolean | readonly NamePattern[]): (name: string) => boolean {
  if (typeof choice === 'boolean') return () => choice
  const tests = choice.map(toNameTest)
  return (name) => tests.some((test) => test(name))
}
