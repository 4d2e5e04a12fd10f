import { checkArgument, checkOptions } from '../../state/check-options.ts'
import type { StoredRun } from '../../state/stored-run.ts'
import { checkSessionId, checkStore, type SessionStore } from '../stores/store.ts'
import { readStoredRuns } from './read-session.ts'
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
  checkStore('readRuns', store)
  checkSessionId(id)
  checkOptions('readRuns', options, ['run'])
  const { run } = options
  checkArgument('readRuns', ['run', run], run === undefined || Number.isInteger(run), 'the index of a run')
  const { runs, rewound } = await readStoredRuns(store, id, run)
  return runs.map((each) => toStoredRun(each, rewound))
}
