import type { Run } from '../../core/agent/run.ts'
import { noUsage, type Usage } from '../../core/state/usage.ts'
import { count, dollars, duration, tokens } from './amounts.ts'
import type { Colors } from './colors.ts'
import { hookName } from './hook-lines.ts'
import { oneLine } from './printable.ts'

type SummaryOptions = {
  readonly elapsedMs: number
  readonly colors: Colors
  readonly hasShown?: (message: string) => boolean
}

/** One line: how a run ended, who decided that, and what it used. */
export function summary(run: Run<unknown>, { elapsedMs, colors, hasShown = () => false }: SummaryOptions): string {
  const usage = usageOf(run)
  const amounts = [
    count(usage.steps, 'step'),
    ...(usage.toolCalls > 0 ? [count(usage.toolCalls, 'tool call')] : []),
    tokens(usage),
    ...(usage.costUsd > 0 ? [dollars(usage.costUsd)] : []),
    duration(elapsedMs),
    ...(run.warnings.length > 0 ? [count(run.warnings.length, 'warning')] : []),
  ]
  const { head, why, message } = endOf(run, colors)
  const text = message === undefined || hasShown(message) ? '' : `: ${oneLine(message)}`
  return `${head}${why}${text} ${colors.dim(`· ${amounts.join(' · ')}`)}`
}

/** The usage of a run. A blocked input used nothing. */
export function usageOf({ state }: Run<unknown>): Usage {
  return state.execution?.usage ?? noUsage
}

type End = { readonly head: string; readonly why: string; readonly message?: string }

/** The hook that stopped the run, and where it is defined. */
function whoStopped({ ledger, by }: Extract<Run<unknown>, { status: 'stopped' }>): string {
  const entry = ledger.findLast(({ hook, path, definedAt }) => hook === by && path === undefined && definedAt)
  return entry === undefined ? oneLine(by) : hookName(entry)
}

function endOf(run: Run<unknown>, colors: Colors): End {
  switch (run.status) {
    case 'completed':
      return { head: colors.green('✓ completed'), why: '' }
    case 'stopped':
      return {
        head: colors.yellow('■ stopped'),
        why: ` (${run.reason}) by ${whoStopped(run)}`,
        message: run.final.message,
      }
    case 'failed':
      return { head: colors.red('✗ failed'), why: ` (${run.error.code})`, message: run.error.message }
    case 'cancelled':
      return { head: colors.yellow('■ cancelled'), why: '' }
    case 'suspended':
      return run.pending.length === 0
        ? { head: colors.yellow('‖ paused'), why: '' }
        : { head: colors.yellow('‖ suspended'), why: `, waiting for ${count(run.pending.length, 'approval')}` }
    default:
      return run satisfies never
  }
}
