import { pathToFileURL } from 'node:url'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { toNameTest, type NamePattern } from '../../hooks/patterns.ts'

/** What holds unless it is told otherwise, for all servers or for one. */
export const mcpPolicy: Required<McpPolicy> = Object.freeze({
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

/** What may be said for all servers, and again for one. */
export type McpPolicy = {
  /** Which of the server's tools are offered, by the names it gives them: texts with `*`, or RegExps. */
  readonly tools?: readonly NamePattern[]
  /** Which calls a person is asked about: all, none, or those of the tools named. What a server says of its own tools changes nothing. */
  readonly ask?: boolean | readonly NamePattern[]
  /** Which tools may run beside others. */
  readonly concurrent?: boolean | readonly NamePattern[]
  /** Whether `mcp` fails when the server cannot be connected. Otherwise it is left out, and a note says why. */
  readonly required?: boolean
  /** Whether the model may read the resources and prompts of the server. */
  readonly resources?: boolean
  /** Whether what the server says about itself is put into the prompt. Otherwise it is a note. */
  readonly instructions?: boolean
  /** Folders the server is told to work in, if it asks: paths or `file:` addresses. */
  readonly roots?: readonly string[]
  readonly connectTimeoutMs?: number
  readonly callTimeoutMs?: number
  /** How often a server that died is started again, over the life of the capability. */
  readonly maxReconnects?: number
  readonly maxTools?: number
  readonly maxOutputChars?: number
  /** The longest message that is read; a longer one ends the connection. */
  readonly maxMessageBytes?: number
}

/** A program that is started and spoken to over its input and output. */
export type StdioServer = {
  readonly command: string
  readonly args?: readonly string[]
  /** What it sees of the environment beside the few variables every program needs. */
  readonly env?: { readonly [name: string]: string }
  readonly cwd?: string
}

/** A server at an address, spoken to over streamable HTTP. */
export type HttpServer = {
  readonly url: string | URL
  readonly headers?: { readonly [name: string]: string }
  readonly fetch?: typeof globalThis.fetch
}

export type McpServer = McpPolicy & (StdioServer | HttpServer)
export type McpOptions = McpPolicy & {
  /** By the name under which their tools appear: `mcp__<server>__<tool>`. */
  readonly servers: { readonly [name: string]: McpServer }
}

/** A server with everything decided. */
export type ServerSettings = Required<Omit<McpPolicy, 'tools' | 'ask' | 'concurrent' | 'roots'>> & {
  readonly name: string
  readonly place: StdioServer | (Omit<HttpServer, 'url'> & { readonly url: URL })
  readonly patterns: readonly { readonly text: string; readonly test: (name: string) => boolean }[]
  readonly asks: (toolName: string) => boolean
  /** Whether all its calls are asked about: then so is what is no tool of its own. */
  readonly asksAlways: boolean
  readonly runsBeside: (toolName: string) => boolean
  readonly roots: readonly string[]
  /** What must not appear in any message. */
  readonly secrets: readonly string[]
}

const policyNames = Object.keys(mcpPolicy)
const stdioNames = ['command', 'args', 'env', 'cwd']
const httpNames = ['url', 'headers', 'fetch']
/** No double underscore, so that a name can be read in one way only. */
const SERVER_NAME = /^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$/
const MAX_SERVER_NAME = 40

/** The servers as they were declared, checked. What is misspelt or out of range is refused by name. */
export function readSettings(options: McpOptions): readonly ServerSettings[] {
  if (!isObject(options)) throw invalidOption('mcp', 'it needs { servers: { … } }', options)
  checkOptions('mcp', options, ['servers', ...policyNames])
  const { servers, ...shared } = options
  if (!isObject(servers)) throw invalidOption('mcp', '"servers" must be an object of servers by name', servers)
  return Object.entries(servers).map(([name, server]) => readServer(name, server, definedOptions(shared)))
}

function readServer(name: string, server: McpServer, shared: McpPolicy): ServerSettings {
  if (!SERVER_NAME.test(name) || name.length > MAX_SERVER_NAME) {
    const words = `its name must be 1 to ${MAX_SERVER_NAME} letters, digits, - and single _ between them`
    throw invalidOption(`mcp server ${JSON.stringify(name)}`, words, name)
  }
  const where = `mcp server "${name}"`
  if (!isObject(server)) throw invalidOption(where, 'it needs { command } or { url }', server)
  const isStdio = 'command' in server
  if (isStdio === 'url' in server) throw invalidOption(where, 'it needs either { command } or { url }', server)
  checkOptions(where, server, [...(isStdio ? stdioNames : httpNames), ...policyNames])
  const policy = { ...mcpPolicy, ...shared, ...definedOptions(server) }
  checkPolicy(where, policy)
  const { tools, ask, concurrent, roots } = policy
  return {
    name,
    place: isStdio ? readStdio(where, server) : readHttp(where, server),
    patterns: tools.map((pattern) => ({ text: String(pattern), test: toNameTest(pattern) })),
    asks: selection(ask),
    asksAlways: ask === true,
    runsBeside: selection(concurrent),
    required: policy.required,
    resources: policy.resources,
    instructions: policy.instructions,
    roots: roots.map((root) => toFileAddress(where, root)),
    connectTimeoutMs: policy.connectTimeoutMs,
    callTimeoutMs: policy.callTimeoutMs,
    maxReconnects: policy.maxReconnects,
    maxTools: policy.maxTools,
    maxOutputChars: policy.maxOutputChars,
    maxMessageBytes: policy.maxMessageBytes,
    secrets: Object.values((isStdio ? server.env : server.headers) ?? {}),
  }
}

function checkPolicy(where: string, policy: Required<McpPolicy>): void {
  for (const name of ['required', 'resources', 'instructions'] as const) {
    if (typeof policy[name] !== 'boolean') throw invalidOption(where, `"${name}" must be true or false`, policy[name])
  }
  for (const name of ['connectTimeoutMs', 'callTimeoutMs', 'maxTools', 'maxOutputChars', 'maxMessageBytes'] as const) {
    if (!(policy[name] > 0)) throw invalidOption(where, `"${name}" must be a positive number`, policy[name])
  }
  if (!(policy.maxReconnects >= 0))
    throw invalidOption(where, '"maxReconnects" must be 0 or more', policy.maxReconnects)
  if (!isPatterns(policy.tools)) throw invalidOption(where, '"tools" must be a list of names or patterns', policy.tools)
  for (const name of ['ask', 'concurrent'] as const) {
    const value = policy[name]
    if (typeof value === 'boolean' || isPatterns(value)) continue
    throw invalidOption(where, `"${name}" must be true, false or a list of names or patterns`, value)
  }
  if (!isTexts(policy.roots)) throw invalidOption(where, '"roots" must be a list of folders', policy.roots)
}

function readStdio(where: string, server: McpPolicy & StdioServer): StdioServer {
  const { command, args, env, cwd } = server
  if (typeof command !== 'string' || command === '') throw invalidOption(where, '"command" must be a text', command)
  if (args !== undefined && !isTexts(args)) throw invalidOption(where, '"args" must be a list of texts', args)
  if (env !== undefined && !isTextMap(env)) throw invalidOption(where, '"env" must be an object of texts', undefined)
  if (cwd !== undefined && typeof cwd !== 'string') throw invalidOption(where, '"cwd" must be a path', cwd)
  return { command, ...(args && { args }), ...(env && { env }), ...(cwd !== undefined && { cwd }) }
}

function readHttp(where: string, server: McpPolicy & HttpServer): Omit<HttpServer, 'url'> & { readonly url: URL } {
  const { headers, fetch } = server
  const url = URL.canParse(String(server.url)) ? new URL(String(server.url)) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw invalidOption(where, '"url" must be an http: or https: address', String(server.url))
  }
  // fetch would refuse it later, and its words would show the password.
  if (url.username !== '' || url.password !== '') {
    throw invalidOption(where, '"url" must not hold a name or password. Give { headers } instead', undefined)
  }
  if (headers !== undefined && !isTextMap(headers)) {
    throw invalidOption(where, '"headers" must be an object of texts', undefined)
  }
  if (fetch !== undefined && typeof fetch !== 'function')
    throw invalidOption(where, '"fetch" must be a function', fetch)
  return { url, ...(headers && { headers }), ...(fetch && { fetch }) }
}

function toFileAddress(where: string, root: string): string {
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(root)) return pathToFileURL(root).href
  if (/^file:\/\//i.test(root)) return root
  throw invalidOption(where, '"roots" must be paths or file: addresses', root)
}

function selection(choice: boolean | readonly NamePattern[]): (name: string) => boolean {
  if (typeof choice === 'boolean') return () => choice
  const tests = choice.map(toNameTest)
  return (name) => tests.some((test) => test(name))
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function isTextMap(value: unknown): boolean {
  return isObject(value) && Object.values(value).every((each) => typeof each === 'string')
}

function isPatterns(value: unknown): value is readonly NamePattern[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string' || each instanceof RegExp)
}
