import { relative, resolve } from 'node:path'
import type { JsonObject } from '../../../values/json.ts'
import { triggersOfEvent, type ClaudeEvent } from '../events/claude-events.ts'
import type { CommandHandler, Handler, HookGroup, HookSource, HttpHandler } from '../load/handlers.ts'
import { importPrompt, type ImportedEntry } from './import-prompt.ts'

export type ImportedHooks = {
  /** Entries for `.hookloop/hooks.json`. */
  readonly entries: readonly JsonObject[]
  /** Handlers that were not imported, and why. */
  readonly leftOut: readonly string[]
  /** What is better now. */
  readonly gained: readonly string[]
  /** What is different now. */
  readonly differs: readonly string[]
}

/** Events at which a failing hook should block. */
const judging = new Set(['PreToolUse', 'UserPromptSubmit', 'PreCompact'])

/** Converts Claude Code hooks to entries of a hook file in `root`, one for each handler, in their order. */
export function importHooks(groups: readonly HookGroup[], root: string): ImportedHooks {
  const leftOut: string[] = []
  const differs: string[] = []
  const names = new Map<string, number>()
  const entries = groups.flatMap(({ event, matcher, handlers, source }) =>
    handlers.flatMap((handler): JsonObject[] => {
      const base = `${event} ${briefly(handler)}`
      const made = staysWith(source) ?? entryFor({ event, matcher, source }, handler, root)
      if (typeof made === 'string') {
        leftOut.push(`${base}: ${made}`)
        return []
      }
      const times = (names.get(base) ?? 0) + 1
      names.set(base, times)
      const name = times === 1 ? base : `${base} ${times}`
      differs.push(...made.differs.map((words) => `${name}: ${words}`))
      return [{ name, ...made.entry }]
    }),
  )
  return {
    entries,
    leftOut,
    gained: entries.length === 0 ? [] : gainedBy(entries),
    differs: [...differs, ...(entries.some(asks) ? [OTHER_NAMES] : [])],
  }
}

const OTHER_NAMES = 'Models get the event of Hookloop: toolCall.name and toolCall.args, not tool_name and tool_input.'

function asks({ prompt, subagent }: JsonObject): boolean {
  return prompt !== undefined || subagent !== undefined
}

function gainedBy(entries: readonly JsonObject[]): readonly string[] {
  const closed = entries.filter(({ onFailure, mode }) => onFailure === 'block' || mode === 'guard').length
  return [
    'They run one after the other, in this order, and each gets what the previous one changed.',
    'Each has a name, a priority and its own line in the ledger.',
    ...(closed > 0
      ? [
          `${closed} of ${entries.length} now ${closed === 1 ? 'fails' : 'fail'} closed: one that crashes or hangs blocks. Before, it allowed.`,
        ]
      : []),
    'They also apply to subagents, streams, resumed and replayed runs, and `hookloop hooks list --check` runs them once.',
  ]
}

type Place = { readonly event: ClaudeEvent; readonly matcher: string | undefined; readonly source: HookSource }

/** The entry for a handler, or why there is none. */
function entryFor({ event, matcher, source }: Place, handler: Handler, root: string): ImportedEntry {
  const [trigger, ...others] = triggersOfEvent(event)
  if ('prompt' in handler) return importPrompt(event, matcher, handler)
  if (trigger === undefined) return 'a single hook cannot have this event'
  if (handler.type === 'mcp_tool') return 'there is no action for handlers of type mcp_tool'
  if (handler.type === 'command' && handler.async) return 'it runs in the background; write it as an observer'
  return {
    entry: {
      on: others.length === 0 ? trigger : [trigger, ...others],
      mode: 'hook',
      ...(judging.has(event) && { onFailure: 'block' }),
      claude: {
        event,
        ...(matcher !== undefined && matcher !== '' && { matcher }),
        ...fieldsOf(handler),
        ...pluginOf(source, root),
      },
    },
    differs:
      source.kind === 'plugin' ? ['it runs in the folder of its file, not in the working directory of the agent'] : [],
  }
}

function pluginOf({ root: plugin }: HookSource, root: string): JsonObject {
  return plugin === undefined ? {} : { pluginRoot: relative(root, resolve(plugin)) || '.' }
}

/** In a hook file, hooks of a skill or an agent would always apply. */
function staysWith({ kind, name = '' }: HookSource): string | undefined {
  return kind === 'skill' || kind === 'agent' ? `it belongs to the ${kind} ${name} and stays there` : undefined
}

function fieldsOf(handler: CommandHandler | HttpHandler): JsonObject {
  const common = { timeout: handler.timeoutMs / 1000, ...(handler.if !== undefined && { if: handler.if }) }
  if (handler.type === 'command') {
    return {
      type: 'command',
      command: handler.command,
      ...(handler.args !== undefined && { args: [...handler.args] }),
      ...(handler.shell !== 'default' && { shell: handler.shell }),
      ...common,
    }
  }
  return {
    type: 'http',
    url: handler.url,
    headers: { ...handler.headers },
    allowedEnvVars: [...handler.allowedEnvVars],
    ...common,
  }
}

function briefly(handler: Handler): string {
  if (handler.type === 'http') return new URL(handler.url).host
  if (handler.type !== 'command') return handler.type
  const [word = ''] = handler.command
    .split(/\s+/)
    .filter((each) => !/^(?:bash|sh|node|python3?|npx|uv|run)$/.test(each))
  return word.replaceAll(/["']/g, '').split('/').at(-1) || 'command'
}
