import type { SessionPort } from '../../agent/agent.ts'
import { inputFor, stateFor } from '../../agent/loop/start.ts'
import { streamRun } from '../../agent/run-stream.ts'
import { RunContext } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { fireInSession, type SendOptions, type Session } from '../../agent/session.ts'
import { COMPACT_KEY, ENVIRONMENT_KEY, MODEL_KEY, TASKS_KEY, type AgentState } from '../../state/agent-state.ts'
import type { Emit } from '../../state/event.ts'
import type { Message } from '../../state/message.ts'
import { sameJson } from '../../state/json.ts'
import { applyChange, stateChange, type StateChange } from '../../state/state-diff.ts'
import { getSessionVariables, setSessionVariables } from '../../system/processes/session-variables.ts'
import type { ResumeOptions } from '../../agent/loop/resume.ts'
import type { Run } from '../../agent/run.ts'
import { liveEffects } from '../../effects/effects.ts'
import { forkSession, type ForkOptions } from './fork-session.ts'
import { checkNotSuspended, checkNoOpenRun } from './refusals.ts'
import { appendSessionStart, lockSession, appendState, type LockedSession } from './session-lock.ts'
import { readSession, type SessionSnapshot } from '../log/read-session.ts'
import { resumeSession, runInSession } from './run-session.ts'
import { checkSessionId, type SessionStore } from '../stores/store.ts'

/** How an agent with a store keeps its runs. */
export function sessionPort(store: SessionStore): SessionPort {
  return {
    run: async (parts, input, how) => runInSession(store, { parts, input, how }),
    resume: (parts, how) => resumeSession(store, { parts, how }),
    session: (parts, id = crypto.randomUUID()) => new SessionHandle(store, parts, checkSessionId(id)),
  }
}

/** Who waits for what hooks of a session do, and hears of it. */
type Heard = { readonly signal?: AbortSignal | undefined; readonly emit?: Emit | undefined }

class SessionHandle implements Session {
  readonly id: string
  readonly #store: SessionStore
  readonly #parts: AgentParts
  #isStarted = false
  /** What onSessionStart hooks changed while a run was open: it is applied when that run has ended. */
  #deferred: DeferredStart | undefined

  constructor(store: SessionStore, parts: AgentParts, id: string) {
    this.id = id
    this.#store = store
    this.#parts = parts
  }

  readonly state = async (): Promise<AgentState | undefined> => {
    const stored = await this.#store.read(this.id)
    return stored === undefined ? undefined : readSession(stored.lines, this.id).state
  }

  readonly send = (input: string | Message, options: SendOptions = {}): Promise<Run> => this.#send(input, options)

  readonly stream: Session['stream'] = (input, options = {}) => streamRun((emit) => this.#send(input, options, emit))

  readonly suspend = (reason?: string): Promise<void> =>
    this.#lock(async ({ snapshot, journal }) => {
      if (snapshot.isSuspended) return
      journal.append({ type: 'sessionSuspended', at: Date.now(), ...(reason !== undefined && { reason }) })
      await journal.store()
    })

  readonly resume: Session['resume'] = async (options = {}) => {
    const isOpen = await this.#lock(async ({ snapshot, journal }) => {
      if (snapshot.isSuspended) {
        journal.append({ type: 'sessionResumed', at: Date.now() })
        await journal.store()
      }
      return snapshot.open !== undefined
    })
    if (isOpen) return this.#resume(options)
    await this.#start()
    return undefined
  }

  readonly resumeStream: Session['resumeStream'] = (options = {}) => streamRun((emit) => this.#resume(options, emit))

  /** One conversation ends and another begins, in the same place. */
  readonly clear = (): Promise<void> =>
    lockSession(this.#store, { id: this.id, create: true }, async (session) => {
      const { snapshot } = session
      checkNotSuspended(this.id, snapshot)
      checkNoOpenRun(this.id, snapshot)
      const ended = snapshot.state && (await this.#fire(snapshot.state, 'onSessionEnd', { reason: 'clear' }))
      const cleared = (ended ?? this.#freshState()).withMessages([])
      await this.#appendState(session, await this.#fire(cleared, 'onSessionStart', { source: 'clear' }))
      this.#isStarted = true
    })

  readonly compact = (): Promise<void> =>
    this.#change((state) => state.withMetadata(COMPACT_KEY, true), { unlessSuspended: true })

  readonly fork: Session['fork'] = async (options = {}) =>
    new SessionHandle(this.#store, this.#parts, await forkSession(this.#store, this.id, this.#cleaned(options)))

  readonly changeModel = async (model: string): Promise<void> => {
    this.#parts.toModel(model) // a name that cannot be understood is refused now, not at the next message
    await this.#change((state) => state.withMetadata(MODEL_KEY, model))
  }

  readonly changeSystemPrompt = (text: string): Promise<void> => this.#change((state) => state.withSystemPrompt(text))

  readonly writeMetadata: Session['writeMetadata'] = (key, value) =>
    key === MODEL_KEY && typeof value === 'string'
      ? this.changeModel(value)
      : this.#change((state) => state.withMetadata(key, value))

  readonly updateTasks: Session['updateTasks'] = (tasks) =>
    this.#change((state) => state.withMetadata(TASKS_KEY, tasks))

  readonly end = async (reason = 'other'): Promise<void> => {
    this.#isStarted = false
    this.#deferred = undefined // hooks say it again when it is begun again
    const stored = await this.#store.read(this.id)
    if (stored === undefined || stored.lines.length === 0) return // nothing was said, and nothing ends
    await this.#lock(async (session) => {
      const before = session.snapshot.state ?? this.#freshState()
      const state = await this.#fire(before, 'onSessionEnd', { reason })
      if (session.snapshot.open === undefined && state !== before) await this.#appendState(session, state)
    })
  }

  async #send(input: string | Message, options: SendOptions, emit?: Emit): Promise<Run> {
    const message = inputFor(this.#parts, input)
    await this.#start({ signal: options.signal, emit })
    const how = { ...options, ...(emit !== undefined && { emit }), session: this.id }
    return runInSession(this.#store, { parts: this.#parts, input: message, how })
  }

  /** Goes on with the run that is open. Hooks are told that somebody has taken it up, and what they change waits for its end. */
  async #resume(options: ResumeOptions & SendOptions, emit?: Emit): Promise<Run> {
    await this.#startWithOpenRun({ signal: options.signal, emit })
    const how = { ...options, ...(emit !== undefined && { emit }), session: this.id }
    return resumeSession(this.#store, { parts: this.#parts, how, environment: this.#deferred?.environment })
  }

  async #startWithOpenRun(how: Heard): Promise<void> {
    if (this.#isStarted || this.#parts.stack.plan('onSessionStart').empty) return
    await this.#lock(async ({ snapshot }) => {
      if (snapshot.open === undefined) return
      const before = snapshot.state ?? this.#freshState()
      const after = await this.#fire(before, 'onSessionStart', { source: sourceOf(snapshot) }, how)
      this.#deferred = deferStart(before, after)
      this.#isStarted = true
    })
  }

  /** Fires `onSessionStart`, once for each time somebody takes the conversation up. If that fails, it is not taken up. */
  async #start(how: Heard = {}): Promise<void> {
    if (this.#deferred !== undefined) return this.#applyDeferred(this.#deferred)
    if (this.#isStarted || this.#parts.stack.plan('onSessionStart').empty) return
    await lockSession(this.#store, { id: this.id, create: true }, async (session) => {
      const { snapshot } = session
      if (snapshot.open !== undefined) return // what is open is gone on with as it was left
      const before = snapshot.state ?? this.#freshState()
      const state = await this.#fire(before, 'onSessionStart', { source: sourceOf(snapshot) }, how)
      if (state !== snapshot.state) await this.#appendState(session, state)
      this.#isStarted = true
    })
  }

  #applyDeferred({ change }: DeferredStart): Promise<void> {
    return this.#lock(async (session) => {
      const { snapshot } = session
      if (snapshot.open !== undefined) return
      this.#deferred = undefined
      const state = applyChange(snapshot.state ?? this.#freshState(), change)
      if (state !== snapshot.state) await this.#appendState(session, state)
    })
  }

  /** Changes what is kept, between two runs. */
  #change(change: (state: AgentState) => AgentState, { unlessSuspended = false } = {}): Promise<void> {
    return lockSession(this.#store, { id: this.id, create: true }, async (session) => {
      const { snapshot } = session
      if (unlessSuspended) checkNotSuspended(this.id, snapshot)
      checkNoOpenRun(this.id, snapshot)
      const state = change(snapshot.state ?? this.#freshState())
      if (state !== snapshot.state) await this.#appendState(session, state)
    })
  }

  #fire(
    state: AgentState,
    trigger: 'onSessionStart' | 'onSessionEnd',
    facts: { readonly source: string } | { readonly reason: string },
    how: Heard = {},
  ): Promise<AgentState> {
    return fireInSession(this.#live(state, how), trigger, { sessionId: this.id, ...facts })
  }

  async #appendState(session: LockedSession, state: AgentState): Promise<void> {
    const [agent, at] = [this.#parts.name, Date.now()]
    appendSessionStart(session, { agent, at })
    appendState(session, state, { agent, at })
    await session.journal.store()
  }

  #cleaned({ message, ...options }: ForkOptions): ForkOptions {
    return message === undefined ? options : { ...options, message: inputFor(this.#parts, message) }
  }

  #freshState(): AgentState {
    return stateFor(this.#parts, { from: undefined, agentId: () => crypto.randomUUID(), metadata: undefined })
  }

  #live(state: AgentState, { signal = new AbortController().signal, emit }: Heard): RunContext {
    // There is no run yet that its events could be about, but what hooks tell the user is told.
    const tell: Emit | undefined = emit && ((event) => event.type === 'warning' && emit(event))
    return new RunContext(this.#parts, liveEffects()({ signal, emit: tell }), state)
  }

  #lock<T>(work: (session: LockedSession) => Promise<T>): Promise<T> {
    return lockSession(this.#store, { id: this.id }, work)
  }
}

type DeferredStart = {
  readonly change: StateChange
  /** The name under which commands of the open run find variables that hooks have set, if the run has no name yet. */
  readonly environment: string | undefined
}

/**
 * An open run resumes from the state it was recorded with: with another state it could ask for something that was not
 * recorded. So changes by hooks wait for its end. Variables for commands are not part of a state and are set at once,
 * under the name that the state already has.
 */
function deferStart(before: AgentState, after: AgentState): DeferredStart {
  const { messages: _rewritten, metadata = {}, ...change } = stateChange(before, after, sameJson)
  const { [ENVIRONMENT_KEY]: set, ...others } = metadata
  const known = before.metadata[ENVIRONMENT_KEY]
  const isKnown = typeof known === 'string'
  if (typeof set === 'string' && isKnown) setSessionVariables(getSessionVariables(set), known)
  return {
    change: { ...change, metadata: others, appended: after.messages.slice(before.messages.length) },
    environment: typeof set === 'string' && !isKnown ? set : undefined,
  }
}

/** Why the conversation begins: nothing was said in it yet, it is a copy of another, or somebody comes back to it. */
function sourceOf({ records }: SessionSnapshot): string {
  if (records.some(({ type }) => type === 'input')) return 'resume'
  return records.some((record) => record.type === 'session' && record.from !== undefined) ? 'fork' : 'startup'
}
