import { checkStartedChildren } from '../../agent/subagents/delegated-call.ts'
import type { Cursor, HookRecord } from '../../state/execution.ts'
import type { OpenCall } from '../../state/tool-call.ts'
import { startRun, stateFor } from '../../agent/loop/start.ts'
import type { SessionRunOptions } from '../../agent/agent.ts'
import { pauseWhen } from '../../agent/run-options.ts'
import { checkChoice } from '../../state/check-options.ts'
import { RunContext } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { checkGuards, checkResume, continueRun, emitResumed, resumeRun, type Closing } from '../../agent/loop/resume.ts'
import type { Run } from '../../agent/run.ts'
import { ENVIRONMENT_KEY, type AgentState } from '../../state/agent-state.ts'
import type { Emit } from '../../state/event.ts'
import { exactJson, type JsonObject } from '../../state/json.ts'
import type { Message } from '../../state/message.ts'
import type { Answer, Answers } from '../../state/tool-call.ts'
import { liveEffects, makeEffects, type Effects } from '../../effects/effects.ts'
import { toRequestedStop } from '../../state/stop-request.ts'
import { AgentError } from '../../errors.ts'
import { snapshotOf } from '../log/read-session.ts'
import type { Circumstances } from '../log/session-records.ts'
import { readLogged } from '../log/logged-events.ts'
import { SessionEffects } from '../log/session-effects.ts'
import { SessionEvents } from '../log/session-events.ts'
import type { SessionStore } from '../stores/store.ts'
import { answeredBefore, resumeFirst } from './approvals.ts'
import { hashTurn, type OpenRun } from '../log/session-reader.ts'
import { withStop } from './request-stop.ts'
import { readTurn, restoreRun } from './restore-run.ts'
import { hasQuestions, nothingToResume, unfinished } from './unfinished-run.ts'
import { appendSessionStart, lockSession, setHead, type LockedSession, type Locking } from './session-lock.ts'

type Work = {
  readonly store: SessionStore
  readonly parts: AgentParts
  readonly session: LockedSession
  readonly how: SessionRunOptions
  readonly inner: Effects
  readonly events: SessionEvents
  /** The id of session variables for commands, if the state of the run has none. */
  readonly environment?: string | undefined
  /** Called with the effects of the run. */
  readonly opened?: (effects: SessionEffects) => void
}

/** Starts a run in a session, which is created if it does not exist. */
export function runInSession(
  store: SessionStore,
  { parts, input, how }: { readonly parts: AgentParts; readonly input: Message; readonly how: SessionRunOptions },
): Promise<Run> {
  if (how.from !== undefined) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      'A run in a session continues from the session. Remove the option "from".',
    )
  }
  const { onNewInput = 'reject' } = how
  checkChoice('run', 'onNewInput', onNewInput, ['reject', 'deny'])
  const metadata = how.metadata && (exactJson(how.metadata, 'metadata') as JsonObject)
  return lockSession(store, { ...lockingOf(how, parts), create: true }, async (locked) => {
    const { open, isSuspended } = locked.snapshot
    const work = { store, parts, session: locked }
    const isNew = isSuspended || how.turn === undefined
    const same = isNew ? undefined : await withStop(locked, how, (stoppable) => runOfTurn({ ...work, how: stoppable }))
    if (same !== undefined) return same
    const canEnd = onNewInput === 'deny' && open?.phase !== 'input'
    if (isSuspended || (open !== undefined && !canEnd)) throw unfinished(how.session, locked.snapshot)
    const session =
      open === undefined
        ? locked
        : await withStop(locked, how, (stoppable) => endOpenRun({ ...work, how: stoppable }, open))
    return withStop(session, how, (stoppable) => startInSession({ parts, session, how: stoppable }, input, metadata))
  })
}

/** Starts a run in a session that has no open one. */
function startInSession(
  { parts, session, how }: Pick<Work, 'parts' | 'session' | 'how'>,
  input: Message,
  metadata: JsonObject | undefined,
): Promise<Run> {
  const { journal } = session
  const inner = innerEffects(how, (event) => events.emit(event))
  const [at, run] = [inner.now(), how.run ?? inner.newId()]
  const events = new SessionEvents(journal, { session: how.session, run, listener: how.listener })
  appendSessionStart(session, { agent: parts.name, at })
  const { turn, recordRequests: recordsRequests = false } = how
  const given = { ...(metadata !== undefined && { metadata }), ...(turn !== undefined && { turn }) }
  const { createdAt, agent } = session.snapshot
  journal.append({
    type: 'input',
    run,
    at,
    message: input,
    ...given,
    ...(createdAt !== undefined && agent !== parts.name && { agent: parts.name }),
    ...circumstances(parts),
    ...(recordsRequests && { requests: true }),
  })
  const started = { run, at, entries: [], metadata, turn, recordsRequests }
  const context = runContext({ parts, session, how, inner, events }, started)
  setHead(session, context.state.withMessage(input), { agent: parts.name, cwd: process.cwd(), at, status: 'running' })
  return startRun(context, input)
}

/** Where this process runs an agent, and with which limits. */
function circumstances({ budgets }: AgentParts): Circumstances {
  const { steps, tokens, time, costUsd, toolCalls } = budgets.at(-1) ?? {}
  return {
    cwd: process.cwd(),
    limits: {
      ...(steps !== undefined && { maxSteps: steps }),
      ...(tokens !== undefined && { maxTokens: tokens }),
      ...(time !== undefined && { maxTimeMs: time.ms }),
      ...(costUsd !== undefined && { maxCost: costUsd }),
      ...(toolCalls !== undefined && { maxToolCalls: toolCalls }),
    },
  }
}

/**
 * Resumes the run of a session that has not ended: it was suspended, or its process died. If the agent has changed, so that
 * it does not repeat what is recorded, the open step is closed with what is recorded and the run continues.
 */
export function resumeSession(
  store: SessionStore,
  { parts, how, environment }: Pick<Work, 'parts' | 'how' | 'environment'>,
): Promise<Run> {
  checkChoice('resume', 'onChange', how.onChange ?? 'close', ['close', 'reject'])
  return lockSession(store, lockingOf(how, parts), (session) =>
    withStop(session, how, (stoppable) => resumeLocked({ store, parts, session, how: stoppable, environment })),
  )
}

/** Ends a run that is to stop and that no process works on. Waits for a process that does. */
export function endStoppedRun(store: SessionStore, { parts, how }: Pick<Work, 'parts' | 'how'>): Promise<void> {
  return lockSession(store, lockingOf(how, parts), (session) =>
    withStop(session, how, async (stoppable) => {
      const isOpen = session.snapshot.open !== undefined && isStopped(stoppable)
      if (isOpen) await resumeLocked({ store, parts, session, how: stoppable })
    }),
  )
}

function isStopped({ signal }: SessionRunOptions): boolean {
  return toRequestedStop(signal?.reason) !== undefined
}

/**
 * The run of a turn that the session already has: it is resumed, unless it has ended or waits for an answer. Undefined if the
 * turn is new.
 */
async function runOfTurn(work: Pick<Work, 'store' | 'parts' | 'session' | 'how'>): Promise<Run | undefined> {
  const { store, parts, session, how } = work
  const { snapshot } = session
  const { turn } = how
  if (turn === undefined || !snapshot.turns.known.includes(hashTurn(turn))) return undefined
  if (snapshot.turns.latest !== turn) {
    const ended = await session.answer(readTurn(store, session.id, turn))
    return ended && restoreRun(parts, ended, session.id)
  }
  const { open, state } = snapshot
  const isWaiting = open?.phase === 'suspended' && open.answers === undefined && hasQuestions(state!, open.given)
  return open === undefined || (isWaiting && !isStopped(how))
    ? restoreRun(parts, snapshot, session.id)
    : resumeLocked(work)
}

async function resumeLocked({
  store,
  parts,
  session,
  how,
  environment,
}: Pick<Work, 'store' | 'parts' | 'session' | 'how' | 'environment'>): Promise<Run> {
  const { onChange = 'close' } = how
  const { journal, snapshot } = session
  const { open, isSuspended } = snapshot
  if (open === undefined) throw isSuspended ? unfinished(how.session, snapshot) : nothingToResume(how.session)
  let effects: SessionEffects | undefined
  const events = await eventsOf({ store, session, how }, open)
  const inner = innerEffects(how, events.emit)
  const now = inner.now()
  if (isSuspended) journal.append({ type: 'sessionResumed', at: now })
  const work = {
    store,
    parts,
    session,
    how,
    inner,
    events,
    environment,
    now,
    opened: (made: SessionEffects) => void (effects = made),
  }
  const run = await resumeOpen(work, open)
  if (effects?.hasDiverged !== true || onChange === 'reject') return run
  journal.append({ type: 'stepClosing', at: now })
  await journal.flush()
  const current = snapshotOf(journal.loaded!, session.id) // with what was recorded just now
  const { answers: _used, ...rest } = how
  const closing = { ...session, snapshot: current }
  const again = await eventsOf({ store, session: closing, how }, current.open!)
  const more = { session: closing, how: rest, inner: innerEffects(how, again.emit), events: again }
  return resumeOpen({ ...work, ...more }, current.open!)
}

/** Denies what an open run waits for, and ends it. Returns the session without it. */
async function endOpenRun(
  { store, parts, session, how }: Pick<Work, 'store' | 'parts' | 'session' | 'how'>,
  open: OpenRun,
): Promise<LockedSession> {
  const { listener: _unheard, shouldPause: _not, ...quiet } = how // the listener gets the events of the new run
  const events = await eventsOf({ store, session, how: quiet }, open)
  const inner = innerEffects(quiet, events.emit)
  const now = inner.now()
  const isWaiting = open.phase === 'suspended' && open.answers === undefined
  if (!isWaiting) {
    session.journal.append({ type: 'runResumed', at: now, ...circumstances(parts) })
    session.journal.append({ type: 'stepClosing', at: now, ends: true })
  }
  const answers = isWaiting ? deniedAnswers(session.snapshot.state!, open.given) : {}
  const acceptMissing = Object.keys(open.given).length === 0 || [] // without an approved call, no guard has to decide
  const work = { store, parts, session, how: { ...quiet, answers, acceptMissing }, inner, events, now }
  const run = await resumeOpen(work, { ...open, ends: true, isClosing: !isWaiting })
  const stored = session.journal.loaded && snapshotOf(session.journal.loaded, session.id)
  if (stored !== undefined && stored.open === undefined) return { ...session, snapshot: stored }
  throw run.status === 'failed' ? run.error : unfinished(session.id, session.snapshot)
}

/** A denial of each open question of the run. Subagents that wait are closed with their call. */
function deniedAnswers({ execution }: AgentState, given: Answers): Answers {
  const asked = askedCalls(execution?.cursor)
  const open = asked.filter((call) => call.result === undefined && call.child === undefined)
  const ids = open.flatMap(({ approval }) =>
    approval === undefined || Object.hasOwn(given, approval.id) ? [] : [approval.id],
  )
  return Object.fromEntries(ids.map((id) => [id, denied]))
}

function askedCalls(cursor: Cursor | undefined): readonly OpenCall[] {
  if (cursor?.phase === 'asked') return [cursor.call]
  return cursor?.phase === 'tools' ? cursor.step.calls : []
}

const denied = Object.freeze({ block: 'Denied: the user sent a new message instead of an answer.' })

type Resuming = Work & { readonly now: number }

async function resumeOpen(work: Resuming, open: OpenRun): Promise<Run> {
  const { parts, how, session, now } = work
  const closing = { recorded: open.isClosing ? open.entries : undefined, ends: open.ends }
  if (open.phase === 'suspended') return resumeWithAnswers(work, open, closing)
  if (open.phase !== 'input') {
    const check = (of: AgentParts, hooks: readonly HookRecord[]): void =>
      checkGuards(of, { hooks }, how.acceptMissing ?? [])
    check(parts, session.snapshot.state!.execution!.hooks)
    await checkStartedChildren(parts, open.entries, check)
  }
  if (!open.isClosing) session.journal.append({ type: 'runResumed', at: now, ...circumstances(parts) })
  const run = runContext(work, open)
  if (open.phase === 'input') {
    run.liveFrom = now // the time in which no process worked on it is not counted
    if (work.events.hasInput) emitResumed(run, {})
    return startRun(run, open.input)
  }
  return continueRun(run, { phase: open.phase, downMs: open.downMs + Math.max(0, now - open.at), at: now, ...closing })
}

async function resumeWithAnswers(work: Resuming, open: OpenRun, closing: Closing): Promise<Run> {
  const { session, now } = work
  const state = session.snapshot.state!
  const answers = open.answers === undefined ? await newAnswers(work, open, now) : await sameAnswers(work, open.answers)
  if (open.answers === undefined)
    session.journal.append({
      type: 'answers',
      answers,
      at: now,
      ...(open.ends && { ends: true }),
      ...circumstances(work.parts),
    })
  setHead(session, state, {
    agent: work.parts.name,
    cwd: process.cwd(),
    at: 0,
    answered: answers,
    status: 'running',
  })
  return resumeRun(runContext(work, { ...open, at: now }), answers, closing)
}

/** The answers that were stored and those passed in now. Whether a stored one was in time was checked when it was stored. */
async function newAnswers({ parts, session, how }: Work, { given }: OpenRun, now: number): Promise<Answers> {
  const state = session.snapshot.state!
  const answers: { [id: string]: Answer } = {}
  for (const [id, answer] of Object.entries(given)) {
    if (Object.hasOwn(how.answers ?? {}, id)) throw answeredBefore(id)
    try {
      Object.assign(answers, await checkResume(parts, state, { ...how, answers: { [id]: answer }, now: 0 }))
    } catch (error) {
      // Arguments that an approver edited without knowing the tool block the call. They do not end the session.
      if (!(error instanceof AgentError && error.code === 'ANSWER_INVALID')) throw error
      answers[id] = { block: error.message }
    }
  }
  return { ...answers, ...(await checkResume(parts, state, { ...how, now })) }
}

/** The process died after the run had resumed with these answers: it resumes with the same ones. */
function sameAnswers({ parts, session, how }: Work, answers: Answers): Promise<Answers> {
  for (const id of Object.keys(how.answers ?? {})) {
    throw Object.hasOwn(answers, id) ? answeredBefore(id) : resumeFirst(id)
  }
  return checkResume(parts, session.snapshot.state!, { ...how, answers, now: 0 })
}

const HEAD_STEPS = 8

type StartedRun = Pick<OpenRun, 'run' | 'at' | 'entries' | 'metadata' | 'turn' | 'recordsRequests'> &
  Partial<Pick<OpenRun, 'phase' | 'isClosing'>>

function runContext(
  { parts, how, session, inner, events, environment, opened }: Omit<Work, 'store'>,
  open: StartedRun,
): RunContext {
  const { snapshot, journal } = session
  const isNew = open.phase === undefined || open.phase === 'input'
  const effects = new SessionEffects(inner, {
    journal,
    events,
    entries: open.entries,
    run: open.run,
    now: open.at,
    isClosing: open.isClosing ?? false,
    recordsRequests: open.recordsRequests || how.recordRequests === true,
    onCheckpoint: ({ phase, state }) => {
      // Not with each step of a long run: it would be a fourth of what is written.
      const isNews = phase !== 'step' || state.stepCount < HEAD_STEPS || state.stepCount % HEAD_STEPS === 0
      if (isNews) setHead(session, state, { agent: parts.name, cwd: process.cwd(), at: open.at })
    },
  })
  opened?.(effects)
  const state: AgentState = isNew
    ? stateFor(parts, { from: snapshot.state, agentId: () => effects.newId(), metadata: open.metadata })
    : snapshot.state!
  const known = environment === undefined ? state : state.withMetadata(ENVIRONMENT_KEY, environment)
  const context = new RunContext(parts, effects, known, {
    shouldPause: pauseWhen(how),
    streams: how.deltas ?? how.listener !== undefined,
    session: how.session,
    turn: open.turn,
    ...(!isNew && { ledger: snapshot.ledger }),
    isTentative: how.onChange !== 'reject',
  })
  for (const { durationMs, ...entry } of how.startedWith ?? []) context.ledgerWriter.adopt(entry, durationMs)
  return context
}

function lockingOf({ session, waitMs, signal }: SessionRunOptions, { budgets }: AgentParts): Locking {
  return { id: session, waitMs, signal, limit: budgets.at(-1)?.time }
}

function innerEffects({ effects = liveEffects(), signal }: SessionRunOptions, emit: Emit | undefined): Effects {
  return makeEffects(effects, { signal, emit })
}

/** The events of a run that is resumed. What earlier processes have logged of it is not logged again. */
async function eventsOf(
  { store, session, how }: Pick<Work, 'store' | 'session' | 'how'>,
  open: OpenRun,
): Promise<SessionEvents> {
  const { id, snapshot, journal } = session
  const stepCount = snapshot.state?.stepCount ?? 0
  const logged = await session.answer(readLogged(store, { session: id, last: journal.eventSeq, stepCount, open }))
  const isTentative = open.entries.length > 0 && !open.isClosing
  const { listener } = how
  const endsIfDiverged = how.onChange === 'reject'
  return new SessionEvents(journal, { session: id, run: open.run, listener, logged, isTentative, endsIfDiverged })
}
