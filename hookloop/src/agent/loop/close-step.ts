import type { InferenceResponse } from '../../state/inference.ts'
import { isInChild } from '../../state/open-calls.ts'
import type { Part, ToolCallPart } from '../../state/message.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { Invocation } from '../../hooks/invocation.ts'
import { isFatal, runGuards, runTransforms } from '../../hooks/run-hooks.ts'
import { useRecordedResponse } from '../model/call.ts'
import { childParts } from '../subagents/child-parts.ts'
import { callsOfChild, closedChild, type MadeCall } from '../subagents/closed-child.ts'
import { delegationTo } from '../subagents/delegated-call.ts'
import { blockedExecution, withheldExecution } from '../tools/result.ts'
import { conclude, resultAfter } from '../tools/run-calls.ts'
import type { ActiveCall, OpenStep } from './open-step.ts'
import type { RunContext } from './run-context.ts'
import type { StepRecord } from './step-record.ts'

// An agent that has changed cannot repeat the step that it was interrupted in: it would ask the model something else, or
// decide otherwise about a call that was started. So the step is closed with what is recorded, and no call is started.

/** The position of a call of the step among the recorded calls, if it was started. */
type PlaceInRecord = (index: number) => number | undefined

/** Uses the recorded answer as that of the open step. Every call that was started is in it, whatever hooks change now. */
export async function useRecordedAnswer(run: RunContext, step: OpenStep, record: StepRecord): Promise<PlaceInRecord> {
  const response = record.response!
  let added: readonly number[] = []
  let count = 0
  const change = (passed: InferenceResponse): InferenceResponse => {
    const calls = callsIn(passed.content)
    const started = record.started.map((index) => ({ index, call: startedCall(record, response, index) }))
    const missing = started.filter(({ index, call }) => calls[index]?.toolName !== call.toolName)
    const parts = missing.map(({ call }) => call)
    added = missing.map(({ index }) => index)
    count = calls.length
    return Object.freeze({ ...passed, content: Object.freeze([...passed.content, ...parts]) })
  }
  await useRecordedResponse(run, step, { response, usage: record.usage, change })
  return (index) => (index >= count ? added[index - count] : added.includes(index) ? undefined : index)
}

type Recorded = { readonly record: StepRecord; readonly why: string }

/** Gives each call of the step its recorded result; one that was not started is not run. Open questions stay open. */
export async function closeCalls(
  run: RunContext,
  step: OpenStep,
  { record, why, placeOf = (index) => index }: Recorded & { readonly placeOf?: PlaceInRecord },
): Promise<void> {
  const message = `The interrupted step is closed with what is recorded: ${why}.`
  run.noteLoop('beforeStep', { decision: 'closed', message, warnings: [{ code: 'STEP_CLOSED', message }] })
  for (const call of step.calls) {
    if (call.result !== undefined) continue
    const at = placeOf(call.index)
    const started = at === undefined ? undefined : await startedResult(run, call, { step, record, at })
    const result = started ?? unstartedResult(call)
    if (result !== undefined) await conclude(run, call, result)
  }
}

/** The result of a call that was started. */
async function startedResult(
  run: RunContext,
  call: ActiveCall,
  { step, record, at }: { readonly step: OpenStep; readonly record: StepRecord; readonly at: number },
): Promise<ToolExecution | undefined> {
  const made = record.call(at)
  if (made !== undefined) {
    call.ran = true
    call.args = made.args
    return made.execution
  }
  const ofChild = record.callsOfChild(at)
  if (ofChild === undefined && !(isInChild(call) && call.answers !== undefined)) return undefined
  call.ran = true
  step.count(record.usageOfChild(at))
  const ended = record.resultOfChild(at)
  if (ended !== undefined) {
    const { usage: _counted, ...result } = ended
    return Object.freeze(result)
  }
  const before = call.child === undefined ? [] : callsOfChild(call.child)
  const passed = await afterHooks(run, call, ofChild ?? [])
  return closedChild('The subagent was interrupted and is not continued.', [...before, ...passed])
}

/**
 * The calls of a subagent with their results as hooks at afterToolUse let them pass: a result is recorded before they see it.
 * The hooks change nothing else, because the subagent is not continued.
 */
async function afterHooks(run: RunContext, call: ActiveCall, made: readonly MadeCall[]): Promise<readonly MadeCall[]> {
  const { stack } = await delegationTo(run, call).then(
    (delegation) => childParts(run.parts, delegation),
    () => run.parts, // the agent no longer has the subagent
  )
  const passed: MadeCall[] = []
  for (const each of made) {
    const { name, args, execution } = each
    if (execution === undefined) {
      passed.push(each)
      continue
    }
    const facts = { toolCall: Object.freeze({ id: call.id, name, args: args as never }), toolExecution: execution }
    const plan = stack.plan('afterToolUse', name)
    const invocation = new Invocation(run, plan, run.state, facts, call.index)
    try {
      await runTransforms(invocation, plan.transforms)
      await runGuards(invocation, plan.guards)
      passed.push({ ...each, execution: resultAfter(invocation, execution) })
    } catch (thrown) {
      if (isFatal(thrown)) throw thrown
      passed.push({ ...each, execution: withheldExecution(execution, 'hookloop', 'A hook failed.') })
    }
  }
  return passed
}

/** The result of a call that was not started; undefined if it still waits for an answer. */
function unstartedResult(call: ActiveCall): ToolExecution | undefined {
  if (typeof call.answer === 'object' && 'block' in call.answer) return blockedExecution('approval', call.answer.block)
  if (isInChild(call) || (call.approval !== undefined && call.answer === undefined)) return undefined
  return blockedExecution(
    'hookloop',
    'Not run: the run was interrupted before. Make the call again if it is still needed.',
  )
}

function startedCall(record: StepRecord, response: InferenceResponse, index: number): ToolCallPart {
  const made = record.call(index)
  const asked = callsIn(response.content)[index]
  const [toolName, input] =
    made === undefined ? [asked?.toolName ?? 'subagent', asked?.input ?? {}] : [made.name, made.args]
  return Object.freeze({ type: 'tool-call', toolCallId: `recorded-${index}`, toolName, input: input as never })
}

function callsIn(content: readonly Part[]): readonly ToolCallPart[] {
  return content.filter((part) => part.type === 'tool-call')
}
