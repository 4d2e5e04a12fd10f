import type { Run } from '../../agent/run.ts'
import { noUsage, type Usage } from '../../state/usage.ts'
import { count, dollars, duration, tokens } from './amounts.ts'
import type { Colors } from './colors.ts'
import { oneLine } from './printable.ts'

export type SummaryOptions = {
  readonly elapsedMs: number
  readonly colors: Colors
  /** Whether the reader has seen these words already. */
  readonly hasTold?: (message: string) => boolean
}

/** How a run ended, by whom, and what it took: one line. */
export function summary(run: Run<unknown>, { elapsedMs, colors, hasTold = () => false }: SummaryOptions): string {
  const usage = usageOf(run)
  const amounts = [
    count(usage.steps, 'step'),
    ...(usage.toolCalls > 0 ? [count(usage.toolCalls, 'tool call')] : []),
    tokens(usage),
    ...(usage.costUsd > 0 ? [dollars(usage.costUsd)] : []),
    duration(elapsedMs),
  ]
  const { head, why, message } = endOf(run, colors)
  const words = message === undefined || hasTold(message) ? '' : `: ${oneLine(message)}`
  return `${head}${why}${words} ${colors.dim(`· ${amounts.join(' · ')}`)}`
}

/** What was spent. An input that was refused spent nothing. */
export function usageOf({ state }: Run<unknown>): Usage {
  return state.execution?.usage ?? noUsage
}

type End = { readonly head: string; readonly why: string; readonly message?: string }

function endOf(run: Run<unknown>, colors: Colors): End {
  switch (run.status) {
    case 'completed':
      return { head: colors.green('✓ completed'), why: '' }
    case 'stopped':
      return { head: colors.yellow('■ stopped'), why: ` (${run.reason}) by ${run.by}`, message: run.final.message }
    case 'failed':
      return { head: colors.red('✗ failed'), why: ` (${run.error.code})`, message: run.error.message }
    case 'cancelled':
      return { head: colors.yellow('■ cancelled'), why: '' }
    case 'suspended':
      return { head: colors.yellow('‖ suspended'), why: `, waiting for ${count(run.pending.length, 'answer')}` }
    default:
      return run satisfies never
  }
}
