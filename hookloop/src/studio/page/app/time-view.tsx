import type { RunInfo, Span, TimeReport } from '../../run.types.ts'
import { shortCount, count, duration, money } from './format.ts'
import { Gauges } from './gauges.tsx'
import { Loaded, Table, useLoaded } from './load.tsx'
import type { RunModel } from './run-model.ts'
import { safe, visible } from './text.tsx'
import { Virtual } from './virtual.tsx'

const KINDS = { model: 'model', tool: 'tools', hook: 'hooks', wait: 'waiting' } as const

/** While a run grows, its time is loaded again whenever it has become longer by this factor: a load takes as long as the run. */
const GROWTH = 1.1

/** Where the time and the money of a run went. */
export function TimeView(props: {
  readonly model: RunModel
  readonly info: RunInfo
  readonly onRow: (row: number) => void
}) {
  const { model, info, onRow } = props
  const grown = Math.floor(Math.log(model.total.value) / Math.log(GROWTH))
  const loaded = useLoaded(() => model.source.time(), [model, info.status, grown])
  const { usage } = info
  return (
    <Loaded of={loaded}>
      {(report) => (
        <div class="time-view">
          <div class="cards">
            <section>
              <h2>Limits</h2>
              {info.gauges.length === 0 ? <p class="quiet">This run has no limits.</p> : <Gauges info={info} />}
            </section>
            <section>
              <h2>Time</h2>
              <Shares report={report} />
            </section>
            <section>
              <h2>Tokens and money</h2>
              <Models report={report} />
              <p class="quiet">
                {`${shortCount(usage.cachedInputTokens)} input tokens read from the cache · ${shortCount(usage.reasoningTokens)} reasoning tokens · ${count(usage.toolCalls, 'tool call')}`}
              </p>
            </section>
          </div>
          <Waterfall report={report} onRow={onRow} />
        </div>
      )}
    </Loaded>
  )
}

function Shares({ report }: { readonly report: TimeReport }) {
  const { modelMs, toolsMs, hooksMs } = report.totals
  const shares = [
    ['model', modelMs],
    ['tool', toolsMs],
    ['hook', hooksMs],
    ['wait', report.waitedMs],
  ] as const
  const total = Math.max(1e-9, modelMs + toolsMs + hooksMs + report.waitedMs)
  let x = 0
  return (
    <>
      <svg class="shares" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        {shares.map(([kind, ms]) => {
          const width = (100 * ms) / total
          const at = x
          x += width
          return <rect key={kind} x={at} width={width} height="6" class={kind} />
        })}
      </svg>
      <ul class="key">
        {shares.map(([kind, ms]) => (
          <li key={kind}>
            <i class={`swatch ${kind}`} />
            {KINDS[kind]} <b>{duration(ms)}</b> <span class="quiet">{Math.round((100 * ms) / total)}%</span>
          </li>
        ))}
      </ul>
    </>
  )
}

function Models({ report }: { readonly report: TimeReport }) {
  if (report.models.length === 0) return <p class="quiet">No model was called.</p>
  return (
    <Table heads={['model', '#calls', '#input', '#output', '#cost']}>
      {report.models.map(({ model, calls, inputTokens, outputTokens, costUsd }) => (
        <tr key={model}>
          <td class="mono">{safe(model)}</td>
          <td class="number">{count(calls)}</td>
          <td class="number">{shortCount(inputTokens)}</td>
          <td class="number">{shortCount(outputTokens)}</td>
          <td class="number">{money(costUsd)}</td>
        </tr>
      ))}
    </Table>
  )
}

function Waterfall({ report, onRow }: { readonly report: TimeReport; readonly onRow: (row: number) => void }) {
  const { spans } = report
  const end = Math.max(
    report.endedAt - report.startedAt,
    ...spans.slice(-200).map(({ startMs, ms }) => startMs + ms),
    1,
  )
  return (
    <Virtual
      total={spans.length}
      rowHeight={22}
      attributes={{ role: 'grid', 'aria-label': 'Waterfall of the run', 'aria-rowcount': spans.length + 1 }}
      header={
        <div class="span head" role="row">
          <span role="columnheader">step</span>
          <span role="columnheader">what</span>
          <span role="columnheader" class="axis">
            {[0, 0.25, 0.5, 0.75].map((part) => (
              <i key={part}>{duration(part * end)}</i>
            ))}
          </span>
          <span role="columnheader" class="ms">
            {duration(end)}
          </span>
        </div>
      }
      render={(index) => <Bar span={spans[index]!} end={end} onRow={onRow} />}
    />
  )
}

function Bar({
  span,
  end,
  onRow,
}: {
  readonly span: Span
  readonly end: number
  readonly onRow: (row: number) => void
}) {
  const { kind, name, step, startMs, ms, row } = span
  const label = visible(`${KINDS[kind]}: ${name}, ${duration(ms)}`)
  return (
    <div class={`span ${kind}`} role="row">
      <span role="gridcell" class="step">
        {step + 1}
      </span>
      <span role="gridcell" class="what">
        {row === null ? (
          safe(name)
        ) : (
          <button type="button" class="plain" onClick={() => onRow(row)} aria-label={label}>
            {safe(name)}
          </button>
        )}
      </span>
      <span role="gridcell">
        <svg viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">
          <rect x={(1000 * startMs) / end} width={Math.max(2, (1000 * ms) / end)} height="10" class={kind} />
        </svg>
      </span>
      <span role="gridcell" class="ms">
        {duration(ms)}
      </span>
    </div>
  )
}
