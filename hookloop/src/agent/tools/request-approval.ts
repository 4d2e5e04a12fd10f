import type { ToolDescription } from '../../state/inference.ts'
import type { EntryWarning } from '../../state/ledger.ts'
import { describeValue } from '../../state/describe-value.ts'
import { exactJson, hashJson, isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import {
  answerProblem,
  approvalFor,
  type Answer,
  type Approval,
  type Ask,
  type AskTrigger,
} from '../../state/tool-call.ts'
import { AgentError, messageOf, toAgentError } from '../../errors.ts'
import { untilEnd } from '../../effects/run-time.ts'
import { failureText } from '../../hooks/failure-text.ts'
import { isFatal } from '../../hooks/run-hooks.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { AskedAnswer } from '../capability.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { ActiveCall } from '../loop/open-step.ts'

/**
 * Requests approval for a call, as the agent's `approval` says. Undefined: the question stays open and the call waits.
 * Rejects only when the effects port fails.
 */
export async function requestApproval(
  run: RunContext,
  call: ActiveCall,
  asks: readonly Ask[],
  at?: AskTrigger,
): Promise<Answer | undefined> {
  const { answer, expiresInMs } = run.parts.approval
  const { interruptions } = call
  const previous = call.answer === undefined ? undefined : call.approval?.id
  delete call.answer
  const key = `${run.place}/${at ?? call.index}`
  const approval = approvalFor({ id: call.id, name: call.name, args: call.args }, asks, {
    key,
    trigger: at,
    tool: at === undefined ? fingerprintOf(run.parts, call.name) : undefined,
    path: run.parentLink?.path,
    ...(expiresInMs !== undefined && { expiresAt: run.now + expiresInMs, expiresInMs }),
    ...(interruptions !== undefined && { interruptions }),
    ...(previous !== undefined && { previous }),
  })
  run.effects.emit?.({ type: 'asked', step: run.step, at: run.now, approval })
  if (answer === 'deny') {
    const what = at === undefined ? 'Not run: it needs approval' : `The run needs approval at ${at}`
    const given = { block: `${what} (${approval.message}), and the agent has no approver.` }
    noteAnswer(run, call, given, approval.message, at)
    emitAnswered(run, approval, given)
    return given
  }
  if (answer === 'suspend') {
    call.approval = approval
    return undefined
  }
  const askedAt = run.now
  let given: AskedAnswer
  let failure: AgentError | undefined
  try {
    given = (await run.effects.perform<Json>(
      { key: `${key}/approval`, kind: 'approval', input: () => ({ id: approval.id, message: approval.message }) },
      async (signal) => {
        const { state } = run
        const warn = (warnings: readonly EntryWarning[]): void =>
          run.noteLoop(at ?? 'beforeToolUse', { ...placeOf(call, at), warnings })
        const ask = async (): Promise<AskedAnswer> => answer(approval, signal, { agentId: state.agentId, state, warn })
        const queue = run.parentLink?.approvals
        const { time } = run.effects
        time.hold()
        try {
          return fittingAnswer(approval, await time.wait(queue === undefined ? ask() : queue.run(ask), untilEnd))
        } finally {
          time.release()
        }
      },
    )) as AskedAnswer
  } catch (thrown) {
    if (thrown instanceof AgentError && isFatal(thrown)) throw thrown
    failure = toAgentError(thrown, 'HOOK_FAILED')
    given = { block: `The question could not be answered: ${failureText(failure, false)}` }
  }
  // After a crash, the replayed clock is behind until something new happens: the time in between is counted already.
  run.addWaited(run.now - (run.now < run.resumedAt ? askedAt : Math.max(askedAt, run.resumedAt)))
  if (failure !== undefined && run.ended === undefined) noteFailure(run, call, failure, at)
  noteAnswer(run, call, given, approval.message, at)
  if (given !== 'suspend') {
    emitAnswered(run, approval, given)
    return given
  }
  call.approval = approval
  return undefined
}

/** A warning, because an approver that fails looks like one that denies everything. */
function noteFailure(
  run: RunContext,
  call: Pick<ActiveCall, 'id'>,
  { code, message: why }: AgentError,
  at: AskTrigger | undefined,
): void {
  const message = `The approver failed, so the question was denied: ${why}`
  run.noteLoop(at ?? 'beforeToolUse', { ...placeOf(call, at), warnings: [{ code, message }] })
}

function emitAnswered(run: RunContext, { id }: Approval, answer: Answer): void {
  run.effects.emit?.({ type: 'answered', step: run.step, at: run.now, approval: id, answer })
}

/** A hash of what an approver is shown of a tool, and of what decides which arguments it takes. */
export function fingerprintOf({ descriptions }: AgentParts, name: string): string {
  const described = descriptions.get(name)
  if (described === undefined) return ''
  let fingerprint = fingerprints.get(described)
  if (fingerprint === undefined) fingerprints.set(described, (fingerprint = hashJson({ ...described })))
  return fingerprint
}

const fingerprints = new WeakMap<ToolDescription, string>()

/** An answer of an approver function. Edited arguments for a question that has none throw ANSWER_INVALID. */
function fittingAnswer(approval: Approval, answer: unknown): AskedAnswer {
  const given = checkedAnswer(answer)
  const problem = approval.trigger === undefined || given === 'suspend' ? undefined : answerProblem(approval, given)
  if (problem === undefined) return given
  throw new AgentError('ANSWER_INVALID', problem, { value: given })
}

/** Checks an answer. Anything but the three forms of an answer and `suspend` throws ANSWER_INVALID. */
export function checkedAnswer(answer: unknown): AskedAnswer {
  if (answer === 'allow' || answer === 'suspend') return answer
  if (isJsonObject(answer) && typeof answer['block'] === 'string')
    return Object.freeze({ block: answer['block'].trim() === '' ? 'Denied.' : answer['block'] })
  // Only that: with another field, such as `deny: true`, it is not certain that it allows the call.
  if (isJsonObject(answer) && isJsonObject(answer['allow']) && Object.keys(answer).length === 1) {
    try {
      return Object.freeze({ allow: exactJson(answer['allow'], 'edited arguments') as JsonObject })
    } catch (error) {
      throw new AgentError('ANSWER_INVALID', messageOf(error), { value: answer })
    }
  }
  throw new AgentError(
    'ANSWER_INVALID',
    `${describeValue(answer)} is not an answer. Use 'allow', { allow: arguments } or { block: 'reason' }.`,
    { value: answer },
  )
}

export function noteAnswer(
  run: RunContext,
  call: Pick<ActiveCall, 'id'>,
  answer: AskedAnswer,
  message = '',
  at?: AskTrigger,
): void {
  // The result of a blocked call has the reason. Without a call it is only here.
  const reason = at !== undefined && typeof answer === 'object' && 'block' in answer ? { value: answer.block } : {}
  run.noteLoop(at ?? 'beforeToolUse', { ...placeOf(call, at), decision: toDecision(answer), message, ...reason })
}

function placeOf({ id }: Pick<ActiveCall, 'id'>, at: AskTrigger | undefined): { readonly call?: string } {
  return at === undefined ? { call: id } : {}
}

function toDecision(answer: AskedAnswer): string {
  if (answer === 'allow') return 'approved'
  if (answer === 'suspend') return 'postponed'
  return 'block' in answer ? 'denied' : 'approved with other arguments'
}
