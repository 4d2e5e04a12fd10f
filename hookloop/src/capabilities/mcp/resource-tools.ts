import { tool, type FilePart, type Message, type TextPart, type Tool } from '../../plugin.ts'
import type { JsonObject } from '../../values/json.ts'
import type { CallOptions, Connection } from './connection.ts'
import { firstOf, label, objectsIn, partText, toParts, toResourceParts } from './content.ts'
import type { Listed } from './pages.ts'

/** So many arguments of a prompt are listed. */
const MAX_ARGUMENTS = 100
const MAX_SHOWN = 200

/** Tools for reading the resources and prompts of the servers that have some. */
export function resourceTools(
  withResources: readonly Connection[],
  withPrompts: readonly Connection[],
): readonly Tool[] {
  return [
    ...(withResources.length === 0 ? [] : [listTool(withResources), readTool(withResources)]),
    ...(withPrompts.length === 0 ? [] : [promptTool(withPrompts)]),
  ]
}

function listTool(connections: readonly Connection[]): Tool {
  return tool({
    ...common(connections),
    name: 'mcp_list_resources',
    description: 'Lists the resources of an MCP server: URI, name, type and description.',
    input: inputOf(connections, {}, []),
    execute: async ({ server }, { signal }) => {
      const connection = connectionTo(connections, server)
      const resources = await connection.list('resources/list', 'resources', { signal })
      // Many servers do not support this request.
      const none = { items: [], isComplete: true }
      const templates = await connection
        .list('resources/templates/list', 'resourceTemplates', { signal })
        .catch(() => none)
      const items = [...resources.items, ...templates.items]
      const isComplete = resources.isComplete && templates.isComplete
      return linesOf({ items, isComplete }, resourceLine) || 'There are none.'
    },
  })
}

function readTool(connections: readonly Connection[]): Tool {
  return tool({
    ...common(connections),
    name: 'mcp_read_resource',
    description: 'Reads a resource of an MCP server by its URI.',
    input: inputOf(connections, { uri: { type: 'string', minLength: 1 } }, ['uri']),
    execute: async ({ server, uri }, { signal }) => {
      const parts = await readResource(connectionTo(connections, server), uri as string, { signal })
      return parts.map(partText).join('\n') || undefined
    },
  })
}

function promptTool(connections: readonly Connection[]): Tool {
  return tool({
    ...common(connections),
    name: 'mcp_get_prompt',
    description:
      'Gets a prompt of an MCP server, filled in with arguments. Without a name it lists the available prompts.',
    input: inputOf(
      connections,
      { name: { type: 'string' }, arguments: { type: 'object', additionalProperties: { type: 'string' } } },
      [],
    ),
    execute: async ({ server, name, arguments: args }, { signal }) => {
      const connection = connectionTo(connections, server)
      if (name === undefined) {
        return linesOf(await connection.list('prompts/list', 'prompts', { signal }), promptLine) || 'There are none.'
      }
      const messages = await getPrompt(connection, name as string, (args ?? {}) as { [name: string]: string }, {
        signal,
      })
      return messages
        .map(({ role, content }) => `${role}: ${content.map((part) => partText(part as never)).join('\n')}`)
        .join('\n\n')
    },
  })
}

/** These tools need approval if all calls of one of the servers do. */
function common(connections: readonly Connection[]) {
  return {
    concurrent: true,
    ask: connections.some(({ settings }) => settings.asksAlways),
    timeoutMs: Math.max(...connections.map(({ settings }) => settings.callTimeoutMs)),
    maxOutputChars: Math.min(...connections.map(({ settings }) => settings.maxOutputChars)),
  }
}

function inputOf(connections: readonly Connection[], properties: JsonObject, required: readonly string[]): JsonObject {
  const names = connections.map(({ settings }) => settings.name)
  return {
    type: 'object',
    properties: { server: { type: 'string', enum: names }, ...properties },
    required: ['server', ...required],
    additionalProperties: false,
  }
}

function connectionTo(connections: readonly Connection[], server: unknown): Connection {
  return connections.find(({ settings }) => settings.name === server)!
}

function resourceLine(resource: JsonObject): string {
  const { uri, uriTemplate, name, title, description, mimeType } = resource
  const words = [label(title ?? name), label(mimeType), label(description)].filter((each) => each !== '')
  return `${label(uri ?? uriTemplate)} ${words.join(', ')}`
}

function promptLine(prompt: JsonObject): string {
  const all = objectsIn(prompt['arguments'])
  const args = all
    .slice(0, MAX_ARGUMENTS)
    .map((each) => `${label(each['name'])}${each['required'] === true ? '' : '?'}`)
  if (all.length > args.length) args.push(`… ${all.length - args.length} more`)
  return `${label(prompt['name'])}(${args.join(', ')}) ${label(prompt['description'])}`
}

function linesOf({ items, isComplete }: Listed, lineOf: (item: JsonObject) => string): string {
  const all = objectsIn(items)
  const more = all.length > MAX_SHOWN ? `… and ${all.length - MAX_SHOWN} more` : isComplete ? '' : '… and more'
  return [...all.slice(0, MAX_SHOWN).map(lineOf), ...(more === '' ? [] : [more])].join('\n')
}

/** The contents of a resource as message parts. */
export async function readResource(
  connection: Connection,
  uri: string,
  options: CallOptions,
): Promise<readonly (TextPart | FilePart)[]> {
  const { contents } = await connection.request('resources/read', { uri }, options)
  return toResourceParts(listIn(connection, contents, 'contents'))
}

/** The messages of a prompt, filled in with arguments. */
export async function getPrompt(
  connection: Connection,
  name: string,
  args: { readonly [name: string]: string },
  options: CallOptions,
): Promise<readonly Message[]> {
  const { messages } = await connection.request('prompts/get', { name, arguments: { ...args } }, options)
  const toMessage = ({ role, content }: JsonObject): Message => ({
    // Never as a system message: a server must not write instructions with that authority.
    role: role === 'assistant' ? 'assistant' : 'user',
    content: toParts(Array.isArray(content) ? content : [content]),
  })
  return firstOf(listIn(connection, messages, 'messages'), toMessage, (more) => ({
    role: 'user',
    content: [{ type: 'text', text: `[… ${more} more messages left out …]` }],
  }))
}

/** A list in a result. Without it the result would look empty. */
function listIn({ settings }: Connection, value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new Error(`The MCP server "${settings.name}" sent an invalid result: its "${name}" is not a list.`)
}
