import type { JsonObject } from '../../../values/json.ts'
import type { ClaudeEvent } from './claude-events.ts'
import type { Said } from '../hook-project.fixture.ts'

export const call: JsonObject = { tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 'toolu_1' }
export const own = (hookEventName: ClaudeEvent, fields: JsonObject): string =>
  JSON.stringify({ hookSpecificOutput: { hookEventName, ...fields } })
const json = (value: JsonObject): string => JSON.stringify(value)
export const no: Said = { stderr: 'not now', exit: 2 }
export const block: Said = { stdout: json({ decision: 'block', reason: 'not now' }) }
export const stop: Said = { stdout: json({ continue: false, stopReason: 'over' }) }
export const message: Said = { stdout: json({ systemMessage: 'hello' }) }

export const none = { decision: 'none' }
const denied = { decision: 'deny', reason: 'not now' }
const blocked = { decision: 'block', reason: 'not now' }
const stopped = { decision: 'stop', reason: 'over' }
const told = { decision: 'none', systemMessage: 'hello' }
const path = ({ stdout = '' }: Said): JsonObject => ({ decision: 'none', other: { worktreePath: stdout } })

type EventRow = {
  /** A payload and a matcher that matches it. */
  readonly input: JsonObject
  readonly matcher?: string
  /** The effects of exit 2, of `decision: "block"`, of `continue: false` and of `systemMessage`. */
  readonly effects: readonly [exit2: JsonObject, decision: JsonObject, stops: JsonObject, message: JsonObject]
  /** Exit 2, which does not block, is a warning. */
  readonly tells?: true
  /** Values of `hookSpecificOutput` and their effect. */
  readonly specific?: readonly (readonly [says: JsonObject, gives: JsonObject])[]
}

const context: readonly [JsonObject, JsonObject] = [
  { additionalContext: 'c' },
  { decision: 'context', additionalContext: 'c' },
]

const decided = (permissionDecision: string): readonly [JsonObject, JsonObject] => [
  { permissionDecision, permissionDecisionReason: 'r' },
  { decision: permissionDecision, reason: 'r' },
]

/** What is reported as it was answered. */
const other = (says: JsonObject): readonly [JsonObject, JsonObject] => [says, { decision: 'none', other: says }]

/** One row for each event: the effect of exit 2, `decision`, `continue`, `systemMessage` and `hookSpecificOutput`. */
export const eventTable: { readonly [E in ClaudeEvent]: EventRow } = {
  SessionStart: {
    input: { source: 'startup' },
    matcher: 'startup',
    tells: true,
    effects: [none, none, none, told],
    specific: [context, other({ sessionTitle: 't' })],
  },
  Setup: {
    input: { trigger: 'init' },
    matcher: 'init',
    tells: true,
    effects: [none, none, none, told],
    specific: [context],
  },
  InstructionsLoaded: { input: { load_reason: 'include' }, matcher: 'include', effects: [none, none, none, none] },
  UserPromptSubmit: {
    input: { prompt: 'hi' },
    effects: [blocked, blocked, stopped, told],
    specific: [context, other({ suppressOriginalPrompt: true })],
  },
  UserPromptExpansion: {
    input: { command_name: 'deploy' },
    matcher: 'deploy',
    effects: [blocked, blocked, stopped, told],
    specific: [context],
  },
  PreToolUse: {
    input: call,
    matcher: 'Bash',
    effects: [denied, denied, stopped, told],
    specific: [
      context,
      [{ permissionDecision: 'allow' }, { decision: 'allow' }],
      decided('deny'),
      decided('ask'),
      [{ permissionDecision: 'defer' }, { decision: 'defer' }],
      [{ updatedInput: { command: 'ls -l' } }, { decision: 'none', updatedInput: { command: 'ls -l' } }],
    ],
  },
  PermissionRequest: {
    input: call,
    matcher: 'Bash',
    effects: [none, none, none, told],
    specific: [
      [{ decision: { behavior: 'allow' } }, { decision: 'allow' }],
      [
        { decision: { behavior: 'allow', updatedInput: { command: 'pwd' } } },
        { decision: 'allow', updatedInput: { command: 'pwd' } },
      ],
      [{ decision: { behavior: 'deny', message: 'm' } }, { decision: 'deny', reason: 'm' }],
      [
        { decision: { behavior: 'deny', message: 'm', interrupt: true } },
        { decision: 'deny', reason: 'm', interrupt: true },
      ],
      [{ decision: { behavior: 'prompt' } }, none],
      [{}, none],
    ],
  },
  PermissionDenied: {
    input: { ...call, reason: 'r' },
    matcher: 'Bash',
    effects: [none, none, none, told],
    specific: [other({ retry: true })],
  },
  PostToolUse: {
    input: { ...call, tool_response: { stdout: 'a', stderr: '' } },
    matcher: 'Bash',
    effects: [blocked, blocked, stopped, told],
    specific: [
      context,
      [{ updatedToolOutput: { stdout: 'b' } }, { decision: 'none', updatedOutput: { stdout: 'b' } }],
      [{ updatedToolOutput: 'of another shape' }, none],
      [{ updatedMCPToolOutput: [{ type: 'text', text: 'x' }] }, none],
    ],
  },
  PostToolUseFailure: {
    input: { ...call, error: 'Exit code 1' },
    matcher: 'Bash',
    effects: [blocked, blocked, stopped, told],
    specific: [context],
  },
  PostToolBatch: { input: { tool_calls: [] }, effects: [blocked, blocked, stopped, told], specific: [context] },
  Notification: {
    input: { notification_type: 'idle_prompt', message: 'm' },
    matcher: 'idle_prompt',
    effects: [none, none, none, none],
    specific: [[{ additionalContext: 'c' }, none]],
  },
  MessageDisplay: {
    input: { delta: 'd' },
    effects: [none, none, none, told],
    specific: [other({ displayContent: 'd' })],
  },
  SubagentStart: {
    input: { agent_type: 'reviewer' },
    matcher: 'reviewer',
    tells: true,
    effects: [none, none, none, told],
    specific: [context],
  },
  SubagentStop: {
    input: { agent_type: 'reviewer' },
    matcher: 'reviewer',
    effects: [blocked, blocked, stopped, told],
    specific: [context],
  },
  TaskCreated: { input: { task_subject: 't' }, effects: [blocked, blocked, none, told] },
  TaskCompleted: { input: { task_subject: 't' }, effects: [blocked, none, stopped, told] },
  TeammateIdle: { input: { teammate_name: 't' }, effects: [blocked, none, stopped, told] },
  Stop: { input: { stop_hook_active: false }, effects: [blocked, blocked, stopped, told], specific: [context] },
  StopFailure: { input: { error: 'rate_limit' }, matcher: 'rate_limit', effects: [none, none, none, none] },
  PreCompact: {
    input: { trigger: 'manual', custom_instructions: null },
    matcher: 'manual',
    effects: [blocked, blocked, none, none],
  },
  PostCompact: { input: { trigger: 'auto' }, matcher: 'auto', tells: true, effects: [none, none, none, none] },
  PreModelSwitch: {
    input: { to_model: 'm' },
    effects: [denied, none, none, told],
    specific: [
      decided('deny'),
      [{ permissionDecision: 'ask' }, { decision: 'ask' }],
      [{ permissionDecision: 'defer' }, none],
    ],
  },
  PostModelSwitch: { input: { to_model: 'm' }, effects: [none, none, none, told], specific: [context] },
  ConfigChange: {
    input: { source: 'project_settings' },
    matcher: 'project_settings',
    effects: [blocked, blocked, none, none],
  },
  CwdChanged: {
    input: { new_cwd: '/srv' },
    tells: true,
    effects: [none, none, none, told],
    specific: [other({ watchPaths: ['a'] })],
  },
  DirectoryAdded: { input: { source: 'slash_command' }, matcher: 'slash_command', effects: [none, none, none, told] },
  FileChanged: {
    input: { file_path: '/project/.envrc', event: 'change' },
    matcher: '.envrc|.env',
    tells: true,
    effects: [none, none, none, told],
    specific: [other({ watchPaths: ['a'] })],
  },
  WorktreeCreate: { input: { name: 'w' }, effects: [blocked, path(block), path(stop), path(message)] },
  WorktreeRemove: { input: { worktree_path: '/w' }, effects: [none, none, none, none] },
  Elicitation: {
    input: { mcp_server_name: 'github' },
    matcher: 'github',
    effects: [denied, none, none, told],
    specific: [
      [
        { action: 'accept', content: { a: 1 } },
        { decision: 'allow', reason: 'accept', other: { action: 'accept', content: { a: 1 } } },
      ],
      [{ action: 'decline' }, { decision: 'deny', reason: 'decline', other: { action: 'decline' } }],
      [{ action: 'maybe' }, none],
    ],
  },
  ElicitationResult: {
    input: { mcp_server_name: 'github', action: 'accept' },
    matcher: 'github',
    effects: [denied, none, none, told],
    specific: [[{ action: 'cancel' }, { decision: 'deny', reason: 'cancel', other: { action: 'cancel' } }]],
  },
  SessionEnd: { input: { reason: 'other' }, matcher: 'other', tells: true, effects: [none, none, none, none] },
}
