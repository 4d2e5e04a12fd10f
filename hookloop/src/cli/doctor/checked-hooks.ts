import type { ApprovalPolicy, Capability } from '../../agent/capability.ts'
import { claudeHooks, singleHandlers, type SingleHandler } from '../../hook-files/claude/claude-hooks.ts'
import { eventSpec, type ClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import { ownName } from '../../hook-files/claude/events/tool-names.ts'
import { handlerName } from '../../hook-files/list-hooks.ts'
import { findHooks } from '../../hook-files/files/project-hooks.ts'
import type { Json } from '../../state/json.ts'
import { messageOf } from '../../errors.ts'
import type { Hook } from '../../hooks/hook.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import { mcpIn } from '../run/file-hooks.ts'
import { relativePath } from '../terminal/relative-paths.ts'
import type { ProbeTool } from './probe-model.ts'

/** A hook as the report names it, and what has to happen in a probe run for it to fire. */
export type CheckedHook = {
  readonly name: string
  readonly mode: 'guard' | 'hook' | 'observe' | 'claude'
  /** Its triggers. */
  readonly on: readonly string[]
  /** Its file, or `--agent`. */
  readonly source: string
  readonly isFromFile: boolean
  readonly hook: Hook
  /** Creates it again for each probe run, without the state of the one before. */
  readonly make: () => MadeHook
  /** The tools it is limited to, as text and as a test. */
  readonly tool?: { readonly text: string; readonly matches: (name: string) => boolean } | undefined
  /** The tools to call. */
  readonly tools: readonly ProbeTool[]
  /** The tools fail. */
  readonly fails?: boolean
  /** A guard denies each call. */
  readonly denied?: boolean
  /** Each call asks for approval, which is when it runs. */
  readonly asked?: boolean
  /** The name of the subagent. */
  readonly agentName?: string | undefined
  /** It belongs to a skill or an agent, and is checked as if that were active. */
  readonly isOwned?: boolean
  /** Why it cannot be checked. */
  readonly unchecked?: string | undefined
}

type MadeHook = {
  readonly hook: Hook
  /** How it answers approvals, if it does. */
  readonly approval?: ApprovalPolicy | undefined
  /** How often its handler ran, where it may fire without running it. */
  readonly ran?: () => number
}

export type CheckedHooks = {
  readonly hooks: readonly CheckedHook[]
  readonly tools: readonly ProbeTool[]
  /** Hooks that may change the arguments of a call, unwrapped. */
  readonly rewriters: readonly Hook[]
  /** Why hooks in files could not be read. */
  readonly problems: readonly string[]
}

/** Every hook of an agent and of files that would apply. */
export function findCheckedHooks(
  own: readonly Capability[],
  { dir, user }: { readonly dir: string; readonly user: boolean },
): CheckedHooks {
  const problems: string[] = []
  const home = user ? {} : { home: false as const }
  const reading = <T>(read: () => readonly T[]): readonly T[] => {
    try {
      return read()
    } catch (error) {
      problems.push(messageOf(error))
      return []
    }
  }
  const ofFiles = reading(() => findHooks({ dir, ...home }).hooks)
  const mcp = mcpIn(own)
  const handlers = reading(() =>
    singleHandlers({ dir, ...home, answer: () => 'allow', ...(mcp !== undefined && { mcp }) }),
  )
  const ofAgent = own.flatMap(({ hooks = [] }) => hooks)
  const tools = toolsFor(own, { hooks: ofFiles.map(({ hook }) => hook), handlers })
  const claude = reading(() => claudeHooks({ dir, ...home }).hooks ?? [])
  return {
    tools,
    problems: [...new Set(problems)],
    rewriters: [...ofAgent, ...ofFiles.map(({ hook }) => hook), ...claude].filter(isRewriter),
    hooks: [
      ...ofAgent.map((hook) => checkedHook(hook, { tools, source: '--agent', isFromFile: false })),
      ...ofFiles.map(({ hook, source, line }) => ({
        ...checkedHook(hook, { tools, source: `${relativePath(source.file, dir)}:${line}`, isFromFile: true }),
        ...(source.kind === 'agent' && { agentName: source.owner }),
        isOwned: source.owner !== undefined,
      })),
      ...handlers.map((each) => ({
        ...checkedHandler(each, { tools, source: relativePath(each.group.source.file, dir) }),
        unchecked:
          each.handler.type === 'mcp_tool' && mcp === undefined
            ? `it needs --agent with an agent that connects the MCP server "${each.handler.server}"`
            : undefined,
      })),
    ],
  }
}

function isRewriter({ mode, triggers, shadow }: Hook): boolean {
  return mode === 'transform' && !shadow && triggers.includes('beforeToolUse')
}

/** Two tools are called for a hook at most, so that they can run in parallel. */
const MAX_CALLS = 2

function checkedHook(
  hook: Hook,
  given: { tools: readonly ProbeTool[]; source: string; isFromFile: boolean },
): CheckedHook {
  const { tools, source, isFromFile } = given
  const { name, mode, triggers } = hook
  const tool = selectionOf(hook)
  return {
    name,
    mode: mode === 'transform' ? 'hook' : mode,
    on: triggers,
    source,
    hook,
    isFromFile,
    tool,
    tools: tools.filter((each) => tool?.matches(each.name) ?? true).slice(0, MAX_CALLS),
    make: () => ({ hook }),
  }
}

function selectionOf({ tool }: Hook): CheckedHook['tool'] {
  if (tool === undefined) return undefined
  if (typeof tool === 'string' || tool instanceof RegExp) return { text: String(tool), matches: toNameTest(tool) }
  return { text: tool.name, matches: (name) => name === tool.name }
}

function checkedHandler(each: SingleHandler, given: { tools: readonly ProbeTool[]; source: string }): CheckedHook {
  const { group, handler, fits, make } = each
  const { event, matcher } = group
  const { trigger, alsoAt, matches, isApproval = false } = eventSpec(event)
  const isOfTools = matches === 'tool_name'
  const agentName = agentNameFor(group)
  const fitting = given.tools.filter(({ name }) => fits(name)).slice(0, MAX_CALLS)
  return {
    name: handlerName(event, handler),
    mode: 'claude',
    on: [trigger, alsoAt].filter((each) => each !== undefined),
    source: given.source,
    hook: hookAt(make().capability, trigger!),
    isFromFile: true,
    tool: isOfTools && matcher !== undefined ? { text: matcher, matches: fits } : undefined,
    tools: callsFor(event, agentName) ?? fitting,
    fails: event === 'PostToolUseFailure',
    denied: event === 'PermissionDenied',
    asked: isApproval,
    agentName,
    make: () => {
      const { capability, ran } = make()
      return { hook: hookAt(capability, trigger!), approval: capability.approval, ran }
    },
  }
}

/** The hook of a capability that fires on a trigger. */
function hookAt({ hooks = [] }: Capability, trigger: HookTrigger): Hook {
  return hooks.find(({ triggers }) => triggers.includes(trigger))!
}

/** The calls that cause events about one tool. */
function callsFor(event: ClaudeEvent, agent: string): readonly ProbeTool[] | undefined {
  const called = (name: string, args: Json): readonly ProbeTool[] => [{ name, inputSchema: { const: args } }]
  switch (event) {
    case 'SubagentStart':
      return called('spawn_subagent', { subagent: agent, prompt: 'probe' })
    case 'TaskCreated':
    case 'TaskCompleted':
      return called('todo_write', { todos: [{ content: 'probe', status: 'completed', activeForm: 'probe' }] })
    default:
      return undefined
  }
}

/** The subagent that the hooks belong to, or that the matcher names. */
function agentNameFor({ event, matcher = '', source }: SingleHandler['group']): string {
  const isOfAgents = eventSpec(event).matches === 'agent_type'
  const [named] = (isOfAgents && /^[\w-]+/.exec(matcher)) || []
  const name = (source.kind === 'agent' ? source.name : named) ?? ''
  return name === '' ? 'probe' : name
}

/** The tools of the agent, or, without an agent, those that hooks name. */
function toolsFor(
  own: readonly Capability[],
  { hooks, handlers }: { readonly hooks: readonly Hook[]; readonly handlers: readonly SingleHandler[] },
): readonly ProbeTool[] {
  const declared = own.flatMap(({ tools = [] }) => tools)
  if (declared.length > 0) return declared.map(({ name, inputSchema }) => ({ name, inputSchema }))
  const named = hooks.flatMap(({ tool }) => (typeof tool === 'string' && !tool.includes('*') ? [tool] : []))
  const matched = handlers.flatMap(({ group: { matcher = '', event } }) =>
    eventSpec(event).matches === 'tool_name' && /^[\w\- ,|]+$/.test(matcher) ? matcher.split(/[|,]/) : [],
  )
  const theirs = matched.map((name) => ownName(name.trim())).filter((name) => name !== '')
  const names = new Set(['bash', 'read_file', 'write_file', 'edit_file', ...named, ...theirs])
  return [...names].map((name) => ({ name, inputSchema: usualInput }))
}

const usualInput = {
  type: 'object',
  properties: { command: { type: 'string' }, path: { type: 'string' }, content: { type: 'string' } },
}
