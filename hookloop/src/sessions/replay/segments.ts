import type { StateDiff } from '../../state/state-diff.ts'
import type { Answers } from '../../state/tool-call.ts'
import type { Checkpoint } from '../../effects/effects.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import type { RecordedRun } from '../log/recorded-run.ts'
import type { SessionRecord } from '../log/session-records.ts'

/** What happened between two checkpoints of a run. */
export type Segment = {
  readonly entries: readonly RecordEntry[]
  /** The time of the last record before another process resumed the run. */
  readonly lastAt: number
  /** How long no process worked on it, and when the last process resumed it. */
  readonly downMs: number
  readonly resumedAt: number
  readonly answers: { readonly answers: Answers; readonly at: number; readonly ends?: true } | undefined
  /** The checkpoint at its end; undefined where the record ends. */
  readonly phase: Checkpoint['phase'] | undefined
  readonly diff: StateDiff | undefined
}

/** What happened in a run, from checkpoint to checkpoint, as far as it can be replayed. */
export function segmentsOf({ records, input: { at } }: RecordedRun): readonly Segment[] {
  const segments: Segment[] = []
  let open = new OpenSegment(at)
  for (const record of records) {
    if (record.type === 'stepClosing' || record.type === 'rewound') break // what follows does not repeat the step
    if (record.type !== 'state') {
      open.add(record)
      continue
    }
    if (record.phase === 'changed') break
    segments.push(open.close(record.phase, record.diff))
    if (record.phase === 'ended' || record.phase === 'inputBlocked') return segments
    open = new OpenSegment(record.at)
  }
  return [...segments, open.close()]
}

class OpenSegment {
  #entries: RecordEntry[] = []
  /** The time of the last record, and what it was when the run was last resumed. */
  #at: number
  #lastAt: number
  #downMs = 0
  #resumedAt = 0
  #answers: Segment['answers']

  constructor(at: number) {
    this.#at = at
    this.#lastAt = at
  }

  add(record: Exclude<SessionRecord, { type: 'state' | 'stepClosing' | 'rewound' }>): void {
    switch (record.type) {
      case 'session':
      case 'input':
      case 'answer':
      case 'sessionSuspended':
      case 'sessionResumed':
      case 'snapshot':
        return
      case 'answers':
        this.#answers = record
        return
      case 'runResumed':
        this.#lastAt = this.#at
        this.#downMs += Math.max(0, record.at - this.#at)
        this.#at = record.at
        this.#resumedAt = record.at
        // A process that resumes a cancelled run finds it cancelled at its first check.
        this.#entries = this.#entries.map((entry) => (entry.type === 'cancel' ? { ...entry, check: 0 } : entry))
        return
      default:
        this.#entries.push(record)
        if ('at' in record && record.type !== 'begin') this.#at = record.at
    }
  }

  close(phase?: Checkpoint['phase'], diff?: StateDiff): Segment {
    const [entries, lastAt, downMs, answers] = [this.#entries, this.#lastAt, this.#downMs, this.#answers]
    return { entries, lastAt, downMs, resumedAt: this.#resumedAt, answers, phase, diff }
  }
}

export const noSegment: Segment = new OpenSegment(0).close()
