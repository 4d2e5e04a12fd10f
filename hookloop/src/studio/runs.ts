import { explain, explanation, textOf, totalTokens } from '../plugin.ts'
import { loadSession } from '../sessions/log/read-session.ts'
import type { SessionReader } from '../sessions/log/session-reader.ts'
import { toStoredRun } from '../sessions/log/stored-run.ts'
import { sessionUnknown, type SessionStore } from '../sessions/stores/store.ts'
import { BoundedMap } from '../values/bounded-map.ts'
import type { StoredRun } from '../sessions/index.ts'
import { questionOf } from './inbox.ts'
import { line, matrixOf, type Matrix } from './matrix.ts'
import { HttpProblem } from './request-rules.ts'
import type { Gauge, Question, RunExplanation, RunInfo, RunRef, RunSummary } from './run.types.ts'

/** A run as it is stored now. */
export type RunView = {
  readonly run: StoredRun
  readonly matrix: Matrix
  /** The number of runs of the session. */
  readonly runs: number
}

type Known = {
  reading: Promise<SessionReader | undefined>
  /** The views of its runs, by index, and how much of the session each of them shows. */
  readonly views: Map<number, { readonly chars: number; readonly view: RunView }>
}

const MAX_SESSIONS = 16

/** Reads the runs of sessions. Of a session that was read before, only what was appended since is read. */
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

  async view({ session, run: index = -1 }: RunRef): Promise<RunView> {
    const { recorded, chars } = await this.#read(session)
    const { runs, rewound } = recorded
    const found = runs.at(index)
    if (found === undefined && runs.length === 0) throw sessionUnknown(session)
    if (found === undefined)
      throw new HttpProblem(404, 'RUN_UNKNOWN', `There is no run ${index}: the session has ${runs.length} runs.`)
    const { views } = this.#known.get(session)!
    const known = views.get(found.index)
    if (known?.chars === chars) return known.view
    const run = toStoredRun(found, rewound)
    const view = { run, matrix: matrixOf(run), runs: runs.length }
    views.set(found.index, { chars, view })
    return view
  }

  /** Whether a process works on a session. */
  async isLive(session: string): Promise<boolean> {
    return (await this.#store.list({ status: 'running' })).some(({ id }) => id === session)
  }

  /** One reading at a time: each one reads on where the one before has ended. */
  async #read(id: string): Promise<SessionReader> {
    const known = this.#known.getOrAdd(id, () => ({ reading: Promise.resolve(undefined), views: new Map() }))
    const reading = known.reading.then(async (before) => {
      const reader = await loadSession(this.#store, id, { known: before, runs: 'all' })
      if (reader !== before) known.views.clear() // another session with the same id
      return reader
    })
    known.reading = reading.catch(() => undefined)
    const reader = await reading
    if (reader === undefined) throw sessionUnknown(id)
    return reader
  }
}

export function runSummary(run: StoredRun, isLive: boolean): RunSummary {
  const { index, id, session, agent, cwd, input, status, at, endedAt, usage } = run
  return {
    index,
    id,
    session,
    agent,
    ...(cwd !== undefined && { cwd }),
    input: line(textOf(input.content)),
    status: status === 'running' && !isLive ? 'interrupted' : status,
    live: isLive && status === 'running',
    startedAt: at,
    ...(endedAt !== undefined && { endedAt }),
    usage,
    decided: decidedIn(run),
  }
}

function decidedIn({ final, pending: [asked], ledger }: StoredRun): RunSummary['decided'] {
  const decided = final ?? asked
  if (decided === undefined) return undefined
  const { by, message } = decided
  const definedAt = ledger.findLast((each) => each.hook === by && each.definedAt !== undefined)?.definedAt
  return { by, message, definedAt }
}

export function runInfo(
  { run, matrix: { columns, rows, decisions }, runs }: RunView,
  { live, whatIf, now }: Pick<RunInfo, 'live' | 'whatIf'> & { readonly now: number },
): RunInfo {
  return {
    ...runSummary(run, live),
    runs,
    columns,
    rows: rows.length,
    decisions,
    gauges: gaugesOf(run, now),
    wayOn: live ? undefined : wayOn(run),
    pending: questionsIn(run),
    whatIf,
  }
}

/** What to do next. The advice for a run that waits is code; the page has the question. */
function wayOn(run: StoredRun): string | undefined {
  return run.pending.length > 0 ? 'Answer the question, then resume.' : explanation(run).wayOn
}

export function runExplanation(run: StoredRun): RunExplanation {
  return { text: explain(run), warnings: run.warnings.map(({ message }) => message) }
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
