import { startRun, stateFor } from '../../agent/loop/start.ts'
import type { SessionRunOptions } from '../../agent/agent.ts'
import { RunContext } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { checkGuards, continueRun, resumeRun } from '../../agent/loop/resume.ts'
import type { Run } from '../../agent/run.ts'
import { ENVIRONMENT_KEY } from '../../state/agent-state.ts'
import { exactJson, type JsonObject } from '../../state/json.ts'
import type { Message } from '../../state/message.ts'
import { liveEffects, type Effects } from '../../effects/effects.ts'
import { AgentError } from '../../errors.ts'
import { appendSessionStart, createdAt, lockSession, type LockedSession } from './session-lock.ts'
import { JournaledEffects } from '../log/journaled-effects.ts'
import type { OpenRun } from '../log/read-session.ts'
import { answersFor } from './resume-answers.ts'
import { headOf, type SessionOrigin } from './session-head.ts'
import type { SessionStore } from '../stores/store.ts'

// A run that is kept in a store. One process at a time writes to a session; what was done in it is never done again.

type Work = {
  readonly parts: AgentParts
  readonly session: LockedSession
  readonly how: SessionRunOptions
  readonly inner: Effects
  /** The name of variables for commands that a run does not know yet. */
  readonly environment?: string | undefined
}

/** Begins a run in a session, which is made if there is none. */
export function runInSession(
  store: SessionStore,
  { parts, input, how }: { readonly parts: AgentParts; readonly input: Message; readonly how: SessionRunOptions },
): Promise<Run> {
  if (how.from !== undefined) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      'A run in a session goes on from the session; "from" has no place there.',
    )
  }
  const metadata = how.metadata && (exactJson(how.metadata, 'metadata') as JsonObject)
  return lockSession(store, { id: how.session, create: true }, async (session) => {
    const { snapshot, journal } = session
    if (snapshot.open !== undefined || snapshot.isSuspended) throw unfinished(how.session, snapshot.open?.phase)
    const inner = innerEffects(how)
    const [at, name] = [inner.now(), inner.newId()]
    appendSessionStart(session, { agent: parts.name, at })
    journal.append({ type: 'input', run: name, at, message: input, ...(metadata !== undefined && { metadata }) })
    return startRun(liveRun({ parts, session, how, inner }, { run: name, at, entries: [], metadata }), input)
  })
}

/** Goes on with the run of a session that has not ended. */
export function resumeSession(
  store: SessionStore,
  { parts, how, environment }: Pick<Work, 'parts' | 'how' | 'environment'>,
): Promise<Run> {
  return lockSession(store, { id: how.session }, async (session) => {
    const { open, state, isSuspended } = session.snapshot
    if (open === undefined) throw isSuspended ? unfinished(how.session, undefined) : nothingOpen(how.session)
    const work = { parts, session, how, inner: innerEffects(how), environment }
    if (isSuspended) session.journal.append({ type: 'sessionResumed', at: work.inner.now() })
    if (open.phase === 'suspended') return resumeWithAnswers(work, open)
    if (open.phase !== 'input') checkGuards(parts, state!.execution!, how.acceptMissing ?? [])
    const now = work.inner.now()
    session.journal.append({ type: 'runResumed', at: now })
    const run = liveRun(work, open)
    if (open.phase === 'input') return startRun(run, open.input)
    return continueRun(run, { phase: open.phase, downMs: open.downMs + Math.max(0, now - open.at), at: now })
  })
}

/** With what persons have answered, and the lists say so. */
async function resumeWithAnswers(work: Work, open: OpenRun): Promise<Run> {
  const { parts, session, how, inner } = work
  const [now, state] = [inner.now(), session.snapshot.state!]
  const answers = await answersFor({ parts, state, how, now }, open)
  if (open.answers === undefined) session.journal.append({ type: 'answers', answers, at: now })
  session.journal.setHead({ ...headOf(state, originOf(work), answers), status: 'running' })
  return resumeRun(liveRun(work, { ...open, at: now }), answers)
}

type Begun = Pick<OpenRun, 'run' | 'at' | 'entries' | 'metadata'> & { readonly phase?: OpenRun['phase'] }

function liveRun(work: Work, open: Begun): RunContext {
  const { parts, how } = work
  const { snapshot, journal } = work.session
  const begins = open.phase === undefined || open.phase === 'input'
  const effects = JournaledEffects.over(work.inner, {
    journal,
    entries: open.entries,
    stored: snapshot.state,
    ledger: begins ? 0 : snapshot.ledger.length,
    name: open.run,
    now: open.at,
    onCheckpoint: ({ phase, state }) => {
      if (phase !== 'step') journal.setHead(headOf(state, originOf(work, open.at)))
    },
  })
  const state = begins
    ? stateFor(parts, { from: snapshot.state, agentId: () => effects.newId(), metadata: open.metadata })
    : snapshot.state!
  const { environment } = work
  const known = environment === undefined ? state : state.withMetadata(ENVIRONMENT_KEY, environment)
  return new RunContext(parts, effects, known, {
    shouldPause: how.shouldPause,
    streams: how.emit !== undefined && how.deltas !== false,
    cancellable: how.signal !== undefined,
    ...(!begins && { ledger: snapshot.ledger }),
  })
}

function originOf({ parts, session }: Work, now = 0): SessionOrigin {
  return { agent: parts.name, createdAt: createdAt(session.snapshot) ?? now }
}

function innerEffects({
  effects = liveEffects(),
  signal = new AbortController().signal,
  emit,
}: SessionRunOptions): Effects {
  return effects({ signal, emit })
}

function unfinished(id: string, phase: OpenRun['phase'] | undefined): AgentError {
  const why = phase === undefined ? 'is suspended' : phase === 'suspended' ? 'waits for a person' : 'was cut off'
  const way = phase === undefined ? `agent.session('${id}').resume()` : `agent.resume('${id}')`
  return new AgentError('STATE_SUSPENDED', `The session "${id}" ${why} and takes no new input. Go on with ${way}.`, {
    value: id,
  })
}

function nothingOpen(id: string): AgentError {
  return new AgentError(
    'RESUME_NOT_SUSPENDED',
    `Nothing of the session "${id}" is left to do. To go on talking, use agent.run(input, { session: '${id}' }).`,
    { value: id },
  )
}
