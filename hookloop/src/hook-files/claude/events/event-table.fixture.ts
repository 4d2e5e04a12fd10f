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

type EventRow = {
  /** A payload and a matcher that matches it. */
  readonly input: JsonObject
  readonly matcher?: string
  readonly exit2: JsonObject
  /** The warning for exit 2 where it does not block. */
  readonly tells?: true
  readonly decision: JsonObject
  readonly stops: JsonObject
  readonly message: JsonObject
  /** Values of `hookSpecificOutput` and their effect. */
  readonly specific?: readonly (readonly [says: JsonObject, gives: JsonObject])[]
}

const context: readonly [JsonObject, JsonObject] = [
  { additionalContext: 'c' },
  { decision: 'context', additionalContext: 'c' },
]

/** One row for each event: the effect of exit 2, `decision`, `continue`, `systemMessage` and `hookSpecificOutput`. */
export const eventTable: { readonly [E in ClaudeEvent]: EventRow } = {
  SessionStart: {
    input: { source: 'startup' },
    matcher: 'startup',
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: told,
    specific: [context, [{ sessionTitle: 't' }, { decision: 'none', other: { sessionTitle: 't' } }]],
  },
  Setup: {
    input: { trigger: 'init' },
    matcher: 'init',
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: told,
    specific: [context],
  },
  InstructionsLoaded: {
    input: { load_reason: 'include' },
    matcher: 'include',
    exit2: none,
    decision: none,
    stops: none,
    message: none,
  },
  UserPromptSubmit: {
    input: { prompt: 'hi' },
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
    specific: [
      context,
      [{ suppressOriginalPrompt: true }, { decision: 'none', other: { suppressOriginalPrompt: true } }],
    ],
  },
  UserPromptExpansion: {
    input: { command_name: 'deploy' },
    matcher: 'deploy',
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
    specific: [context],
  },
  PreToolUse: {
    input: call,
    matcher: 'Bash',
    exit2: denied,
    decision: denied,
    stops: stopped,
    message: told,
    specific: [
      context,
      [{ permissionDecision: 'allow' }, { decision: 'allow' }],
      [
        { permissionDecision: 'deny', permissionDecisionReason: 'r' },
        { decision: 'deny', reason: 'r' },
      ],
      [
        { permissionDecision: 'ask', permissionDecisionReason: 'r' },
        { decision: 'ask', reason: 'r' },
      ],
      [{ permissionDecision: 'defer' }, { decision: 'defer' }],
      [{ updatedInput: { command: 'ls -l' } }, { decision: 'none', updatedInput: { command: 'ls -l' } }],
    ],
  },
  PermissionRequest: {
    input: call,
    matcher: 'Bash',
    exit2: none,
    decision: none,
    stops: none,
    message: told,
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
    exit2: none,
    decision: none,
    stops: none,
    message: told,
    specific: [[{ retry: true }, { decision: 'none', other: { retry: true } }]],
  },
  PostToolUse: {
    input: { ...call, tool_response: { stdout: 'a', stderr: '' } },
    matcher: 'Bash',
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
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
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
    specific: [context],
  },
  PostToolBatch: {
    input: { tool_calls: [] },
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
    specific: [context],
  },
  Notification: {
    input: { notification_type: 'idle_prompt', message: 'm' },
    matcher: 'idle_prompt',
    exit2: none,
    decision: none,
    stops: none,
    message: none,
    specific: [[{ additionalContext: 'c' }, none]],
  },
  MessageDisplay: {
    input: { delta: 'd' },
    exit2: none,
    decision: none,
    stops: none,
    message: told,
    specific: [[{ displayContent: 'd' }, { decision: 'none', other: { displayContent: 'd' } }]],
  },
  SubagentStart: {
    input: { agent_type: 'reviewer' },
    matcher: 'reviewer',
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: told,
    specific: [context],
  },
  SubagentStop: {
    input: { agent_type: 'reviewer' },
    matcher: 'reviewer',
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
    specific: [context],
  },
  TaskCreated: { input: { task_subject: 't' }, exit2: blocked, decision: blocked, stops: none, message: told },
  TaskCompleted: { input: { task_subject: 't' }, exit2: blocked, decision: none, stops: stopped, message: told },
  TeammateIdle: { input: { teammate_name: 't' }, exit2: blocked, decision: none, stops: stopped, message: told },
  Stop: {
    input: { stop_hook_active: false },
    exit2: blocked,
    decision: blocked,
    stops: stopped,
    message: told,
    specific: [context],
  },
  StopFailure: {
    input: { error: 'rate_limit' },
    matcher: 'rate_limit',
    exit2: none,
    decision: none,
    stops: none,
    message: none,
  },
  PreCompact: {
    input: { trigger: 'manual', custom_instructions: null },
    matcher: 'manual',
    exit2: blocked,
    decision: blocked,
    stops: none,
    message: none,
  },
  PostCompact: {
    input: { trigger: 'auto' },
    matcher: 'auto',
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: none,
  },
  PreModelSwitch: {
    input: { to_model: 'm' },
    exit2: denied,
    decision: none,
    stops: none,
    message: told,
    specific: [
      [
        { permissionDecision: 'deny', permissionDecisionReason: 'r' },
        { decision: 'deny', reason: 'r' },
      ],
      [{ permissionDecision: 'ask' }, { decision: 'ask' }],
      [{ permissionDecision: 'defer' }, none],
    ],
  },
  PostModelSwitch: {
    input: { to_model: 'm' },
    exit2: none,
    decision: none,
    stops: none,
    message: told,
    specific: [context],
  },
  ConfigChange: {
    input: { source: 'project_settings' },
    matcher: 'project_settings',
    exit2: blocked,
    decision: blocked,
    stops: none,
    message: none,
  },
  CwdChanged: {
    input: { new_cwd: '/srv' },
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: told,
    specific: [[{ watchPaths: ['a'] }, { decision: 'none', other: { watchPaths: ['a'] } }]],
  },
  DirectoryAdded: {
    input: { source: 'slash_command' },
    matcher: 'slash_command',
    exit2: none,
    decision: none,
    stops: none,
    message: told,
  },
  FileChanged: {
    input: { file_path: '/project/.envrc', event: 'change' },
    matcher: '.envrc|.env',
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: told,
    specific: [[{ watchPaths: ['a'] }, { decision: 'none', other: { watchPaths: ['a'] } }]],
  },
  WorktreeCreate: {
    input: { name: 'w' },
    exit2: blocked,
    decision: { decision: 'none', other: { worktreePath: block.stdout! } },
    stops: { decision: 'none', other: { worktreePath: stop.stdout! } },
    message: { decision: 'none', other: { worktreePath: message.stdout! } },
  },
  WorktreeRemove: { input: { worktree_path: '/w' }, exit2: none, decision: none, stops: none, message: none },
  Elicitation: {
    input: { mcp_server_name: 'github' },
    matcher: 'github',
    exit2: denied,
    decision: none,
    stops: none,
    message: told,
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
    exit2: denied,
    decision: none,
    stops: none,
    message: told,
    specific: [[{ action: 'cancel' }, { decision: 'deny', reason: 'cancel', other: { action: 'cancel' } }]],
  },
  SessionEnd: {
    input: { reason: 'other' },
    matcher: 'other',
    exit2: none,
    tells: true,
    decision: none,
    stops: none,
    message: none,
  },
}
