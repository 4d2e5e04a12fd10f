import type { AgentState } from '../../state/agent-state.ts'
import type { LedgerRow, TimedLedgerEntry } from '../../state/ledger.ts'
import type { List } from '../../state/list.ts'
import type { Circumstances, NumberedRecord } from './session-records.ts'
import type { SessionReader, SessionStart } from './session-reader.ts'

type InputRecord = Extract<NumberedRecord, { type: 'input' }>
export type RewoundRecord = Extract<NumberedRecord, { type: 'rewound' }>

/** One run of a session: its records, and the states before and after them. */
export type RecordedRun = {
  readonly start: SessionStart
  readonly index: number
  readonly input: InputRecord
  /** The state before the run; undefined for the first run. */
  readonly before: AgentState | undefined
  /** What follows its input, up to the next run. */
  readonly records: readonly NumberedRecord[]
  /** What they amount to. */
  readonly state: AgentState | undefined
  readonly ledger: List<TimedLedgerEntry | LedgerRow>
  readonly open: SessionReader['open']
  /** Where it started, and the limits that it had last. */
  readonly circumstances: Circumstances
  /** Where each step begins in `records` and `ledger`, by its index: behind the checkpoint that closed the step before. */
  readonly stepStarts: readonly StepStart[]
}

type StepStart = { readonly records: number; readonly ledger: number }

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type OpenRecord = Mutable<Omit<RecordedRun, 'records' | 'stepStarts'>> & {
  readonly records: NumberedRecord[]
  readonly stepStarts: StepStart[]
}

/** The runs of a session, and when it was rewound. */
export type RecordedRuns = Pick<RunCollector, 'runs' | 'rewound'>

/** Collects the runs of a session while its records are read. */
export class RunCollector {
  readonly runs: RecordedRun[]
  readonly rewound: RewoundRecord[]
  /** The last run, if it is not shared with another collector. */
  #last: OpenRecord | undefined

  /** Continues after the runs of another one, which does not change. */
  constructor({ runs, rewound }: RecordedRuns = { runs: [], rewound: [] }) {
    this.runs = runs.slice()
    this.rewound = rewound.slice()
  }

  /** Called with each record after the reader has followed it. */
  add(record: NumberedRecord, { start, runs, state, ledger, open }: SessionReader): void {
    if (record.type === 'input') {
      const index = (runs ?? 0) - 1
      const { cwd, limits } = record
      const circumstances = { ...(cwd !== undefined && { cwd }), ...(limits !== undefined && { limits }) }
      const stepStarts = [{ records: 0, ledger: 0 }]
      const begin = { start: start!, index, input: record, before: state, records: [], state, ledger, open }
      this.#last = { ...begin, circumstances, stepStarts }
      this.runs.push(this.#last)
      return
    }
    if (record.type === 'rewound') this.rewound.push(record)
    this.#last ??= this.#copyLast()
    if (this.#last === undefined) return // it was changed before its first run
    const { records, stepStarts, circumstances } = this.#last
    records.push(record)
    Object.assign(this.#last, { state, ledger, open })
    if (record.type === 'runResumed' || record.type === 'answers') {
      const { cwd, limits } = record
      const known = { ...(cwd !== undefined && { cwd }), ...circumstances }
      this.#last.circumstances = limits === undefined ? known : { ...known, limits }
    }
    if (record.type !== 'state' || record.phase === 'inputBlocked' || record.phase === 'changed') return
    const closed = state?.execution?.steps.length ?? 0
    stepStarts.splice(closed + 1)
    while (stepStarts.length < closed) stepStarts.push(stepStarts.at(-1)!)
    if (stepStarts.length === closed) stepStarts.push({ records: records.length, ledger: ledger.length })
  }

  #copyLast(): OpenRecord | undefined {
    const last = this.runs.pop()
    if (last === undefined) return undefined
    const copy = { ...last, records: last.records.slice(), stepStarts: last.stepStarts.slice() }
    this.runs.push(copy)
    return copy
  }
}
