import { AgentState, SAVED_VERSION } from '../state/agent-state.ts'
import { hashJson, isJsonObject, storedJson, type Json, type JsonObject } from '../../values/json.ts'
import { fromSavedRun, type SavedRun } from '../state/saved-run.ts'
import type { Approval } from '../state/tool-call.ts'
import { diffState } from '../state/state-diff.ts'
import { AgentError } from '../../errors.ts'
import type { HookRecord } from '../state/execution.ts'
import { RunLog, type Entry, type Wait } from './log.ts'
import {
  openRunShape,
  runRecordShapes,
  type CancelRecord,
  type InputRecord,
  type RunRecord,
  type StepRecord,
} from './records.ts'

/** A suspended run as JSON: its state at the last checkpoint, and the records since then. It is a small log. */
export function saveRun(
  log: RunLog,
  { state, pending }: { readonly state: AgentState; readonly pending: readonly Approval[] },
): SavedRun {
  const run = openRun(log)
  const content = { state: state.toJSON(), run: storedJson(JSON.parse(JSON.stringify(run)), 'run') as JsonObject }
  const ledger = log.ledger as unknown as readonly JsonObject[]
  return { version: SAVED_VERSION, status: 'suspended', pending, ...content, ledger, sum: hashJson(content) }
}

/** The log of a saved run, to continue it. Throws STATE_INVALID if the run was changed, and RESUME_NOT_SUSPENDED if it has ended. */
export function loadRun(saved: SavedRun): { readonly log: RunLog; readonly state: AgentState } {
  const { state, ledger } = fromSavedRun(saved)
  const { run, sum, state: stateJson } = storedJson(saved, 'saved run') as unknown as SavedRun
  if (run === undefined) throw notSuspended(saved.status)
  if (sum !== hashJson({ state: stateJson, run })) throw invalid('it was changed since it was saved')
  const problem = openRunShape(run, 'run')
  if (problem !== undefined) throw invalid(problem)
  const log = loadLog({ pending: [], ...(run as unknown as OpenRun) }, openState(state))
  log.ledger = [...ledger]
  log.settleCalls()
  return { log, state: log.root.state! }
}

/** A run that has not ended, as JSON: with its state at the last checkpoint and its ledger, all of it. */
export type OpenRun = {
  readonly input: InputRecord
  readonly hooks: readonly HookRecord[]
  readonly at: number
  /** The time of its last checkpoint. */
  readonly since: number
  readonly waits: readonly Wait[]
  readonly pending?: readonly string[]
  /** What has happened since then. */
  readonly records: readonly RunRecord[]
}

export function openRun(log: RunLog): OpenRun {
  const { input, hooks, at, root, waits, pending } = log
  const records = openRecords(log)
  return { input: input!, hooks, at, since: root.at, waits, ...(pending !== undefined && { pending }), records }
}

/** The log of an open run, given its state at the last checkpoint. Throws STATE_INVALID. */
export function loadLog({ input, hooks, at, since, waits, pending, records }: OpenRun, state: AgentState): RunLog {
  const log = new RunLog()
  log.apply(checked(input))
  log.root.state = state
  log.root.at = since
  log.hooks = hooks
  for (const record of records) log.apply(checked(record as unknown as Json))
  log.at = at
  log.waits = waits
  log.pending = pending
  return log
}

/** The records that lead from the last checkpoint to the current state. */
export function openRecords({ scopes, deferred, at: last }: RunLog): readonly RunRecord[] {
  const children: StepRecord[] = []
  const entries: Entry[] = []
  const cancels: CancelRecord[] = []
  for (const { path, state, isOver, at, ledger, cancel, entries: own } of scopes.values()) {
    entries.push(...own.values())
    if (cancel !== undefined) cancels.push(cancel)
    if (path.length === 0 || state === undefined) continue
    const change = diffState(undefined, state)
    children.push({ t: 'step', at, path, change, ledger, ...(isOver && { ended: state.lastStep?.index ?? 0 }) })
  }
  entries.sort((a, b) => a.seq - b.seq)
  const begins = entries.flatMap(({ begin, end }) => begin ?? end ?? [])
  const ends = entries.flatMap(({ begin, end }) => (begin !== undefined && end !== undefined ? [end] : []))
  const waits = deferred.map((change): RunRecord => ({ t: 'pause', at: last, step: 0, pending: [], change }))
  return [...children, ...begins, ...ends, ...cancels, ...waits]
}

/** The state that the open step starts from. */
function openState(state: AgentState): AgentState {
  return state.execution?.status === 'suspended' ? AgentState.patchExecution(state, { status: 'running' }) : state
}

function checked(record: Json): RunRecord {
  const t = isJsonObject(record) ? record['t'] : undefined
  const shape =
    typeof t === 'string' && Object.hasOwn(runRecordShapes, t) ? runRecordShapes[t as RunRecord['t']] : undefined
  const problem = shape === undefined ? 'it has a record of an unknown kind' : shape(record, '')
  if (problem !== undefined) throw invalid(problem)
  return record as unknown as RunRecord
}

function notSuspended(status: string): AgentError {
  return new AgentError(
    'RESUME_NOT_SUSPENDED',
    `The run is ${status}, so there is nothing to resume. To continue the conversation, use agent.run(input, { from: run }).`,
  )
}

function invalid(why: string): AgentError {
  return new AgentError('STATE_INVALID', `The saved run cannot be read: ${why}.`, { value: why })
}
