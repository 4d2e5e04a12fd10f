import { checkOptions } from '../../values/check-options.ts'
import type { StoredRun } from '../../core/state/stored-run.ts'
import { sessionUnknown, type SessionStore } from '../stores/store.ts'
import { loadSession } from './read-session.ts'
import { toStoredRun } from './stored-run.ts'

/** Options of `readRuns`. */
export type ReadRunsOptions = {
  /** Only the run with this index; a negative index counts from the end. Default: all runs. */
  readonly run?: number
}

/**
 * The runs of a session as they are stored, oldest first: input, steps, calls, ledger, votes, limits, cost and final record.
 * It takes no lock, so it also reads a run that another process works on. Throws SESSION_UNKNOWN.
 *
 * @example
 * const [run] = await readRuns(store, 'chat-1', { run: -1 })
 * console.log(explain(run!))
 */
export async function readRuns(
  store: SessionStore,
  id: string,
  options: ReadRunsOptions = {},
): Promise<readonly StoredRun[]> {
  checkOptions('readRuns', options, ['run'])
  const { run } = options
  const recent = run === -1 ? await loadSession(store, id, { runs: 'recent' }) : undefined
  const isEnough = recent !== undefined && recent.recorded.runs.length > 0
  const reader = isEnough ? recent : await loadSession(store, id, { runs: 'all' })
  if (reader === undefined) throw sessionUnknown(id)
  const { runs, rewound } = reader.recorded
  const chosen = run === undefined ? runs : [runs.at(run)]
  return chosen.flatMap((each) => (each === undefined ? [] : [toStoredRun(each, rewound)]))
}
