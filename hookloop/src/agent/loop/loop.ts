import { AgentState } from '../../state/agent-state.ts'
import {
  countVotes,
  decidingVote,
  isForbidden,
  stopMessage,
  type ContinuationEvaluation,
  type ContinuationOutcome,
} from '../../state/continuation.ts'
import type { Cursor, Execution, FinalRecord, Step } from '../../state/execution.ts'
import type { OwnEvent } from '../../state/event.ts'
import type { List } from '../../state/list.ts'
import type { Message } from '../../state/message.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { andThen, type MaybePromise } from '../../state/thenable.ts'
import { callModel } from '../model/call.ts'
import { closeOpenCalls, runAnsweredCalls, runCalls } from '../tools/run-calls.ts'
import { closeCalls, useRecordedAnswer } from './close-step.ts'
import { noteAnswer } from '../tools/request-approval.ts'
import type { Invocation } from '../../hooks/invocation.ts'
import { askAt, blockInput, deniedVote, hasQuestion } from './ask-at-trigger.ts'
import { compact } from './compact.ts'
import { finishInvocation, startInvocation, fireQuietly, fireTrigger } from './fire-trigger.ts'
import { countStep, reconsider, reconsiderVotes } from './count-votes.ts'
import { OpenStep } from './open-step.ts'
import { pause } from './pause.ts'
import { readOutput } from './read-output.ts'
import type { RunContext } from './run-context.ts'
import type { StepRecord } from './step-record.ts'
import { withLeft } from './time-limit.ts'

const noRequests: readonly never[] = Object.freeze([])

// The lifecycle. The loop decides nothing: hooks vote, and the loop counts the votes and follows the result.

/** How the step that a run is resumed in is closed: with a record of it, and with a vote that ends the run. */
export type StepClosing = {
  readonly record: StepRecord | undefined
  readonly vote: ContinuationEvaluation | undefined
}

/** From `beforeExecution`, or from where a run was suspended, to the final record or the next suspension. */
export async function runLoop(run: RunContext, from?: Cursor, closing?: StepClosing): Promise<void> {
  let outcome: ContinuationOutcome | undefined
  let hasCheckpoint = from?.phase === 'beforeStep'
  let hasFired = false // beforeStep, for the next step
  if (from === undefined) {
    await fireTrigger(run, 'beforeExecution')
    if (closing?.vote !== undefined) run.cast([closing.vote])
    if (run.stoppedBy() !== undefined) outcome = run.count()
  } else if (from.phase === 'tools') {
    outcome = await finishStep(run, OpenStep.restore(run.state, from.step), closing)
    if (outcome === undefined) return
  } else if (from.phase === 'asked') {
    const taken = closing?.record?.response === undefined ? undefined : closing.record
    if (closing?.vote !== undefined && taken === undefined) run.cast([closing.vote])
    const next = await resumeAsked(run, from)
    if (next === undefined) return
    if (taken !== undefined) {
      run.approved = undefined // it was for the recorded call, not for the next one
      if (typeof next === 'object') run.cast(next.evaluations)
      outcome = await takeRecordedStep(run, taken, closing?.vote)
    } else if (next === 'start') {
      await fireTrigger(run, 'beforeExecution')
      if (run.stoppedBy() !== undefined) outcome = run.count()
    } else if (next === 'step') {
      hasFired = true
    } else if (next.shouldContinue || from.at !== 'onStop') {
      outcome = next.shouldContinue ? undefined : next
    } else {
      const confirmed = run.parentLink === undefined ? next : await confirmStop(run, next)
      if (!confirmed.shouldContinue) return finish(run, confirmed)
    }
  } else if (closing?.record?.response !== undefined) {
    await fireTrigger(run, 'beforeStep')
    outcome = await takeRecordedStep(run, closing.record, closing.vote)
  } else if (closing?.vote !== undefined) {
    run.cast([closing.vote])
  }
  for (;;) {
    if (outcome === undefined && !hasFired) {
      if (!hasCheckpoint) run.checkpoint('step')
      hasCheckpoint = false
      const before = beforeStep(run)
      const outcomeBefore = before instanceof Promise ? await before : before // most steps need not wait here
      if (outcomeBefore === 'suspended') return
      outcome = outcomeBefore
    }
    if (outcome === undefined) {
      hasFired = false
      const step = openStep(run)
      await callModel(run, step) // here, and not in a function of its own: that would be one more promise for each step
      const ended = andThen(runCalls(run, step), endStep, run, step)
      outcome = ended instanceof Promise ? await ended : ended
      if (outcome === undefined) return // suspended
    }
    if (!outcome.shouldContinue) {
      const stopped = await fireStop(run, await readOutput(run, outcome))
      if (stopped === 'suspended') return
      outcome = stopped
    }
    if (!outcome.shouldContinue && run.parentLink !== undefined) outcome = await confirmStop(run, outcome)
    if (!outcome.shouldContinue) return finish(run, outcome)
    if (run.shouldPause !== undefined && (await run.shouldPause(run.state))) {
      if (await pause(run, { phase: 'beforeStep' })) return
    }
    outcome = undefined
  }
}

/** beforeStep, and the compaction that a hook may ask for. Returns an outcome if no step is to be taken. */
function beforeStep(run: RunContext): MaybePromise<ContinuationOutcome | 'suspended' | undefined> {
  return andThen(fireTrigger(run, 'beforeStep'), decideBeforeStep, run)
}

function decideBeforeStep(
  invocation: Invocation | undefined,
  run: RunContext,
): MaybePromise<ContinuationOutcome | 'suspended' | undefined> {
  if (hasQuestion(run, invocation)) return askBeforeStep(run, invocation!)
  return countAndCompact(run, invocation)
}

function countAndCompact(
  run: RunContext,
  invocation: Invocation | undefined,
): MaybePromise<ContinuationOutcome | undefined> {
  const outcome = countBeforeStep(run)
  if (outcome !== undefined || invocation?.compaction === undefined) return outcome
  // Guards of the compaction may vote as well.
  return compact(run, invocation.compaction).then(() => countBeforeStep(run))
}

async function askBeforeStep(
  run: RunContext,
  invocation: Invocation,
): Promise<ContinuationOutcome | 'suspended' | undefined> {
  const asked = await askAt(run, invocation, 'beforeStep', { step: run.state.stepCount + 1 })
  if ('open' in asked) {
    if (await pause(run, { phase: 'asked', ...asked.open })) return 'suspended'
  } else if (asked.answer !== 'allow' && run.stoppedBy() === undefined)
    run.cast([deniedVote('forbidContinuation', asked.answer)])
  return countAndCompact(run, invocation)
}

/**
 * Continues after a question was answered: with the start of the run, with the step, or with an outcome. Undefined: the
 * run is suspended again, or has ended.
 */
async function resumeAsked(
  run: RunContext,
  from: Extract<Cursor, { phase: 'asked' }>,
): Promise<ContinuationOutcome | 'start' | 'step' | undefined> {
  const { at, call, outcome } = from
  const { answer } = call
  if (answer === undefined) {
    const { waitingSince: _before, ...place } = from
    return (await pause(run, place)) ? undefined : run.count()
  }
  noteAnswer(run, call, answer, call.approval?.message, at)
  const denied = typeof answer === 'object' && 'block' in answer ? answer : undefined
  switch (at) {
    case 'onUserInput':
      if (denied === undefined) return 'start'
      blockInput(run, denied.block)
      return undefined
    case 'onStop': {
      const read = await readOutput(run, outcome!) // another process may have read it
      return denied === undefined ? read : reconsiderVotes(run, read, [deniedVote('requestContinuation', denied)])
    }
    case 'beforeStep':
    case 'beforeInference': {
      if (denied !== undefined) run.cast([deniedVote('forbidContinuation', denied)])
      else if (at === 'beforeInference') run.approved = at
      else await finishInvocation(run, startInvocation(run, run.parts.stack.plan(at), {}, { changes: false }))
      const counted = countBeforeStep(run)
      return counted ?? 'step'
    }
    default:
      return at satisfies never
  }
}

function countBeforeStep(run: RunContext): ContinuationOutcome | undefined {
  if (run.stoppedBy() === undefined && run.execution.votes.length === 0) return undefined
  const outcome = countStep(run)
  return outcome.shouldContinue ? undefined : outcome
}

/** The rest of a step that was suspended during its calls. */
async function finishStep(
  run: RunContext,
  step: OpenStep,
  { record, vote }: Partial<StepClosing> = {},
): Promise<ContinuationOutcome | undefined> {
  run.open = step
  if (record === undefined) await runAnsweredCalls(run, step)
  else await closeCalls(run, step, { record, why: whyClosed(vote) })
  if (vote !== undefined) run.cast([vote])
  return endStep(undefined, run, step)
}

/** A step that was left open and is not repeated: with its answer, and with the results of the calls that were started. */
async function takeRecordedStep(
  run: RunContext,
  record: StepRecord,
  vote: ContinuationEvaluation | undefined,
): Promise<ContinuationOutcome> {
  const step = openStep(run)
  const placeOf = await useRecordedAnswer(run, step, record)
  step.calls.forEach(() => step.countCall())
  await closeCalls(run, step, { record, why: whyClosed(vote), placeOf })
  if (vote !== undefined) run.cast([vote])
  return closeStep(run, step) // none of its calls waits for approval
}

function whyClosed(vote: ContinuationEvaluation | undefined): string {
  return vote === undefined ? 'the agent has changed since' : 'there is new input'
}

function openStep(run: RunContext): OpenStep {
  const step = new OpenStep(run.execution.id, run.state.stepCount, run.state.messages.length)
  run.open = step
  run.effects.emit?.({ type: 'stepStarted', step: step.index, at: run.now })
  return step
}

/** Closes the step, or suspends the run if calls wait for approval. */
function endStep(_ran: void, run: RunContext, step: OpenStep): MaybePromise<ContinuationOutcome | undefined> {
  if (step.question !== undefined) return suspendInference(run, step, step.question)
  return step.pending.length === 0 ? closeStep(run, step) : suspend(run, step)
}

/** Suspends the run before its model call. The step is opened again when it resumes: only hooks have run in it. */
async function suspendInference(
  run: RunContext,
  step: OpenStep,
  { state, open }: NonNullable<OpenStep['question']>,
): Promise<ContinuationOutcome | undefined> {
  run.billOpen()
  run.open = undefined
  const { execution } = run
  run.state = AgentState.patch(state, { execution: Object.freeze({ ...execution, votes: state.execution!.votes }) })
  if (await pause(run, { phase: 'asked', ...open })) return undefined
  run.open = step
  return closeStep(run, step)
}

/** Suspends the run, unless it is to end anyway. */
async function suspend(run: RunContext, step: OpenStep): Promise<ContinuationOutcome | undefined> {
  const place = { phase: 'tools', step: step.save() } as const
  if (run.stoppedBy() === undefined && (await pause(run, place))) return undefined
  await closeOpenCalls(run, step)
  return closeStep(run, step)
}

/** The conversation with the results right after the message with the calls, before messages that hooks have added since. */
function withResults(messages: List<Message>, step: OpenStep): List<Message> {
  const at = positionOf(step, messages)
  const place = at === -1 ? messages.append(step.asked!) : messages.take(at + 1)
  const answered = place.append(step.results())
  return at === -1 || at === messages.length - 1 ? answered : answered.concat(messages.slice(at + 1))
}

/** The position of the message with the calls; -1 if a hook has replaced the conversation. */
function positionOf(step: OpenStep, messages: List<Message>): number {
  if (messages.at(step.resultsAt - 1) === step.asked) return step.resultsAt - 1
  const ids = step.calls.map((call) => call.id).join('\n')
  for (let i = messages.length - 1; i >= 0; i--) {
    const { role, content } = messages.at(i)!
    const calls = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    if (role === 'assistant' && calls.join('\n') === ids) return i // no id is empty
  }
  return -1
}

function closeStep(run: RunContext, open: OpenStep): MaybePromise<ContinuationOutcome> {
  const { execution } = run
  const { messages } = run.state
  const { failures, continuations, steps, usage } = execution
  const step = open.close()
  const succeeded = hasSuccess(step)
  const closed: Execution = {
    ...execution,
    steps: steps.append(step),
    failures: failuresAfter(step, succeeded, failures),
    continuations: continuations.inRow > 0 && succeeded ? Object.freeze({ ...continuations, inRow: 0 }) : continuations,
    usage: open.addUnbilled(usage, 1), // steps of subagents count as well
  }
  run.state = AgentState.patch(run.state, {
    messages: open.calls.length > 0 ? withResults(messages, open) : messages,
    execution: Object.freeze(closed),
  })
  open.setBilled()
  if (step.type !== 'error') run.requested = noRequests
  return andThen(fireTrigger(run, 'afterStep', { step }), countClosed, run, { open, step, steps })
}

function countClosed(_fired: unknown, run: RunContext, closing: Closing): ContinuationOutcome {
  // A cancel that came with the last effect is part of this count, and so is the time limit if hooks were left behind.
  if (run.left.length === 0) run.noticeCancel()
  else void run.stoppedBy()
  const outcome = countStep(run)
  const step = closedStep(run, closing, outcome)
  run.billOpen() // what hooks at afterStep have spent
  run.open = undefined
  run.effects.emit?.(finishedEvent(step, run.now))
  return outcome
}

function finishedEvent({ index, type, finishReason, usage, toolCalls }: Step, at: number): OwnEvent {
  return { type: 'stepFinished', step: index, at, kind: type, finishReason, usage, toolCalls: toolCalls.length }
}

type Closing = { readonly open: OpenStep; readonly step: Step; readonly steps: RunContext['execution']['steps'] }

/** The step as it is stored: with the outcome, and with errors of hooks at afterStep. */
function closedStep(run: RunContext, { open, step, steps }: Closing, outcome: ContinuationOutcome): Step {
  if (outcome === step.outcome && open.errors.length === step.errors.length) return step
  const closed: Step = Object.freeze({ ...open.close(), outcome })
  run.updateExecution({ steps: steps.append(closed) })
  return closed
}

function hasSuccess(step: Step): boolean {
  return step.toolExecutions.some(isSuccess)
}

function isSuccess({ status }: ToolExecution): boolean {
  return status === 'ok'
}

/** Consecutive failures. Errors were counted when they happened; a step without a successful call is counted here. */
function failuresAfter(step: Step, succeeded: boolean, failures: number): number {
  if (succeeded || step.type === 'finalResponse') return 0
  return step.errors.length > 0 ? failures : failures + 1
}

/** onStop: hooks see the outcome and may overturn an `allowStop`, never a forbid. */
async function fireStop(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome | 'suspended'> {
  const facts = { outcome, continuations: run.execution.continuations.total }
  if (run.parts.stack.plan('onStop').empty) {
    void fireTrigger(run, 'onStop', facts) // for shadow hooks
    return outcome
  }
  const invocation = await fireQuietly(run, 'onStop', facts)
  const counted = reconsider(run, outcome, { votes: run.count().evaluations, requested: invocation.votes })
  if (counted.shouldContinue || isForbidden(counted) || !hasQuestion(run, invocation)) return counted
  const asked = await askAt(run, invocation, 'onStop', { text: run.state.lastStep?.text ?? '' })
  if ('open' in asked) {
    if (await pause(run, { phase: 'asked', ...asked.open, outcome: counted })) return 'suspended'
    return countVotes([...counted.evaluations, ...run.count().evaluations])
  }
  return asked.answer === 'allow'
    ? counted
    : reconsiderVotes(run, counted, [deniedVote('requestContinuation', asked.answer)])
}

/** onSubagentStop: hooks of the parent run may overturn an `allowStop` as well. */
async function confirmStop(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome> {
  const votes = await run.parentLink!.confirmStop(outcome)
  return reconsider(run, outcome, { votes, requested: votes })
}

/** Fixes the status. `afterExecution` cannot change it. */
async function finish(run: RunContext, outcome: ContinuationOutcome): Promise<void> {
  const final = finalRecord(run, outcome)
  run.updateExecution({ status: final.status, final })
  await fireQuietly(run, 'afterExecution', { outcome })
  if (run.shadows !== undefined) await run.background?.settleShadows()
  run.checkpoint('ended')
}

function finalRecord(run: RunContext, outcome: ContinuationOutcome): FinalRecord {
  const vote = decidingVote(outcome)
  const reason = outcome.stopReason ?? 'completed'
  return Object.freeze({
    status: run.finalStatus(reason),
    reason,
    by: outcome.resolvedBy ?? 'hookloop',
    message: run.left.length === 0 ? stopMessage(outcome) : withLeft(run.left, stopMessage(outcome)),
    ...(vote?.value !== undefined && { value: vote.value }),
    votes: outcome.evaluations,
    at: run.now,
  })
}
