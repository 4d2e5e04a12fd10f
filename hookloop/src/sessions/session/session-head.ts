import { AgentState, TITLE_KEY } from '../../core/state/agent-state.ts'
import { toJson, type JsonObject } from '../../values/json.ts'
import { textOf } from '../../core/state/message.ts'
import type { Approval } from '../../core/state/tool-call.ts'
import { addUsage, noUsage, type Usage } from '../../core/state/usage.ts'
import type { sessionStatuses } from '../stores/list-sessions.ts'

/**
 * What a list shows of a session: the `head` of `store.list()`.
 *
 * @example
 * for (const { id, head } of await store.list()) console.log(id, (head as SessionHead).title)
 */
export type SessionHead = {
  /** `interrupted`: the process of its run has ended, so `agent.resume` continues it. */
  readonly status: (typeof sessionStatuses)[number]
  readonly agent: string
  readonly createdAt: number
  /** The metadata `user` of its runs, if it is a string. */
  readonly user?: string
  /** The working directory of the process that ran it last. */
  readonly cwd?: string
  /** The title that was set, or the first words of the first message. */
  readonly title: string
  readonly steps: number
  readonly tokens: number
  readonly costUsd: number
  /** Approvals that wait for an answer. */
  readonly pending: readonly Approval[]
}

const MAX_TITLE_CHARS = 80

/** The head of a session in this state. `pending` are the questions that wait for an answer, `open` is what the open step has cost. */
export function headOf(
  state: AgentState,
  origin: Pick<SessionHead, 'agent' | 'createdAt' | 'cwd'>,
  {
    pending = [],
    status,
    open = noUsage,
  }: {
    readonly pending?: readonly Approval[]
    readonly status?: SessionHead['status'] | undefined
    readonly open?: Usage | undefined
  } = {},
): JsonObject {
  const { execution, messages, metadata } = AgentState.fieldsOf(state)
  const usage = addUsage(state.usage, open)
  const head: SessionHead = {
    status: status ?? execution?.status ?? 'idle',
    ...origin,
    ...(typeof metadata['user'] === 'string' && { user: metadata['user'] }),
    title: short(titleIn(metadata) ?? textOf(messages.find(({ role }) => role === 'user')?.content ?? [])),
    steps: usage.steps,
    tokens: usage.inputTokens + usage.outputTokens,
    costUsd: usage.costUsd,
    pending,
  }
  return toJson(head) as JsonObject
}

function titleIn({ [TITLE_KEY]: title }: JsonObject): string | undefined {
  return typeof title === 'string' && title.trim() !== '' ? title : undefined
}

function short(text: string): string {
  const line = text.slice(0, 1_000).replace(/\s+/g, ' ').trim()
  return line.length <= MAX_TITLE_CHARS ? line : `${line.slice(0, MAX_TITLE_CHARS - 1)}…`
}
