import { tool, type Tool } from '../../agent/tool.ts'
import type { JsonObject } from '../../state/json.ts'
import type { Connection } from './connection.ts'
import { label, listOf, shown } from './content.ts'
import { getPrompt, readResource } from './resources.ts'

const MAX_SHOWN = 200

/** Tools with which a model reads what servers hold ready, for the servers that hold something. */
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
    description: 'Lists the resources of an MCP server: their addresses, names and what they are.',
    input: inputOf(connections, {}, []),
    execute: async ({ server }, { signal }) => {
      const connection = chosen(connections, server)
      const resources = await connection.list('resources/list', 'resources', { signal })
      // Many servers have no templates and do not even know the question.
      const none = { items: [], isWhole: true }
      const templates = await connection
        .list('resources/templates/list', 'resourceTemplates', { signal })
        .catch(() => none)
      const lines = [...listOf(resources.items).map(resourceLine), ...listOf(templates.items).map(resourceLine)]
      return shortened(lines, resources.isWhole && templates.isWhole) || 'There are none.'
    },
  })
}

function readTool(connections: readonly Connection[]): Tool {
  return tool({
    ...common(connections),
    name: 'mcp_read_resource',
    description: 'Reads a resource of an MCP server by its address (URI).',
    input: inputOf(connections, { uri: { type: 'string', minLength: 1 } }, ['uri']),
    execute: async ({ server, uri }, { signal }) => {
      const parts = await readResource(chosen(connections, server), uri as string, { signal })
      return parts.map(shown).join('\n')
    },
  })
}

function promptTool(connections: readonly Connection[]): Tool {
  return tool({
    ...common(connections),
    name: 'mcp_get_prompt',
    description:
      'Gets a prompt of an MCP server, filled in with arguments. Without a name it lists the prompts there are.',
    input: inputOf(
      connections,
      { name: { type: 'string' }, arguments: { type: 'object', additionalProperties: { type: 'string' } } },
      [],
    ),
    execute: async ({ server, name, arguments: args }, { signal }) => {
      const connection = chosen(connections, server)
      if (name === undefined) {
        const { items, isWhole } = await connection.list('prompts/list', 'prompts', { signal })
        return shortened(listOf(items).map(promptLine), isWhole) || 'There are none.'
      }
      const messages = await getPrompt(connection, name as string, (args ?? {}) as { [name: string]: string }, {
        signal,
      })
      return messages
        .map(({ role, content }) => `${role}: ${content.map((part) => shown(part as never)).join('\n')}`)
        .join('\n\n')
    },
  })
}

/** What is no tool of a server is asked about if all calls of one of them are. */
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

function chosen(connections: readonly Connection[], server: unknown): Connection {
  return connections.find(({ settings }) => settings.name === server)!
}

function resourceLine(resource: JsonObject): string {
  const { uri, uriTemplate, name, title, description, mimeType } = resource
  const words = [label(title ?? name), label(mimeType), label(description)].filter((each) => each !== '')
  return `${label(uri ?? uriTemplate)} ${words.join(', ')}`
}

function promptLine(prompt: JsonObject): string {
  const args = listOf(prompt['arguments']).map(
    (each) => `${label(each['name'])}${each['required'] === true ? '' : '?'}`,
  )
  return `${label(prompt['name'])}(${args.join(', ')}) ${label(prompt['description'])}`
}

function shortened(lines: readonly string[], isWhole: boolean): string {
  const more = lines.length > MAX_SHOWN ? `… and ${lines.length - MAX_SHOWN} more` : isWhole ? '' : '… and more'
  return [...lines.slice(0, MAX_SHOWN), ...(more === '' ? [] : [more])].join('\n')
}
