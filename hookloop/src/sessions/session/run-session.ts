import { startRun, stateFor } from '../../agent/loop/start.ts'
import type { SessionRunOptions } from '../../agent/agent.ts'
import { RunContext } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { checkGuards, checkResume, continueRun, resumeRun } from '../../agent/loop/resume.ts'
import type { Run } from '../../agent/run.ts'
import { ENVIRONMENT_KEY, type AgentState } from '../../state/agent-state.ts'
import { exactJson, type JsonObject } from '../../state/json.ts'
import type { Message } from '../../state/message.ts'
import type { Answer, Answers } from '../../state/tool-call.ts'
import { liveEffects, type Effects } from '../../effects/effects.ts'
import { AgentError } from '../../errors.ts'
import type { OpenRun } from '../log/session-reader.ts'
import { SessionEffects } from '../log/session-journal.ts'
import type { SessionStore } from '../stores/store.ts'
import { answeredBefore, resumeFirst } from './approvals.ts'
import { appendSessionStart, lockSession, setHead, type LockedSession } from './session-lock.ts'

type Work = {
  readonly parts: AgentParts
  readonly session: LockedSession
  readonly how: SessionRunOptions
  readonly inner: Effects
  /** The id of session variables for commands, if the state of the run has none. */
  readonly environment?: string | undefined
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
  const metadata = how.metadata && (exactJson(how.metadata, 'metadata') as JsonObject)
  return lockSession(store, { id: how.session, create: true }, async (session) => {
    const { snapshot, journal } = session
    if (snapshot.open !== undefined || snapshot.isSuspended) throw unfinished(how.session, snapshot.open?.phase)
    const inner = innerEffects(how)
    const [at, run] = [inner.now(), inner.newId()]
    appendSessionStart(session, { agent: parts.name, at })
    journal.append({ type: 'input', run, at, message: input, ...(metadata !== undefined && { metadata }) })
    const context = runContext({ parts, session, how, inner }, { run, at, entries: [], metadata })
    setHead(session, context.state.withMessage(input), { agent: parts.name, at, status: 'running' })
    return startRun(context, input)
  })
}

/** Resumes the run of a session that has not ended: it was suspended, or its process died. */
export function resumeSession(
  store: SessionStore,
  { parts, how, environment }: Pick<Work, 'parts' | 'how' | 'environment'>,
): Promise<Run> {
  return lockSession(store, { id: how.session }, async (session) => {
    const { open, state, isSuspended } = session.snapshot
    if (open === undefined) throw isSuspended ? unfinished(how.session, undefined) : nothingToResume(how.session)
    const work = { parts, session, how, inner: innerEffects(how), environment }
    const now = work.inner.now()
    if (isSuspended) session.journal.append({ type: 'sessionResumed', at: now })
    if (open.phase === 'suspended') return resumeWithAnswers(work, open, now)
    if (open.phase !== 'input') checkGuards(parts, state!.execution!, how.acceptMissing ?? [])
    session.journal.append({ type: 'runResumed', at: now })
    const run = runContext(work, open)
    if (open.phase === 'input') return startRun(run, open.input)
    return continueRun(run, { phase: open.phase, downMs: open.downMs + Math.max(0, now - open.at), at: now })
  })
}

async function resumeWithAnswers(work: Work, open: OpenRun, now: number): Promise<Run> {
  const { session } = work
  const state = session.snapshot.state!
  const answers = open.answers === undefined ? await newAnswers(work, open, now) : await sameAnswers(work, open.answers)
  if (open.answers === undefined) session.journal.append({ type: 'answers', answers, at: now })
  setHead(session, state, { agent: work.parts.name, at: 0, answered: answers, status: 'running' })
  return resumeRun(runContext(work, { ...open, at: now }), answers)
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

type StartedRun = Pick<OpenRun, 'run' | 'at' | 'entries' | 'metadata'> & { readonly phase?: OpenRun['phase'] }

function runContext({ parts, how, session, inner, environment }: Work, open: StartedRun): RunContext {
  const { snapshot, journal } = session
  const isNew = open.phase === undefined || open.phase === 'input'
  const effects = new SessionEffects(inner, {
    journal,
    entries: open.entries,
    run: open.run,
    now: open.at,
    onCheckpoint: ({ phase, state }) => {
      // Not with each step of a long run: it would be a fourth of what is written.
      const isNews = phase !== 'step' || state.stepCount < HEAD_STEPS || state.stepCount % HEAD_STEPS === 0
      if (isNews) setHead(session, state, { agent: parts.name, at: open.at })
    },
  })
  const state: AgentState = isNew
    ? stateFor(parts, { from: snapshot.state, agentId: () => effects.newId(), metadata: open.metadata })
    : snapshot.state!
  const known = environment === undefined ? state : state.withMetadata(ENVIRONMENT_KEY, environment)
  return new RunContext(parts, effects, known, {
    shouldPause: how.shouldPause,
    streams: how.emit !== undefined && how.deltas !== false,
    session: how.session,
    ...(!isNew && { ledger: snapshot.ledger }),
  })
}

function innerEffects({ effects = liveEffects(), signal, emit }: SessionRunOptions): Effects {
  return effects({ signal, emit })
}

function unfinished(id: string, phase: OpenRun['phase'] | undefined): AgentError {
  const why =
    phase === undefined ? 'is suspended' : phase === 'suspended' ? 'waits for an approval' : 'has an interrupted run'
  const way = phase === undefined ? `agent.session('${id}').resume()` : `agent.resume('${id}')`
  return new AgentError('STATE_SUSPENDED', `The session "${id}" ${why} and takes no new input. Use ${way} first.`, {
    value: id,
  })
}

function nothingToResume(id: string): AgentError {
  return new AgentError(
    'RESUME_NOT_SUSPENDED',
    `The session "${id}" has no run to resume. To continue the conversation, use agent.run(input, { session: '${id}' }).`,
    { value: id },
  )
}
