import type { AgentState } from '../../state/agent-state.ts'
import type { LedgerRow, TimedLedgerEntry } from '../../state/ledger.ts'
import type { List } from '../../state/list.ts'
import type { NumberedRecord } from './session-records.ts'
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
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type OpenRecord = Mutable<Omit<RecordedRun, 'records'>> & { readonly records: NumberedRecord[] }

/** Collects the runs of a session while its records are read. */
export class RunCollector {
  readonly runs: RecordedRun[] = []
  readonly rewound: RewoundRecord[] = []
  #last: OpenRecord | undefined

  /** Called with each record after the reader has followed it. */
  add(record: NumberedRecord, { start, state, ledger, open }: SessionReader): void {
    if (record.type === 'input') {
      this.#last = {
        start: start!,
        index: this.runs.length,
        input: record,
        before: state,
        records: [],
        state,
        ledger,
        open,
      }
      this.runs.push(this.#last)
      return
    }
    if (record.type === 'rewound') this.rewound.push(record)
    if (this.#last === undefined) return
    this.#last.records.push(record)
    Object.assign(this.#last, { state, ledger, open })
  }
}
