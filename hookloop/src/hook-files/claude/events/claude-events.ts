import type { PlainTrigger } from '../../../hooks/triggers.ts'

/** What exit code 2 does at an event, or a decision to block. */
export type BlockEffect =
  /** The call is denied; the model reads why. */
  | 'denies'
  /** What the user said is dropped; the user reads why. */
  | 'erases'
  /** It happened already; the model is told. */
  | 'tells'
  /** The loop ends before the next model call. */
  | 'stops'
  /** It does not end: there is another step, with the reason as an instruction. */
  | 'continues'
  /** It is not done. */
  | 'prevents'
  /** Nothing but a message to the user. */
  | 'warns'
  /** Nothing. */
  | 'ignored'

/** The five kinds of handlers. */
export const handlerTypes = ['command', 'http', 'mcp_tool', 'prompt', 'agent'] as const
export type HandlerType = (typeof handlerTypes)[number]

type EventSpec = {
  /** The field of the payload that a matcher is about; without it, matchers are ignored. */
  readonly matches?: string
  /** Only letters, digits, `_` and `|` make an exact matcher here. */
  readonly isNarrow?: true
  /** Our trigger, if it has one. */
  readonly trigger?: PlainTrigger
  /** It fires where a person is asked, for all handlers together: a single hook is never there. */
  readonly isAboutAsking?: true
  /** It fires only when somebody has asked for it, by a command or an option: a single hook, or one on trial, is never there. */
  readonly isOnDemand?: true
  /** Where else it fires. */
  readonly alsoAt?: PlainTrigger
  readonly block: BlockEffect
  /** Whether `decision: "block"` is honoured. */
  readonly decides?: true
  /** Whether `continue: false` is honoured. */
  readonly stops?: true
  /** Fields of `hookSpecificOutput` that are honoured; undefined: there is no such output at this event. */
  readonly specific?: readonly string[]
  /** What is printed as text is context for the model. */
  readonly textIsContext?: true
  /** Nobody hears a `systemMessage` here. */
  readonly isSilent?: true
  readonly types: readonly HandlerType[]
  /** In seconds, where it is not that of the type. */
  readonly timeout?: number
}

const all: readonly HandlerType[] = handlerTypes
const plain: readonly HandlerType[] = ['command', 'http', 'mcp_tool']

/** Every event by its name. Those without a trigger are read and never fire. */
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
    decides: true,
    stops: true,
    specific: ['additionalContext', 'sessionTitle', 'suppressOriginalPrompt'],
    textIsContext: true,
    types: all,
    timeout: 30,
  },
  UserPromptExpansion: {
    matches: 'command_name',
    trigger: 'onUserInput',
    isOnDemand: true,
    block: 'prevents',
    decides: true,
    stops: true,
    specific: ['additionalContext', 'suppressOriginalPrompt'],
    textIsContext: true,
    types: all,
  },
  PreToolUse: {
    matches: 'tool_name',
    trigger: 'beforeToolUse',
    block: 'denies',
    decides: true,
    stops: true,
    specific: ['permissionDecision', 'permissionDecisionReason', 'updatedInput', 'additionalContext'],
    types: all,
  },
  PermissionRequest: {
    matches: 'tool_name',
    trigger: 'beforeToolUse',
    isAboutAsking: true,
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
    block: 'tells',
    decides: true,
    stops: true,
    specific: ['additionalContext', 'updatedToolOutput', 'updatedMCPToolOutput', 'classifierContext'],
    types: all,
  },
  PostToolUseFailure: {
    matches: 'tool_name',
    trigger: 'afterToolUse',
    block: 'tells',
    decides: true,
    stops: true,
    specific: ['additionalContext'],
    types: all,
  },
  PostToolBatch: {
    trigger: 'afterStep',
    block: 'stops',
    decides: true,
    stops: true,
    specific: ['additionalContext'],
    types: all,
  },
  Notification: {
    matches: 'notification_type',
    trigger: 'beforeToolUse',
    isAboutAsking: true,
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
    decides: true,
    stops: true,
    specific: ['additionalContext'],
    types: all,
  },
  TaskCreated: { trigger: 'beforeToolUse', block: 'prevents', decides: true, types: all },
  TaskCompleted: { trigger: 'beforeToolUse', block: 'prevents', stops: true, types: all },
  TeammateIdle: { block: 'continues', stops: true, types: all },
  Stop: {
    trigger: 'onStop',
    block: 'continues',
    decides: true,
    stops: true,
    specific: ['additionalContext'],
    types: all,
  },
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

/** Where a hook of its own fires that is for this event; nowhere, if it has no such moment. */
export function triggersOfEvent(event: ClaudeEvent): readonly PlainTrigger[] {
  const { trigger, alsoAt, isAboutAsking, isOnDemand } = eventSpec(event)
  if (trigger === undefined || isAboutAsking === true || isOnDemand === true) return []
  return alsoAt === undefined ? [trigger] : [trigger, alsoAt]
}

/** What a project is set up for: its first time, or to put it in order again. */
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

/** Events at which a no keeps something from being done: there, what cannot be trusted says no. */
export const judgingEvents: ReadonlySet<ClaudeEvent> = new Set([
  'PreToolUse',
  'PermissionRequest',
  'UserPromptSubmit',
  'UserPromptExpansion',
  'PreCompact',
  'PreModelSwitch',
  'ConfigChange',
])

/** Events at which `if` is looked at. At any other, a handler that has one never runs. */
export const eventsWithIf: ReadonlySet<ClaudeEvent> = new Set([
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionRequest',
  'PermissionDenied',
])
