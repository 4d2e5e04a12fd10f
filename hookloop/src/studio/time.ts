import type { StoredCall, StoredRun } from '../sessions/index.ts'
import type { Matrix } from './matrix.ts'
import type { Span, TimeReport } from './run.types.ts'

const MAX_SPANS = 5000
const kinds: { readonly [kind in StoredCall['kind']]: Span['kind'] } = {
  inference: 'model',
  tool: 'tool',
  hook: 'hook',
  approval: 'wait',
  sleep: 'wait',
}

/** Where the time and the money of a run went. A subagent counts as the tool call that started it. */
export function timeReport(run: StoredRun, { rows }: Matrix, now: number): TimeReport {
  const { at, endedAt = now, ledger, models, waitedMs } = run
  const rowOf = new Map(rows.map(({ row }) => [placeOf(row.step, row.call, row.path?.length), row.index]))
  const calls = run.calls.flatMap((call) => spanOf(call, at, rowOf))
  const own = run.calls.filter(({ path }) => path === undefined)
  const spans = [...calls, ...pauses(run)]
  return {
    startedAt: at,
    endedAt,
    waitedMs,
    totals: {
      modelMs: sum(own.filter(({ kind }) => kind === 'inference').map(durationOf)),
      toolsMs: sum(own.filter(({ kind }) => kind === 'tool').map(durationOf)),
      // A hook around a call takes as long as the call.
      hooksMs: sum(ledger.map(({ trigger, durationMs }) => (trigger.startsWith('around') ? 0 : durationMs))),
    },
    spans: longest(spans),
    models,
  }
}

function spanOf(call: StoredCall, start: number, rowOf: ReadonlyMap<string, number>): readonly Span[] {
  const { kind, step, began, ended, hook, model, path } = call
  if (began === undefined || ended === undefined) return []
  const { name } = Object(call.input) as { readonly name?: unknown }
  return [
    {
      kind: hook === undefined ? kinds[kind] : 'hook',
      name: hook ?? (kind === 'tool' && typeof name === 'string' ? name : (model ?? kind)),
      step,
      startMs: began - start,
      ms: Math.max(0, ended - began),
      row: rowOf.get(placeOf(step, call.call, path?.length)) ?? null,
    },
  ]
}

/** The time from a suspension to the next resumption. */
function pauses({ events, at }: StoredRun): readonly Span[] {
  const spans: Span[] = []
  let since: number | undefined
  for (const event of events) {
    if (event.type === 'suspended') since = event.at
    const from = event.type === 'interrupted' ? event.at - event.downMs : event.type === 'resumed' ? since : undefined
    if (from === undefined) continue
    const name = event.type === 'interrupted' ? 'no process' : 'waited for an answer'
    spans.push({
      kind: 'wait',
      name,
      step: event.step,
      startMs: from - at,
      ms: Math.max(0, event.at - from),
      row: null,
    })
    since = undefined
  }
  return spans
}

function longest(spans: readonly Span[]): readonly Span[] {
  const shown = spans.length <= MAX_SPANS ? spans : spans.toSorted((a, b) => b.ms - a.ms).slice(0, MAX_SPANS)
  return shown.toSorted((a, b) => a.startMs - b.startMs)
}

function placeOf(step: number, call = '', depth = 0): string {
  return `${depth}/${step}/${call}`
}

function durationOf({ began, ended }: StoredCall): number {
  return began === undefined || ended === undefined ? 0 : Math.max(0, ended - began)
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
