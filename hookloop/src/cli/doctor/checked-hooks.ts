import { relative } from 'node:path'
import type { Capability } from '../../agent/capability.ts'
import { claudeHooks } from '../../hook-files/claude/claude-hooks.ts'
import { singleHandlers, type SingleHandler } from '../../hook-files/claude/single-handlers.ts'
import { eventSpec, type ClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import { ownName } from '../../hook-files/claude/events/tool-names.ts'
import { handlerName } from '../../hook-files/list-hooks.ts'
import { findHooks } from '../../hook-files/files/project-hooks.ts'
import type { Json } from '../../state/json.ts'
import { messageOf } from '../../errors.ts'
import type { Hook } from '../../hooks/hook.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import type { HookTrigger } from '../../hooks/triggers.ts'
import { serversIn } from '../run/file-hooks.ts'
import type { CanaryTool } from './probe-model.ts'
import type { Subject } from './probe-runs.ts'

/** A hook that is looked at, as the report names it. */
export type Patient = Subject & {
  readonly name: string
  readonly mode: 'guard' | 'hook' | 'observe' | 'claude'
  /** The file it stands in, or the agent. */
  readonly source: string
  /** The tools it is for, if it is not for all of them, and whether a tool is one of them. */
  readonly tool?: { readonly words: string; readonly fits: (name: string) => boolean } | undefined
  readonly hook: Hook
  /** It belongs to a skill or an agent, and is tried as if that were active. */
  readonly isOwned?: boolean
  /** Why it cannot be tried. */
  readonly untried?: string | undefined
}

export type Patients = {
  readonly patients: readonly Patient[]
  readonly tools: readonly CanaryTool[]
  /** Those that may change the arguments of a call, as they are. */
  readonly rewriters: readonly Hook[]
  /** Why hooks of files could not be read. */
  readonly problems: readonly string[]
}

type Places = { readonly dir: string; readonly user: boolean }

/** Every hook of an agent and of files that would be in force. */
export function patientsOf(own: readonly Capability[], { dir, user }: Places): Patients {
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
  const mcp = serversIn(own)
  const handlers = reading(() =>
    singleHandlers({ dir, ...home, answer: () => 'allow', ...(mcp !== undefined && { mcp }) }),
  )
  const ofAgent = own.flatMap(({ hooks = [] }) => hooks.map((hook) => ({ hook })))
  const tools = toolsFor(own, { hooks: ofFiles.map(({ hook }) => hook), handlers })
  const all = [...ofAgent, ...ofFiles].map(({ hook }) => hook)
  const claude = reading(() => claudeHooks({ dir, ...home }).hooks ?? [])
  const near = (file: string): string => (relative(dir, file).startsWith('..') ? file : relative(dir, file))
  return {
    tools,
    problems: [...new Set(problems)],
    rewriters: [...all, ...claude].filter(isRewriter),
    patients: [
      ...ofAgent.map(({ hook }) => patientOf(hook, { tools, source: '--agent', isOfFile: false })),
      ...ofFiles.map(({ hook, source, line }) => ({
        ...patientOf(hook, { tools, source: `${near(source.file)}:${line}`, isOfFile: true }),
        ...(source.kind === 'agent' && { agentName: source.owner }),
        isOwned: source.owner !== undefined,
      })),
      ...handlers.map((each) => ({
        ...patientOfHandler(each, { tools, source: near(each.group.source.file) }),
        untried:
          each.handler.type === 'mcp_tool' && mcp === undefined
            ? `no --agent is named that connects the server "${each.handler.server}"`
            : undefined,
      })),
    ],
  }
}

function isRewriter({ mode, triggers, shadow }: Hook): boolean {
  return mode === 'transform' && !shadow && triggers.includes('beforeToolUse')
}

/** The most tools that are called for one hook: two, so that they can be called together. */
const MAX_CALLS = 2

function patientOf(hook: Hook, given: { tools: readonly CanaryTool[]; source: string; isOfFile: boolean }): Patient {
  const { tools, source, isOfFile } = given
  const { name, mode, triggers } = hook
  const tool = selectionOf(hook)
  return {
    name,
    mode: mode === 'transform' ? 'hook' : mode,
    on: triggers,
    source,
    hook,
    isOfFile,
    tool,
    tools: tools.filter((each) => tool?.fits(each.name) ?? true).slice(0, MAX_CALLS),
    make: () => ({ hook }),
  }
}

function selectionOf({ tool }: Hook): Patient['tool'] {
  if (tool === undefined) return undefined
  if (typeof tool === 'string' || tool instanceof RegExp) return { words: String(tool), fits: toNameTest(tool) }
  return { words: tool.name, fits: (name) => name === tool.name }
}

function patientOfHandler(each: SingleHandler, given: { tools: readonly CanaryTool[]; source: string }): Patient {
  const { group, handler, fits, make } = each
  const { event, matcher } = group
  const { trigger, alsoAt, matches, isAboutAsking = false } = eventSpec(event)
  const isOfTools = matches === 'tool_name'
  const agentName = agentNameFor(group)
  const fitting = given.tools.filter(({ name }) => fits(name)).slice(0, MAX_CALLS)
  return {
    name: handlerName(event, handler),
    mode: 'claude',
    on: [trigger, alsoAt].filter((each) => each !== undefined),
    source: given.source,
    hook: hookAt(make().capability, trigger!),
    isOfFile: true,
    tool: isOfTools && matcher !== undefined ? { words: matcher, fits } : undefined,
    tools: callsFor(event, agentName) ?? fitting,
    fails: event === 'PostToolUseFailure',
    denied: event === 'PermissionDenied',
    asked: isAboutAsking,
    agentName,
    make: () => {
      const { capability, ran } = make()
      return { hook: hookAt(capability, trigger!), approval: capability.approval, ran }
    },
  }
}

/** That of a capability which fires at a trigger. */
function hookAt({ hooks = [] }: Capability, trigger: HookTrigger): Hook {
  return hooks.find(({ triggers }) => triggers.includes(trigger))!
}

/** What has to be called for events that are about one tool. */
function callsFor(event: ClaudeEvent, agent: string): readonly CanaryTool[] | undefined {
  const called = (name: string, args: Json): readonly CanaryTool[] => [{ name, inputSchema: { const: args } }]
  switch (event) {
    case 'SubagentStart':
      return called('spawn_subagent', { subagent: agent, prompt: 'canary' })
    case 'TaskCreated':
    case 'TaskCompleted':
      return called('todo_write', { todos: [{ content: 'canary', status: 'completed', activeForm: 'canary' }] })
    default:
      return undefined
  }
}

/** An agent that the hooks of an agent, or a matcher that names one, are for. */
function agentNameFor({ event, matcher = '', source }: SingleHandler['group']): string {
  const isOfAgents = eventSpec(event).matches === 'agent_type'
  const [named] = (isOfAgents && /^[\w-]+/.exec(matcher)) || []
  const name = (source.kind === 'agent' ? source.name : named) ?? ''
  return name === '' ? 'canary' : name
}

/** The tools of the agent, or, where there is none, those that hooks name. */
function toolsFor(
  own: readonly Capability[],
  { hooks, handlers }: { readonly hooks: readonly Hook[]; readonly handlers: readonly SingleHandler[] },
): readonly CanaryTool[] {
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
