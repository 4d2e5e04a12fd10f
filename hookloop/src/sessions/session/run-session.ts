import { pauseWhen, resumeRun, startRun, stateFor, type Resuming } from '../../core/loop/drive.ts'
import type { SessionRunOptions } from '../../core/agent/agent.ts'
import { checkChoice } from '../../values/check-options.ts'
import { RunContext } from '../../core/context/run-context.ts'
import type { AgentParts } from '../../core/agent/agent-parts.ts'
import { checkResume, withHooks } from '../../core/loop/resume.ts'
import type { Run } from '../../core/agent/run.ts'
import { ENVIRONMENT_KEY, type AgentState } from '../../core/state/agent-state.ts'
import { exactJson, type JsonObject } from '../../values/json.ts'
import type { Emit, EmittedEvent } from '../../core/state/event.ts'
import type { Message } from '../../core/state/message.ts'
import type { StateChange } from '../../core/state/state-diff.ts'
import type { Answers } from '../../core/state/tool-call.ts'
import { Effects, liveEffects, newRunId, toBoth } from '../../core/effects/effects.ts'
import { Journal, type RecordSink } from '../../core/effects/journal.ts'
import type { RunLog } from '../../core/effects/log.ts'
import type { Circumstances } from '../../core/effects/records.ts'
import { RunTime } from '../../core/effects/run-time.ts'
import { toRequestedStop } from '../../core/state/stop-request.ts'
import { AgentError } from '../../errors.ts'
import { eventSeq } from '../log/watch-session.ts'
import { SessionEvents } from '../log/session-events.ts'
import type { SessionStore } from '../stores/store.ts'
import { hashTurn } from '../log/session-reader.ts'
import { withStop } from './request-stop.ts'
import { readTurn, restoreRun } from './restore-run.ts'
import { hasQuestions, isPrepared, nothingToResume, unfinished } from './unfinished-run.ts'
import { appendSessionStart, lockSession, setHead, type LockedSession } from './session-lock.ts'

type Work = {
  readonly store: SessionStore
  readonly parts: AgentParts
  readonly session: LockedSession
  readonly options: SessionRunOptions
  /** The id of session variables for commands, if the state of the run has none. */
  readonly environment?: string | undefined
  /** What hooks at `onSessionStart` changed. */
  readonly change?: StateChange | undefined
}

type Locked<T> = (work: Work) => Promise<T>

/** Locks a session for one run. */
function inSession<T>(
  { store, parts, options, ...rest }: Omit<Work, 'session'>,
  work: Locked<T>,
  { create = false } = {},
): Promise<T> {
  const { session: id, waitMs, signal } = options
  const locking = { id, create, waitMs, signal, limit: parts.budgets.at(-1)?.time }
  return lockSession(store, locking, (session) =>
    withStop(session, options, (stoppable) => work({ store, parts, session, options: stoppable, ...rest })),
  )
}

/** Starts a run in a session, which is created if it does not exist. */
export async function runInSession(
  store: SessionStore,
  {
    parts,
    input,
    options,
  }: { readonly parts: AgentParts; readonly input: Message; readonly options: SessionRunOptions },
): Promise<Run> {
  if (options.from !== undefined) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      'A run in a session continues from the session. Remove the option "from".',
    )
  }
  const { onNewInput = 'reject' } = options
  checkChoice('run', 'onNewInput', onNewInput, ['reject', 'block'])
  const metadata = options.metadata && (exactJson(options.metadata, 'metadata') as JsonObject)
  const start: Locked<Run | undefined> = async (work) => {
    const { reader } = work.session
    const { open, isSuspended } = reader
    const same = isSuspended ? undefined : await runOfTurn(work)
    if (same !== undefined) return same
    const canEnd = onNewInput === 'block' && open !== undefined && !isPrepared(open)
    if (isSuspended || (open !== undefined && !canEnd)) throw unfinished(options.session, reader)
    if (open === undefined) return startInSession(work, input, metadata)
    await endOpenRun(work, open)
    return undefined
  }
  for (;;) {
    const run = await inSession({ store, parts, options }, start, { create: true })
    if (run !== undefined) return run
  }
}

/** Starts a run in a session that has no open one. */
async function startInSession(work: Work, message: Message, metadata: JsonObject | undefined): Promise<Run> {
  const { parts, session, options } = work
  const { clock, id } = options.effects ?? liveEffects()
  const [at, run] = [clock.now(), options.run ?? id ?? newRunId()]
  const { turn } = options
  const { createdAt, agent } = session.reader
  const log = session.reader.beginRun()
  const context = openContext(work, { log, at, run, metadata, isNew: true })
  appendSessionStart(session, { agent: parts.name, at })
  context.effects.journal.append({
    t: 'input',
    at,
    run,
    message,
    ...(metadata !== undefined && { metadata }),
    ...(turn !== undefined && { turn }),
    ...(createdAt !== undefined && agent !== parts.name && { agent: parts.name }),
    ...circumstances(parts),
    hooks: parts.plans.records,
  })
  context.effects.stamp(at)
  setHead(session, context.state.withMessage(message), { agent: parts.name, cwd: process.cwd(), at, status: 'running' })
  session.journal.flushSoon() // a model may take its time, and the session is listed meanwhile
  return startRun(context, message)
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

/** Continues the run of a session that has not ended: it was suspended, or its process died. */
export function resumeSession(store: SessionStore, work: Omit<Work, 'store' | 'session'>): Promise<Run> {
  return inSession({ store, ...work }, resumeLocked)
}

/** Ends a run that is to stop and that no process works on. Waits for a process that does. */
export function endStoppedRun(store: SessionStore, { parts, options }: Pick<Work, 'parts' | 'options'>): Promise<void> {
  return inSession({ store, parts, options }, async (work) => {
    if (work.session.reader.open !== undefined && isStopped(work.options)) await resumeLocked(work)
  })
}

function isStopped({ signal }: SessionRunOptions): boolean {
  return toRequestedStop(signal?.reason) !== undefined
}

/**
 * The run of a turn that the session already has: it is resumed, unless it has ended or waits for an answer. Undefined if the
 * turn is new.
 */
async function runOfTurn(work: Work): Promise<Run | undefined> {
  const { store, parts, session, options } = work
  const { reader } = session
  const { turn } = options
  if (turn === undefined || !reader.turns.known.includes(hashTurn(turn))) return undefined
  if (reader.turns.latest !== turn) {
    const ended = await session.answer(readTurn(store, session.id, turn))
    return ended && restoreRun(parts, ended, session.id)
  }
  const { open } = reader
  const isWaiting = open?.pending !== undefined && hasQuestions(open)
  return open === undefined || (isWaiting && !isStopped(options))
    ? restoreRun(parts, reader, session.id)
    : resumeLocked(work)
}

async function resumeLocked(work: Work): Promise<Run> {
  const { parts, session, options } = work
  const { reader } = session
  const { open, isSuspended } = reader
  if (open === undefined) throw isSuspended ? unfinished(options.session, reader) : nothingToResume(options.session)
  const { clock } = options.effects ?? liveEffects()
  const at = clock.now()
  const answers = await checkResume(parts, open, { ...options, now: at })
  if (isSuspended) session.journal.append({ t: 'continued', at })
  return continueRun(work, open, { answers, at, change: work.change })
}

/** Blocks what an open run waits for, and ends it. */
async function endOpenRun({ store, parts, session, options }: Work, open: RunLog): Promise<void> {
  const { listener: _unheard, shouldPause: _not, ...quiet } = options // the listener gets the events of the new run
  const { clock } = options.effects ?? liveEffects()
  const at = clock.now()
  const answers: Answers = Object.fromEntries(open.questions().map(({ id }) => [id, blocked]))
  const run = await continueRun({ store, parts, session, options: quiet }, open, { answers, at, ends: true })
  if (session.journal.isStored && session.reader.open === undefined) return
  throw run.status === 'failed' ? run.error : unfinished(session.id, session.reader)
}

const blocked = Object.freeze({ block: 'Blocked: the user sent a new message instead of an answer.' })

async function continueRun(work: Work, open: RunLog, resuming: Resuming): Promise<Run> {
  const { parts, session, options } = work
  const { message, metadata, run, turn } = open.input!
  const isNew = isPrepared(open) // a fork or a rewind has stored its input
  open.unreadAll()
  const reported = await session.answer(readReported(work))
  const context = openContext(work, { log: open, at: resuming.at, run, metadata, turn, reported, isNew })
  setHead(session, context.state, {
    agent: parts.name,
    cwd: process.cwd(),
    at: resuming.at,
    status: 'running',
    open: open.openUsage(''),
    pending: open.questions().filter(({ id: asked }) => !Object.hasOwn(resuming.answers, asked)),
  })
  if (!isNew) return resumeRun(context, message, { ...resuming, ...circumstances(parts) })
  const { at, change } = resuming
  context.effects.journal.append({
    t: 'resume',
    at,
    hooks: withHooks(parts, open.hooks),
    ...(change !== undefined && { change }),
    ...circumstances(parts),
  })
  if (options.drain?.aborted === true) await context.effects.journal.flush()
  return startRun(context, message)
}

/** The events that earlier processes have reported since the last checkpoint, beside those that records stand for. */
async function readReported({ store, session: { id, reader } }: Work): Promise<EmittedEvent[]> {
  const range = { after: eventSeq(reader.checkpoint, 0) - 1, before: Infinity }
  const { pieces = [] } = (await store.read(id, { after: Infinity, pieces: range })) ?? {}
  return pieces.map(({ text }) => JSON.parse(text) as EmittedEvent)
}

/** For a listener that does not recognize what it has heard before. */
function ifLive(journal: Journal, emit: Emit | undefined): Emit | undefined {
  return emit && ((event) => (journal.isLive ? emit(event) : undefined))
}

type Opening = {
  readonly log: RunLog
  readonly at: number
  readonly run: string
  readonly metadata: JsonObject | undefined
  readonly turn?: string | undefined
  readonly reported?: EmittedEvent[]
  readonly isNew: boolean
}

/** The context of a run in a session: its records, its states and its events are stored there. */
function openContext({ parts, options, session, environment }: Work, opening: Opening): RunContext {
  const { log, run, metadata, reported, isNew } = opening
  const { reader, journal } = session
  const { clock } = options.effects ?? liveEffects()
  const { session: id, listener } = options
  const events = new SessionEvents(journal, { session: id, run, log, listener, reported })
  const origin = { agent: parts.name, cwd: process.cwd(), at: opening.at }
  const sink: RecordSink = {
    startAgain: () => events.startAgain(),
    append: (record) => events.append(record),
    flush: () => journal.flush(),
    flushSoon: () => journal.flushSoon(),
    check: () => journal.check(),
    checkpoint: (state, record) => {
      if (record.t === 'pause')
        return setHead(session, state, {
          ...origin,
          status: 'suspended',
          pending: log.questions(), // the state has what the open step has cost
        })
      reader.state = state
      setHead(session, state, origin)
      events.checkpoint()
      journal.takeSnapshotIfDue()
    },
  }
  const core: Journal = new Journal(log, { clock, sink, isNew })
  const { root: scope } = log
  const time = new RunTime(clock, options.signal)
  journal.time = time
  const effects = new Effects({
    journal: core,
    scope,
    time,
    run,
    emit: toBoth(ifLive(core, options.effects?.emit), events.emit),
    now: scope.at,
  })
  const { state: from } = reader
  const isRunning = from?.execution?.status === 'running'
  const state: AgentState = isRunning ? from : stateFor(parts, { from, agentId: effects.agentId, metadata })
  const known = environment === undefined ? state : state.withMetadata(ENVIRONMENT_KEY, environment)
  const context = new RunContext(parts, effects, known, {
    shouldPause: pauseWhen(options),
    streams: options.deltas ?? options.listener !== undefined,
    session: options.session,
    turn: options.turn ?? opening.turn,
    ledger: isNew ? [] : log.ledger,
  })
  for (const entry of options.startedWith ?? []) context.ledgerOf.add(entry)
  return context
}
