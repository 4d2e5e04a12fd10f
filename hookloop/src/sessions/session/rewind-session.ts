import { AgentState } from '../../core/state/agent-state.ts'
import { checkOptions } from '../../values/check-options.ts'
import { lastStepOf } from '../../core/state/execution.ts'
import { sameJson } from '../../values/json.ts'
import { toInput, type Message } from '../../core/state/message.ts'
import { addUsage, noUsage } from '../../core/state/usage.ts'
import type { RunLog } from '../../core/effects/log.ts'
import { AgentError } from '../../errors.ts'
import { readHistory, type StoredHistory } from '../log/read-session.ts'
import { rewoundAt } from '../log/session-records.ts'
import type { SessionStore } from '../stores/store.ts'
import { checkPoint, settledState, stateAt, stateBeforeInput } from './fork-session.ts'
import { lockSession, prepareInput, setHead } from './session-lock.ts'

/** Options of `rewindSession`. */
export type RewindOptions = {
  /** The step to go back to, by the `seq` that `listPoints` returns. Default: before the answer to the last message. */
  readonly at?: number
  /** Replaces the last user message. `agent.resume(id)` then runs it. Default: it stays. */
  readonly message?: string | Message
}

/**
 * Goes back to an earlier point of a session, in place: the conversation is that of the point, and an open run and its
 * approvals are dropped. The lines stay stored, so they can be exported, replayed and forked from; what was spent stays counted.
 * Without `at`, and with `message`, the session has a message to answer: continue with `agent.resume(id)`.
 *
 * @example
 * await rewindSession(store, 'chat-1') // regenerate the last answer
 * await agent.resume('chat-1')
 */
export async function rewindSession(store: SessionStore, id: string, options: RewindOptions = {}): Promise<void> {
  checkOptions('rewindSession', options, ['at', 'message'])
  const replacement = options.message === undefined ? undefined : toInput(options.message)
  await lockSession(store, { id }, async (session) => {
    const history = await readHistory(store, id)
    checkPoint(history, options.at)
    const { to, before, input } = targetOf(history, options.at)
    const message = replacement ?? input
    const base = replacement === undefined || input !== undefined ? before : stateBeforeInput(history, to)
    const at = Date.now()
    const { state: now, open } = session.reader
    const state = now === undefined ? withOpenUsage(base, open) : rewound(withOpenUsage(now, open), base, at)
    const inputs = history.reader.recorded.runs.map(({ input: each }) => each)
    const replaced = message && inputs.findLast(({ seq }) => options.at === undefined || seq <= to)
    const runs = inputs.filter((each) => each.seq > to || each === replaced).map(({ run }) => run)
    const step = now?.execution === undefined ? 0 : lastStepOf(now.execution)
    session.journal.appendRewound(state, { to, at, step, runs })
    setHead(session, state, { at })
    if (message !== undefined) {
      const turn = replaced?.turn === undefined ? {} : { turn: replaced.turn }
      prepareInput(session, { t: 'input', run: crypto.randomUUID(), at, message, ...turn })
    }
    await session.journal.flush()
  })
}

type Target = { readonly to: number; readonly before: AgentState; readonly input?: Message }

/** The line to go back to, the state there, and the message that is to be answered again. */
function targetOf(history: StoredHistory, at: number | undefined): Target {
  if (at !== undefined) return { to: at, before: settledState(stateAt(history, at)) }
  const last = history.reader.recorded.runs.at(-1)
  if (last === undefined)
    throw new AgentError('AGENT_INVALID_OPTION', 'The session has no message whose answer could be regenerated.')
  const { before = (history.reader.state ?? emptyState()).withMessages([]), input } = last
  return { to: input.seq - 1, before: settledState(before), input: input.message }
}

/** What an open run has spent since its last checkpoint stays counted. */
function withOpenUsage(state: AgentState, open: RunLog | undefined): AgentState {
  const usage = open?.openUsage('') ?? noUsage
  const { execution } = state
  if (execution?.status !== 'running') {
    const { spentBefore } = AgentState.fieldsOf(state)
    return AgentState.patch(state, { spentBefore: addUsage(spentBefore, usage) })
  }
  return AgentState.patchExecution(state, { usage: addUsage(execution.usage, usage) })
}

function emptyState(): AgentState {
  return AgentState.create({ agentId: crypto.randomUUID() })
}

/** The state with the conversation of an earlier one. Its last run, and what was spent until now, stay: a run that is open ends. */
function rewound(now: AgentState, to: AgentState, at: number): AgentState {
  const { messages, metadata, systemPrompt, responseFormat } = AgentState.fieldsOf(to)
  const { messages: current } = AgentState.fieldsOf(now)
  // As a part of the current conversation, if it is one: only what differs is stored.
  const isStart = messages.items.every((message, i) => i < current.length && sameJson(message, current.at(i)!))
  const change = {
    messages: isStart ? current.take(messages.length) : messages,
    metadata: sameJson(metadata, now.metadata) ? now.metadata : metadata,
    systemPrompt,
    responseFormat,
  }
  const state = AgentState.patch(now, change)
  if (state.execution === undefined || state.execution.final !== undefined) return state
  return AgentState.patchExecution(state, { status: 'stopped', final: rewoundAt(at) })
}
