import { explanationText } from '../../core/explain/explain.ts'
import type { RunStream } from '../../core/agent/run-stream.ts'
import type { Run } from '../../core/agent/run.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { CliContext } from '../cli-context.ts'
import { exitCodes, runExitCode, type ExitCode } from '../exit-codes.ts'
import { hintFor } from '../terminal/hints.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText } from '../terminal/json.ts'
import { approvalText, LiveView } from '../terminal/live-view.ts'
import { printable } from '../terminal/printable.ts'
import { redirectConsole } from '../terminal/redirect-console.ts'
import { Screen } from '../terminal/screen.ts'
import { summary, usageOf } from '../terminal/summary.ts'
import { wrapExplanation } from '../terminal/wrap.ts'
import type { TerminalApprover } from './ask-approval.ts'
import { explainRun } from './explain-run.ts'
import { nextSteps, type SessionRef } from './next-steps.ts'

export type ShowFlags = {
  readonly stream: boolean
  readonly json?: boolean
  readonly quiet?: boolean
  readonly explain?: boolean
  readonly verbose?: boolean
}

export type WatchOptions = {
  readonly start: (live: { readonly signal: AbortSignal; readonly deltas: boolean }) => RunStream<AgentEvent, unknown>
  readonly approver: TerminalApprover | undefined
  /** The stored session. */
  readonly ref?: SessionRef | undefined
  /** Whether to print how to continue it. How to answer a pending approval is always printed. */
  readonly showsRef?: boolean
  /** Warnings that were printed before the run. */
  readonly reported: readonly string[]
}

export type WatchedRun = { readonly run: Run<unknown>; readonly code: ExitCode }

/** Shows a run while it is in progress, then how it ended. Ctrl-C cancels it. */
export async function watchRun(options: WatchOptions, flags: ShowFlags, cli: CliContext): Promise<WatchedRun> {
  const { out } = cli
  const isLive = flags.json !== true && flags.quiet !== true
  const screen: Screen = new Screen({ ...cli, ...(isLive && { status: () => view.status }) })
  const view = new LiveView(screen, {
    asksHere: options.approver !== undefined,
    verbose: flags.verbose === true,
    reported: options.reported,
    showsAnswers: out.isTTY === true,
  })
  const interruption = interruptible(out, () => view.cancelling())
  const restoreConsole = redirectConsole((line) => screen.line(line))
  options.approver?.attach({ screen, ...(flags.quiet !== true && { view }) })
  screen.startSpinner()
  try {
    const live = options.start({ signal: interruption.signal, deltas: flags.stream })
    for await (const event of live) {
      if (flags.json === true) out.write(`${jsonText(event)}\n`)
      else if (isLive) view.show(event)
    }
    const run = await live.run
    screen.stopSpinner()
    const by = interruption.by()
    if (by !== 'EPIPE') showEnd(run, { flags, options, screen, view, cli })
    await new Promise((resolve) => out.write('', resolve)) // a closed pipe is noticed when it is written to
    return { run, code: interruption.by() === 'EPIPE' ? exitCodes.pipeClosed : runExitCode(run, by) }
  } finally {
    screen.stopSpinner()
    restoreConsole()
    interruption.dispose()
  }
}

type Showing = {
  readonly flags: ShowFlags
  readonly options: WatchOptions
  readonly screen: Screen
  readonly view: LiveView
  readonly cli: CliContext
}

function showEnd(run: Run<unknown>, { flags, options, screen, view, cli }: Showing): void {
  const { ref, showsRef = false } = options
  if (flags.json === true) cli.out.write(`${jsonText(resultOf(run, ref?.session))}\n`)
  else {
    const isQuiet = flags.quiet === true
    const showsAnswers = cli.out.isTTY === true
    if (isQuiet || !showsAnswers || !isAnswerInText(run)) {
      screen.answer(answerOf(run))
    }
    screen.endAnswer()
    if (!isQuiet || run.status !== 'completed') showStatus(run, { flags, screen, view, cli })
    if (ref !== undefined && (run.status === 'suspended' || (showsRef && !isQuiet))) {
      for (const line of nextSteps(run, ref)) screen.line(screen.colors.dim(line))
    }
  }
  if (flags.explain === true) {
    screen.line(
      wrapExplanation(
        printable(explanationText(explainRun(run, ref), { verbose: flags.verbose === true })),
        screen.columns,
      ),
    )
  }
}

function showStatus(run: Run<unknown>, { flags, screen, view, cli }: Omit<Showing, 'options'>): void {
  const { colors } = screen
  if (flags.quiet === true && run.status === 'suspended') {
    for (const pending of run.pending) screen.line(`${colors.yellow('?')} ${approvalText(pending, screen)}`)
  }
  screen.line(summary(run, { elapsedMs: view.elapsedMs, colors, hasShown: (message) => view.hasShown(message) }))
  const hint = run.status === 'failed' ? hintFor(run.error, cli.env) : undefined
  if (hint !== undefined) screen.line(hint)
}

/** The answer as text. A typed answer is printed as JSON, whatever text the model wrote. */
function answerOf(run: Run<unknown>): string {
  if (run.status !== 'completed') return run.text
  return typeof run.output === 'string' ? run.output : jsonText(run.output, 2)
}

function isAnswerInText(run: Run<unknown>): boolean {
  if (run.status !== 'completed' || run.output === run.text) return true
  return typeof run.output !== 'string' && /^\s*[[{]/.test(run.text)
}

/** The last line of `--json`. */
function resultOf(run: Run<unknown>, session?: string): object {
  const { status, text } = run
  const { warnings } = run
  const base = {
    type: 'result',
    status,
    text,
    usage: usageOf(run),
    warnings,
    ...(session !== undefined && { session }),
  }
  switch (run.status) {
    case 'completed':
      return run.output === run.text ? base : { ...base, output: JSON.parse(jsonText(run.output)) as unknown }
    case 'stopped':
      return { ...base, reason: run.reason, by: run.by, message: run.final.message }
    case 'failed':
      return { ...base, reason: run.final.reason, error: { code: run.error.code, message: run.error.message } }
    case 'cancelled':
      return { ...base, reason: run.final.reason }
    case 'suspended':
      return { ...base, pending: run.pending }
    default:
      return run satisfies never
  }
}
