import { messageOf } from '../../errors.ts'
import { eventSpec, isClaudeEvent } from '../../hook-files/claude/events/claude-events.ts'
import type { CommandProblem, ListedHooks } from '../../hook-files/list-hooks.ts'
import { untrustedFiles } from '../../hook-files/list-hooks.ts'
import { TrustStore } from '../../hook-files/trust/trust-store.ts'
import { oneLine } from '../terminal/printable.ts'
import type { CheckedHook, CheckedHooks } from './checked-hooks.ts'
import type { PathStatus } from './findings.ts'
import { changedArguments } from './probe-runs.ts'
import type { HookReport } from './report.ts'
import { TIMEOUT } from './watched-hook.ts'

const MAX_COMMAND = 60
const MAX_MESSAGE = 300

/** Files that cannot be read or are not trusted, and hooks on events that Hookloop does not have. */
export function fileProblems({ hooks, problems }: ListedHooks, dir: string, command: string): readonly string[] {
  return [
    ...problems,
    ...untrustedIn(dir).map(({ path, status }) => {
      const how = status === 'changed' ? 'changed after it was trusted' : 'is not trusted'
      return `${path} ${how}: its hooks do not run. Review them with: ${command} trust`
    }),
    ...hooks.flatMap(({ trigger, event, source, runs }) =>
      trigger === undefined
        ? [`${event ?? ''} in ${source} never fires in Hookloop: ${oneLine(runs, MAX_COMMAND)}`]
        : [],
    ),
  ]
}

function untrustedIn(dir: string): ReturnType<typeof untrustedFiles> {
  try {
    return untrustedFiles(dir, new TrustStore())
  } catch {
    return [] // a file that cannot be read is among the problems already
  }
}

/** Handlers of events that only a request of the user causes. */
export function onDemand({ hooks }: ListedHooks): readonly string[] {
  return hooks.flatMap(({ event = '', runs }) =>
    isClaudeEvent(event) && eventSpec(event).isOnDemand === true
      ? [`${event} ${oneLine(runs, MAX_COMMAND)} is not checked: it fires only on request`]
      : [],
  )
}

/** Claude Code handlers that were imported into `.hookloop/hooks.json` and not removed. */
export function duplicates({ hooks }: ListedHooks): readonly string[] {
  return hooks.flatMap(({ event, runs, source }) => {
    const other = event === undefined ? undefined : hooks.find((each) => each.runs === `${event}: ${runs}`)
    if (other === undefined) return []
    return [`${event} ${oneLine(runs, MAX_COMMAND)} runs twice: it is in ${source} and in ${other.source}`]
  })
}

/** Hooks for tools that the agent does not have. */
export function unmatched({ hooks, tools }: CheckedHooks): readonly string[] {
  return hooks.flatMap(({ name, tool, mode }) => {
    if (tool === undefined || tools.some((each) => tool.matches(each.name))) return []
    const near = tools.find((each) => each.name.toLowerCase() === tool.text.toLowerCase())
    const hint = near === undefined ? '' : `. Did you mean "${near.name}"?`
    const kind = mode === 'claude' ? 'hook' : mode
    return [`the ${kind} "${name}" is for the tool ${tool.text}, which the agent does not have${hint}`]
  })
}

const problemTexts: { readonly [S in PathStatus]?: string } = {
  never: 'never fires',
  missed: 'misses events',
  twice: 'fires more than once for an event',
  untried: 'could not be checked',
}

export function hookProblems(
  { name, paths }: HookReport,
  checked: CheckedHook,
  commands: readonly CommandProblem[],
): readonly string[] {
  const all = Object.entries(paths)
  const wrong = all.flatMap(([path, { status, why = '' }]) =>
    problemTexts[status] === undefined ? [] : [`"${name}" ${problemTexts[status]} on the path "${path}": ${why}`],
  )
  const failing = all.find(([, { status }]) => status === 'fails')
  const isReported = commands.some(({ hook }) => hook === name)
  if (failing === undefined || isReported || !isExternal(checked)) return wrong
  const effect = checked.mode === 'guard' ? ', so it blocks' : ''
  return [...wrong, `"${name}" fails${effect}: ${oneLine(failing[1].why ?? '', MAX_MESSAGE)}`]
}

/** A command or URL that fails in a probe run always fails. A function may need data that a probe run does not have. */
function isExternal({ isFromFile, hook }: CheckedHook): boolean {
  return isFromFile || hook.action !== undefined
}

/** What is worth knowing and not a problem. */
export function notesOn(hooks: readonly HookReport[], checked: readonly CheckedHook[]): readonly string[] {
  const idle = hooks.flatMap(({ name, paths }) => {
    const none = Object.entries(paths).filter(([, { status }]) => status === '–')
    const byWhy = Map.groupBy(none, ([, { why = '' }]) => why)
    return [...byWhy].map(([why, these]) => ({ name, where: `on ${these.map(([path]) => path).join(', ')}: ${why}` }))
  })
  const grouped = [...Map.groupBy(idle, ({ where }) => where)].map(([where, these]) => {
    const names = these.map(({ name }) => oneLine(name, MAX_COMMAND))
    return `${names.join(', ')} ${names.length === 1 ? 'has' : 'have'} nothing to do ${where}`
  })
  const conditional = hooks
    .filter(({ paths }) => Object.values(paths).some(({ isConditional }) => isConditional === true))
    .map(({ name }) => `the "when" of ${name} is false in every probe run; it was run anyway`)
  const failing = hooks.flatMap(({ name, paths }, i) => {
    const { why } = Object.values(paths).find(({ status }) => status === 'fails') ?? {}
    if (why === undefined || isExternal(checked[i]!)) return []
    return [`"${name}" fails in a probe run: ${oneLine(why, MAX_MESSAGE)}`]
  })
  const slow = hooks
    .filter(({ paths }) => Object.values(paths).some(({ status }) => status === 'slow'))
    .map(({ name }) => `${name} timed out after ${TIMEOUT.ms / 1000} seconds`)
  return [...grouped, ...conditional, ...slow, ...failing]
}

/** Hooks that change the same argument: their order decides which one wins. */
export async function conflicts({ rewriters, tools }: CheckedHooks, signal: AbortSignal): Promise<readonly string[]> {
  if (rewriters.length < 2) return []
  try {
    const changes = await changedArguments(rewriters, { tools, signal })
    const byArgument = Map.groupBy(changes, ({ call, path }) => `${call} ${path}`)
    const both = [...byArgument.values()].flatMap((these) => {
      const by = [...new Set(these.map(({ hook }) => hook))]
      return by.length < 2
        ? []
        : [`${by.map((name) => `"${name}"`).join(' and ')} both change ${these[0]!.path}; the last one wins`]
    })
    return [...new Set(both)]
  } catch (error) {
    signal.throwIfAborted()
    return [`the hooks that change arguments could not be checked together: ${messageOf(error)}`]
  }
}
