import type { PlainTrigger } from '../../../core/hooks/triggers.ts'

/** The effect of exit code 2, or of a decision to block, at an event. */
export type BlockEffect =
  /** The call is denied; the model gets the reason. */
  | 'denies'
  /** The user input is dropped; the user gets the reason. */
  | 'erases'
  /** It has happened already; the model gets the reason. */
  | 'reports'
  /** The run ends before the next model call. */
  | 'stops'
  /** The run does not end: there is another step, with the reason as an instruction. */
  | 'continues'
  /** It does not happen. */
  | 'prevents'
  /** The user gets a message. */
  | 'warns'
  /** Nothing. */
  | 'ignored'

export const handlerTypes = ['command', 'http', 'mcp_tool', 'prompt', 'agent'] as const
export type HandlerType = (typeof handlerTypes)[number]

type EventSpec = {
  /** The payload field that matchers are tested with. Without it, matchers are ignored. */
  readonly matches?: string
  /** A matcher with anything but letters, digits, `_` and `|` is a regular expression. */
  readonly isNarrow?: true
  readonly trigger?: PlainTrigger
  /** It fires only on request, by a command or an option. */
  readonly isOnDemand?: true
  readonly alsoAt?: PlainTrigger
  readonly block: BlockEffect
  readonly decides?: true
  readonly stops?: true
  /** Fields of `hookSpecificOutput` that have an effect. Undefined: the event has no such output. */
  readonly specific?: readonly string[]
  /** Plain text output is context for the model. */
  readonly textIsContext?: true
  /** `systemMessage` is ignored. */
  readonly isSilent?: true
  readonly types: readonly HandlerType[]
  /** The default timeout in seconds, if it differs from that of the handler type. */
  readonly timeout?: number
}

const all: readonly HandlerType[] = handlerTypes
const plain: readonly HandlerType[] = ['command', 'http', 'mcp_tool']

/** The parts of events at which an answer can block and end the run, with handlers of all types. */
const decisive = { decides: true, stops: true, types: all } as const

/** All events. Those without a trigger are accepted in settings, but never fire. */
export const claudeEvents = {
  SessionStart: {
    matches: 'source',
    trigger: 'onSessionStart',
    alsoAt: 'afterCompaction',
    block: 'warns',
    specific: ['additionalContext', 'initialUserMessage', 'sessionTitle', 'watchPaths', 'reloadSkills'],
    textIsContext: true,
    types: ['command', 'mcp_tool'],
  },
  Setup: {
    matches: 'trigger',
    trigger: 'onSessionStart',
    isOnDemand: true,
    block: 'warns',
    specific: ['additionalContext'],
    types: ['command', 'mcp_tool'],
  },
  InstructionsLoaded: { matches: 'load_reason', block: 'ignored', isSilent: true, types: plain },
  UserPromptSubmit: {
    trigger: 'onUserInput',
    block: 'erases',
    ...decisive,
    specific: ['additionalContext', 'sessionTitle', 'suppressOriginalPrompt'],
    textIsContext: true,
    timeout: 30,
  },
  UserPromptExpansion: {
    matches: 'command_name',
    trigger: 'onUserInput',
    isOnDemand: true,
    block: 'prevents',
    ...decisive,
    specific: ['additionalContext', 'suppressOriginalPrompt'],
    textIsContext: true,
  },
  PreToolUse: {
    matches: 'tool_name',
    trigger: 'beforeToolUse',
    block: 'denies',
    ...decisive,
    specific: ['permissionDecision', 'permissionDecisionReason', 'updatedInput', 'additionalContext'],
  },
  PermissionRequest: {
    matches: 'tool_name',
    trigger: 'beforeToolUse',
    block: 'ignored',
    specific: ['decision'],
    types: all,
  },
  PermissionDenied: {
    matches: 'tool_name',
    trigger: 'afterToolUse',
    block: 'ignored',
    specific: ['retry'],
    types: all,
  },
  PostToolUse: {
    matches: 'tool_name',
    trigger: 'afterToolUse',
    block: 'reports',
    ...decisive,
    specific: ['additionalContext', 'updatedToolOutput', 'updatedMCPToolOutput', 'classifierContext'],
  },
  PostToolUseFailure: {
    matches: 'tool_name',
    trigger: 'afterToolUse',
    block: 'reports',
    ...decisive,
    specific: ['additionalContext'],
  },
  PostToolBatch: { trigger: 'afterStep', block: 'stops', ...decisive, specific: ['additionalContext'] },
  Notification: {
    matches: 'notification_type',
    trigger: 'beforeToolUse',
    block: 'ignored',
    specific: [],
    isSilent: true,
    types: plain,
  },
  MessageDisplay: {
    trigger: 'afterInference',
    block: 'ignored',
    specific: ['displayContent'],
    types: plain,
    timeout: 10,
  },
  SubagentStart: {
    matches: 'agent_type',
    trigger: 'beforeToolUse',
    block: 'warns',
    specific: ['additionalContext'],
    types: plain,
  },
  SubagentStop: {
    matches: 'agent_type',
    trigger: 'onSubagentStop',
    block: 'continues',
    ...decisive,
    specific: ['additionalContext'],
  },
  TaskCreated: { trigger: 'beforeToolUse', block: 'prevents', decides: true, types: all },
  TaskCompleted: { trigger: 'beforeToolUse', block: 'prevents', stops: true, types: all },
  TeammateIdle: { block: 'continues', stops: true, types: all },
  Stop: { trigger: 'onStop', block: 'continues', ...decisive, specific: ['additionalContext'] },
  StopFailure: { matches: 'error', isNarrow: true, trigger: 'onError', block: 'ignored', isSilent: true, types: plain },
  PreCompact: {
    matches: 'trigger',
    trigger: 'beforeCompaction',
    block: 'prevents',
    decides: true,
    isSilent: true,
    types: plain,
  },
  PostCompact: { matches: 'trigger', trigger: 'afterCompaction', block: 'warns', isSilent: true, types: plain },
  PreModelSwitch: {
    block: 'denies',
    specific: ['permissionDecision', 'permissionDecisionReason'],
    types: plain,
    timeout: 30,
  },
  PostModelSwitch: {
    block: 'ignored',
    specific: ['additionalContext'],
    textIsContext: true,
    types: plain,
    timeout: 30,
  },
  ConfigChange: { matches: 'source', block: 'prevents', decides: true, isSilent: true, types: plain },
  CwdChanged: { block: 'warns', specific: ['watchPaths'], types: plain },
  DirectoryAdded: { matches: 'source', block: 'ignored', types: plain },
  FileChanged: { matches: 'file_path', isNarrow: true, block: 'warns', specific: ['watchPaths'], types: plain },
  WorktreeCreate: { block: 'prevents', specific: ['worktreePath'], types: plain },
  WorktreeRemove: { block: 'ignored', isSilent: true, types: plain },
  Elicitation: { matches: 'mcp_server_name', block: 'denies', specific: ['action', 'content'], types: plain },
  ElicitationResult: { matches: 'mcp_server_name', block: 'denies', specific: ['action', 'content'], types: plain },
  SessionEnd: { matches: 'reason', trigger: 'onSessionEnd', block: 'warns', isSilent: true, types: plain },
} as const satisfies { readonly [name: string]: EventSpec }

export type ClaudeEvent = keyof typeof claudeEvents

export const claudeEventNames = Object.keys(claudeEvents) as ClaudeEvent[]

export function isClaudeEvent(name: string): name is ClaudeEvent {
  return Object.hasOwn(claudeEvents, name)
}

export function eventSpec(event: ClaudeEvent): EventSpec {
  return claudeEvents[event]
}

export const setupTriggers = ['init', 'maintenance'] as const
export type SetupTrigger = (typeof setupTriggers)[number]

/** In seconds. */
export const typeTimeouts: { readonly [T in HandlerType]: number } = {
  command: 600,
  http: 600,
  mcp_tool: 600,
  prompt: 30,
  agent: 60,
}

/** Events that can prevent something. At these, a handler whose script has changed blocks. */
export const judgingEvents: ReadonlySet<ClaudeEvent> = new Set([
  'PreToolUse',
  'PermissionRequest',
  'UserPromptSubmit',
  'UserPromptExpansion',
  'PreCompact',
  'PreModelSwitch',
  'ConfigChange',
])

/** Events that support `if`. At other events, a handler with `if` never runs. */
export const eventsWithIf: ReadonlySet<ClaudeEvent> = new Set([
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionRequest',
  'PermissionDenied',
])
