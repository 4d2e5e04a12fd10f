import { AgentState } from '../../state/agent-state.ts'
import {
  countVotes,
  decidingVote,
  isForbidden,
  type ContinuationEvaluation,
  type ContinuationOutcome,
} from '../../state/continuation.ts'
import type { Cursor, FinalRecord, Step } from '../../state/execution.ts'
import type { List } from '../../state/list.ts'
import { textMessage, type Message } from '../../state/message.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { toAgentError, type AgentError } from '../../errors.ts'
import { finalStatus } from './final-status.ts'
import { compact } from './compact.ts'
import { infer } from '../model/call.ts'
import type { RunContext } from './run-context.ts'
import { OpenStep } from './open-step.ts'
import { pause } from './pause.ts'
import { closeOpenCalls, useAnswered, useTools } from '../tools/run-calls.ts'

const MAX_CONTINUATIONS_IN_ROW = 8
const MAX_CONTINUATIONS = 32

// The lifecycle. Nothing here decides anything: hooks vote, the votes are counted, and the count is followed.

/** From `beforeExecution`, or from where a suspended run stands, to the final record or the next suspension. */
export async function runLoop(run: RunContext, from?: Cursor): Promise<void> {
  let outcome: ContinuationOutcome | undefined
  let isKept = from?.phase === 'beforeStep' // it was when the run was left there, and what happened since is known
  if (from === undefined) {
    await run.fire('beforeExecution')
    if (run.stoppedBy() !== undefined) outcome = run.count()
  } else if (from.phase === 'tools') {
    outcome = await finishStep(run, OpenStep.restore(run.state, from.step))
    if (outcome === undefined) return
  }
  for (;;) {
    if (outcome === undefined) {
      if (isKept) isKept = false
      else run.checkpoint('step')
      const fired = run.fire('beforeStep')
      const before = fired instanceof Promise ? await fired : fired
      outcome = countBefore(run)
      if (outcome === undefined && before?.compaction !== undefined) {
        await compact(run, before.compaction)
        outcome = countBefore(run) // what guards said about the summary counts as well
      }
    }
    if (outcome === undefined) {
      const step = openStep(run)
      const answered = infer(run, step)
      if (answered instanceof Promise) await answered
      const used = useTools(run, step)
      if (used instanceof Promise) await used
      const ended = endStep(run, step)
      outcome = ended instanceof Promise ? await ended : ended
      if (outcome === undefined) return // suspended: it is not over
    }
    if (!outcome.shouldContinue) outcome = await askToStop(run, await withOutput(run, outcome))
    if (!outcome.shouldContinue && run.family !== undefined) outcome = await askParent(run, outcome)
    if (!outcome.shouldContinue) return finish(run, outcome)
    if (run.pauses !== undefined && (await run.pauses(run.state)) && (await pause(run, { phase: 'beforeStep' }))) return
    outcome = undefined
  }
}

/** The rest of a step that was suspended among its calls. */
async function finishStep(run: RunContext, step: OpenStep): Promise<ContinuationOutcome | undefined> {
  run.open = step
  await useAnswered(run, step)
  return endStep(run, step)
}

/** What `beforeStep` decided, if it is that no step is taken. */
function countBefore(run: RunContext): ContinuationOutcome | undefined {
  if (run.stoppedBy() === undefined && run.execution.votes.length === 0) return undefined
  const outcome = countStep(run)
  return outcome.shouldContinue ? undefined : outcome
}

function openStep(run: RunContext): OpenStep {
  const step = new OpenStep(run.state.stepCount, run.state.messages.length)
  run.open = step
  run.effects.emit?.({ type: 'stepStarted', step: step.index, at: run.now })
  return step
}

/** Closes the step, or suspends the run among its calls. */
function endStep(run: RunContext, step: OpenStep): ContinuationOutcome | Promise<ContinuationOutcome | undefined> {
  return step.pending.length === 0 ? closeStep(run, step) : suspend(run, step)
}

/** Calls wait for a person: the run does, unless it is over anyway. */
async function suspend(run: RunContext, step: OpenStep): Promise<ContinuationOutcome | undefined> {
  const place = { phase: 'tools', step: step.save() } as const
  if (run.stoppedBy() === undefined && (await pause(run, place))) return undefined
  await closeOpenCalls(run, step)
  return closeStep(run, step)
}

/** Results stand right behind the message that asked for them, before anything hooks have added since. */
function putResults(run: RunContext, step: OpenStep): void {
  const { messages } = run.state
  const at = positionOf(step, messages)
  const place = at === -1 ? messages.append(step.asked!) : messages.take(at + 1)
  const answered = place.append(step.results())
  const added = at === -1 || at === messages.length - 1 ? answered : answered.concat(messages.slice(at + 1))
  run.state = AgentState.patch(run.state, { messages: added })
}

/** Where the calls of a step stand now, if a hook has not put another conversation in place meanwhile. */
function positionOf(step: OpenStep, messages: List<Message>): number {
  if (messages.at(step.resultsAt - 1) === step.asked) return step.resultsAt - 1
  const ids = step.calls.map((call) => call.id).join('\n')
  for (let i = messages.length - 1; i >= 0; i--) {
    const { role, content } = messages.at(i)!
    const calls = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    if (role === 'assistant' && calls.length > 0 && calls.join('\n') === ids) return i
  }
  return -1
}

function closeStep(run: RunContext, opened: OpenStep): ContinuationOutcome | Promise<ContinuationOutcome> {
  if (opened.calls.length > 0) putResults(run, opened)
  const { execution } = run
  const { failures, continuations, steps, usage } = execution
  const step = opened.close()
  const succeeded = hasSuccess(step)
  run.replaceExecution({
    ...execution,
    steps: steps.append(step),
    failures: failuresAfter(step, succeeded, failures),
    continuations: continuations.inRow > 0 && succeeded ? Object.freeze({ ...continuations, inRow: 0 }) : continuations,
    usage: addUsage(usage, { ...opened.unbilled, steps: opened.unbilled.steps + 1 }), // those of agents inside count, too
  })
  opened.unbilled = noUsage
  const fired = run.fire('afterStep', { step })
  if (fired instanceof Promise) return fired.then(() => countClosed(run, { opened, step, steps }))
  return countClosed(run, { opened, step, steps })
}

type Closing = { readonly opened: OpenStep; readonly step: Step; readonly steps: RunContext['execution']['steps'] }

function countClosed(run: RunContext, closing: Closing): ContinuationOutcome {
  run.noticeCancel() // a cancel that came with the last effect is part of this count
  const outcome = countStep(run)
  const closed = closedStep(run, closing, outcome)
  run.billOpen() // what hooks spent while it was closed
  run.open = undefined
  run.effects.emit?.({ type: 'stepFinished', step: closed })
  return outcome
}

/** The step as it is remembered: with the outcome, and with errors that came up while it was closed. */
function closedStep(run: RunContext, { opened, step, steps }: Closing, outcome: ContinuationOutcome): Step {
  if (outcome === step.outcome && opened.errors.length === step.errors.length) return step
  const closed: Step = Object.freeze({ ...opened.close(), outcome })
  run.updateExecution({ steps: steps.append(closed) })
  return closed
}

function hasSuccess(step: Step): boolean {
  for (const { status } of step.toolExecutions) if (status === 'ok') return true
  return false
}

/** Failures in a row. Errors were counted when they happened; a step whose calls all came to nothing counts here. */
function failuresAfter(step: Step, succeeded: boolean, failures: number): number {
  if (succeeded || step.type === 'finalResponse') return 0
  return step.errors.length > 0 ? failures : failures + 1
}

/** Counts the votes at the end of a step. Going on over an `allowStop` is a continuation, and those are limited. */
function countStep(run: RunContext): ContinuationOutcome {
  const outcome = limited(run, run.count())
  if (outcome.shouldContinue) tellModel(run, outcome)
  run.effects.emit?.({ type: 'counted', step: run.step, outcome })
  return outcome
}

function limited(run: RunContext, outcome: ContinuationOutcome): ContinuationOutcome {
  if (!outcome.shouldContinue || !outcome.evaluations.some((vote) => vote.decision === 'allowStop')) return outcome
  const { inRow, total } = run.execution.continuations
  if (inRow < MAX_CONTINUATIONS_IN_ROW && total < MAX_CONTINUATIONS) {
    run.updateExecution({ continuations: Object.freeze({ inRow: inRow + 1, total: total + 1 }) })
    return outcome
  }
  const message = `${outcome.resolvedBy} asked to go on, after ${inRow} continuations in a row and ${total} in all.`
  const limit = { decision: 'forbidContinuation', reason: 'continuationLimit', source: 'hookloop', message } as const
  return countVotes([...outcome.evaluations, Object.freeze({ ...limit, value: { inRow, total } })])
}

function tellModel(run: RunContext, { evaluations }: ContinuationOutcome): void {
  if (evaluations.length === 0) return
  for (const { decision, message } of evaluations) {
    if (decision !== 'requestContinuation' || message === '') continue
    run.state = run.state.withMessage(textMessage('user', message))
  }
}

/** onStop: hooks see the real outcome and may overturn an `allowStop`, never a forbid. */
async function askToStop(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome> {
  const facts = { outcome, continuations: run.execution.continuations.total }
  if (run.parts.stack.plan('onStop').empty) {
    void run.fire('onStop', facts) // for shadows
    return outcome
  }
  const firing = await run.fireQuietly('onStop', facts)
  return reconsider(run, outcome, { votes: run.count().evaluations, asked: firing.votes })
}

/** onSubagentStop: so may hooks of the run that this one is part of. */
async function askParent(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome> {
  const votes = await run.family!.letStop(outcome)
  return reconsider(run, outcome, { votes, asked: votes })
}

type Votes = readonly ContinuationEvaluation[]

function reconsider(
  run: RunContext,
  outcome: ContinuationOutcome,
  { votes, asked }: { readonly votes: Votes; readonly asked: Votes },
): ContinuationOutcome {
  if (votes.length === 0) return outcome
  run.noticeCancel()
  const late = run.count().evaluations
  const whole = countVotes([...outcome.evaluations, ...votes, ...late])
  if (isForbidden(outcome) && asked.every((vote) => vote.decision === 'requestContinuation')) {
    const message = 'the run was forbidden to go on before it was asked'
    run.noteLoop('onStop', { decision: 'overruled', message })
  }
  const counted = limited(run, whole)
  if (counted.shouldContinue) tellModel(run, counted)
  run.effects.emit?.({ type: 'counted', step: Math.max(0, run.step - 1), outcome: counted })
  return counted
}

/** The status is fixed here, once; what `afterExecution` does changes nothing about it. */
async function finish(run: RunContext, outcome: ContinuationOutcome): Promise<void> {
  const final = finalRecord(run, outcome)
  run.updateExecution({ status: final.status, final })
  await run.fireQuietly('afterExecution', { outcome })
  if (run.shadows !== undefined) await run.shadows.settle()
  run.checkpoint('ended')
}

/** How long a schema may take to read an answer: as long as a guard may. */
const READ_TIMEOUT_MS = 60_000

/** The typed answer of a run that is about to end. One without it has failed, whoever lets it end. */
async function withOutput(run: RunContext, outcome: ContinuationOutcome): Promise<ContinuationOutcome> {
  const { reader } = run.parts
  run.output = undefined // a hook may have asked for another step since
  if (reader === undefined || !isAnswered(run, outcome)) return outcome
  let error: AgentError
  try {
    const read = await run.effects.withTimeout(`${run.place}/output`, READ_TIMEOUT_MS, reader(run.execution.steps))
    if ('value' in read) {
      run.output = read
      return outcome
    }
    error = read.error
  } catch (thrown) {
    error = toAgentError(thrown, 'OUTPUT_INVALID')
  }
  run.remember(error, 'onStop')
  run.failure ??= error
  const { message } = error
  const vote = { decision: 'forbidContinuation', reason: 'errorForbade', message, source: 'output' } as const
  return countVotes([...outcome.evaluations, Object.freeze(vote)])
}

/** Whether the model has had its say, be it cut short by its length. */
function isAnswered({ state }: RunContext, { stopReason }: ContinuationOutcome): boolean {
  if (stopReason === 'completed' || stopReason === 'continuationLimit') return true
  return stopReason === 'finishReason' && ['length', 'stop'].includes(state.lastStep?.finishReason ?? '')
}

function finalRecord(run: RunContext, outcome: ContinuationOutcome): FinalRecord {
  const vote = decidingVote(outcome)
  const reason = outcome.stopReason ?? 'completed'
  return Object.freeze({
    status: finalStatus(run, reason),
    reason,
    by: outcome.resolvedBy ?? 'hookloop',
    message: vote?.message ?? '',
    ...(vote?.value !== undefined && { value: vote.value }),
    votes: outcome.evaluations,
    at: run.now,
  })
}
