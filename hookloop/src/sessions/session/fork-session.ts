import { AgentState } from '../../state/agent-state.ts'
import type { Step } from '../../state/execution.ts'
import { toInput, type Message } from '../../state/message.ts'
import { buildState } from '../../state/state-diff.ts'
import { AgentError } from '../../errors.ts'
import { agentOf, appendSessionStart, lockSession, appendState } from './session-lock.ts'
import { readSession, type SessionSnapshot } from '../log/read-session.ts'
import { sessionUnknown, type SessionStore } from '../stores/store.ts'

/** A place in a session that can be gone back to: its beginning, or the end of a step. */
export type SessionPoint = {
  /** The number of the line it is kept in. */
  readonly seq: number
  readonly at: number
  readonly execution: number
  readonly step: number
  readonly text: string
  readonly toolCalls: readonly { readonly name: string; readonly status: string }[]
}

/** Every step of a session, in order. */
export async function listPoints(store: SessionStore, id: string): Promise<readonly SessionPoint[]> {
  return pointsOf(await readSnapshot(store, id))
}

/** Options of `forkSession`. */
export type ForkOptions = {
  /** The place to go back to, by its `seq`. Default: the end. */
  readonly at?: number
  /** The id of the new session. Default: one that is made up. */
  readonly as?: string
  /** What is said in place of the last thing the user said there. `agent.resume(id)` then works on it. */
  readonly message?: string | Message
}

/**
 * A new session that begins where another one was: with its conversation up to there and none of its open questions.
 * The other stays as it is. Gives the id of the new one.
 */
export async function forkSession(store: SessionStore, id: string, options: ForkOptions = {}): Promise<string> {
  const snapshot = await readSnapshot(store, id)
  const seq = options.at ?? snapshot.end.seq
  const message = options.message === undefined ? undefined : toInput(options.message)
  const settled = settledState(stateAt(snapshot, seq))
  const state = message === undefined ? settled : withoutLastInput(settled)
  const as = options.as ?? `${id.slice(0, 100)}-${crypto.randomUUID().slice(0, 8)}`
  await lockSession(store, { id: as, create: true }, async (session) => {
    if (session.snapshot.records.length > 0) {
      throw new AgentError('SESSION_BUSY', `There is a session "${as}" already. Fork to another id.`, { value: as })
    }
    const [agent, at] = [agentOf(snapshot), Date.now()]
    appendSessionStart(session, { agent, at, from: { id, seq } })
    appendState(session, state, { agent, at })
    if (message !== undefined) session.journal.append({ type: 'input', run: crypto.randomUUID(), at, message })
    await session.journal.store()
  })
  return as
}

async function readSnapshot(store: SessionStore, id: string): Promise<SessionSnapshot> {
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  return readSession(stored.lines, id)
}

function pointsOf({ records }: SessionSnapshot): readonly SessionPoint[] {
  const points: SessionPoint[] = []
  let execution = -1
  for (const [seq, record] of records.entries()) {
    if (record.type === 'input') execution++
    if (record.type !== 'state') continue
    const added: readonly Step[] = record.diff.execution?.steps?.add ?? []
    for (const step of added) {
      points.push({
        seq,
        at: record.at,
        execution,
        step: step.index,
        text: step.text,
        toolCalls: step.toolCalls.map(({ name }, i) => ({ name, status: step.toolExecutions[i]!.status })),
      })
    }
  }
  return points
}

function stateAt({ records }: SessionSnapshot, seq: number): AgentState {
  const state = buildState(
    records.slice(0, seq + 1).flatMap((record) => (record.type === 'state' ? [record.diff] : [])),
  )
  if (state !== undefined) return state
  throw new AgentError('SESSION_UNKNOWN', `The session has no stored state up to line ${seq + 1}.`, { value: seq })
}

/** As between two runs: what was spent is billed, and neither execution nor questions are left over. */
function settledState(state: AgentState): AgentState {
  return AgentState.create({ ...AgentState.fieldsOf(state), spentBefore: state.usage, execution: undefined })
}

function withoutLastInput(state: AgentState): AgentState {
  const at = state.messages.slice().findLastIndex(({ role }) => role === 'user')
  return at === -1 ? state : state.withMessages(state.messages.take(at))
}
