import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentState } from '../../../core/state/agent-state.ts'
import { textOfJson, type Json, type JsonObject } from '../../../values/json.ts'
import type { List } from '../../../core/state/list.ts'
import type { Message, Part } from '../../../core/state/message.ts'
import { BoundedMap } from '../../../values/bounded-map.ts'
import { toClaudeCall } from './tool-names.ts'

type Stored = { readonly path: string; readonly written: List<Message>; readonly last: string | null }

const MAX_FILES = 256

/**
 * Writes conversations to files that scripts can read: one JSON line for each message, in the format of Claude Code. Only
 * the user can read them, and they are deleted when the process exits.
 */
export class Transcripts {
  readonly #cwd: string
  readonly #stored = new BoundedMap<string, Stored>(MAX_FILES, ({ path }) => rmSync(path, { force: true }))

  constructor(cwd: string) {
    this.#cwd = cwd
  }

  /** The path of the transcript, which contains all messages. */
  pathFor(state: AgentState, sessionId: string): string {
    const { messages } = AgentState.fieldsOf(state)
    const key = state.parentId === undefined ? sessionId : `${sessionId}/${state.agentId}`
    const known = this.#stored.get(key)
    const isMore = known !== undefined && messages.extends(known.written)
    const path = known?.path ?? join(folder(), `${crypto.randomUUID()}.jsonl`)
    const fresh = isMore ? messages.slice(known.written.length) : messages.items
    const { text, last } = this.#lines(fresh, { sessionId, last: isMore ? known.last : null })
    if (!isMore) writeFileSync(path, text, { mode: 0o600 })
    else if (text !== '') appendFileSync(path, text)
    this.#stored.set(key, { path, written: messages, last })
    return path
  }

  #lines(
    messages: readonly Message[],
    { sessionId, last }: { readonly sessionId: string; readonly last: string | null },
  ): { readonly text: string; readonly last: string | null } {
    let [text, parentUuid] = ['', last]
    for (const message of messages) {
      if (message.role === 'system') continue
      const uuid = crypto.randomUUID()
      const type = message.role === 'assistant' ? 'assistant' : 'user'
      const line = {
        parentUuid,
        isSidechain: false,
        userType: 'external',
        cwd: this.#cwd,
        sessionId,
        type,
        message: {
          ...(type === 'assistant' && { type: 'message' }),
          role: type,
          content: contentOf(message, this.#cwd),
        },
        uuid,
        timestamp: new Date().toISOString(),
      }
      text += `${JSON.stringify(line)}\n`
      parentUuid = uuid
    }
    return { text, last: parentUuid }
  }
}

/** A single text of the user is a string. */
function contentOf({ role, content }: Message, cwd: string): Json {
  const [only] = content
  if (role === 'user' && content.length === 1 && only!.type === 'text') return only!.text
  return content.flatMap((part) => blockOf(part, cwd))
}

function blockOf(part: Part, cwd: string): readonly JsonObject[] {
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: part.text }]
    case 'reasoning':
      return [{ type: 'thinking', thinking: part.text }]
    case 'tool-call': {
      const { name, input } = toClaudeCall(part.toolName, part.input, cwd)
      return [{ type: 'tool_use', id: part.toolCallId, name, input }]
    }
    case 'tool-result': {
      const result = { type: 'tool_result', tool_use_id: part.toolCallId, content: textOfJson(part.output) }
      return [part.isError === true ? { ...result, is_error: true } : result]
    }
    case 'file':
      return []
    default:
      return part satisfies never
  }
}

let made: string | undefined

function folder(): string {
  if (made === undefined) {
    const path = mkdtempSync(join(tmpdir(), 'hookloop-transcripts-'))
    process.on('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 10 }))
    made = path
  }
  return made
}

/** The path of an empty transcript. */
export function emptyTranscript(): string {
  const path = join(folder(), `${crypto.randomUUID()}.jsonl`)
  writeFileSync(path, '', { mode: 0o600 })
  return path
}
