import { warningsOf } from '../../core/explain/warnings.ts'
import { checkRunOptions } from '../../core/agent/run-options.ts'
import { checkOptions } from '../../values/check-options.ts'
import type { SessionPort, SessionRunOptions } from '../../core/agent/agent.ts'
import type { Hook } from '../../core/hooks/hook.ts'
import { HookPlans } from '../../core/hooks/hook-plans.ts'
import { inputFor, stateFor } from '../../core/loop/drive.ts'
import type { Run } from '../../core/agent/run.ts'
import { streamRun } from '../../core/agent/run-stream.ts'
import { RunContext } from '../../core/context/run-context.ts'
import { partsOf, type AgentParts } from '../../core/agent/agent-parts.ts'
import { fireInSession, type SendOptions, type Session } from '../../core/agent/session.ts'
import type { ResumeOptions } from '../../core/loop/resume.ts'
import { COMPACT_KEY, ENVIRONMENT_KEY, MODEL_KEY, TASKS_KEY, type AgentState } from '../../core/state/agent-state.ts'
import type { EventListener } from '../../core/state/event.ts'
import type { TimedLedgerEntry } from '../../core/state/ledger.ts'
import type { Message } from '../../core/state/message.ts'
import { sameJson, type Json } from '../../values/json.ts'
import { checkTasks, type Task } from '../../values/tasks.ts'
import { stateChange, type StateChange } from '../../core/state/state-diff.ts'
import { getSessionVariables, setSessionVariables } from '../../system/processes/session-variables.ts'
import { looseEffects } from '../../core/effects/effects.ts'
import { loadSession } from '../log/read-session.ts'
import { SessionEvents } from '../log/session-events.ts'
import type { SessionReader } from '../log/session-reader.ts'
import { checkSessionId, type SessionStore } from '../stores/store.ts'
import { forkSession } from './fork-session.ts'
import { rewindSession } from './rewind-session.ts'
import { requestStop } from './request-stop.ts'
import { endStoppedRun, resumeSession, runInSession } from './run-session.ts'
import { unfinished } from './unfinished-run.ts'
import { appendSessionStart, appendState, lockSession, type LockedSession, type Locking } from './session-lock.ts'

/** Connects an agent to a store: how it runs, resumes and opens sessions. */
export function sessionPort(store: SessionStore): SessionPort {
  return {
    store,
    run: async (parts, input, options) => runInSession(store, { parts, input, options }),
    resume: (parts, options) => resumeSession(store, { parts, options }),
    session: (parts, id = crypto.randomUUID()) => new SessionHandle(store, parts, checkSessionId(id)),
  }
}

/** A session of an agent in any store, also with other hooks. */
export function sessionOf(store: SessionStore, agent: object, id: string, hooks?: readonly Hook[]): Session {
  const parts = partsOf(agent)
  const plans = hooks === undefined ? parts.plans : new HookPlans(hooks, parts.toolNames)
  return sessionPort(store).session({ ...parts, plans }, id)
}

/** Resumes the run of a session in any store. */
export function resumeOf(
  store: SessionStore,
  agent: object,
  options: Parameters<SessionPort['resume']>[1],
): Promise<Run> {
  return sessionPort(store).resume(partsOf(agent), options)
}

/** How long `session.stop` waits for another process. */
const STOP_WAIT_MS = 30_000

type Caller = {
  readonly signal?: AbortSignal | undefined
  readonly listener?: EventListener | undefined
  /** The id of the run that follows. */
  readonly run?: string
  readonly waitMs?: number | undefined
  /** Whether it resumes an open run. */
  readonly resumes?: boolean
}

type Firing = Caller & {
  readonly state: AgentState
  readonly trigger: 'onSessionStart' | 'onSessionEnd'
  readonly facts: { readonly source: string } | { readonly reason: string }
}

class SessionHandle implements Session {
  readonly id: string
  readonly #store: SessionStore
  readonly #parts: AgentParts
  #isStarted = false
  /** What hooks did between two runs, for the next one. */
  #betweenRuns: readonly TimedLedgerEntry[] = []

  constructor(store: SessionStore, parts: AgentParts, id: string) {
    this.id = id
    this.#store = store
    this.#parts = parts
  }

  readonly state = async (): Promise<AgentState | undefined> => {
    return (await loadSession(this.#store, this.id))?.state
  }

  readonly send = (input: string | Message, options: SendOptions = {}): Promise<Run> => this.#send(input, options)

  readonly stream: Session['stream'] = (input, options = {}) =>
    streamRun((listener) => this.#send(input, options, listener))

  readonly suspend = async (reason?: string): Promise<void> => {
    await this.#lock(async ({ reader, journal }) => {
      if (reader.isSuspended) return
      journal.append({ t: 'suspended', at: Date.now(), ...(reason !== undefined && { reason }) })
      await journal.flush()
    })
  }

  readonly resume: Session['resume'] = async (options = {}) => {
    checkRunOptions('session.resume', options)
    const hasOpenRun = await this.#lock(async ({ reader, journal }) => {
      if (reader.isSuspended) {
        journal.append({ t: 'continued', at: Date.now() })
        await journal.flush()
      }
      return reader.open !== undefined
    })
    if (hasOpenRun) return this.#resume(options)
    await this.#start()
    return undefined
  }

  readonly resumeStream: Session['resumeStream'] = (options = {}) =>
    streamRun((listener) => this.#resume(options, listener))

  readonly clear = async (): Promise<void> => {
    await this.#lock(
      async (session) => {
        const { reader } = session
        if (reader.isSuspended || reader.open !== undefined) throw unfinished(this.id, reader, { isChange: true })
        const ended =
          reader.state &&
          (await this.#fire(session, { state: reader.state, trigger: 'onSessionEnd', facts: { reason: 'clear' } }))
        const cleared = (ended ?? this.#newState()).withMessages([])
        const start = { trigger: 'onSessionStart', facts: { source: 'clear' } } as const
        await this.#appendState(session, await this.#fire(session, { state: cleared, ...start }))
        this.#isStarted = true
      },
      { create: true },
    )
  }

  readonly compact = async (): Promise<void> => {
    await this.#change((state) => state.withMetadata(COMPACT_KEY, true), { unlessSuspended: true })
  }

  readonly fork: Session['fork'] = async (options) => {
    return new SessionHandle(this.#store, this.#parts, await forkSession(this.#store, this.id, this.#pointOf(options)))
  }

  readonly rewind: Session['rewind'] = async (options) => rewindSession(this.#store, this.id, this.#pointOf(options))

  readonly changeModel = async (model: string): Promise<void> => {
    this.#parts.toModel(model) // an invalid name is rejected now, not at the next message
    await this.#change((state) => state.withMetadata(MODEL_KEY, model))
  }

  readonly changeSystemPrompt = async (text: string): Promise<void> => {
    await this.#change((state) => state.withSystemPrompt(text))
  }

  readonly writeMetadata = async (key: string, value: Json): Promise<void> => {
    if (key === MODEL_KEY && typeof value === 'string') await this.changeModel(value)
    else await this.#change((state) => state.withMetadata(key, value))
  }

  readonly updateTasks = async (tasks: readonly Task[]): Promise<void> => {
    const checked = checkTasks('session.updateTasks', tasks)
    await this.#change((state) => state.withMetadata(TASKS_KEY, checked))
  }

  readonly end: Session['end'] = async (reason = 'other', options = {}) => {
    checkOptions('session.end', options, ['signal'])
    this.#isStarted = false // onSessionStart fires again when the session is next used
    if ((await loadSession(this.#store, this.id))?.createdAt === undefined) return [] // it was never used
    await this.#lock(async (session) => {
      const before = session.reader.state ?? this.#newState()
      const state = await this.#fire(session, { state: before, trigger: 'onSessionEnd', facts: { reason }, ...options })
      if (session.reader.open === undefined && state !== before) await this.#appendState(session, state)
    })
    return warningsOf(this.#takeBetweenRuns())
  }

  readonly stop: Session['stop'] = async (options = {}) => {
    checkRunOptions('session.stop', options)
    const { waitMs = STOP_WAIT_MS, ...request } = options
    if (!(await requestStop(this.#store, { ...request, session: this.id }))) return false
    // Nothing runs in it any more, so no guard is needed for it.
    const stopping = { session: this.id, waitMs, acceptMissing: true } as const
    await endStoppedRun(this.#store, { parts: this.#parts, options: stopping })
    return true
  }

  async #send(input: string | Message, options: SendOptions, listener?: EventListener): Promise<Run> {
    checkRunOptions('session.send', options)
    const message = inputFor(this.#parts, input)
    const run = crypto.randomUUID()
    await this.#start({ signal: options.signal, waitMs: options.waitMs, listener, run })
    const running = this.#runOptions(options, { run, listener })
    return runInSession(this.#store, { parts: this.#parts, input: message, options: running })
  }

  async #resume(options: ResumeOptions & SendOptions, listener?: EventListener): Promise<Run> {
    checkRunOptions('session.resume', options)
    const start = await this.#start({ signal: options.signal, waitMs: options.waitMs, listener, resumes: true })
    try {
      return await resumeSession(this.#store, {
        parts: this.#parts,
        options: this.#runOptions(options, { listener }),
        ...start,
      })
    } catch (thrown) {
      if (start !== undefined) this.#isStarted = false // what hooks changed may not be stored
      throw thrown
    }
  }

  /**
   * Fires `onSessionStart` once per handle. If a hook fails, the session is not started. What hooks change for a run that is open
   * is returned: it is stored when the run resumes.
   */
  async #start({ resumes = false, ...caller }: Caller = {}): Promise<StartOfRun | undefined> {
    if (this.#isStarted || this.#parts.plans.of('onSessionStart').empty) return undefined
    const start = async (session: LockedSession): Promise<StartOfRun | undefined> => {
      const { reader } = session
      const isOpen = reader.open !== undefined
      if (isOpen !== resumes) return undefined // an open run is resumed first
      const before = reader.state ?? this.#newState()
      const facts = { source: sourceOf(reader) }
      const after = await this.#fire(session, { state: before, trigger: 'onSessionStart', facts, ...caller })
      if (!isOpen && after !== reader.state) await this.#appendState(session, after)
      this.#isStarted = true
      return isOpen ? startOfRun(before, after) : undefined
    }
    return this.#lock(start, { ...caller, create: !resumes })
  }

  /** Changes the state between two runs. */
  #change(change: (state: AgentState) => AgentState, { unlessSuspended = false } = {}): Promise<void> {
    return this.#lock(
      async (session) => {
        const { reader } = session
        const isSuspended = unlessSuspended && reader.isSuspended
        if (isSuspended || reader.open !== undefined) throw unfinished(this.id, reader, { isChange: true })
        const state = change(reader.state ?? this.#newState())
        if (state !== reader.state) await this.#appendState(session, state)
      },
      { create: true },
    )
  }

  /** Fires a trigger of the session. What hooks did is logged as a part of the run that follows, that is open, or that was last. */
  async #fire(
    session: LockedSession,
    { state, trigger, facts, signal = new AbortController().signal, listener, run }: Firing,
  ): Promise<AgentState> {
    const { reader, journal } = session
    const id = run ?? reader.open?.input!.run ?? reader.run
    const context = new RunContext(this.#parts, looseEffects({ signal }), state)
    context.setDeadline() // the hooks of a session may take as long as a run
    try {
      return await fireInSession(context, trigger, { sessionId: this.id, ...facts })
    } finally {
      const ledger = context.ledgerOf.all
      this.#betweenRuns = trigger === 'onSessionStart' ? [...this.#betweenRuns, ...ledger] : ledger
      if (ledger.length > 0) {
        const at = Date.now()
        appendSessionStart(session, { agent: this.#parts.name, at })
        const events = new SessionEvents(journal, { session: this.id, run: id, log: reader.log, listener })
        events.append({ t: 'hooks', at, run: id, ledger })
      }
    }
  }

  #pointOf<O extends { readonly message?: string | Message }>(options: O | undefined): O | undefined {
    const { message } = options ?? {}
    return message === undefined ? options : { ...options!, message: inputFor(this.#parts, message) }
  }

  #runOptions<T extends object>(
    options: SendOptions,
    more: T,
  ): SendOptions & T & Pick<SessionRunOptions, 'session' | 'startedWith'> {
    return { ...options, ...more, startedWith: this.#takeBetweenRuns(), session: this.id }
  }

  /** What hooks did between two runs is part of the next one. */
  #takeBetweenRuns(): readonly TimedLedgerEntry[] {
    const entries = this.#betweenRuns
    this.#betweenRuns = []
    return entries
  }

  async #appendState(session: LockedSession, state: AgentState): Promise<void> {
    const origin = { agent: this.#parts.name, at: Date.now() }
    appendSessionStart(session, origin)
    appendState(session, state, origin)
    await session.journal.flush()
  }

  #newState(): AgentState {
    return stateFor(this.#parts, { from: undefined, agentId: crypto.randomUUID(), metadata: undefined })
  }

  #lock<T>(work: (session: LockedSession) => Promise<T>, locking: Omit<Locking, 'id'> = {}): Promise<T> {
    const { create, waitMs, signal } = locking
    const limit = this.#parts.budgets.at(-1)?.time
    return lockSession(this.#store, { id: this.id, create, waitMs, signal, limit }, work)
  }
}

type StartOfRun = {
  readonly change: StateChange
  /** The id of the session variables that hooks have set, if the state of the open run has none. */
  readonly environment: string | undefined
}

/**
 * An open step runs again from the state it was recorded with, so changes apply when it closes. Variables for commands are not
 * part of a state and are set at once, under the id that the state already has.
 */
function startOfRun(before: AgentState, after: AgentState): StartOfRun {
  const { metadata = {}, ...change } = stateChange(before, after, sameJson)
  const { [ENVIRONMENT_KEY]: set, ...others } = metadata
  const known = before.metadata[ENVIRONMENT_KEY]
  const isKnown = typeof known === 'string'
  if (typeof set === 'string' && isKnown) setSessionVariables(getSessionVariables(set), known)
  return {
    change: { ...change, metadata: others },
    environment: typeof set === 'string' && !isKnown ? set : undefined,
  }
}

/** Why the session starts: it is new, a fork of another one, or was used before. */
function sourceOf({ runs, isFork }: SessionReader): string {
  if (runs > 0) return 'resume'
  return isFork ? 'fork' : 'startup'
}
