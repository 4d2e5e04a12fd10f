import { textOfJson } from '../../state/json.ts'
import { answerProblem, type ToolExecution } from '../../state/tool-call.ts'
import type { RunContext } from '../loop/run-context.ts'
import {
  effectsFailed,
  executeCall,
  executionIn,
  INTERRUPTED,
  interrupted,
  type CallToExecute,
} from './execute-call.ts'
import { requestApproval } from './request-approval.ts'
import { blockedExecution, stoppedExecution } from './result.ts'

/**
 * The result of a call that was started by a process that died: the model gets it as it is, or an approver decides whether
 * to run the call again. Undefined while the question is open.
 */
export async function resolveInterrupted(
  run: RunContext,
  at: CallToExecute,
  result: ToolExecution,
): Promise<ToolExecution | undefined> {
  try {
    return await resolve(run, at, result)
  } catch (thrown) {
    return effectsFailed(thrown, run)
  }
}

async function resolve(run: RunContext, at: CallToExecute, result: ToolExecution): Promise<ToolExecution | undefined> {
  const { call, tool } = at
  const policy = tool.onUnknownOutcome ?? run.parts.approval.onUnknownOutcome
  if (result.interrupted !== true || policy === 'tell' || run.stoppedBy() !== undefined) return result
  delete call.answer // it answered an earlier question
  const times = (call.interruptions ?? 0) + 1
  call.interruptions = times
  call.ran = false
  run.noteLoop('aroundToolUse', { call: call.id, decision: 'outcomeUnknown', message: INTERRUPTED })
  const by = tool.onUnknownOutcome === 'ask' ? `tool "${tool.name}"` : 'approval'
  const given = await requestApproval(run, call, [Object.freeze({ by, message: questionAbout(call.name, times) })])
  if (given === undefined) return undefined
  if (typeof given === 'object') return blockedExecution('approval', 'block' in given ? given.block : noEdits)
  const stopped = run.stoppedBy()
  if (stopped !== undefined) return stoppedExecution(stopped)
  return resolve(run, at, executionIn(await executeCall(run, at)))
}

const noEdits = answerProblem({ interruptions: 1 }, { allow: {} })!

function questionAbout(name: string, times: number): string {
  const started = times === 1 ? 'was started' : `was started ${times} times`
  return `"${name}" ${started} and interrupted before its result was known: it may have had an effect. Run it again?`
}

/** The result of an interrupted call that was not run again: it may have had an effect, whatever prevented the second run. */
export function notRunAgain({ output, by }: ToolExecution): ToolExecution {
  const why = textOfJson(output)
  const text = `${INTERRUPTED} It was not run again: ${why}`
  return Object.freeze({ ...interrupted, output: text, ...(by !== undefined && { by }) })
}
