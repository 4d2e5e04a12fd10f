import { AgentState } from '../state/agent-state.ts'
import {
  countVotes,
  decidingVote,
  isForbidden,
  MAX_CONTINUATIONS,
  MAX_CONTINUATIONS_IN_ROW,
  stopMessage,
  type ContinuationEvaluation,
  type ContinuationOutcome,
} from '../state/continuation.ts'
import { stepFinished, type FinalRecord, type FinalStatus, type Step } from '../state/execution.ts'
import type { List } from '../state/list.ts'
import { textMessage, type Message } from '../state/message.ts'
import { addUsage, noTokens } from '../state/usage.ts'
import { Suspended } from '../effects/journal.ts'
import { callModel } from './call-model.ts'
import { runCalls } from './run-calls.ts'
import { askAt, deniedVote } from '../context/ask.ts'
import { compactConversation } from './compact-conversation.ts'
import { readOutput } from './read-output.ts'
import { fireTrigger, hasQuestion } from '../context/fire-trigger.ts'
import { OpenStep } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import { takeInput } from './take-input.ts'

// The lifecycle. The loop decides nothing: hooks vote, and the loop counts the votes and follows the result. It knows nothing
// about crashes, approvals and replays: it runs from the last checkpoint, and the journal returns what was done before.

const none: readonly never[] = Object.freeze([])

/** Runs to the final record. Throws `Suspended` if the run waits for people, or is paused. */
export async function runLoop(run: RunContext, input: Message): Promise<FinalRecord> {
  let outcome: ContinuationOutcome | undefined
  if (!run.hasExecution) {
    const blocked = await takeInput(run, input)
    if (blocked !== undefined) return finish(run, blocked)
    await fireTrigger(run, 'beforeExecution')
    if (run.stoppedBy() !== undefined && !run.effects.scopeLog.hasBegun) outcome = run.count()
  }
  for (;;) {
    outcome ??= await takeStep(run)
    if (!outcome.shouldContinue) outcome = await confirmStop(run, outcome)
    outcome = asRecorded(run, outcome)
    if (!outcome.shouldContinue) return finish(run, outcome)
    await checkpoint(run)
    if ((await run.options.shouldPause?.(run.state)) === true) throw new Suspended([])
    outcome = undefined
  }
}

/** One model call and its tool calls. */
async function takeStep(run: RunContext): Promise<ContinuationOutcome> {
  const stopped = await beforeStep(run)
  if (stopped !== undefined) return stopped
  const step = new OpenStep(run.state.stepCount, AgentState.fieldsOf(run.state).messages.length)
  run.open = step
  run.effects.emit?.({ type: 'stepStarted', step: step.index, at: run.now })
  await callModel(run, step)
  await runCalls(run, step)
  return closeStep(run, step)
}

/** beforeStep, and the compaction that a hook may ask for. Returns an outcome if no step is to be taken. */
async function beforeStep(run: RunContext): Promise<ContinuationOutcome | undefined> {
  const { hasBegun } = run.effects.scopeLog
  const fired = await fireTrigger(run, 'beforeStep')
  if (hasQuestion(fired) && (run.stoppedBy() === undefined || hasBegun)) {
    const subject = { step: run.state.stepCount + 1 }
    const blocked = await askAt(run, fired, { at: 'beforeStep', subject, hasBegun })
    if (blocked !== undefined) run.cast([deniedVote('forbidContinuation', blocked)])
  }
  const stopped = countBeforeStep(run)
  if (stopped !== undefined || fired?.compaction === undefined) return stopped
  await compactConversation(run, fired.compaction)
  return countBeforeStep(run) // guards of the compaction may vote as well
}

function countBeforeStep(run: RunContext): ContinuationOutcome | undefined {
  run.stoppedBy()
  const { votes } = run.execution
  if (votes.length === 0) return undefined
  const outcome = countStep(run)
  if (outcome.shouldContinue) return undefined
  if (!run.effects.scopeLog.hasBegun) return outcome
  // What has begun is finished first: then these votes count with those of the step.
  run.noteOverridden('beforeStep', { by: outcome.resolvedBy ?? 'hookloop', decision: 'stop' })
  run.cast(votes)
  return undefined
}

/** The step becomes a part of the state: the results follow the message with the calls. Then afterStep, and the votes. */
async function closeStep(run: RunContext, open: OpenStep): Promise<ContinuationOutcome> {
  const { messages } = AgentState.fieldsOf(run.state)
  const { failures, continuations, steps, usage } = run.execution
  const step = open.close()
  const succeeded = step.toolExecutions.some(({ status }) => status === 'ok')
  run.updateExecution({
    steps: steps.append(step),
    failures: failuresAfter(step, succeeded, failures),
    continuations: continuations.inRow > 0 && succeeded ? Object.freeze({ ...continuations, inRow: 0 }) : continuations,
    usage: addUsage(usage, { steps: 1 }),
  })
  if (open.calls.length > 0) run.state = AgentState.patch(run.state, { messages: withResults(messages, open) })
  if (step.type !== 'error') setRequested(run)
  run.effects.journal.closeStep(run.effects.scopeLog)
  await fireTrigger(run, 'afterStep', { step })
  // A cancel that came with the last effect is part of this count, and so is the time limit if hooks were left behind.
  if (run.stillRunning.length === 0) run.noticeCancel()
  else run.stoppedBy()
  const outcome = countStep(run)
  if (outcome !== step.outcome || open.errors.length > step.errors.length)
    run.updateExecution({ steps: steps.append(Object.freeze({ ...open.close(), outcome })) })
  run.open = undefined
  run.hasClosed = true
  return outcome
}

/** The conversation with the results right after the message with the calls, before messages that hooks have added since. */
function withResults(messages: List<Message>, step: OpenStep): List<Message> {
  const at = positionOf(step, messages)
  const place = at === -1 ? messages.append(step.asked!) : messages.take(at + 1)
  const answered = place.append(step.results())
  return at === -1 || at === messages.length - 1 ? answered : answered.concat(messages.slice(at + 1))
}

/** The position of the message with the calls; -1 if a hook has replaced the conversation. */
function positionOf({ asked, calls }: OpenStep, messages: List<Message>): number {
  const ids = calls.map((call) => call.id).join('\n')
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages.at(i)!
    if (message === asked) return i
    const found = message.content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    if (message.role === 'assistant' && found.join('\n') === ids) return i // no id is empty
  }
  return -1
}

/** Consecutive failures. Errors were counted when they happened; a step without a successful call is counted here. */
function failuresAfter(step: Step, succeeded: boolean, failures: number): number {
  if (succeeded || step.type === 'finalResponse') return 0
  return step.errors.length > 0 ? failures : failures + 1
}

/** onStop: hooks see the outcome and may overturn an `allowStop`, never a forbid. */
async function confirmStop(run: RunContext, first: ContinuationOutcome): Promise<ContinuationOutcome> {
  if (run.parts.reader !== undefined) await readOutput(run, first)
  const outcome = recount(run, first)
  const { total: continuations } = run.execution.continuations
  const fired = await fireTrigger(run, 'onStop', { outcome, continuations })
  if (isForbidden(outcome) && fired !== undefined && fired.votes.length > 0 && fired.votes.every(isRequest))
    run.noteLoop('onStop', { decision: 'overruled', message: 'the run was forbidden to continue before' })
  const counted = recount(run, outcome)
  if (counted.shouldContinue || isForbidden(counted) || !hasQuestion(fired)) return counted
  const subject = { text: run.state.lastStep?.text ?? '' }
  const blocked = await askAt(run, fired, { at: 'onStop', subject, hasBegun: false })
  if (blocked !== undefined) run.cast([deniedVote('requestContinuation', blocked)])
  return recount(run, counted)
}

function recount(run: RunContext, outcome: ContinuationOutcome): ContinuationOutcome {
  if (run.execution.votes.length === 0) return outcome
  run.noticeCancel()
  return countStep(run, outcome.evaluations)
}

function isRequest({ decision }: ContinuationEvaluation): boolean {
  return decision === 'requestContinuation'
}

/** Counts the votes, after `earlier` ones. A step taken despite an `allowStop` is a continuation; these are limited. */
function countStep(run: RunContext, earlier: readonly ContinuationEvaluation[] = none): ContinuationOutcome {
  const counted = run.count(earlier)
  // A step that was requested has not been taken yet: a forced stop does not complete the run.
  const untaken = requestedBy(run).filter((vote) => !counted.evaluations.includes(vote))
  const isOpen = untaken.length > 0 && isForbidden(counted)
  const all = isOpen ? countVotes([...counted.evaluations, ...untaken]) : counted
  const outcome = limitContinuations(run, all)
  if (outcome.shouldContinue) addContinuationMessages(run, outcome)
  return outcome
}

function limitContinuations(run: RunContext, outcome: ContinuationOutcome): ContinuationOutcome {
  if (!outcome.shouldContinue || !outcome.evaluations.some(isAllowStop)) return outcome
  const { inRow, total } = run.execution.continuations
  if (inRow < MAX_CONTINUATIONS_IN_ROW && total < MAX_CONTINUATIONS) {
    run.updateExecution({ continuations: Object.freeze({ inRow: inRow + 1, total: total + 1 }) })
    return outcome
  }
  const message = `"${outcome.resolvedBy}" requested another step after ${inRow} continuations in a row and ${total} in total.`
  const limit = { decision: 'forbidContinuation', reason: 'continuationLimit', source: 'hookloop', message } as const
  return countVotes([...outcome.evaluations, Object.freeze({ ...limit, value: { inRow, total } })])
}

function isAllowStop({ decision }: ContinuationEvaluation): boolean {
  return decision === 'allowStop'
}

function addContinuationMessages(run: RunContext, { evaluations }: ContinuationOutcome): void {
  if (evaluations.length === 0) return
  setRequested(
    run,
    evaluations.filter(({ decision }) => decision === 'requestContinuation'),
  )
  for (const { decision, message } of evaluations) {
    if (decision !== 'requestContinuation' || message === '') continue
    run.state = run.state.withMessage(textMessage('user', message))
  }
}

/** Requests for another step that has not been taken yet. */
function requestedBy({ execution }: RunContext): readonly ContinuationEvaluation[] {
  return execution.requested ?? none
}

function setRequested(run: RunContext, votes: readonly ContinuationEvaluation[] = none): void {
  if (votes.length === 0 && requestedBy(run).length === 0) return
  const { requested: _before, ...rest } = run.execution
  run.execution = votes.length === 0 ? rest : { ...rest, requested: Object.freeze(votes) }
}

/** Whether there is another step is a fact if it is recorded. */
function asRecorded(run: RunContext, outcome: ContinuationOutcome): ContinuationOutcome {
  const shouldContinue = run.effects.journal.continues(run.effects.scopeLog, outcome.shouldContinue)
  if (shouldContinue === outcome.shouldContinue) return outcome
  const decision = outcome.shouldContinue ? 'continue' : 'stop'
  run.noteOverridden('onStop', { by: outcome.resolvedBy ?? 'hookloop', decision })
  return { ...outcome, shouldContinue }
}

/** Fixes the status. `afterExecution` cannot change it. A run whose input was not taken has no execution. */
async function finish(run: RunContext, outcome: ContinuationOutcome): Promise<FinalRecord> {
  const final = finalRecord(run, outcome)
  run.effects.journal.setLive()
  if (run.hasExecution) {
    run.updateExecution({ status: final.status, final })
    await fireTrigger(run, 'afterExecution', { outcome })
  } else {
    run.blocked = final
  }
  await checkpoint(run, { isFinal: true })
  return run.blocked ?? run.execution.final! // in a replay the recorded one
}

function finalRecord(run: RunContext, outcome: ContinuationOutcome): FinalRecord {
  const vote = decidingVote(outcome)
  const reason = outcome.stopReason ?? 'completed'
  const message = stopMessage(outcome)
  return Object.freeze({
    status: finalStatus(run, reason),
    reason,
    by: outcome.resolvedBy ?? 'hookloop',
    message: run.stillRunning.length === 0 ? message : `${message} Left behind: ${run.stillRunning.join(', ')}.`,
    ...(vote?.value !== undefined && { value: vote.value }),
    votes: outcome.evaluations,
    at: run.now,
  })
}

function finalStatus(run: RunContext, reason: FinalRecord['reason']): FinalStatus {
  if (run.failure !== undefined) return 'failed'
  if (reason === 'userRequested' && run.checkEnd() === 'cancel') return 'cancelled'
  return reason === 'completed' ? 'completed' : 'stopped'
}

/** Stores the state between two steps, or at the end. What was recorded of the step is not needed any more. */
async function checkpoint(run: RunContext, { isFinal = false }: { readonly isFinal?: boolean } = {}): Promise<void> {
  const { effects, ledgerOf } = run
  const { journal, scopeLog: scope } = effects
  if (isFinal) await run.background?.settleShadows()
  billUnread(run)
  if (run.isRoot) effects.stamp(journal.log.at) // no record is earlier than one before it, also if nothing new was done
  if (run.hasExecution && run.isRoot) {
    const waited = journal.log.waitedMs(run.execution.startedAt, run.now)
    if (waited > 0) run.updateExecution({ waitedMs: run.execution.waitedMs + waited })
  }
  if (run.hasClosed) effects.emit?.({ ...stepFinished(run.execution.steps.at(-1)!), at: run.now })
  run.hasClosed = false
  const { unstored: ledger } = ledgerOf
  const ended = isFinal ? run.lastStep : undefined
  const closing = { state: run.state, ledger, at: run.now, final: run.blocked, ended }
  run.load(await journal.checkpoint(scope, closing), run.hasExecution)
  ledgerOf.setStored()
  effects.stamp(scope.at)
  effects.nextStep()
}

/** Recorded effects that this agent did not ask for were paid for all the same. */
function billUnread(run: RunContext): void {
  const usage = run.effects.journal.unreadUsage(run.effects.scopeLog)
  if (usage === noTokens) return
  if (run.hasExecution) return run.spend(usage)
  const { spentBefore } = AgentState.fieldsOf(run.state)
  run.state = AgentState.patch(run.state, { spentBefore: addUsage(spentBefore, usage) })
}
