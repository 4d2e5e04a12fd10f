import { explanationText } from '../agent/explain/explain.ts'
import { explanation } from '../agent/explain/explanation.ts'
import { readRuns } from '../sessions/log/read-runs.ts'
import { sessionUnknown, type SessionStore } from '../sessions/stores/store.ts'
import { textOf } from '../state/message.ts'
import type { StoredRun } from '../state/stored-run.ts'
import { totalTokens } from '../state/usage.ts'
import { questionOf } from './inbox.ts'
import { line, matrixOf, type Matrix } from './matrix.ts'
import { HttpProblem } from './request-rules.ts'
import type { Gauge, Question, RunInfo, RunRef, RunSummary } from './run.types.ts'

/** A run as it is stored now. `runs` is the number of runs of its session. */
export type RunView = { readonly run: StoredRun; readonly matrix: Matrix; readonly runs: number }

type Known = { readonly runs: readonly StoredRun[]; readonly matrices: Map<number, Matrix> }

const MAX_SESSIONS = 16

/** Reads the runs of sessions. A session that was not written since is not read again. */
export class RunReader {
  readonly #store: SessionStore
  readonly #known = new Map<string, Known>()

  constructor(store: SessionStore) {
    this.#store = store
  }

  async runs(session: string): Promise<readonly StoredRun[]> {
    return (await this.#read(session)).runs
  }

  async view(ref: RunRef): Promise<RunView> {
    const { runs, matrices } = await this.#read(ref.session)
    const run = runIn(runs, ref)
    const matrix = matrices.get(run.index) ?? matrixOf(run)
    matrices.set(run.index, matrix)
    return { run, matrix, runs: runs.length }
  }

  /** Whether a process works on a session. */
  async isLive(session: string): Promise<boolean> {
    return (await this.#store.list({ status: 'running' })).some(({ id }) => id === session)
  }

  async #read(session: string): Promise<Known> {
    const known = this.#known.get(session)
    const after = known?.runs.at(-1)?.lines.last
    if (known !== undefined && after !== undefined) {
      const added = await this.#store.read(session, { after })
      if (added === undefined) this.#known.delete(session)
      if (added?.lines.length === 0) return known
    }
    const read = { runs: await readRuns(this.#store, session), matrices: new Map<number, Matrix>() }
    this.#known.delete(session) // so that it becomes the latest
    this.#known.set(session, read)
    const [oldest] = this.#known.keys()
    if (this.#known.size > MAX_SESSIONS) this.#known.delete(oldest!)
    return read
  }
}

function runIn(runs: readonly StoredRun[], { session, run = -1 }: RunRef): StoredRun {
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
  { run, matrix: { columns, rows }, runs }: RunView,
  { live, whatIf, now }: Pick<RunInfo, 'live' | 'whatIf'> & { readonly now: number },
): RunInfo {
  const { session, agent, cwd, warnings } = run
  const explained = explanation(run)
  return {
    ...runSummary(run, live),
    session,
    agent,
    ...(cwd !== undefined && { cwd }),
    runs,
    columns,
    rows: rows.length,
    decisions: rows.filter(({ row }) => row.decision).length,
    gauges: gaugesOf(run, now),
    explanation: explanationText(explained),
    ...wayOn(run, explained),
    warnings: warnings.map(({ message }) => message),
    pending: questionsIn(run),
    whatIf,
  }
}

/** What to do next. The advice for a run that waits is code; the page has the question. */
function wayOn({ pending }: StoredRun, explained: { readonly wayOn: string | undefined }): Pick<RunInfo, 'wayOn'> {
  if (pending.length > 0) return { wayOn: 'Answer the question, then resume.' }
  return explained.wayOn === undefined ? {} : { wayOn: explained.wayOn }
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
