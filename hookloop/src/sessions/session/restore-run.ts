import type { AgentParts } from '../../agent/agent-parts.ts'
import { RunContext } from '../../agent/loop/run-context.ts'
import { toRun, type Run } from '../../agent/run.ts'
import type { Execution, FinalRecord } from '../../state/execution.ts'
import { liveEffects } from '../../effects/effects.ts'
import { AgentError, type ErrorCode } from '../../errors.ts'
import { readSession, type SessionHistory, type SessionSnapshot } from '../log/read-session.ts'
import type { SessionRecord, StateRecord } from '../log/session-records.ts'
import { sessionUnknown, type SessionStore } from '../stores/store.ts'

/** The last run of a session, as `agent.run` returned it: it has ended, or waits for an answer. */
export async function restoreRun(
  parts: AgentParts,
  {
    state,
    ledger,
    cancelled,
  }: Pick<SessionSnapshot | SessionHistory, 'state' | 'ledger'> & Pick<StoredTurn, 'cancelled'>,
  session: string,
): Promise<Run> {
  const run = new RunContext(parts, liveEffects()({ signal: undefined, emit: undefined }), state!, { ledger, session })
  if (cancelled !== undefined) {
    run.effects.time.close()
    return toRun(run, cancelled)
  }
  const { execution } = run
  const { final } = execution
  if (final?.status === 'failed') run.failure = new AgentError(codeOf(execution, final), final.message)
  if (final?.status === 'completed' && parts.reader !== undefined) {
    const read = await parts.reader(execution.steps)
    if (!('value' in read)) throw read.error
    run.output = read
  }
  run.effects.time.close()
  return toRun(run, final)
}

/** The code of the error that ended a run. The final record has its message. */
function codeOf({ steps }: Execution, { message }: FinalRecord): ErrorCode {
  const errors = steps.slice().flatMap((step) => step.errors)
  return errors.findLast((error) => error.message === message)?.code ?? 'HOOK_FAILED'
}

const ends: readonly StateRecord['phase'][] = ['ended', 'inputBlocked', 'changed']

/** A session as it was at the end of a turn. `cancelled`: why the turn ended before its input was taken, if it did. */
type StoredTurn = SessionHistory & { readonly cancelled?: FinalRecord | undefined }

/** A turn that is not the one of the last execution. Undefined if the session has no such turn. */
export async function readTurn(store: SessionStore, id: string, turn: string): Promise<StoredTurn | undefined> {
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  const { records } = readSession(stored.lines, id)
  const input = records.findLastIndex((record) => record.type === 'input' && record.turn === turn)
  if (input === -1) return undefined // another turn has the same hash
  const isEnd = (record: SessionRecord) => record.type === 'state' && ends.includes(record.phase)
  const end = records.slice(input).find(isEnd) as (StateRecord & { readonly seq: number }) | undefined
  const history = readSession(stored.lines.slice(0, (end?.seq ?? stored.lines.length) + 1), id)
  return { ...history, cancelled: end?.phase === 'inputBlocked' ? end.final : undefined }
}
