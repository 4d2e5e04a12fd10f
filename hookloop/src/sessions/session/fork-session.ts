import { checkOptions } from '../../values/check-options.ts'
import { AgentState } from '../../core/state/agent-state.ts'
import { sameJson } from '../../values/json.ts'
import { textOf, toInput, type Message } from '../../core/state/message.ts'
import type { StoredRun, StoredStep } from '../../core/state/stored-run.ts'
import { AgentError } from '../../errors.ts'
import { appendSessionStart, appendState, lockSession, prepareInput } from './session-lock.ts'
import { isPrepared } from './unfinished-run.ts'
import { readRuns } from '../log/read-runs.ts'
import { readHistory, readSession, type StoredHistory } from '../log/read-session.ts'
import type { SessionReader } from '../log/session-reader.ts'
import { toStoredRun } from '../log/stored-run.ts'
import type { SessionStore } from '../stores/store.ts'

/** A point of a session to fork from or to rewind to: the end of a step. */
export type SessionPoint = {
  /** The number of its line, for `forkSession(store, id, { at: seq })` and `rewindSession`. */
  readonly seq: number
  /** The message that its run answers. */
  readonly input: string
  /** Whether the session was rewound to an earlier point since. */
  readonly isRewound?: true
  readonly at: number
  readonly execution: number
  readonly step: number
  readonly text: string
  readonly toolCalls: readonly { readonly name: string; readonly status: string }[]
}

/**
 * The steps of a session, in order.
 *
 * @example
 * const points = await listPoints(store, 'chat-1')
 * await forkSession(store, 'chat-1', { at: points[2].seq })
 */
export async function listPoints(store: SessionStore, id: string): Promise<readonly SessionPoint[]> {
  return pointsOf(await readRuns(store, id))
}

/** Options of `forkSession`. */
export type ForkOptions = {
  /** The point to fork from, by its `seq`. Default: the end. */
  readonly at?: number
  /** The id of the new session. Default: a generated one. */
  readonly as?: string
  /** Replaces the last user message. `agent.resume(id)` then runs it. Default: it stays. */
  readonly message?: string | Message
}

/**
 * Creates a new session from a point of another one: with its conversation up to there, and without its pending approvals.
 * A message that a rewind has stored, and that has no answer yet, is copied; `agent.resume(id)` then runs it. The original is not
 * changed. Returns the id of the new session.
 *
 * @example
 * const id = await forkSession(store, 'chat-1', { message: 'Use Postgres instead.' })
 * await agent.resume(id)
 */
export async function forkSession(store: SessionStore, id: string, options: ForkOptions = {}): Promise<string> {
  checkOptions('forkSession', options, ['at', 'as', 'message'])
  const history = await readHistory(store, id)
  checkPoint(history, options.at)
  const { reader, lines } = history
  const at = options.at ?? lines.length - 1
  const message = options.message === undefined ? unanswered(reader, options.at) : toInput(options.message)
  const state = options.message === undefined ? settledState(stateAt(history, at)) : stateBeforeInput(history, at)
  const as = options.as ?? `${id.slice(0, 100).replace(/[\ud800-\udbff]$/, '')}-${crypto.randomUUID().slice(0, 8)}`
  await lockSession(store, { id: as, create: true }, async (session) => {
    if (session.reader.createdAt !== undefined) {
      throw new AgentError('SESSION_BUSY', `The session "${as}" already exists. Fork to another id.`, { value: as })
    }
    const origin = { agent: reader.agent, at: Date.now() }
    appendSessionStart(session, { ...origin, from: { id, seq: at } })
    appendState(session, state, origin)
    if (message !== undefined) prepareInput(session, { t: 'input', run: crypto.randomUUID(), at: origin.at, message })
    await session.journal.flush()
  })
  return as
}

/** Throws unless a line is the end of a step of the session. */
export function checkPoint({ reader: { recorded } }: StoredHistory, at: number | undefined): void {
  if (at === undefined) return
  const points = pointsOf(recorded.runs.map((run) => toStoredRun(run)))
  if (points.some(({ seq }) => seq === at)) return
  throw new AgentError('AGENT_INVALID_OPTION', `The session has no step ${at}. listPoints returns its steps.`, {
    value: at,
  })
}

function pointsOf(runs: readonly StoredRun[]): readonly SessionPoint[] {
  return runs.flatMap((run) => run.steps.flatMap((step) => pointOf(run, step)))
}

function pointOf({ index: execution, input }: StoredRun, step: StoredStep): readonly SessionPoint[] {
  const { seq, at, isRewound, index, text, toolCalls } = step
  if (seq === undefined || at === undefined) return [] // it has not ended
  return [
    {
      seq,
      input: textOf(input.content),
      ...(isRewound === true && { isRewound }),
      at,
      execution,
      step: index,
      text,
      toolCalls: toolCalls.map(({ name, result }) => ({ name, status: result?.status ?? 'outcomeUnknown' })),
    },
  ]
}

/** The state after a line. Undefined: its first run has no checkpoint yet. */
function storedState({ lines }: StoredHistory, at: number): AgentState | undefined {
  return readSession(lines.slice(0, at + 1)).state
}

export function stateAt(history: StoredHistory, at: number): AgentState {
  return storedState(history, at) ?? AgentState.create({ agentId: crypto.randomUUID() })
}

/** The state as between two runs: its usage is counted, and it has no execution and no approvals. */
export function settledState(state: AgentState): AgentState {
  return AgentState.create({ ...AgentState.fieldsOf(state), spentBefore: state.usage, execution: undefined })
}

/** The message that a rewind or a fork has stored to be answered. One of a run that was interrupted right then is not copied. */
function unanswered({ open }: SessionReader, at: number | undefined): Message | undefined {
  return at === undefined && open !== undefined && isPrepared(open) ? open.input!.message : undefined
}

/** The state at a line, with the conversation before the last message of the user, which is to be replaced. */
export function stateBeforeInput(history: StoredHistory, at: number): AgentState {
  const settled = settledState(stateAt(history, at))
  const { messages } = settled
  const input = history.reader.recorded.runs.findLast((run) => run.input.seq <= at)?.input
  const index = messages.findLastIndex((each) =>
    input === undefined ? each.role === 'user' : sameJson(each, input.message),
  )
  if (index !== -1) return settled.withMessages(messages.slice(0, index))
  if (input === undefined) return settled
  // A summary contains the message, or a hook has changed it.
  return settled.withMessages(storedState(history, input.seq - 1)?.messages ?? [])
}
