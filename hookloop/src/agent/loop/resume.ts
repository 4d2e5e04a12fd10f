import { inCode } from '../../state/text.ts'
import type { AgentState } from '../../state/agent-state.ts'
import type { ContinuationEvaluation } from '../../state/continuation.ts'
import type { Cursor, Execution, FinalRecord, HookRecord, OpenStep } from '../../state/execution.ts'
import { answersWithin, isInChild, openCallsIn } from '../../state/open-calls.ts'
import { fromStateJson } from '../../state/saved-run.ts'
import type { OpenChild } from '../../state/subagent.ts'
import { answerProblem, approvalFits, type Answer, type Answers, type OpenCall } from '../../state/tool-call.ts'
import { hashJson } from '../../state/json.ts'
import { AgentError, messageOf, clause } from '../../errors.ts'
import { isLive, leaveRun } from '../../effects/effects.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { toNameTest } from '../../hooks/patterns.ts'
import { isFatal } from '../../hooks/run-hooks.ts'
import type { AgentParts } from '../agent-parts.ts'
import type { Run } from '../run.ts'
import { childParts } from '../subagents/child-parts.ts'
import { delegationTo } from '../subagents/delegated-call.ts'
import { checkedAnswer, fingerprintOf } from '../tools/request-approval.ts'
import { fireTrigger } from './fire-trigger.ts'
import { runLoop, type StepClosing } from './loop.ts'
import type { RunContext } from './run-context.ts'
import { brokenRecord, concludeRun, startRun } from './start.ts'
import { StepRecord } from './step-record.ts'

/** Options of `agent.resume`. */
export type ResumeOptions = {
  /** Answers to pending approvals by their id. Unanswered ones stay pending. Default none. */
  readonly answers?: Answers
  /** Guards that the run started with and that may be missing now: their names, or `true` for any. */
  readonly acceptMissing?: true | readonly string[]
  /**
   * If the agent has changed since the run was interrupted or suspended, and so cannot repeat the open step: `close` closes
   * the step with what is recorded and continues; `reject` changes nothing. Default `close`: no call runs twice, no result
   * is lost, and a call that was not started is not run.
   */
  readonly onChange?: 'close' | 'reject'
}

type Suspended = { readonly execution: Execution; readonly cursor: Cursor }

/** Checks the state and the answers before anything runs. Throws an AgentError and changes nothing. */
export async function checkResume(
  parts: AgentParts,
  state: AgentState,
  options: ResumeOptions & { readonly now: number },
): Promise<Answers> {
  const calls = await checkOpen(parts, state, options)
  const answers: { [id: string]: Answer } = {}
  for (const [id, given] of Object.entries(options.answers ?? {})) {
    answers[id] = await checkAnswer(calls, { ...options, id, given })
  }
  return Object.freeze(answers)
}

/** A call that is open, and the agent that makes it. */
type OpenCallOf = { readonly parts: AgentParts; readonly call: OpenCall }

/** Checks that a state and the subagents in it can be resumed. Returns the open calls. */
async function checkOpen(parts: AgentParts, state: AgentState, options: ResumeOptions): Promise<readonly OpenCallOf[]> {
  const { execution, cursor } = suspended(state)
  checkGuards(parts, execution, options.acceptMissing ?? [])
  const calls: OpenCallOf[] = []
  for (const [index, call] of (cursor.phase === 'tools' ? cursor.step.calls : []).entries()) {
    calls.push({ parts, call })
    if (isInChild(call)) calls.push(...(await openCallsOfChild(parts, call, options)))
    else checkApproval(call, `${execution.id}/${execution.steps.length}/${index}`)
  }
  if (cursor.phase === 'asked') {
    calls.push({ parts, call: cursor.call })
    checkApproval(cursor.call, `${execution.id}/${execution.steps.length}/${cursor.at}`)
  }
  return calls
}

function checkApproval(call: OpenCall, key: string): void {
  if (call.approval === undefined || call.result !== undefined) return
  if (approvalFits(call.approval, call, key)) return
  throw new AgentError(
    'APPROVAL_MISMATCH',
    `The arguments of the pending call "${call.id}" (${call.name}) differ from the ones that were shown to the approver.`,
    { value: call.approval.id },
  )
}

/** The open calls of the subagent of a call. The subagent must still exist, with the same guards. */
async function openCallsOfChild(
  parts: AgentParts,
  call: OpenCall & { readonly child: OpenChild },
  options: ResumeOptions,
): Promise<readonly OpenCallOf[]> {
  const { agent, state } = call.child
  let own: AgentParts
  try {
    own = childParts(parts, await delegationTo({ parts }, call))
  } catch (thrown) {
    if (options.onChange !== 'reject')
      return openCallsIn(state['execution'] as never).map((open) => ({ parts, ...open }))
    throw new AgentError(
      'RESUME_TOOL_MISSING',
      `The pending call of "${call.name}" needs the subagent "${agent}", which this agent does not have: ` +
        `${clause(messageOf(thrown))}. To close the call, resume with { onChange: 'close' }.`,
      { value: agent },
    )
  }
  return checkOpen(own, fromStateJson(state), options)
}

/** Why a run continues in another way than it would have. */
export type Closing = {
  /** The open step is closed with what earlier processes have recorded of it. */
  readonly recorded?: readonly RecordEntry[] | undefined
  /** The run ends after the open step. */
  readonly ends?: boolean | undefined
}

const newInput: ContinuationEvaluation = Object.freeze({
  decision: 'forbidContinuation',
  reason: 'userRequested',
  message: 'The user sent a new message.',
  source: 'newInput',
})

/** Applies the answers, fires `onResume`, and continues from where the run was suspended. */
export async function resumeRun(run: RunContext, answers: Answers, closing: Closing = {}): Promise<Run> {
  let final: FinalRecord | undefined
  const preparing = closing.ends === true ? undefined : prepareResume(run)
  if (preparing !== undefined) await preparing
  run.childRuns = { start: startRun, resume: (child, given) => resumeRun(child, given) }
  try {
    const cursor = await reopen(run, answers)
    if (cursor !== undefined) {
      await runLoop(run, cursor, closingOf(run, closing))
      final = run.execution.final
    }
  } catch (thrown) {
    final = brokenRecord(run, thrown)
  }
  return concludeRun(run, final)
}

/** Resumes a run whose process died from its last checkpoint. The time in between is not counted. */
export async function continueRun(
  run: RunContext,
  from: {
    readonly phase: 'started' | 'step'
    readonly downMs: number
    readonly at: number
  } & Closing,
): Promise<Run> {
  let final: FinalRecord | undefined
  const preparing = from.ends === true ? undefined : prepareResume(run)
  if (preparing !== undefined) await preparing
  run.childRuns = { start: startRun }
  run.resumedAt = from.at
  try {
    const { execution } = run
    run.hasExecution = true
    emitResumed(run, {})
    run.replaceExecution({
      ...execution,
      waitedMs: execution.waitedMs + from.downMs,
      hooks: withHooks(run, execution.hooks),
    })
    run.setDeadline()
    const cursor = from.phase === 'started' ? undefined : ({ phase: 'beforeStep', waitingSince: run.now } as const)
    await runLoop(run, cursor, closingOf(run, from))
    final = run.execution.final
  } catch (thrown) {
    final = brokenRecord(run, thrown)
  }
  return concludeRun(run, final)
}

/** Lets capabilities take what this process needs for the run, or reject to continue it now. */
function prepareResume({ parts, state, effects, parentLink }: RunContext): Promise<void> | undefined {
  const preparing = parts.capabilities.flatMap(({ beforeResume }) => beforeResume ?? [])
  if (preparing.length === 0 || parentLink !== undefined || !isLive(effects)) return undefined
  const prepare = async (): Promise<void> => {
    try {
      for (const each of preparing) await each(state, effects)
    } catch (thrown) {
      await leaveRun(effects)
      effects.time.close()
      throw thrown
    }
  }
  return prepare()
}

/** A run without an execution was interrupted before it had started. */
export function emitResumed(run: RunContext, answers: Answers): void {
  const { effects, now, lastStep, hasExecution } = run
  const started = hasExecution && { executionId: run.execution.id }
  effects.emit?.({ type: 'resumed', step: lastStep, at: now, ...started, answers })
}

/** What was recorded of the open step. What its model calls have cost is counted if it has no answer to use. */
function closingOf(run: RunContext, { recorded, ends = false }: Closing): StepClosing {
  const record = recorded && new StepRecord(recorded, { execution: run.execution.id, step: run.state.stepCount })
  if (record !== undefined && record.response === undefined) run.spend(record.usage)
  return { record, vote: ends ? newInput : undefined }
}

/** The cursor to continue from, with the answers; undefined when `onResume` failed and the run stays suspended. */
async function reopen(run: RunContext, answers: Answers): Promise<Cursor | undefined> {
  const saved = run.state
  const { execution, cursor } = suspended(saved)
  const { cursor: _left, ...rest } = execution
  const waitedMs = rest.waitedMs + Math.max(0, run.now - cursor.waitingSince)
  run.hasExecution = true
  emitResumed(run, answers)
  run.replaceExecution({ ...rest, status: 'running', waitedMs, hooks: withHooks(run, rest.hooks) })
  run.setDeadline()
  const fired = await fireTrigger(run, 'onResume', { answers })
  if (fired?.failure === undefined || run.ended !== undefined || isFatal(fired.failure)) {
    if (cursor.phase === 'asked') return answeredQuestion(cursor, answers)
    return cursor.phase === 'tools' ? { ...cursor, step: await withAnswers(run, cursor.step, answers) } : cursor
  }
  run.failure = undefined
  run.state = saved // the answers were not used
  return undefined
}

function answeredQuestion(cursor: Extract<Cursor, { phase: 'asked' }>, answers: Answers): Cursor {
  const { answer: _forged, ...call } = cursor.call
  const answer = call.approval === undefined ? undefined : answers[call.approval.id]
  return { ...cursor, call: answer === undefined ? call : { ...call, answer } }
}

/** Adds the hooks of this agent: none of their guards may be missing at the next resume. */
function withHooks(run: RunContext, before: readonly HookRecord[]): readonly HookRecord[] {
  const known = new Set(before.map(({ name }) => name))
  const present = run.parts.stack.records
  const kept = before.flatMap(({ name }) => present.find((each) => each.name === name) ?? [])
  return Object.freeze([...kept, ...present.filter(({ name }) => !known.has(name))])
}

function suspended(state: AgentState): Suspended {
  const { execution } = state
  if (execution?.status === 'suspended' && execution.cursor !== undefined) {
    checkConversation(state, execution.cursor)
    checkHooks(execution, execution.cursor)
    return { execution, cursor: execution.cursor }
  }
  const how = execution === undefined ? 'has not run' : `is ${execution.status}`
  throw new AgentError(
    'RESUME_NOT_SUSPENDED',
    `The run ${how}, so there is nothing to resume. To continue the conversation, use agent.run(input, { from: run }).`,
  )
}

/** Between two steps every call has a result. A state in which one has none was not saved by this library. */
function checkConversation({ messages }: AgentState, { phase }: Cursor): void {
  const last = messages.at(-1)
  const isOpen = last?.role === 'assistant' && last.content.some((part) => part.type === 'tool-call')
  if (phase !== 'beforeStep' || !isOpen) return
  throw new AgentError('STATE_INVALID', 'The saved state is malformed: it is between two steps, but has open calls.')
}

/** The list of hooks says which guards must not be missing, so a state in which it was edited is not resumed. */
function checkHooks({ hooks }: Execution, cursor: Cursor): void {
  const calls = cursor.phase === 'tools' ? cursor.step.calls : []
  const isOld = cursor.hooks === undefined && calls.every(({ approval }) => approval?.tool === undefined) // saved by 0.1
  if (isOld || cursor.hooks === hashJson(hooks)) return
  throw new AgentError(
    'STATE_INVALID',
    'The saved state was changed: its list of hooks is not the one it was saved with.',
  )
}

export function checkGuards(
  parts: AgentParts,
  execution: Pick<Execution, 'hooks'>,
  accepted: true | readonly string[],
): void {
  if (accepted === true) return
  if (!Array.isArray(accepted)) {
    throw new AgentError('AGENT_INVALID_OPTION', '"acceptMissing" must be a list of names, or true.', {
      value: accepted,
    })
  }
  const missing = execution.hooks.flatMap((hook) => {
    if (hook.mode !== 'guard' || accepted.includes(hook.name)) return []
    const left = unprotected(parts, hook)
    return left === undefined ? [] : [{ name: hook.name, shown: `"${hook.name}"${left}` }]
  })
  if (missing.length === 0) return
  const names = [...new Set(missing.map(({ name }) => name))]
  const [guardsText, them] = names.length === 1 ? ['guard', 'it'] : ['guards', 'them']
  const accept = [...accepted, ...names].map(inCode).join(', ')
  throw new AgentError(
    'RESUME_GUARD_MISSING',
    `The run started with the ${guardsText} ${[...new Set(missing.map(({ shown }) => shown))].join(', ')}, which this agent does not have. Add ${them}, or accept that: resume(…, { acceptMissing: [${accept}] }).`,
    { value: names[0] },
  )
}

/** Where a guard does not protect a run any more, as text after its name. Undefined if it does everywhere. */
function unprotected({ stack, toolNames }: AgentParts, { name, on, tools }: HookRecord): string | undefined {
  const same = stack.hooks.find((each) => each.name === name && each.mode === 'guard' && !each.shadow)
  if (same === undefined) return ''
  if (on === undefined) return undefined // saved by 0.1
  const triggers = on.filter((trigger) => !same.triggers.some((each) => each === trigger))
  if (triggers.length > 0) return ` at ${triggers.join(', ')}`
  const wasSelected = tools?.map(toNameTest)
  const left = toolNames.filter((each) => !same.selects(each) && wasSelected?.some((test) => test(each)) !== false)
  return left.length === 0 ? undefined : ` for ${left.map((each) => `"${each}"`).join(', ')}`
}

async function checkAnswer(
  calls: readonly OpenCallOf[],
  { id, given, now, onChange }: { id: string; given: unknown; now: number; onChange?: ResumeOptions['onChange'] },
): Promise<Answer> {
  const { call, parts } = calls.find((each) => each.call.approval?.id === id) ?? {}
  if (parts === undefined || call?.approval === undefined) {
    throw new AgentError('ANSWER_UNKNOWN', `The run is not waiting for "${id}".`, { value: id })
  }
  if (call.result !== undefined || call.child !== undefined) {
    throw new AgentError('ANSWER_USED', `"${id}" was answered already.`, { value: id })
  }
  const answer = checkedAnswer(given)
  if (answer === 'suspend') {
    throw new AgentError('ANSWER_INVALID', `To leave "${id}" open, omit it from the answers.`, { value: given })
  }
  if (typeof answer === 'object' && 'block' in answer) return answer
  const problem = answerProblem(call.approval, answer)
  if (problem !== undefined) throw new AgentError('ANSWER_INVALID', problem, { value: given })
  const { expiresAt } = call.approval
  if (expiresAt !== undefined && now >= expiresAt) {
    throw new AgentError('ANSWER_EXPIRED', `"${id}" expired; it can only be denied now, with { block: 'reason' }.`, {
      value: id,
    })
  }
  if (call.approval.trigger !== undefined) return answer // it is not about a tool
  if (!parts.tools.has(call.name)) {
    if (onChange !== 'reject')
      return Object.freeze({ block: `Not run: the agent no longer has the tool "${call.name}".` })
    throw new AgentError(
      'RESUME_TOOL_MISSING',
      `The pending call needs the tool "${call.name}", which this agent does not have. To close the call, resume with ` +
        `{ onChange: 'close' }.`,
      { value: call.name },
    )
  }
  await checkArguments(parts, call, answer)
  return answer
}

/** Arguments that the approver has edited must fit the tool, unless the question is asked again because it has changed. */
async function checkArguments(parts: AgentParts, call: OpenCall, answer: Answer): Promise<void> {
  const tool = parts.tools.get(call.name)!
  if (answer === 'allow' || 'block' in answer || call.approval!.tool !== fingerprintOf(parts, call.name)) return
  const parsed = await tool.parse(answer.allow)
  if ('value' in parsed) return
  throw new AgentError('ANSWER_INVALID', `The edited arguments do not fit the tool "${call.name}": ${parsed.problem}`, {
    value: answer.allow,
  })
}

async function withAnswers(run: RunContext, step: OpenStep, answers: Answers): Promise<OpenStep> {
  const calls: OpenCall[] = []
  for (const call of step.calls) calls.push(call.result === undefined ? await withAnswer(run, call, answers) : call)
  return { ...step, calls }
}

async function withAnswer(run: RunContext, call: OpenCall, answers: Answers): Promise<OpenCall> {
  const { answer: _forged, answers: _too, ...open } = call // an open call has no answer, unless the saved state was edited
  if (isInChild(call)) {
    const isMissing = await delegationTo(run, call).then(
      () => false,
      () => true,
    )
    const given = isMissing ? {} : answersWithin(call.child, answers) // a subagent that is missing cannot be waited for
    return given === undefined ? open : { ...open, answers: given }
  }
  const answer = call.approval === undefined ? undefined : answers[call.approval.id]
  return answer === undefined ? open : { ...open, answer }
}
