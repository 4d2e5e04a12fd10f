import type { AgentState } from '../../core/state/agent-state.ts'
import type { Approval } from '../../core/state/tool-call.ts'
import type { RunLog } from '../../core/effects/log.ts'
import { readSession } from '../log/read-session.ts'
import type { SessionStore } from '../stores/store.ts'

/** What a process finds when it opens a session to work on it. */
export type Found = {
  readonly state: AgentState | undefined
  readonly hasInput: boolean
  readonly open: RunLog | undefined
  /** What the run is suspended with, unless one of its questions was answered: then it can be resumed. */
  readonly asked: readonly Approval[]
}

export async function findSession(store: SessionStore, id: string): Promise<Found> {
  const { open, state, runs } = readSession((await store.read(id))?.lines ?? [], id)
  const waiting = open === undefined ? [] : open.questions()
  const isAnswered = (open?.pending ?? []).some((each) => !waiting.some((approval) => approval.id === each))
  return { state, hasInput: runs > 0, open, asked: open?.pending === undefined || isAnswered ? [] : waiting }
}
