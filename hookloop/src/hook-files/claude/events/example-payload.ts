import { basename, resolve } from 'node:path'
import { randomUUID } from 'node:crypto'
import { isTrigger } from '../../../core/hooks/triggers.ts'
import { isJsonObject, textOfJson, type Json, type JsonObject } from '../../../values/json.ts'
import { claudeEventNames, eventSpec, isClaudeEvent, type ClaudeEvent } from './claude-events.ts'
import type { Payload } from './common-payload.ts'
import { stringIn } from '../../text.ts'
import { namesOf, toClaudeCall } from './tool-names.ts'
import { emptyTranscript } from './transcripts.ts'

/** Finds an event by its name in any spelling, or by the name of a trigger. */
export function findEvent(name: string, given: JsonObject): ClaudeEvent | undefined {
  if (isClaudeEvent(name)) return name
  if (name === 'afterToolUse') {
    const { toolExecution } = given
    const hasFailed = isJsonObject(toolExecution) && toolExecution['status'] === 'failed'
    return hasFailed || given['error'] !== undefined ? 'PostToolUseFailure' : 'PostToolUse'
  }
  const own = claudeEventNames.find((event) => eventSpec(event).trigger === name)
  return own ?? claudeEventNames.find((event) => plain(event) === plain(name))
}

/** Scripts are often called `pre_tool_use` or `pretooluse`. */
function plain(name: string): string {
  return name.replaceAll(/[-_]/g, '').toLowerCase()
}

/** A payload from an example written by hand, with field names of Claude Code or Hookloop. Missing fields are added. */
export function examplePayload(given: JsonObject, event: ClaudeEvent, dir: string): Payload {
  const cwd = typeof given['cwd'] === 'string' ? given['cwd'] : resolve(dir)
  const input: JsonObject = {
    session_id: randomUUID(),
    transcript_path: typeof given['transcript_path'] === 'string' ? given['transcript_path'] : emptyTranscript(),
    cwd,
    ...defaults[event],
    ...toClaudeFields(given, cwd),
    hook_event_name: event,
  }
  return { event, input, matched: matchedBy(input, event) }
}

const call = { permission_mode: 'default', tool_use_id: 'toolu_test' }
const ending = { permission_mode: 'default', stop_hook_active: false }

/** Fields that scripts rely on and examples often leave out. */
const defaults: { readonly [event in ClaudeEvent]?: JsonObject } = {
  SessionStart: { source: 'startup' },
  Setup: { trigger: 'init' },
  UserPromptSubmit: { permission_mode: 'default' },
  UserPromptExpansion: { permission_mode: 'default', expansion_type: 'slash_command' },
  PreToolUse: call,
  PermissionRequest: { permission_mode: 'default' },
  PostToolUse: call,
  PostToolUseFailure: call,
  Stop: ending,
  SubagentStop: ending,
  PreCompact: { trigger: 'auto', custom_instructions: '' },
  PostCompact: { trigger: 'auto', compact_summary: '' },
  SessionEnd: { reason: 'other' },
}

function matchedBy(input: JsonObject, event: ClaudeEvent): readonly string[] {
  const { matches } = eventSpec(event)
  const value = matches === undefined ? undefined : input[matches]
  if (typeof value !== 'string') return ['']
  if (matches === 'tool_name') return namesOf(value)
  return [matches === 'file_path' ? basename(value) : value]
}

/** Translates field names of Hookloop. Those of Claude Code are unchanged. */
function toClaudeFields(given: JsonObject, cwd: string): JsonObject {
  const { toolCall, toolExecution, input, trigger, ...rest } = given
  if (given['prompt'] !== undefined || given['tool_name'] !== undefined) return given // a payload of Claude Code
  return {
    ...rest,
    ...(trigger !== undefined && !isTrigger(trigger) && { trigger }), // for Claude Code, it is the cause of the event
    ...(isJsonObject(toolCall) && callFields(toolCall, cwd)),
    ...(isJsonObject(toolExecution) && outputFields(toolExecution)),
    ...(input !== undefined && { prompt: textOfInput(input) }),
  }
}

function outputFields({ status, output = null }: JsonObject): JsonObject {
  return status === 'failed' ? { error: textOfJson(output) } : { tool_response: output }
}

function callFields({ id, name, args }: JsonObject, cwd: string): JsonObject {
  const call = toClaudeCall(stringIn(name), args ?? {}, cwd)
  return { tool_name: call.name, tool_input: call.input, tool_use_id: typeof id === 'string' ? id : 'call' }
}

function textOfInput(input: Json): string {
  if (typeof input === 'string') return input
  const content = isJsonObject(input) ? input['content'] : undefined
  const parts = Array.isArray(content) ? content : []
  return parts.map((part) => (isJsonObject(part) ? stringIn(part['text']) : '')).join('')
}
