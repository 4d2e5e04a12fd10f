import type { AgentState } from '../../core/state/agent-state.ts'
import type { RunLog } from '../../core/effects/log.ts'
import { isOfRun, type NumberedRecord, type SessionStart } from './session-records.ts'

type Numbered<T> = T & { readonly seq: number }
type InputRecord = Numbered<Extract<NumberedRecord, { t: 'input' }>>
export type RewoundRecord = Numbered<Extract<NumberedRecord, { t: 'rewound' }>>

/** One run of a session: its records, and the states before and after them. It grows while its session is read. */
export type RecordedRun = {
  readonly start: SessionStart
  readonly index: number
  readonly input: InputRecord
  /** The state before the run; undefined for the first run. */
  readonly before: AgentState | undefined
  /** What follows its input, up to the next run. */
  readonly records: NumberedRecord[]
  /** What they amount to. */
  state: AgentState | undefined
  readonly log: RunLog
  /** Where each step begins in `records`, by its index: behind the checkpoint that closed the step before. */
  readonly stepStarts: number[]
}

type Followed = Pick<RecordedRun, 'state' | 'log'> & {
  readonly start: SessionStart | undefined
  readonly runs: number
}

/** The runs of a session, and when it was rewound. */
export class RecordedRuns {
  readonly rewound: RewoundRecord[] = []
  readonly runs: RecordedRun[] = []

  /** Called with each record after the reader has followed it. */
  add(record: NumberedRecord, { start, runs, state, log }: Followed): void {
    if (record.t === 'input') {
      const begin = { start: start!, index: runs - 1, input: record, before: state }
      this.runs.push({ ...begin, records: [], state, log, stepStarts: [0] })
      return
    }
    if (record.t === 'rewound') this.rewound.push(record)
    const last = this.runs.at(-1)
    if (last === undefined || record.t === 'snapshot') return // it was changed before its first run
    const { records, stepStarts } = last
    records.push(record)
    if (isOfRun(record)) last.state = state
    if (record.t !== 'step' || record.path !== undefined) return
    const closed = state?.stepCount ?? 0
    while (stepStarts.length <= closed) stepStarts.push(records.length)
  }
}
