import { TITLE_KEY, type AgentState } from '../../state/agent-state.ts'
import { toJson, type JsonObject } from '../../state/json.ts'
import { textOf } from '../../state/message.ts'
import { pendingIn } from '../../state/open-calls.ts'
import type { Answers, Approval } from '../../state/tool-call.ts'

/** What a list shows of a session. */
export type SessionHead = {
  readonly status: 'running' | 'suspended' | 'completed' | 'stopped' | 'failed' | 'cancelled' | 'idle'
  readonly agent: string
  readonly createdAt: number
  /** The one it was given, or the beginning of what was first said. */
  readonly title: string
  readonly steps: number
  readonly tokens: number
  readonly costUsd: number
  /** Questions that wait for a person. */
  readonly pending: readonly Approval[]
}

const TITLE = 80

/** Whose session it is, and since when. */
export type SessionOrigin = Pick<SessionHead, 'agent' | 'createdAt'>

/** The head of a session in this state, whose questions may have been answered meanwhile. */
export function headOf(state: AgentState, from: SessionOrigin, answered: Answers = {}): JsonObject {
  const { execution, usage, messages, metadata } = state
  const pending = execution?.status === 'suspended' ? pendingIn(execution) : []
  const head: SessionHead = {
    status: execution?.status ?? 'idle',
    ...from,
    title: short(given(metadata) ?? textOf(messages.find(({ role }) => role === 'user')?.content ?? [])),
    steps: usage.steps,
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: usage.costUsd,
    pending: pending.filter(({ id }) => !Object.hasOwn(answered, id)),
  }
  return toJson(head) as JsonObject
}

function given({ [TITLE_KEY]: title }: JsonObject): string | undefined {
  return typeof title === 'string' && title.trim() !== '' ? title : undefined
}

function short(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= TITLE ? line : `${line.slice(0, TITLE - 1)}…`
}
