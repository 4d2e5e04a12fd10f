import type { AgentParts } from '../../core/agent/agent-parts.ts'
import { RunContext } from '../../core/context/run-context.ts'
import { stateFor, toRun } from '../../core/loop/drive.ts'
import type { Run } from '../../core/agent/run.ts'
import type { ExecutionFields, FinalRecord } from '../../core/state/execution.ts'
import { Effects } from '../../core/effects/effects.ts'
import { Journal } from '../../core/effects/journal.ts'
import { RunTime, systemClock } from '../../core/effects/run-time.ts'
import { AgentError, type ErrorCode } from '../../errors.ts'
import { readHistory, readSession } from '../log/read-session.ts'
import type { SessionReader } from '../log/session-reader.ts'
import type { SessionStore } from '../stores/store.ts'

/** The last run of a session, as `agent.run` returned it: it has ended, or waits for an answer. */
export async function restoreRun(
  parts: AgentParts,
  { state, log, open, cancelled }: StoredTurn,
  session: string,
): Promise<Run> {
  const journal = new Journal(log, { clock: systemClock })
  const { root: scope } = log
  const time = new RunTime(systemClock, undefined)
  const effects = new Effects({ journal, scope, time, emit: undefined, run: log.input?.run ?? '', now: scope.at })
  const known = state ?? stateFor(parts, { from: state, agentId: effects.agentId, metadata: log.input?.metadata })
  const run = new RunContext(parts, effects, known, { ledger: log.ledger, session })
  time.close()
  if (open !== undefined) return toRun(run, { pending: open.questions() })
  if (cancelled !== undefined) {
    run.blocked = cancelled
    return toRun(run, { final: cancelled })
  }
  run.load(known, true)
  const { execution } = run
  const { final } = execution
  if (final?.status === 'failed') run.failure = new AgentError(codeOf(execution, final), final.message)
  if (final?.status === 'completed' && parts.reader !== undefined) {
    const read = await parts.reader(execution.steps.items)
    if (!('value' in read)) throw read.error
    run.output = read
  }
  return toRun(run, { final })
}

/** The code of the error that ended a run. The final record has its message. */
function codeOf({ steps }: ExecutionFields, { message }: FinalRecord): ErrorCode {
  const errors = steps.items.flatMap((step) => step.errors)
  return errors.findLast((error) => error.message === message)?.code ?? 'HOOK_FAILED'
}

type StoredTurn = Pick<SessionReader, 'state' | 'log' | 'open'> & {
  /** Why the turn ended before its input was taken, if it did. */
  readonly cancelled?: FinalRecord | undefined
}

/** A turn that is not the one of the last execution, as it ended. Undefined if the session has no such turn. */
export async function readTurn(store: SessionStore, id: string, turn: string): Promise<StoredTurn | undefined> {
  const { reader, lines } = await readHistory(store, id)
  const run = reader.recorded.runs.findLast(({ input }) => input.turn === turn)
  if (run === undefined) return undefined // another turn has the same hash
  const end = run.records.find(({ t }) => t === 'final' || t === 'state' || t === 'rewound')
  const { state, log, open } = readSession(lines.slice(0, (end?.seq ?? lines.length) + 1), id)
  return { state, log, open, cancelled: end?.t === 'final' ? end.final : undefined }
}
