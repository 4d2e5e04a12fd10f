import { storeOf, type Agent } from '../plugin.ts'
import type { Answers, Run, Session } from '../index.ts'
import { AgentError, messageOf, type ErrorCode } from '../errors.ts'
import { BoundedMap } from '../values/bounded-map.ts'
import { checkArgument } from '../values/check-options.ts'
import { wasInterrupted } from '../sessions/session/session-lock.ts'
import type { SessionHead } from '../sessions/session/session-head.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { RejectedTurn, Turn, TurnResult } from './turn.ts'

/** The agents of a worker, by the key that `send` names. They share one store. */
export type Agents = { readonly [key: string]: Agent<unknown> }

/** Options of workers on every engine. */
export type WorkerOptions = {
  /** The agent that takes the turns. It needs a store that all workers share, such as `postgresStore`. Required without `agents`. */
  readonly agent?: Agent<unknown>
  /** Several agents instead, by a key that `send` names. Default none. */
  readonly agents?: Agents
  /** Receives what the worker does with each turn, for logs and metrics. What it throws is ignored. Default: none. */
  readonly onTurn?: (report: TurnReport) => void
}

/** What a worker does with a turn. */
export type TurnReport = {
  /** `retried`: it could not be driven to its end now, and the engine calls a worker again. */
  readonly type: 'started' | 'ended' | 'retried'
  readonly session: string
  readonly turn: string
  /** From `send` to the start, by the clocks of both machines. For `started`. */
  readonly lagMs?: number
  /** Milliseconds for which it was driven. For `ended` and `retried`. */
  readonly durationMs?: number
  /** Its status when it ended. For `ended`. */
  readonly status?: TurnResult['status'] | 'rejected'
  /** True if its run had been left without an end: by a worker that died, or that lost the database. For `ended`. */
  readonly takenOver?: true
  /** Why it was rejected, or must be driven again. */
  readonly error?: { readonly code?: ErrorCode; readonly message: string }
}

/** A worker that serves sessions. */
export interface SessionWorker {
  /** The number of turns that it drives now. */
  readonly running: number
  /** Whether `close` was called. */
  readonly isDraining: boolean
  /** Rejects if the store or the queue cannot be reached. Restate calls the worker, so it is not asked. */
  check(): Promise<void>
  /** Takes no new turns and suspends its runs at the end of their steps; other workers continue them. Resolves when none runs. */
  close(): Promise<void>
}

/** An id that no session has: reading it shows whether the store can be reached, at the cost of one lookup. */
const NO_SESSION = 'hookloop/worker/check'

/** Rejects if the store cannot be reached. */
export async function checkReachable(store: SessionStore): Promise<void> {
  await store.read(NO_SESSION, { after: Infinity })
}

/** A worker waits so long for a session that another one has not released yet, before the engine tries again. */
const WAIT_MS = 2_000

/** Errors after which the same call can succeed. STATE_VERSION: on a worker that has the newer version. */
const callAgain: ReadonlySet<ErrorCode> = new Set(['SESSION_BUSY', 'SESSION_FENCED', 'STATE_VERSION', 'STORE_FAILED'])

/** Drives turns in this process, for any engine: the one thing that an engine asks of a worker. */
export class TurnDriver {
  readonly store: SessionStore
  readonly #agents: Agents
  readonly #onTurn: (report: TurnReport) => void
  readonly #draining = new AbortController()
  readonly #running = new Set<Promise<unknown>>()
  readonly #handles = new BoundedMap<string, Session<unknown>>() // a handle fires `onSessionStart` once

  constructor(caller: string, { agent, agents, onTurn = () => undefined }: WorkerOptions) {
    const all = agents ?? (agent === undefined ? {} : { agent })
    const isOne = (agent === undefined) !== (agents === undefined)
    checkArgument(caller, ['agent', agent ?? agents], isOne, 'an agent, or agents by key')
    const names = Object.values(all).map((each) => each.describe().name)
    const areDistinct = new Set(names).size === names.length // a session stores the name of its agent
    checkArgument(caller, ['agents', names], areDistinct, 'agents with different names')
    this.#agents = all
    this.#onTurn = onTurn
    this.store = storeOfAll(caller, all)
  }

  /** The worker on an engine, which adds what it checks and closes itself. */
  worker(engine: { readonly check: () => Promise<unknown>; readonly close: () => Promise<unknown> }): SessionWorker {
    const [running, isDraining] = [() => this.#running.size, () => this.isDraining]
    return {
      get running() {
        return running()
      },
      get isDraining() {
        return isDraining()
      },
      check: async () => {
        await Promise.all([checkReachable(this.store), engine.check()])
      },
      close: async () => {
        await Promise.all([engine.close(), this.close()])
      },
    }
  }

  /** How far the clock of the store is ahead of the clock of this process. */
  async clockOffsetMs(): Promise<number> {
    let offset = 0
    await this.store.update(NO_SESSION, (value = null, now = Date.now()) => {
      offset = now - Date.now()
      return value
    })
    return Math.round(offset)
  }

  get isDraining(): boolean {
    return this.#draining.signal.aborted
  }

  /**
   * Drives a turn until its run has ended or waits for an answer. It can be called any number of times, by any worker, after
   * any failure: what has happened is not repeated. Rejects if it must be called again, for example because the store has
   * failed, another worker has the session, or this worker drains.
   */
  async drive(turn: Turn, signal?: AbortSignal): Promise<TurnResult | RejectedTurn> {
    const { session, turn: id, sentAt } = turn
    const startedAt = performance.now()
    const report = (more: Omit<TurnReport, 'session' | 'turn'>): void => this.#report({ session, turn: id, ...more })
    const took = (): number => Math.round(performance.now() - startedAt)
    report({ type: 'started', ...(sentAt !== undefined && { lagMs: Math.max(0, Date.now() - sentAt) }) })
    let isTakenOver = false
    const work = this.#drive(turn, signal, (run) => (isTakenOver ||= wasInterrupted(run)))
    this.#running.add(work)
    try {
      const result = await work
      const { status } = result
      const more =
        status === 'rejected' ? { error: errorOf(result) } : isTakenOver ? ({ takenOver: true } as const) : {}
      report({ type: 'ended', status, durationMs: took(), ...more })
      return result
    } catch (thrown) {
      const code = thrown instanceof AgentError ? { code: thrown.code } : {}
      report({ type: 'retried', durationMs: took(), error: { ...code, message: messageOf(thrown) } })
      throw thrown
    } finally {
      this.#running.delete(work)
    }
  }

  /** Suspends all runs at the end of their steps. Resolves when none runs. */
  async close(): Promise<void> {
    this.#draining.abort()
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
  }

  async #drive(
    turn: Turn,
    signal: AbortSignal | undefined,
    onRun: (run: Run<unknown>) => void,
  ): Promise<TurnResult | RejectedTurn> {
    if (this.isDraining) throw drained()
    try {
      const head = await this.#head(turn.session)
      const agent = this.#agentFor(turn, head)
      const session = this.#handles.getOrAdd(turn.session, () => agent.session(turn.session))
      const waiting = { ...(signal !== undefined && { signal }), drain: this.#draining.signal, waitMs: WAIT_MS }
      const result = (run: Run<unknown>): TurnResult => {
        onRun(run)
        return resultOf(run)
      }
      if (turn.input === undefined)
        return result(await resume(session, head, { ...waiting, expiredAt: turn.expiredAt }))
      if (isInterrupted(head)) await resume(session, head, waiting).then(result, ignoreEnded)
      return result(await send(session, turn, waiting))
    } catch (error) {
      if (!(error instanceof AgentError) || callAgain.has(error.code)) throw error
      return { status: 'rejected', code: error.code, message: error.message }
    }
  }

  async #head(session: string): Promise<Partial<SessionHead>> {
    return (await this.store.read(session, { after: Infinity }))?.head ?? {}
  }

  /** The agent of the session, if it has one, otherwise the one that the turn names. */
  #agentFor({ session, agent: key }: Turn, { agent: name }: Partial<SessionHead>): Agent<unknown> {
    const all = Object.entries(this.#agents)
    if (all.length === 1) return all[0]![1]
    const found = name === undefined ? undefined : all.find(([, agent]) => agent.describe().name === name)?.[1]
    const chosen = found ?? all.find(([each]) => each === key)?.[1]
    if (chosen !== undefined) return chosen
    const known = Object.keys(this.#agents).join(', ')
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `No agent of this worker takes the session "${session}": ${name ?? key ?? 'none was named'}. It has ${known}.`,
      { value: key ?? name },
    )
  }

  #report(report: TurnReport): void {
    try {
      this.#onTurn(report)
    } catch {
      // what an observer does must not stop a run
    }
  }
}

/** A run that was interrupted or drained, of this turn or of one before it: it waits for nothing. */
function isInterrupted({ status, pending = [] }: Partial<SessionHead>): boolean {
  return status === 'running' || (status === 'suspended' && pending.length === 0)
}

/** Another worker may have ended it in the meantime. */
function ignoreEnded(error: unknown): void {
  if (!(error instanceof AgentError && error.code === 'RESUME_NOT_SUSPENDED')) throw error
}

type Waiting = { readonly signal?: AbortSignal; readonly drain: AbortSignal; readonly waitMs: number }

function send(session: Session<unknown>, turn: Turn, waiting: Waiting): Promise<Run<unknown>> {
  const { session: _session, agent: _agent, sentAt: _sentAt, expiredAt: _expiredAt, input, ...options } = turn
  return session.send(input!, { ...options, ...waiting })
}

/** Resumes a run, and blocks the questions that have expired. */
function resume(
  session: Session<unknown>,
  { pending = [] }: Partial<SessionHead>,
  { expiredAt = 0, ...waiting }: Waiting & { readonly expiredAt?: number | undefined },
): Promise<Run<unknown>> {
  const now = Math.max(Date.now(), expiredAt)
  const expired = pending.filter(({ expiresAt }) => expiresAt !== undefined && expiresAt <= now)
  const answers: Answers = Object.fromEntries(expired.map(({ id }) => [id, { block: 'The approval has expired.' }]))
  const live = session.resumeStream({ ...waiting, answers })
  void live[Symbol.asyncIterator]().return?.() // its events are in the store
  return live.run
}

function resultOf(run: Run<unknown>): TurnResult {
  if (run.status === 'failed' && run.reason === 'persistenceFailed') throw run.error
  if (run.status !== 'suspended') return { status: run.status, text: run.text, final: run.final, pending: [] }
  if (run.pending.length === 0) throw drained()
  return { status: 'suspended', text: run.text, pending: run.pending }
}

function drained(): AgentError {
  return new AgentError('SESSION_BUSY', 'This worker is about to end. Another one continues the run.')
}

function errorOf(result: TurnResult | RejectedTurn): { readonly code?: ErrorCode; readonly message: string } {
  return result.status === 'rejected' ? { code: result.code, message: result.message } : { message: result.status }
}

function storeOfAll(caller: string, agents: Agents): SessionStore {
  const stores = new Set(Object.values(agents).map((agent) => storeOf(agent)))
  const [store] = stores
  if (stores.size === 1 && store !== undefined) return store as SessionStore
  throw new AgentError(
    'AGENT_INVALID_OPTION',
    `${caller}: the agents of a worker need one store that they share: createAgent({ store, … }).`,
    { value: 'store' },
  )
}
