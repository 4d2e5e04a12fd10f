import type { Gauge, RunInfo } from '../../run.types.ts'
import { shortCount, duration, money } from './format.ts'

const UNITS: {
  readonly [limit in Gauge['limit']]: { readonly noun: string; readonly format: (value: number) => string }
} = {
  maxSteps: { noun: 'steps', format: shortCount },
  maxTokens: { noun: 'tokens', format: shortCount },
  maxCost: { noun: 'cost', format: money },
  maxTimeMs: { noun: 'time', format: duration },
  maxToolCalls: { noun: 'calls', format: shortCount },
}

/** What was used of each limit. */
export function Gauges({ info }: { readonly info: RunInfo }) {
  return (
    <ul class="gauges" aria-label="Limits">
      {info.gauges.map(({ limit, used, max }) => {
        const { noun, format } = UNITS[limit]
        const share = max <= 0 ? 1 : Math.min(1, used / max)
        return (
          <li key={limit} title={`${limit}: ${format(used)} of ${format(max)}`}>
            <span class="noun">{noun}</span>
            <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
              <rect width="100" height="4" class="track" />
              <rect width={100 * share} height="4" class={share >= 1 ? 'full' : share > 0.8 ? 'near' : 'used'} />
            </svg>
            <span class="amount">
              {format(used)} <span class="quiet">of {format(max)}</span>
            </span>
          </li>
        )
      })}
    </ul>
  )
}
