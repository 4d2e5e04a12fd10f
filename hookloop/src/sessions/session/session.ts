import type { SessionPort } from '../../agent/agent.ts'
import { inputFor, stateFor } from '../../agent/loop/start.ts'
import { streamRun } from '../../agent/run-stream.ts'
import { LiveRun } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { fireInSession, type SendOptions, type Session } from '../../agent/session.ts'
import { COMPACT_KEY, MODEL_KEY, TASKS_KEY, type AgentState } from '../../state/agent-state.ts'
import type { Emit } from '../../state/event.ts'
import type { Message } from '../../state/message.ts'
import type { ResumeOptions } from '../../agent/loop/resume.ts'
import type { Run } from '../../agent/run.ts'
import { liveEffects } from '../../effects/effects.ts'
import { forkSession, type ForkOptions } from './fork.ts'
import { refuseHeld, refuseOpen } from './refusals.ts'
import { beginSession, holdSession, noteChanged, type HeldSession } from './session-lock.ts'
import { readSession, type KeptSession } from '../log/read-session.ts'
import { resumeInSession, runInSession } from './run-session.ts'
import { startedOpen, type StartedOpen } from './started-open.ts'
import { checkSessionId, type SessionStore } from '../stores/store.ts'

/** How an agent with a store keeps its runs. */
export function sessionPort(store: SessionStore): SessionPort {
  return {
    run: async (parts, input, how) => runInSession(store, { parts, input, how }),
    resume: (parts, how) => resumeInSession(store, { parts, how }),
    session: (parts, id = crypto.randomUUID()) => new KeptConversation(store, parts, checkSessionId(id)),
  }
}

/** Who waits for what hooks of a session do, and hears of it. */
type Heard = { readonly signal?: AbortSignal | undefined; readonly emit?: Emit | undefined }

class KeptConversation implements Session {
  readonly id: string
  readonly #store: SessionStore
  readonly #parts: AgentParts
  #isStarted = false
  /** What hooks said when it was taken up with a run that was open. */
  #later: StartedOpen | undefined

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
    this.#hold(async ({ kept, journal }) => {
      if (kept.isHeld) return
      journal.append({ type: 'held', at: Date.now(), ...(reason !== undefined && { reason }) })
      await journal.store()
    })

  readonly resume: Session['resume'] = async (options = {}) => {
    const isOpen = await this.#hold(async ({ kept, journal }) => {
      if (kept.isHeld) {
        journal.append({ type: 'released', at: Date.now() })
        await journal.store()
      }
      return kept.open !== undefined
    })
    if (isOpen) return this.#goOn(options)
    await this.#start()
    return undefined
  }

  readonly resumeStream: Session['resumeStream'] = (options = {}) => streamRun((emit) => this.#goOn(options, emit))

  /** One conversation ends and another begins, in the same place. */
  readonly clear = (): Promise<void> =>
    holdSession(this.#store, { id: this.id, create: true }, async (session) => {
      const { kept } = session
      refuseHeld(this.id, kept)
      refuseOpen(this.id, kept)
      const ended = kept.state && (await this.#fire(kept.state, 'onSessionEnd', { reason: 'clear' }))
      const cleared = (ended ?? this.#freshState()).withMessages([])
      await this.#keep(session, await this.#fire(cleared, 'onSessionStart', { source: 'clear' }))
      this.#isStarted = true
    })

  readonly compact = (): Promise<void> =>
    this.#change((state) => state.withMetadata(COMPACT_KEY, true), { refusesHeld: true })

  readonly fork: Session['fork'] = async (options = {}) =>
    new KeptConversation(this.#store, this.#parts, await forkSession(this.#store, this.id, this.#cleaned(options)))

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
    this.#later = undefined // hooks say it again when it is begun again
    const stored = await this.#store.read(this.id)
    if (stored === undefined || stored.lines.length === 0) return // nothing was said, and nothing ends
    await this.#hold(async (session) => {
      const before = session.kept.state ?? this.#freshState()
      const state = await this.#fire(before, 'onSessionEnd', { reason })
      if (session.kept.open === undefined && state !== before) await this.#keep(session, state)
    })
  }

  async #send(input: string | Message, options: SendOptions, emit?: Emit): Promise<Run> {
    const message = inputFor(this.#parts, input)
    await this.#start({ signal: options.signal, emit })
    const how = { ...options, ...(emit !== undefined && { emit }), session: this.id }
    return runInSession(this.#store, { parts: this.#parts, input: message, how })
  }

  /** Goes on with the run that is open. Hooks are told that somebody has taken it up, and what they change waits for its end. */
  async #goOn(options: ResumeOptions & SendOptions, emit?: Emit): Promise<Run> {
    await this.#startOpen({ signal: options.signal, emit })
    const how = { ...options, ...(emit !== undefined && { emit }), session: this.id }
    return resumeInSession(this.#store, { parts: this.#parts, how, environment: this.#later?.environment })
  }

  async #startOpen(how: Heard): Promise<void> {
    if (this.#isStarted || this.#parts.stack.plan('onSessionStart').empty) return
    await this.#hold(async ({ kept }) => {
      if (kept.open === undefined) return
      const before = kept.state ?? this.#freshState()
      const after = await this.#fire(before, 'onSessionStart', { source: sourceOf(kept) }, how)
      this.#later = startedOpen(before, after)
      this.#isStarted = true
    })
  }

  /** Fires `onSessionStart`, once for each time somebody takes the conversation up. If that fails, it is not taken up. */
  async #start(how: Heard = {}): Promise<void> {
    if (this.#later !== undefined) return this.#takeLater(this.#later)
    if (this.#isStarted || this.#parts.stack.plan('onSessionStart').empty) return
    await holdSession(this.#store, { id: this.id, create: true }, async (session) => {
      const { kept } = session
      if (kept.open !== undefined) return // what is open is gone on with as it was left
      const before = kept.state ?? this.#freshState()
      const state = await this.#fire(before, 'onSessionStart', { source: sourceOf(kept) }, how)
      if (state !== kept.state) await this.#keep(session, state)
      this.#isStarted = true
    })
  }

  #takeLater({ apply }: StartedOpen): Promise<void> {
    return this.#hold(async (session) => {
      const { kept } = session
      if (kept.open !== undefined) return
      this.#later = undefined
      const state = apply(kept.state ?? this.#freshState())
      if (state !== kept.state) await this.#keep(session, state)
    })
  }

  /** Changes what is kept, between two runs. */
  #change(change: (state: AgentState) => AgentState, { refusesHeld = false } = {}): Promise<void> {
    return holdSession(this.#store, { id: this.id, create: true }, async (session) => {
      const { kept } = session
      if (refusesHeld) refuseHeld(this.id, kept)
      refuseOpen(this.id, kept)
      const state = change(kept.state ?? this.#freshState())
      if (state !== kept.state) await this.#keep(session, state)
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

  async #keep(session: HeldSession, state: AgentState): Promise<void> {
    const [agent, at] = [this.#parts.name, Date.now()]
    beginSession(session, { agent, at })
    noteChanged(session, state, { agent, at })
    await session.journal.store()
  }

  #cleaned({ message, ...options }: ForkOptions): ForkOptions {
    return message === undefined ? options : { ...options, message: inputFor(this.#parts, message) }
  }

  #freshState(): AgentState {
    return stateFor(this.#parts, { from: undefined, agentId: () => crypto.randomUUID(), metadata: undefined })
  }

  #live(state: AgentState, { signal = new AbortController().signal, emit }: Heard): LiveRun {
    // There is no run yet that its events could be about, but what hooks tell the user is told.
    const tell: Emit | undefined = emit && ((event) => event.type === 'warning' && emit(event))
    return new LiveRun(this.#parts, liveEffects()({ signal, emit: tell }), state)
  }

  #hold<T>(work: (session: HeldSession) => Promise<T>): Promise<T> {
    return holdSession(this.#store, { id: this.id }, work)
  }
}

/** Why the conversation begins: nothing was said in it yet, it is a copy of another, or somebody comes back to it. */
function sourceOf({ records }: KeptSession): string {
  if (records.some(({ type }) => type === 'input')) return 'resume'
  return records.some((record) => record.type === 'session' && record.from !== undefined) ? 'fork' : 'startup'
}
