import { answerProblem, type Ask, type ToolExecution } from '../../state/tool-call.ts'
import { askPerson } from './request-approval.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { ActiveCall } from '../loop/open-step.ts'
import { executeCall, INTERRUPTED, interrupted, type Place } from './execute-call.ts'
import { blockedExecution, stoppedExecution } from './result.ts'

/**
 * What becomes of a call that was begun by a process that died. The model is told, or a person is asked whether to run
 * it again; nothing means that the question stays open.
 */
export function knownOutcome(
  run: RunContext,
  at: Place,
  result: ToolExecution,
): ToolExecution | Promise<ToolExecution | undefined> {
  if (result.interrupted !== true || policyOf(run, at) === 'tell') return result
  if (run.stoppedBy() !== undefined) return result
  return askAgain(run, at)
}

/** A call that may have been done and was not run again: whatever kept it from that, it did not keep it from happening. */
export function notRunAgain({ output, by }: ToolExecution): ToolExecution {
  const why = typeof output === 'string' ? output : JSON.stringify(output)
  const words = `${INTERRUPTED} It was not run again: ${why}`
  return Object.freeze({ ...interrupted, output: words, ...(by !== undefined && { by }) })
}

export function mayHaveHappened({ interruptions, ran }: ActiveCall): boolean {
  return interruptions !== undefined && ran !== true
}

function policyOf({ parts }: RunContext, { tool }: Place): 'tell' | 'ask' {
  return tool.onUnknownOutcome ?? parts.approval.onUnknownOutcome
}

async function askAgain(run: RunContext, at: Place): Promise<ToolExecution | undefined> {
  const { call, tool } = at
  delete call.answer // what was answered before is not what is asked now
  call.interruptions = (call.interruptions ?? 0) + 1
  call.ran = false
  run.noteLoop('aroundToolUse', { call: call.id, decision: 'outcomeUnknown', message: INTERRUPTED })
  const by = tool.onUnknownOutcome === 'ask' ? `tool "${tool.name}"` : 'approval'
  const given = await askPerson(run, call, [questionAbout(call, by)])
  if (given === undefined) return undefined
  if (typeof given === 'object') return blockedExecution('approval', 'block' in given ? given.block : editedWords)
  const over = run.stoppedBy()
  if (over !== undefined) return stoppedExecution(over)
  const again = await executeCall(run, at)
  return knownOutcome(run, at, again)
}

const editedWords = answerProblem({ interruptions: 1 }, { allow: {} })!

function questionAbout({ name, interruptions = 1 }: ActiveCall, by: string): Ask {
  const times = interruptions === 1 ? 'was begun' : `was begun ${interruptions} times`
  const message = `"${name}" ${times} and cut off before it was known how it ended: it may have happened. Run it again?`
  return Object.freeze({ by, message })
}
