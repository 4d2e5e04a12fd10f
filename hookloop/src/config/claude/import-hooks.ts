import type { JsonObject } from '../../data/json.ts'
import { triggersOfEvent } from './events.ts'
import type { Handler, HookGroup, HookSource } from './handlers.ts'

export type ImportedHooks = {
  /** Entries for `.hookloop/hooks.json`. */
  readonly entries: readonly JsonObject[]
  /** What was left behind, and why. */
  readonly leftOut: readonly string[]
  /** What is better now, in words. */
  readonly gained: readonly string[]
}

/** Events at which a hook that fails should have said no. */
const judging = new Set(['PreToolUse', 'UserPromptSubmit', 'PreCompact'])

/** Hooks of Claude Code as entries of our own file, one for each handler, in the order they stand in. */
export function importHooks(groups: readonly HookGroup[]): ImportedHooks {
  const leftOut: string[] = []
  const names = new Map<string, number>()
  const entries = groups.flatMap(({ event, matcher, handlers, source }) =>
    handlers.flatMap((handler): JsonObject[] => {
      const [trigger, ...others] = triggersOfEvent(event)
      const why =
        staysWith(source) ?? (trigger === undefined ? 'a hook of its own has no such moment' : unsupported(handler))
      if (why !== undefined) {
        leftOut.push(`${event} ${briefly(handler)}: ${why}`)
        return []
      }
      const base = `${event} ${briefly(handler)}`
      const times = (names.get(base) ?? 0) + 1
      names.set(base, times)
      return [
        {
          name: times === 1 ? base : `${base} ${times}`,
          on: others.length === 0 ? trigger! : [trigger!, ...others],
          mode: 'hook',
          ...(judging.has(event) && { onFailure: 'block' }),
          claude: { event, ...(matcher !== undefined && matcher !== '' && { matcher }), ...fieldsOf(handler) },
        },
      ]
    }),
  )
  const closed = entries.filter(({ onFailure }) => onFailure === 'block').length
  const gained = [
    'They run one after the other, in this order, and each sees what the one before it changed.',
    'Each has a name, a priority and its own line in the ledger.',
    ...(closed > 0
      ? [
          `${closed} of ${entries.length} now ${closed === 1 ? 'fails' : 'fail'} closed: one that crashes or hangs is a no, where it was a yes.`,
        ]
      : []),
    'They also apply to subagents, streams, resumed and replayed runs, and `hookloop hooks doctor` shows it.',
  ]
  return { entries, leftOut, gained: entries.length === 0 ? [] : gained }
}

/** What is for a skill or an agent would always apply here. */
function staysWith({ kind, name = '' }: HookSource): string | undefined {
  return kind === 'skill' || kind === 'agent' ? `it is for the ${kind} ${name}, and stays there` : undefined
}

function unsupported(handler: Handler): string | undefined {
  if (handler.type === 'command') return handler.async ? 'it runs beside the agent; write it as an observer' : undefined
  return handler.type === 'http' ? undefined : `a handler of type ${handler.type} has no counterpart as a single hook`
}

function fieldsOf(handler: Handler): JsonObject {
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
  if (handler.type !== 'http') return common
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
