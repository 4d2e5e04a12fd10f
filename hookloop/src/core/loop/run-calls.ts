import { sameJson, textOfJson, type Json } from '../../values/json.ts'
import {
  blockedExecution,
  failedExecution,
  namedExecution,
  stoppedExecution,
  type Answer,
  type Ask,
  type ToolExecution,
} from '../state/tool-call.ts'
import { Suspended } from '../effects/journal.ts'
import { ask, isAnswered, noteAnswer, type Question } from '../context/ask.ts'
import { fireTrigger, usedFacts } from '../context/fire-trigger.ts'
import { toToolCall, type ActiveCall, type OpenStep } from '../context/open-step.ts'
import type { RunContext } from '../context/run-context.ts'
import type { BudgetShare, ChildEnd } from '../subagents/child-run.ts'
import { concludeChild, delegatedCall } from '../subagents/delegated-call.ts'
import { HOOKS_LEFT, interrupted, leftByLimit, noOutput, toolCall, unknownOutcome } from '../tools/execute-call.ts'
import { judgeAgain, judgeCall, mayRepeat, refused, refusedResult, type Judged } from '../tools/judge-call.ts'

/**
 * Runs the calls of a step in order, each before → around → after. Consecutive calls of concurrent tools run together: all
 * before, then all tools at once, then all after. Calls that need approval come last, when all others have ended, and guards
 * judge them again then; so do calls that began after a later one. Throws `Suspended` if questions stay open.
 */
export async function runCalls(run: RunContext, { calls }: OpenStep): Promise<void> {
  const putOff: Judged[] = []
  const questions: Suspended[] = []
  for (const group of groupsOf(run, calls, (call) => call)) {
    const now: Judged[] = []
    for (const call of group) {
      const judged = await judgeCall(run, call)
      const waits = judged.begun !== undefined && putOff.some((each) => placeOf(run, each.call) < beginOf(run, call))
      const isLater = judged.asks.length > 0 || waits || startedBefore(run, calls.slice(call.index + 1), call)
      ;(isLater && refusedResult(judged) === undefined ? putOff : now).push(judged)
    }
    questions.push(...(await runGroup(run, now)))
  }
  if (putOff.length > 0) await runPutOff(run, putOff, questions)
  if (questions.length > 0) throw new Suspended(questions.flatMap((each) => each.questions))
}

/** Whether an earlier process began one of these calls before a call. */
function startedBefore(run: RunContext, others: readonly ActiveCall[], call: ActiveCall): boolean {
  return others.some((other) => beginOf(run, other) < beginOf(run, call))
}

/** When an earlier process began a call. */
function beginOf({ effects }: RunContext, { id }: ActiveCall): number {
  const { seq = Infinity } = effects.scopeLog.begun(id)?.first ?? {}
  return seq <= effects.journal.log.before ? seq : Number.MAX_SAFE_INTEGER
}

/** The same for calls that are put off: a tool that was interrupted may run again, after what has ended meanwhile. */
function placeOf(run: RunContext, call: ActiveCall): number {
  const { scopeLog, journal } = run.effects
  const { before } = journal.log
  const { last } = scopeLog.begun(call.id) ?? {}
  const began = beginOf(run, call)
  const hadEnded = last?.endSeq !== undefined && last.endSeq <= before
  return hadEnded || last?.key.kind === 'child' || began > before ? began : before + began
}

/** All questions are put at the same time. Then the calls run in the order in which they began, or in their own. */
async function runPutOff(run: RunContext, putOff: readonly Judged[], questions: Suspended[]): Promise<void> {
  const inOrder = putOff.toSorted((a, b) => placeOf(run, a.call) - placeOf(run, b.call) || a.call.index - b.call.index)
  const edited: Judged[] = []
  for (const each of inOrder) edited.push(await withEdit(run, each))
  const answered = await settle(edited.map((each) => askFor(run, each)))
  const ready: Answered[] = []
  for (const each of answered) {
    if (each instanceof Suspended) {
      questions.push(each)
      continue
    }
    if (each.answer !== undefined) noteAnswer(run, questionOf(each.judged, each.shown), each.answer)
    ready.push(each)
  }
  for (const group of groupsOf(run, ready, ({ judged }) => judged.call)) {
    const agreed: Judged[] = []
    for (const each of group) {
      const [judged] = await settle([followAnswer(run, each)])
      if (judged instanceof Suspended) questions.push(judged)
      else agreed.push(judged!)
    }
    questions.push(...(await runGroup(run, agreed)))
  }
}

/** A call whose question was put: the answer, if it was asked, and the questions that it covers. */
type Answered = { readonly judged: Judged; readonly answer?: Answer; readonly shown: readonly Ask[] }

async function askFor(run: RunContext, judged: Judged): Promise<Answered> {
  const { asks, begun, interruptions } = judged
  if (asks.length === 0) return { judged, shown: asks }
  const question = questionOf(judged, asks)
  // What has begun is not asked about, but an answer to exactly this question counts.
  const isOpen = begun === undefined || (interruptions !== undefined && run.stoppedBy() === undefined)
  if (!isOpen && !isAnswered(run, question)) return { judged, shown: asks }
  return { judged, shown: asks, answer: await ask(run, question) }
}

/** A call that an approver has edited and that was interrupted: what is asked is whether it runs again as it was edited. */
async function withEdit(run: RunContext, judged: Judged): Promise<Judged> {
  const { call, begun, interruptions } = judged
  if (begun === undefined || interruptions === undefined) return judged
  const { args } = begun.last.begin!.input as { readonly args: Json }
  const isEdited = run.effects.scopeLog.answersAbout(call.id).some(({ asked, answer }) => {
    return (
      typeof answer === 'object' && 'allow' in answer && sameJson(answer.allow, args) && sameJson(asked.args, call.args)
    )
  })
  return isEdited && !sameJson(args, call.args) ? judgeAgain(run, judged, args) : judged
}

function questionOf({ call, interruptions }: Judged, asks: readonly Ask[]): Question {
  return { call: { id: call.id, name: call.name, args: call.args }, asks, interruptions }
}

/** Judges a call again, with the arguments of the answer. A guard whose question was not shown asks now. */
async function followAnswer(run: RunContext, { judged, answer, shown }: Answered): Promise<Judged> {
  if (answer === undefined && shown.length > 0) return judged // it has begun, and is not asked about
  if (typeof answer === 'object' && 'block' in answer)
    return refused(judged, blockedExecution('approval', answer.block), 'approval')
  const edited = typeof answer === 'object' ? answer.allow : judged.call.args
  if (judged.tool === undefined) return judged
  const again = await judgeAgain(run, judged, edited)
  if (again.refusal !== undefined) return again
  const asks = again.asks.filter(({ by }) => !shown.some((each) => each.by === by))
  if (asks.length === 0) return { ...again, isAgreed: true }
  const question = questionOf(again, asks)
  if (again.begun !== undefined && !isAnswered(run, question)) return again
  const given = await ask(run, question)
  noteAnswer(run, question, given)
  return followAnswer(run, { judged: again, answer: given, shown: [...shown, ...asks] })
}

/** Runs calls together, then afterToolUse for each in order. Returns what waits for answers. */
async function runGroup(run: RunContext, group: readonly Judged[]): Promise<readonly Suspended[]> {
  const waiting: Suspended[] = []
  const { effects } = run
  run.checkEnd() // once, here: the order in which the tools start differs from run to run
  if (!effects.journal.isLive) {
    // What was asked about them has been answered, also if other questions are asked now.
    const ids = new Set(group.map(({ call }) => call.id))
    effects.scopeLog.readAll(({ kind, call = '' }) => (kind === 'ask' || kind === 'tool') && ids.has(call))
  }
  const ended = await settle(group.map((each) => runCall(run, each, group)))
  for (const [i, end] of ended.entries()) {
    const judged = group[i]!
    run.ledgerOf.adopt(judged.call)
    const [result] = isChildEnd(end) ? await settle([concludeChild(run, judged, end)]) : [end]
    run.ledgerOf.adopt(judged.call) // of a continuation that waits
    if (result instanceof Suspended) waiting.push(result)
    else {
      effects.isRepeated = effects.scopeLog.knewEndOf(judged.call.id)
      try {
        await concludeCall(run, judged, result!)
      } finally {
        effects.isRepeated = false
      }
    }
  }
  return waiting
}

function isChildEnd(end: ToolExecution | ChildEnd | Suspended): end is ChildEnd {
  return 'kind' in end
}

/** Runs a call, or takes what is recorded of it. */
async function runCall(run: RunContext, judged: Judged, group: readonly Judged[]): Promise<ToolExecution | ChildEnd> {
  const { call, tool, begun, interruptions, isAgreed, refusal } = judged
  if (begun !== undefined) {
    const recorded = (begun.last.begin!.input as { readonly args: Json }).args
    const isSame = sameJson(recorded, call.args)
    if (!isAgreed || !isSame) {
      const by = refusal?.by ?? judged.asks[0]?.by ?? 'hookloop'
      const decision = refusal?.result.status ?? (isAgreed ? 'other arguments' : 'ask')
      run.noteOverridden('beforeToolUse', { by, decision, call: call.id })
    }
    if (begun.last.key.kind === 'child') return delegatedCall(run, judged, shareOf(judged, group))
    const n = Number(begun.last.key.n)
    if (begun.last.end === undefined) {
      const why = notAgain(run, judged, isSame)
      if (interruptions !== undefined)
        return why === undefined ? toolCall(run, judged, { n: n + 1 }) : unknownOutcome(why)
      const unknown = mayRepeat(tool, begun) ? why && unknownOutcome(why) : interrupted
      return toolCall(run, judged, { n, unknown })
    }
    if (!isSame) call.args = recorded
    return toolCall(run, judged, { n })
  }
  if (refusal !== undefined) return refusal.result
  const { forbidden } = run // by a guard of another call of the group
  if (forbidden !== undefined) return stoppedExecution(forbidden)
  return tool!.delegate === undefined ? toolCall(run, judged) : delegatedCall(run, judged, shareOf(judged, group))
}

/** Subagents that start together share the budget. */
function shareOf(judged: Judged, group: readonly Judged[]): BudgetShare {
  const delegated = group.filter((each) => each.tool?.delegate !== undefined && refusedResult(each) === undefined)
  return { index: delegated.indexOf(judged), of: delegated.length }
}

/** Why a call whose process died does not run again now, if that is so. */
function notAgain(run: RunContext, { refusal, isAgreed }: Judged, isSame: boolean): ToolExecution | undefined {
  const stopped = run.stoppedBy()
  if (stopped !== undefined) return stoppedExecution(stopped)
  if (refusal !== undefined) return refusal.result
  if (!isSame) return failedExecution('its arguments would be others.')
  return isAgreed ? undefined : failedExecution('a guard asks about it.')
}

/** afterToolUse, for every call, including those that failed or were blocked. */
async function concludeCall(run: RunContext, judged: Judged, ended: ToolExecution): Promise<void> {
  const { call, tool } = judged
  const result = namedExecution(ended, call.name)
  if (call.trail !== undefined) run.noteTrail(call.trail.entries, call.trail.durations)
  if (refusedResult(judged) === undefined) noteEnd(run, call, result)
  const isDelegated = tool?.delegate !== undefined || judged.begun?.last.key.kind === 'child'
  if (result.usage !== undefined && !isDelegated) run.spend(result.usage) // subagents are billed when they end
  const facts = { toolCall: toToolCall(call), toolExecution: result, durationMs: call.ranMs }
  const after = await fireTrigger(run, 'afterToolUse', facts, { call: { id: call.id, toolName: call.name } })
  call.result = after === undefined ? result : (usedFacts(after)['toolExecution'] as ToolExecution)
  run.effects.emit?.({
    type: 'toolFinished',
    at: run.now,
    step: run.step,
    call: toToolCall(call),
    execution: call.result,
    ...(call.ranMs !== undefined && { durationMs: call.ranMs }),
  })
}

/** Records how a call ended, unless it simply succeeded. */
function noteEnd(run: RunContext, call: ActiveCall, { status, output, truncated }: ToolExecution): void {
  if (status === 'ok' && truncated !== true && output !== noOutput) return
  const decision = status !== 'ok' ? status : truncated === true ? 'truncated' : 'no output'
  const message = status === 'ok' ? {} : { message: textOfJson(output) }
  if (output === leftByLimit.output) run.noteStillRunning(`tool "${call.name}"`)
  if (output === HOOKS_LEFT) run.noteStillRunning(`hooks around the tool "${call.name}"`)
  run.noteLoop('aroundToolUse', { call: call.id, decision, ...message })
}

/** Consecutive calls of concurrent tools, up to the number that may run at once; any other call is alone. */
function groupsOf<T>(run: RunContext, items: readonly T[], callOf: (item: T) => ActiveCall): readonly (readonly T[])[] {
  const groups: T[][] = []
  let wasConcurrent = false
  for (const item of items) {
    const isConcurrent = run.parts.tools.get(callOf(item).name)?.concurrent === true
    const last = groups.at(-1)
    if (isConcurrent && wasConcurrent && last!.length < run.parts.maxConcurrentTools) last!.push(item)
    else groups.push([item])
    wasConcurrent = isConcurrent
  }
  return groups
}

/** Waits for all. An error counts only when the others have ended, and more than a suspension. */
async function settle<T>(work: readonly Promise<T>[]): Promise<readonly (T | Suspended)[]> {
  const settled = await Promise.allSettled(work)
  for (const each of settled) if (each.status === 'rejected' && !(each.reason instanceof Suspended)) throw each.reason
  return settled.map((each) => (each.status === 'fulfilled' ? each.value : (each.reason as Suspended)))
}
