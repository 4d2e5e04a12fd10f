import type { ToolDescription } from '../state/inference.ts'
import type { EntryWarning } from '../state/ledger.ts'
import { describeValue } from '../../values/describe-value.ts'
import type { ContinuationEvaluation } from '../state/continuation.ts'
import { exactJson, hashJson, isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import {
  answerProblem,
  approvalFor,
  type Answer,
  type Approval,
  type Ask,
  type AskTrigger,
} from '../state/tool-call.ts'
import { passes, Suspended } from '../effects/journal.ts'
import type { EffectKey } from '../effects/keys.ts'
import { untilEnd } from '../effects/run-time.ts'
import { AgentError, messageOf, toAgentError } from '../../errors.ts'
import { failureText } from '../hooks/failure-text.ts'
import type { Invocation } from '../hooks/invocation.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import type { AskedAnswer } from '../agent/capability.ts'
import type { RunContext } from './run-context.ts'

/** What is asked: about a call, or about `subject` at another trigger. */
export type Question = {
  readonly call: { readonly id: string; readonly name: string; readonly args: Json }
  readonly asks: readonly Ask[]
  /** The trigger, if it is not about a tool call. */
  readonly at?: AskTrigger | undefined
  /** How often a process died while it ran the call, if that is asked about. */
  readonly interruptions?: number | undefined
}

type Asked = { readonly key: EffectKey; readonly approval: Approval }

/** The key of a question covers all that is asked, so an answer is never used for anything else. */
function toAsked(run: RunContext, { call, asks, at, interruptions }: Question): Asked {
  const { expiresInMs } = run.parts.approval
  const { run: id } = run.effects
  const approval = approvalFor(call, asks, {
    key: `${id}/${run.step}/${at ?? call.id}`,
    trigger: at,
    tool: at === undefined ? fingerprintOf(run.parts, call.name) : undefined,
    path: run.parent?.path,
    ...(expiresInMs !== undefined && { expiresAt: run.effects.clockTime() + expiresInMs, expiresInMs }),
    interruptions,
  })
  const key = { step: run.step, kind: 'ask', call: at === undefined ? call.id : undefined, n: approval.hash } as const
  return { key: { ...key, trigger: at ?? 'beforeToolUse' }, approval }
}

/** Whether exactly this question has an answer. */
export function isAnswered(run: RunContext, question: Question): boolean {
  return run.effects.scopeLog.find(toAsked(run, question).key)?.end !== undefined
}

/**
 * Asks the approver, as the agent's `approval` says. Throws `Suspended` if the question stays open. The caller notes the answer:
 * questions that are put together are answered in any order, and are noted in that of the calls.
 */
export async function ask(run: RunContext, question: Question): Promise<Answer> {
  const { answer: policy } = run.parts.approval
  const { key, approval } = toAsked(run, question)
  const known = run.effects.scopeLog.find(key)
  if (known === undefined) run.effects.emit?.({ type: 'asked', step: run.step, at: run.now, approval })
  const isDenied = policy === 'block' && known === undefined
  const asked = (known?.begin?.input as Approval | undefined) ?? approval // with the expiry that was shown
  let given: Answer
  try {
    const effect = { key, input: (): Json => asked, isInstant: isDenied }
    const answered = async (signal: AbortSignal): Promise<Json> =>
      isDenied ? denyNow(run, question, asked) : askNow(run, question, asked, signal)
    given = (await run.effects.time.asking(() => run.effects.perform<Json>(effect, answered))) as Answer
  } catch (thrown) {
    if (passes(thrown)) throw thrown
    const failure = toAgentError(thrown, 'HOOK_FAILED')
    given = { block: `The question could not be answered: ${failureText(failure, false)}` }
    if (run.effects.time.end === undefined) noteFailure(run, question, failure)
  }
  return given
}

/** Without an approver, questions are blocked. */
function denyNow(run: RunContext, { at }: Question, approval: Approval): Json {
  const what = at === undefined ? 'Not run: it needs approval' : `The run needs approval at ${at}`
  const given = { block: `${what} (${approval.message}), and the agent has no approver.` }
  emitAnswered(run, approval, given)
  return given
}

async function askNow(run: RunContext, question: Question, approval: Approval, signal: AbortSignal): Promise<Json> {
  const { answer: policy } = run.parts.approval
  const { time } = run.effects
  if (policy === 'suspend' || policy === 'block') throw new Suspended([approval])
  const { state } = run
  const warn = (warnings: readonly EntryWarning[]): void => noteAbout(run, question, { warnings })
  const askApprover = async (): Promise<AskedAnswer> =>
    policy(approval, signal, { agentId: state.agentId, state, warn })
  time.waitsChanged()
  const given = fittingAnswer(approval, await time.wait(run.approvals.run(askApprover), untilEnd))
  if (given === 'suspend') {
    noteAnswer(run, question, given)
    throw new Suspended([approval])
  }
  emitAnswered(run, approval, given)
  return given
}

/** A warning, because an approver that fails looks like one that blocks everything. */
function noteFailure(run: RunContext, question: Question, { code, message: why }: AgentError): void {
  const message = `The approver failed, so the question was blocked: ${why}`
  noteAbout(run, question, { warnings: [{ code, message }] })
}

function emitAnswered(run: RunContext, { id }: Approval, answer: Answer): void {
  run.effects.emit?.({ type: 'answered', step: run.step, at: run.now, approval: id, answer })
}

/**
 * Asks what guards at a trigger ask; `subject` is what is to be approved. Returns the reason of a block. What has begun is not
 * asked about, unless this is the question that was answered before.
 */
export async function askAt(
  run: RunContext,
  { asks }: Invocation,
  about: { readonly at: AskTrigger; readonly subject: JsonObject; readonly hasBegun: boolean },
): Promise<{ readonly block: string } | undefined> {
  const { at, subject, hasBegun } = about
  const question: Question = { call: { id: at, name: at, args: subject }, asks, at }
  if (hasBegun && !isAnswered(run, question)) {
    run.noteOverridden(at, { by: asks[0]!.by, decision: 'ask' })
    return undefined
  }
  const given = await ask(run, question)
  noteAnswer(run, question, given)
  if (given === 'allow') return undefined
  if (!hasBegun && run.checkEnd() !== undefined) return undefined // no approver was asked: the run ends
  if ('block' in given) return given
  return { block: `The answer has arguments, but a question at ${at} has none to edit.` }
}

/** The vote of an approver who blocked a question. */
export function deniedVote(
  decision: 'forbidContinuation' | 'requestContinuation',
  { block: message }: { readonly block: string },
): ContinuationEvaluation {
  const reason = decision === 'forbidContinuation' ? 'stopRequested' : 'completed'
  return Object.freeze({ decision, reason, message, source: 'approval' })
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
    return Object.freeze({ block: answer['block'].trim() === '' ? 'Blocked.' : answer['block'] })
  // Only that: with another field, such as `block: true`, it is not certain that it allows the call.
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

export function noteAnswer(run: RunContext, question: Question, answer: AskedAnswer): void {
  const { at, asks } = question
  const message = asks.map((each) => each.message).join('; ')
  // The result of a blocked call has the reason. Without a call it is only here.
  const reason = at !== undefined && typeof answer === 'object' && 'block' in answer ? { value: answer.block } : {}
  noteAbout(run, question, { decision: toDecision(answer), message, ...reason })
}

function noteAbout(run: RunContext, { call, at }: Question, what: Parameters<RunContext['noteLoop']>[1]): void {
  run.noteLoop(at ?? 'beforeToolUse', { ...(at === undefined && { call: call.id }), ...what })
}

function toDecision(answer: AskedAnswer): string {
  if (answer === 'allow') return 'approved'
  if (answer === 'suspend') return 'postponed'
  return 'block' in answer ? 'blocked' : 'approved with other arguments'
}
