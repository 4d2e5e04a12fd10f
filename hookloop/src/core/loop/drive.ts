import { AgentState, SAVED_VERSION } from '../state/agent-state.ts'
import type { FinalRecord } from '../state/execution.ts'
import { toInput, type Message } from '../state/message.ts'
import type { JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { applyChange, type StateChange } from '../state/state-diff.ts'
import type { Warning } from '../state/warning.ts'
import type { Approval, Answers } from '../state/tool-call.ts'
import { addUsage, noTokens, subtractUsage, type Usage } from '../state/usage.ts'
import { AgentError, messageOf, toAgentError } from '../../errors.ts'
import { leaveRun } from '../effects/effects.ts'
import type { FactValues } from '../hooks/base-context.ts'
import { recordedChange, Suspended } from '../effects/journal.ts'
import type { Circumstances } from '../effects/records.ts'
import { saveRun } from '../effects/save-run.ts'
import type { AgentParts } from '../agent/agent-parts.ts'
import { warningsOf } from '../explain/warnings.ts'
import { rememberOpenPart, type Run, type RunBase } from '../agent/run.ts'
import { fireTrigger } from '../context/fire-trigger.ts'
import { runLoop } from './loop.ts'
import { withHooks } from './resume.ts'
import type { RunContext } from '../context/run-context.ts'

/** The input as a message, redacted. */
export function inputFor({ redact }: AgentParts, input: string | Message): Message {
  const message = toInput(input)
  if (redact === undefined) return message
  const content = message.content.map((part) =>
    part.type === 'text' ? Object.freeze({ ...part, text: redact(part.text) as string }) : part,
  )
  return Object.freeze({ ...message, content: Object.freeze(content) })
}

/** Starts a run. Resolves with a run whatever happens. */
export async function startRun(run: RunContext, input: Message): Promise<Run> {
  const { now } = run
  const { turn } = run.options
  run.effects.emit?.({ type: 'input', step: 0, at: now, message: input, ...(turn !== undefined && { turn }) })
  return driveRun(run, input)
}

/** How a process continues a run. */
export type Resuming = Circumstances & {
  readonly answers: Answers
  /** The time of the clock. */
  readonly at: number
  /** Nothing new begins: there is new input. */
  readonly ends?: boolean
  readonly by?: string
  /** What hooks at `onSessionStart` changed. */
  readonly change?: StateChange | undefined
}

/**
 * Continues a run that was suspended, or whose process died: the answers are records like any other, then the open step runs
 * again over what is recorded.
 */
export async function resumeRun(run: RunContext, input: Message, resuming: Resuming): Promise<Run> {
  const { journal, listener } = run.effects
  const { log } = journal
  const { answers, at, ends = false, cwd, limits, by } = resuming
  const pending = log.questions()
  const isSuspended = log.pending !== undefined
  let { change } = resuming
  try {
    if (!ends) for (const { beforeResume } of run.parts.capabilities) await beforeResume?.(run.state, run.effects)
    if (isSuspended) {
      const { state } = run
      const from = change === undefined ? state : applyChange(state, change)
      const aside = await fireAside(run, ['onResume', { answers }], { from, base: state })
      if (aside.hasFailed) return await concludeRun(run, { pending }) // the answers are not used
      change = aside.change
      run.spend(aside.spent)
    }
  } catch (thrown) {
    if (!isSuspended || (thrown instanceof AgentError && thrown.code !== 'HOOK_FAILED')) {
      await leaveRun(run.effects)
      run.effects.time.close()
      throw thrown
    }
    run.noteLoop('onResume', { error: messageOf(thrown) })
    return concludeRun(run, { pending })
  }
  const { unstored: ledger } = run.ledgerOf
  const { lastStep: step } = run
  const answered = Object.entries(answers).map(([approval, answer]) => ({ at, approval, answer, ...(by && { by }) }))
  for (const each of answered) journal.append({ t: 'answer', ...each })
  journal.append({
    t: 'resume',
    at,
    step,
    hooks: withHooks(run.parts, log.hooks),
    ...(cwd !== undefined && { cwd }),
    ...(limits !== undefined && { limits }),
    ...(change !== undefined && { change }),
    ...(ledger.length > 0 && { ledger }),
    ...(ends && { ends }),
  })
  run.ledgerOf.setStored()
  await journal.flush()
  if (run.hasExecution) run.updateExecution({ hooks: log.hooks })
  for (const each of answered) listener?.({ type: 'answered', step, ...each })
  listener?.({ type: 'resumed', step, at })
  return driveRun(run, input)
}

/** Fires a trigger beside the open step, which does not see the changes: they are recorded, and made when it closes. */
async function fireAside(
  run: RunContext,
  [trigger, facts]: readonly ['onPause' | 'onResume', FactValues],
  { base, from = base }: { readonly base: AgentState; readonly from?: AgentState },
): Promise<{ readonly change: StateChange | undefined; readonly spent: Usage; readonly hasFailed: boolean }> {
  const { state, hasExecution, failure, spentEarly } = run
  run.load(from)
  run.spentEarly = noTokens
  const fired = await fireTrigger(run, trigger, facts)
  const change = recordedChange(base, run.state)
  const spent = addUsage(subtractUsage(run.state.usage, from.usage), run.spentEarly)
  run.load(state, hasExecution)
  run.spentEarly = spentEarly
  run.failure = failure // a failure must not end a run that waits for people
  return { change, spent, hasFailed: fired?.failure !== undefined }
}

async function driveRun(first: RunContext, input: Message): Promise<Run> {
  let run = first
  for (;;) {
    run.drive = driveChild
    if (!run.hasExecution) noteCapabilities(run)
    run.setDeadline()
    try {
      return await concludeRun(run, { final: await runLoop(run, input) })
    } catch (thrown) {
      const next = run.effects.journal.tape?.skip(thrown, { state: run.state, ledger: run.ledgerOf.unstored })
      if (next?.final !== undefined) return concludeRun(run.fromCheckpoint(next.state), { final: next.final })
      if (next === undefined) {
        if (!(thrown instanceof Suspended)) return concludeRun(run, { final: brokenRecord(run, thrown) })
        if (await pause(run, thrown.questions)) return concludeRun(run, { pending: thrown.questions })
        run.effects.noticeFirst() // it was cancelled meanwhile
      }
      run = run.fromCheckpoint(next?.state)
    }
  }
}

/** Runs a subagent, from its last checkpoint. */
async function driveChild(run: RunContext, input: Message): Promise<FinalRecord> {
  const { execution } = run.state
  if (run.effects.scopeLog.isOver) return execution!.final! // its parent does not know it yet
  run.effects.emit?.({ type: 'input', step: 0, at: run.now, message: input })
  const final = await runLoop(run, input)
  await run.background?.drainObservers()
  run.effects.emit?.({ type: 'finished', step: run.lastStep, at: run.now, record: final })
  return final
}

/** Problems of capabilities, such as hooks of a file that do not run. Subagents have those of their parent. */
function noteCapabilities(run: RunContext): void {
  const { warnings } = run.parts
  if (warnings.length === 0 || !run.isRoot) return
  run.noteLoop('onUserInput', { warnings: warnings.map((message) => ({ code: 'LEFT_OUT', message })) })
}

/** Fires onPause and records the pause. Returns false if the run was cancelled meanwhile. */
async function pause(run: RunContext, pending: readonly Approval[]): Promise<boolean> {
  const { journal, scopeLog, time } = run.effects
  const before = journal.log.openUsage('')
  const { change, spent } = await fireAside(run, ['onPause', { pending: Object.freeze(pending) }], { base: run.base })
  // What they have spent, besides what is recorded of hooks with an effect.
  const {
    steps: _steps,
    toolCalls: _calls,
    ...usage
  } = subtractUsage(spent, subtractUsage(journal.log.openUsage(''), before))
  if (Object.values(usage).some((amount) => amount !== 0)) {
    const key = { step: run.step, kind: 'hook', trigger: 'onPause', n: `spent ${scopeLog.entries.size}` } as const
    journal.append({ t: 'end', at: run.now, key, value: { usage } })
  }
  if (time.end !== undefined) return false
  await run.background?.settleShadows()
  const ids = pending.map(({ id }) => id)
  const { unstored: ledger } = run.ledgerOf
  const what = { ...(change !== undefined && { change }), ...(ledger.length > 0 && { ledger }) }
  journal.pause({ t: 'pause', at: run.now, step: run.lastStep, pending: ids, ...what }, run.state)
  return true
}

/** The record of a run that an unexpected error ended: the run fails, the caller gets no exception. */
function brokenRecord(run: RunContext, thrown: unknown): FinalRecord {
  run.failure = toAgentError(thrown, 'HOOK_FAILED')
  const { message, code } = run.failure
  const isStored = code !== 'STORE_FAILED' && code !== 'SESSION_FENCED'
  const reason = isStored ? 'errorForbade' : 'persistenceFailed'
  const by = isStored ? 'hookloop' : 'store'
  const final = Object.freeze({ status: 'failed', reason, by, message, votes: Object.freeze([]), at: run.now } as const)
  if (run.hasExecution) run.updateExecution({ status: 'failed', final })
  return final
}

type End =
  | { readonly final: FinalRecord; readonly pending?: never }
  | { readonly pending: readonly Approval[]; readonly final?: never }

/** The result of a run, once observers have finished and everything is stored. */
async function concludeRun(run: RunContext, end: End): Promise<Run> {
  const { effects, background } = run
  await background?.drainObservers()
  await background?.settleShadows()
  let ended = end
  try {
    await effects.journal.flush()
  } catch (thrown) {
    ended = { final: brokenRecord(run, thrown) }
  }
  await leaveRun(effects)
  effects.time.close()
  const result = toRun(run, ended)
  const { final, pending } = ended
  const place = { step: run.lastStep, at: run.now }
  effects.listener?.(
    final === undefined ? { type: 'suspended', ...place, pending } : { type: 'finished', ...place, record: final },
  )
  return result
}

/** The result of a run that has ended, or that waits. */
export function toRun(
  run: RunContext,
  { final, pending = [] }: { readonly final?: FinalRecord | undefined; readonly pending?: readonly Approval[] },
): Run {
  const state = final === undefined ? suspendedState(run) : run.state
  let ledger: readonly TimedLedgerEntry[] | undefined
  let warnings: readonly Warning[] | undefined
  // A blocked input opens no execution; the last text of the state is from an earlier run.
  const isOwn = run.hasExecution && run.blocked === undefined
  const text = run.open?.text ?? (isOwn ? (state.lastStep?.text ?? '') : '')
  const base: RunBase = {
    text,
    reason: final?.reason,
    state,
    get ledger() {
      return (ledger ??= run.ledgerOf.all)
    },
    get warnings() {
      return (warnings ??= warningsOf(base.ledger))
    },
    session: run.options.session,
    toJSON: () =>
      final === undefined
        ? saveRun(run.effects.journal.log, { state, pending })
        : { version: SAVED_VERSION, status: final.status, pending: [], state: state.toJSON(), ledger: base.ledger },
  }
  const result: Run = Object.freeze(
    Object.assign(base, final === undefined ? suspended(pending) : endOf(run, final, text)),
  )
  if (final === undefined)
    rememberOpenPart(result, { calls: run.open?.calls ?? [], usage: run.effects.journal.log.openUsage('') })
  return result
}

function suspended(pending: readonly Approval[]) {
  return { status: 'suspended', pending } as const
}

function endOf({ output, failure }: RunContext, final: FinalRecord, text: string) {
  const { status, reason, by } = final
  switch (status) {
    case 'completed':
      // The type of the output is that of `Agent<O>`; it is not known here.
      return { status, output: output === undefined ? text : (output.value as string), final }
    case 'stopped':
      return { status, reason, by, final }
    case 'failed':
      return { status, error: failure!, final }
    case 'cancelled':
      return { status, final }
    default:
      return status satisfies never
  }
}

/** The state of a suspended run is that of its last checkpoint: what has happened since is in its records. */
function suspendedState({ effects, start }: RunContext): AgentState {
  const base = effects.scopeLog.state ?? start
  return base.execution?.status === 'running' ? AgentState.patchExecution(base, { status: 'suspended' }) : base
}

/** When a run pauses after a step: when its reader has left, or when it is drained. */
export function pauseWhen({
  shouldPause,
  drain,
}: {
  readonly shouldPause?: ShouldPause
  readonly drain?: AbortSignal
}): ShouldPause {
  if (drain === undefined) return shouldPause
  return async (state) => drain.aborted || (await shouldPause?.(state)) === true
}

type ShouldPause = ((state: AgentState) => Promise<boolean>) | undefined

/** The state that a run starts with: a new one, or that of an earlier run. */
export function stateFor(
  agent: { readonly instructions: string },
  given: {
    readonly from: AgentState | undefined
    readonly agentId: string
    readonly metadata: JsonObject | undefined
  },
): AgentState {
  const state = given.from ?? AgentState.create({ agentId: given.agentId })
  let next = state.systemPrompt === '' ? state.withSystemPrompt(agent.instructions) : state
  for (const [key, value] of Object.entries(given.metadata ?? {})) next = next.withMetadata(key, value)
  return next
}
