import type { AgentState } from '../../state/agent-state.ts'
import type { RunLog } from '../../effects/log.ts'
import type { Circumstances } from '../../effects/records.ts'
import { isOfRun, type SessionReader } from './session-reader.ts'
import type { NumberedRecord, SessionStart } from './session-records.ts'

type Numbered<T> = T & { readonly seq: number }
type InputRecord = Numbered<Extract<NumberedRecord, { t: 'input' }>>
export type RewoundRecord = Numbered<Extract<NumberedRecord, { t: 'rewound' }>>

/** One run of a session: its records, and the states before and after them. */
export type RecordedRun = {
  readonly start: SessionStart
  readonly index: number
  readonly input: InputRecord
  /** The state before the run; undefined for the first run. */
  readonly before: AgentState | undefined
  /** What follows its input, up to the next run. */
  readonly records: readonly NumberedRecord[]
  /** What they amount to. Its log is that of the session, so it may grow. */
  readonly state: AgentState | undefined
  readonly log: RunLog
  /** Where it started, and the limits that it had last. */
  readonly circumstances: Circumstances
  /** Where each step begins in `records`, by its index: behind the checkpoint that closed the step before. */
  readonly stepStarts: readonly number[]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type OpenRecord = Mutable<Omit<RecordedRun, 'records' | 'stepStarts'>> & {
  readonly records: NumberedRecord[]
  readonly stepStarts: number[]
}

/** The runs of a session, and when it was rewound. */
export type RecordedRuns = Pick<RunCollector, 'runs' | 'rewound'>

/** Collects the runs of a session while its records are read. One that continues another one replaces it. */
export class RunCollector {
  readonly runs: RecordedRun[]
  readonly rewound: RewoundRecord[]
  /** The last run, if it is not shared with another collector. */
  #last: OpenRecord | undefined

  constructor(before?: RunCollector) {
    this.runs = before?.runs.slice() ?? []
    this.rewound = before?.rewound.slice() ?? []
  }

  /** Called with each record after the reader has followed it. */
  add(record: NumberedRecord, { start, runs, state, log }: SessionReader): void {
    if (record.t === 'input') {
      const { cwd, limits } = record
      const circumstances = { ...(cwd !== undefined && { cwd }), ...(limits !== undefined && { limits }) }
      const begin = { start: start!, index: runs - 1, input: record, before: state, records: [], state, log }
      this.#last = { ...begin, circumstances, stepStarts: [0] }
      this.runs.push(this.#last)
      return
    }
    if (record.t === 'rewound') this.rewound.push(record)
    this.#last ??= this.#copyLast()
    if (this.#last === undefined || record.t === 'snapshot') return // it was changed before its first run
    const { records, stepStarts, circumstances } = this.#last
    records.push(record)
    if (isOfRun(record)) this.#last.state = state
    if (record.t === 'resume') {
      const { cwd, limits } = record
      const known = { ...(cwd !== undefined && { cwd }), ...circumstances }
      this.#last.circumstances = limits === undefined ? known : { ...known, limits }
    }
    if (record.t !== 'step' || record.path !== undefined) return
    const closed = state?.stepCount ?? 0
    while (stepStarts.length <= closed) stepStarts.push(records.length)
  }

  #copyLast(): OpenRecord | undefined {
    const last = this.runs.pop()
    if (last === undefined) return undefined
    const copy = { ...last, records: last.records.slice(), stepStarts: last.stepStarts.slice() }
    this.runs.push(copy)
    return copy
  }
}
