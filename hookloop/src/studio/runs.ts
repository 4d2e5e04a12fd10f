import { explanationText } from '../core/explain/explain.ts'
import { explanation } from '../core/explain/explanation.ts'
import { loadSession } from '../sessions/log/read-session.ts'
import type { RecordedRun, RecordedRuns } from '../sessions/log/recorded-run.ts'
import type { SessionReader } from '../sessions/log/session-reader.ts'
import { toStoredRun } from '../sessions/log/stored-run.ts'
import { sessionUnknown, type SessionStore } from '../sessions/stores/store.ts'
import { BoundedMap } from '../values/bounded-map.ts'
import { textOf } from '../core/state/message.ts'
import type { StoredRun } from '../core/state/stored-run.ts'
import { totalTokens } from '../core/state/usage.ts'
import { questionOf } from './inbox.ts'
import { changesInput, line, matrixOf, nothingSettled, type Matrix, type Settled } from './matrix.ts'
import { HttpProblem } from './request-rules.ts'
import type { Gauge, Question, RunExplanation, RunInfo, RunRef, RunSummary } from './run.types.ts'

/** A run as it is stored now. */
export type RunView = {
  /** The run with only those steps that were not settled before: `steps`, `calls`, `ledger` and `events` are theirs. */
  readonly tail: StoredRun
  /** What was settled before. With `tail` it is the whole matrix. */
  readonly before: Settled
  readonly matrix: Matrix
  /** The number of runs of the session. */
  readonly runs: number
  /** The run with all its steps. Takes longer the longer the run is. */
  readonly whole: () => StoredRun
}

type Viewed = {
  readonly view: RunView
  readonly recorded: RecordedRun
  readonly records: number
  readonly rewinds: number
}
type Known = { reading: Promise<SessionReader | undefined>; readonly views: Map<number, Viewed> }

const MAX_SESSIONS = 16

/**
 * Reads the runs of sessions. Of a session that was read before, only what was appended since is read, and only rows that may
 * have changed are made again: so an update of a run costs the same however long the run is.
 */
export class RunReader {
  readonly #store: SessionStore
  readonly #known = new BoundedMap<string, Known>(MAX_SESSIONS)

  constructor(store: SessionStore) {
    this.#store = store
  }

  async runs(session: string): Promise<readonly StoredRun[]> {
    const { runs, rewound } = (await this.#read(session)).recorded
    return runs.map((run) => toStoredRun(run, rewound))
  }

  async view(ref: RunRef): Promise<RunView> {
    const { recorded: found } = await this.#read(ref.session)
    const { views } = this.#known.get(ref.session)!
    const recorded = runIn(found.runs, ref)
    const known = views.get(recorded.index)
    const isSame = known?.recorded === recorded && known.records === recorded.records.length
    const viewed = isSame ? known : viewOf(recorded, found, known)
    views.set(recorded.index, viewed)
    return { ...viewed.view, runs: found.runs.length }
  }

  /** Whether a process works on a session. */
  async isLive(session: string): Promise<boolean> {
    return (await this.#store.list({ status: 'running' })).some(({ id }) => id === session)
  }

  /** One reading at a time: each one reads on where the one before has ended. */
  async #read(id: string): Promise<SessionReader> {
    const known = this.#known.getOrAdd(id, () => ({ reading: Promise.resolve(undefined), views: new Map() }))
    const reading = known.reading.then((before) => loadSession(this.#store, id, { known: before, runs: 'all' }))
    known.reading = reading.catch(() => undefined)
    const reader = await reading
    if (reader === undefined) throw sessionUnknown(id)
    return reader
  }
}

function viewOf(recorded: RecordedRun, { runs, rewound }: RecordedRuns, known?: Viewed): Viewed {
  const rewinds = rewound.length
  const isContinued = known?.recorded.input === recorded.input && known.rewinds === rewinds
  const settled = isContinued ? known.view.matrix.settled : nothingSettled
  let before = settled.step < recorded.stepStarts.length ? settled : nothingSettled // a slow reader may be behind
  let tail = toStoredRun(recorded, rewound, before.step)
  if (changesInput(tail, before)) [before, tail] = [nothingSettled, toStoredRun(recorded, rewound)]
  const matrix = matrixOf(tail, before)
  const whole = (): StoredRun => (before.step === 0 ? tail : toStoredRun(recorded, rewound))
  const view = { tail, before, matrix, runs: runs.length, whole }
  return { view, recorded, records: recorded.records.length, rewinds }
}

function runIn(runs: readonly RecordedRun[], { session, run = -1 }: RunRef): RecordedRun {
  const found = runs.at(run)
  if (found !== undefined) return found
  if (runs.length === 0) throw sessionUnknown(session)
  throw new HttpProblem(404, 'RUN_UNKNOWN', `There is no run ${run}: the session has ${runs.length} runs.`)
}

export function runSummary(run: StoredRun, isLive: boolean): RunSummary {
  const { index, id, input, status, at, endedAt, usage } = run
  const decided = decidedIn(run)
  return {
    index,
    id,
    input: line(textOf(input.content)),
    status: status === 'running' && !isLive ? 'interrupted' : status,
    live: isLive && status === 'running',
    startedAt: at,
    ...(endedAt !== undefined && { endedAt }),
    usage,
    ...(decided !== undefined && { decided }),
  }
}

function decidedIn({ final, pending, ledger }: StoredRun): RunSummary['decided'] {
  const [first] = pending
  if (final === undefined && first === undefined) return undefined
  const { by, reason, message } = final ?? { by: first!.by, reason: 'approval', message: first!.message }
  const definedAt = ledger.findLast((each) => each.hook === by && each.definedAt !== undefined)?.definedAt
  return { by, reason, message, ...(definedAt !== undefined && { definedAt }) }
}

export function runInfo(
  { tail: run, matrix: { columns, rows, decisions }, runs }: RunView,
  { live, whatIf, now }: Pick<RunInfo, 'live' | 'whatIf'> & { readonly now: number },
): RunInfo {
  const { session, agent, cwd } = run
  return {
    ...runSummary(run, live),
    session,
    agent,
    ...(cwd !== undefined && { cwd }),
    runs,
    columns,
    rows: rows.length,
    decisions,
    gauges: gaugesOf(run, now),
    ...(!live && wayOn(run)),
    pending: questionsIn(run),
    whatIf,
  }
}

/** What to do next, which its last steps say. The advice for a run that waits is code; the page has the question. */
function wayOn(tail: StoredRun): Pick<RunInfo, 'wayOn'> {
  if (tail.pending.length > 0) return { wayOn: 'Answer the question, then resume.' }
  const explained = explanation(tail)
  return explained.wayOn === undefined ? {} : { wayOn: explained.wayOn }
}

export function runExplanation(run: StoredRun): RunExplanation {
  return { text: explanationText(explanation(run)), warnings: run.warnings.map(({ message }) => message) }
}

/** The questions that a run waits for. */
export function questionsIn({ session, agent, input, pending, events, at }: StoredRun): readonly Question[] {
  const askedAt = events.findLast(({ type }) => type === 'suspended')?.at ?? at
  const title = line(textOf(input.content))
  return pending.map((approval) => questionOf(approval, { session, agent, title, askedAt }))
}

function gaugesOf(
  { limits = {}, usage, at, endedAt, waitedMs, status, events }: StoredRun,
  now: number,
): readonly Gauge[] {
  // Waiting is not counted; `waitedMs` has it only after the run was resumed.
  const suspendedAt = status === 'suspended' ? events.findLast(({ type }) => type === 'suspended')?.at : undefined
  const until = endedAt ?? suspendedAt ?? now
  const used: { readonly [limit in Gauge['limit']]: number } = {
    maxSteps: usage.steps,
    maxTokens: totalTokens(usage),
    maxCost: usage.costUsd,
    maxTimeMs: Math.max(0, until - at - waitedMs),
    maxToolCalls: usage.toolCalls,
  }
  return (Object.keys(used) as Gauge['limit'][]).flatMap((limit) => {
    const max = limits[limit]
    return max === undefined ? [] : [{ limit, used: used[limit], max }]
  })
}
