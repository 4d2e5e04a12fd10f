import type { Step } from '../../state/execution.ts'
import { textOfJson, type Json } from '../../state/json.ts'
import { isInChild, type OpenExecution } from '../../state/open-calls.ts'
import type { OpenChild } from '../../state/subagent.ts'
import type { ToolExecution } from '../../state/tool-call.ts'

/** A call that a subagent has made. Without an execution, its outcome is not known. */
export type MadeCall = { readonly name: string; readonly args: Json; readonly execution?: ToolExecution | undefined }

const MAX_CALLS = 100
const MAX_CHARS = 500

/** The result of a call whose subagent is not continued: what it has done, so that nothing of it is lost or repeated. */
export function closedChild(why: string, made: readonly MadeCall[]): ToolExecution {
  const isKnown = made.every(({ execution }) => execution !== undefined && execution.status !== 'outcomeUnknown')
  const shown = made.slice(0, MAX_CALLS).map(lineOf)
  const more = made.length > MAX_CALLS ? [`… and ${made.length - MAX_CALLS} more`] : []
  const did = made.length === 0 ? 'It had made no calls.' : ['It had made these calls:', ...shown, ...more].join('\n')
  return Object.freeze({ status: isKnown ? 'failed' : 'outcomeUnknown', output: `${why} ${did}` })
}

/** The calls in the state of a suspended subagent, with those of its own subagents. */
export function callsOfChild({ state }: OpenChild): readonly MadeCall[] {
  const execution = state['execution'] as unknown as (OpenExecution & { readonly steps: readonly Step[] }) | undefined
  if (execution === undefined) return []
  const closed = execution.steps.flatMap(({ toolCalls, toolExecutions }) =>
    toolCalls.map(({ name, args }, i): MadeCall => ({ name, args, execution: toolExecutions[i] })),
  )
  const open = execution.cursor?.phase === 'tools' ? execution.cursor.step.calls : []
  return [
    ...closed,
    ...open.flatMap((call): readonly MadeCall[] => {
      if (isInChild(call)) return callsOfChild(call.child)
      return call.result === undefined ? [] : [{ name: call.name, args: call.args, execution: call.result }]
    }),
  ]
}

function lineOf({ name, args, execution }: MadeCall): string {
  const result = execution === undefined ? 'outcome unknown' : `${execution.status}: ${short(execution.output)}`
  return `- ${name} ${short(args)}: ${result}`
}

function short(value: Json): string {
  const text = textOfJson(value)
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS).toWellFormed()}…`
}
