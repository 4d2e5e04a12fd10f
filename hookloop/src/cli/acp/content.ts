import type { ContentBlock, SessionUpdate } from '@agentclientprotocol/sdk'
import { textOf, type Message, type Part } from '../../core/state/message.ts'
import type { StoredRun, StoredToolCall } from '../../core/state/stored-run.ts'
import type { ToolExecution } from '../../core/state/tool-call.ts'

const MAX_OUTPUT_CHARS = 20_000

export function toMessage(prompt: readonly ContentBlock[]): Message {
  return { role: 'user', content: prompt.map(toPart) }
}

function toPart(block: ContentBlock): Part {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
    case 'audio':
      return { type: 'file', mediaType: block.mimeType, data: block.data }
    case 'resource_link':
      return { type: 'text', text: `[${block.name}](${block.uri})` }
    case 'resource': {
      const { resource } = block
      if ('text' in resource) return { type: 'text', text: `${resource.uri}:\n\n${resource.text}` }
      return { type: 'file', mediaType: resource.mimeType ?? 'application/octet-stream', data: resource.blob }
    }
    default:
      return block satisfies never
  }
}

export function chunk(kind: 'user_message' | 'agent_message' | 'agent_thought', text: string): SessionUpdate {
  return { sessionUpdate: `${kind}_chunk`, content: { type: 'text', text } }
}

export function resultUpdate(toolCallId: string, { status, output, by, withheld }: ToolExecution): SessionUpdate {
  const said = typeof output === 'string' ? output : JSON.stringify(output, undefined, 2)
  const text = said.length <= MAX_OUTPUT_CHARS ? said : `${said.slice(0, MAX_OUTPUT_CHARS)}…`
  const why = withheld === true ? 'Withheld' : status === 'blocked' ? 'Blocked' : undefined
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId,
    status: status === 'ok' && withheld !== true ? 'completed' : 'failed',
    content: [
      {
        type: 'content',
        content: { type: 'text', text: why === undefined ? text : `${why} by ${by ?? 'hookloop'}: ${text}` },
      },
    ],
    rawOutput: output,
  }
}

/** What an editor shows of stored runs, in order. Runs that were rewound are left out. */
export function historyOf(runs: readonly StoredRun[]): readonly SessionUpdate[] {
  return runs.flatMap((run) => {
    const steps = run.steps.filter(({ isRewound }) => isRewound !== true)
    if (steps.length === 0 && run.steps.length > 0) return []
    return [
      chunk('user_message', textOf(run.input.content)),
      ...steps.flatMap(({ index, text, toolCalls }) => [
        ...(text === '' ? [] : [chunk('agent_message', text)]),
        ...toolCalls.flatMap((call) => storedCall(`${run.id}/${index}/${call.id}`, call)),
      ]),
    ]
  })
}

function storedCall(toolCallId: string, { name, args, result }: StoredToolCall): readonly SessionUpdate[] {
  const call: SessionUpdate = {
    sessionUpdate: 'tool_call',
    toolCallId,
    title: titleOf(name, args),
    kind: kindOf(name),
    status: 'pending',
    rawInput: args,
  }
  return result === undefined ? [call] : [call, resultUpdate(toolCallId, result)]
}

type ToolKind = NonNullable<Extract<SessionUpdate, { sessionUpdate: 'tool_call' }>['kind']>

const kinds: readonly (readonly [RegExp, ToolKind])[] = [
  [/(^|[_-])(bash|shell|exec|run|command)([_-]|$)/i, 'execute'],
  [/(^|[_-])(delete|remove|rm)([_-]|$)/i, 'delete'],
  [/(^|[_-])(move|rename|mv)([_-]|$)/i, 'move'],
  [/(^|[_-])(edit|write|patch|replace|create)([_-]|$)/i, 'edit'],
  [/(^|[_-])(grep|glob|search|find)([_-]|$)/i, 'search'],
  [/(^|[_-])(read|list|ls|view|open)([_-]|$)/i, 'read'],
  [/(^|[_-])(fetch|http|web|browse)([_-]|$)/i, 'fetch'],
]

/** The icon that an editor shows, from the name of a tool. */
export function kindOf(tool: string): ToolKind {
  return kinds.find(([pattern]) => pattern.test(tool))?.[1] ?? 'other'
}

const MAX_TITLE_CHARS = 200

/** The name of a tool, and its argument if it is a single text. */
export function titleOf(tool: string, args: unknown): string {
  const values = Object.values((args ?? {}) as { readonly [name: string]: unknown })
  const [first] = values
  const shown = values.length > 0 && typeof first === 'string' ? `${tool} ${first.replaceAll(/\s+/g, ' ')}` : tool
  return shown.length <= MAX_TITLE_CHARS ? shown : `${shown.slice(0, MAX_TITLE_CHARS - 1)}…`
}
