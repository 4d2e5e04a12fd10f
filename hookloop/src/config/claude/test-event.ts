import { basename, resolve } from 'node:path'
import { randomUUID } from 'node:crypto'
import { devNull } from 'node:os'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import { eventSpec, type ClaudeEvent } from './events.ts'
import type { Payload } from './payload.ts'
import { toClaudeCall } from './tool-names.ts'

/** A payload somebody wrote by hand, in the names of the specification or in ours, with what it leaves out. */
export function payloadFrom(given: JsonObject, event: ClaudeEvent, dir: string): Payload {
  const cwd = typeof given['cwd'] === 'string' ? given['cwd'] : resolve(dir)
  const input: JsonObject = {
    session_id: randomUUID(),
    transcript_path: devNull,
    cwd,
    ...fromOurs(given, cwd),
    hook_event_name: event,
  }
  return { event, input, matched: matchedBy(input, event) }
}

function matchedBy(input: JsonObject, event: ClaudeEvent): readonly string[] {
  const { matches } = eventSpec(event)
  const value = matches === undefined ? undefined : input[matches]
  if (typeof value !== 'string') return ['']
  if (matches === 'tool_name') return namesOf(value)
  return [matches === 'file_path' ? basename(value) : value]
}

/** A tool that has another name with us is found by either. */
function namesOf(name: string): readonly string[] {
  const { names } = toClaudeCall(name, {}, '.')
  return names.includes(name) ? names : [name, ...names]
}

/** Our names for what a trigger carries, as the specification has them. What it knows stays as it is. */
function fromOurs({ toolCall, toolExecution, input, trigger: _trigger, ...rest }: JsonObject, cwd: string): JsonObject {
  return {
    ...rest,
    ...(isJsonObject(toolCall) && callFields(toolCall, cwd)),
    ...(isJsonObject(toolExecution) && { tool_response: toolExecution['output'] ?? null }),
    ...(input !== undefined && { prompt: textOfInput(input) }),
  }
}

function callFields({ id, name, args }: JsonObject, cwd: string): JsonObject {
  const call = toClaudeCall(typeof name === 'string' ? name : '', args ?? {}, cwd)
  return { tool_name: call.name, tool_input: call.input, tool_use_id: typeof id === 'string' ? id : 'call' }
}

function textOfInput(input: Json): string {
  if (typeof input === 'string') return input
  const content = isJsonObject(input) ? input['content'] : undefined
  const parts = Array.isArray(content) ? content : []
  return parts.map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('')
}
