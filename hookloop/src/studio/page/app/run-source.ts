import type {
  EmbeddedRun,
  FindRequest,
  RowDetail,
  RowsPage,
  RunChange,
  RunExplanation,
  RunInfo,
  RunRef,
  TimeReport,
} from '../../run.types.ts'
import { call, type CallError, follow, stream } from './api.ts'

/** Where a run comes from: the studio, or the file that the page is in. */
export type RunSource = {
  readonly ref: RunRef
  run(): Promise<RunInfo>
  rows(from: number, count: number): Promise<RowsPage>
  row(index: number, signal: AbortSignal): Promise<RowDetail>
  find(request: Pick<FindRequest, 'from' | 'back' | 'what'>): Promise<number | null>
  time(): Promise<TimeReport>
  explanation(): Promise<RunExplanation>
  /** Calls back with what happens from a row on. Returns how to stop it. Missing where nothing happens any more. */
  follow?(
    from: () => number,
    on: { line(line: RunChange): void; state(state: 'open' | 'lost', error?: CallError): void },
  ): () => void
}

export function remoteRun(ref: RunRef): RunSource {
  return {
    ref,
    run: () => call('run', ref),
    rows: (from, count) => call('rows', { ...ref, from, count }),
    row: (row, signal) => call('row', { ...ref, row }, signal),
    find: async (request) => (await call('find', { ...ref, ...request })).row,
    time: () => call('time', ref),
    explanation: () => call('explanation', ref),
    follow: (from, on) => follow((signal) => stream('run', { ...ref, from: from() }, signal), on),
  }
}

export function embeddedRun({ run, rows, details, time, explanation }: EmbeddedRun): RunSource {
  const texts = new Map<number, string>()
  const textAt = (index: number): string => {
    const known = texts.get(index)
    if (known !== undefined) return known
    const text = JSON.stringify([rows[index], details[index]]).toLowerCase()
    texts.set(index, text)
    return text
  }
  return {
    ref: { session: run.session, run: run.index },
    run: async () => run,
    rows: async (from, count) => ({ rows: rows.slice(from, from + count), total: rows.length }),
    row: async (index) => details[index]!,
    find: async ({ from, back = false, what }) => {
      const step = back ? -1 : 1
      const wanted = what === 'decision' ? '' : JSON.stringify(what.text.toLowerCase()).slice(1, -1)
      for (let i = from + step; i >= 0 && i < rows.length; i += step)
        if (what === 'decision' ? rows[i]!.decision : textAt(i).includes(wanted)) return i
      return null
    },
    time: async () => time,
    explanation: async () => explanation,
  }
}
