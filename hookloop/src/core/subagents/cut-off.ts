import { textOfJson, type Json } from '../../values/json.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import type { EffectPath } from '../effects/keys.ts'
import type { RunLog, Scope } from '../effects/log.ts'
import type { ChildEnd } from './child-run.ts'

/** A call that a subagent has made. What hooks have not judged yet is not shown. */
type MadeCall = { readonly name: string; readonly args: Json; readonly result: string; readonly isKnown: boolean }

const cut = { shouldContinue: false, stopReason: 'errorForbade', resolvedBy: 'hookloop', evaluations: [] } as const
const MESSAGE = 'the agent no longer has it'
const MAX_CALLS = 100
const MAX_CHARS = 500

/** The end of a subagent that does not exist any more: what it has done, so that nothing of it is lost or repeated. */
export function cutOff(
  log: RunLog,
  { path, n, agent }: Pick<ChildEnd, 'n' | 'agent'> & { readonly path: EffectPath },
): ChildEnd {
  const scope = log.scope(path)
  const made = [...log.scopesIn(scope.id)].flatMap(callsIn)
  const shown = made.slice(0, MAX_CALLS).map(lineOf)
  const more = made.length > MAX_CALLS ? [`… and ${made.length - MAX_CALLS} more`] : []
  const did = made.length === 0 ? 'It had made no calls.' : ['It had made these calls:', ...shown, ...more].join('\n')
  const execution: ToolExecution = Object.freeze({
    status: made.every(({ isKnown }) => isKnown) ? 'failed' : 'outcomeUnknown',
    output: `The subagent was interrupted and is not continued. ${did}`,
  })
  const usage = log.openUsage(scope.id)
  return { kind: 'child', n, agent, status: 'failed', outcome: cut, message: MESSAGE, usage, execution }
}

function callsIn({ state, entries }: Scope): readonly MadeCall[] {
  const steps = state?.execution?.steps ?? []
  const closed = steps.flatMap(({ toolCalls, toolExecutions }) =>
    toolCalls.map(({ name, args }, i): MadeCall => {
      const { status, output } = toolExecutions[i]!
      return { name, args, result: `${status}: ${short(output)}`, isKnown: status !== 'outcomeUnknown' }
    }),
  )
  const open = [...entries.values()].flatMap(({ key, begin, end }): readonly MadeCall[] => {
    if (key.kind !== 'tool' || begin === undefined) return []
    const { name, args } = begin.input as { readonly name: string; readonly args: Json }
    const status = (end?.value as ToolExecution | undefined)?.status ?? 'outcome unknown'
    return [{ name, args, result: status, isKnown: end !== undefined && status !== 'outcomeUnknown' }]
  })
  return [...closed, ...open]
}

function lineOf({ name, args, result }: MadeCall): string {
  return `- ${name} ${short(args)}: ${result}`
}

function short(value: Json): string {
  const text = textOfJson(value)
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}…`
}
