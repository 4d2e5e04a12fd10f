import { explain } from '../../agent/explain/explain.ts'
import type { RunStream } from '../../agent/run-stream.ts'
import type { Run } from '../../agent/run.ts'
import type { AgentEvent } from '../../state/event.ts'
import type { Environment } from '../../models/providers.ts'
import { consoleTo } from '../terminal/console.ts'
import { exitCodeOf, exitCodes, type ExitCode, type Interruption } from '../exit-codes.ts'
import { hintFor } from '../terminal/hints.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText, resultLine } from '../terminal/json-lines.ts'
import { LiveView, questionWords } from '../terminal/live-view.ts'
import { nextSteps, type Way } from './next-steps.ts'
import type { Person } from './terminal-approver.ts'
import type { Place } from '../cli-context.ts'
import { printable } from '../terminal/printable.ts'
import { Screen, type Output } from '../terminal/screen.ts'
import { summary } from '../terminal/summary.ts'

/** How a run is to be shown. */
export type ShowFlags = {
  readonly stream: boolean
  readonly json?: boolean
  readonly quiet?: boolean
  readonly explain?: boolean
}

/** A run that is to be watched: how it begins, and where it is kept if it is. */
export type Watched = {
  readonly start: (how: { readonly signal: AbortSignal; readonly deltas: boolean }) => RunStream<AgentEvent, unknown>
  /** Who answers its questions here. */
  readonly person?: Person | undefined
  readonly way?: Way | undefined
  /** Whether it is said where it is kept. Questions that wait always are. */
  readonly saysWhere?: boolean
  /** What is shown on a screen of a text that is not shown while it is written. */
  readonly shownAs?: (text: string) => string
}

export type WatchedRun = {
  readonly ended: Run<unknown>
  readonly code: ExitCode
  readonly by: Interruption | undefined
}

/** Shows a run as it happens and tells how it ended. Ctrl-C cancels it. */
export async function watch(watched: Watched, flags: ShowFlags, place: Place): Promise<WatchedRun> {
  const { out } = place
  const isLive = flags.json !== true && flags.quiet !== true
  const screen: Screen = new Screen({ ...place, ...(isLive && { status: () => view.status }) })
  const view = new LiveView(screen, {
    asksHere: watched.person !== undefined,
    showsAnswers: out.isTTY === true,
    shownAs: watched.shownAs,
  })
  const interruption = interruptible(out, () => view.cancelling())
  const putBack = consoleTo((line) => screen.line(line))
  watched.person?.sitsAt({ screen, ...(flags.quiet !== true && { view }) })
  screen.startSpinner()
  try {
    const ended = await follow(watched, { flags, signal: interruption.signal, show: eventSink(flags, { out, view }) })
    screen.stopSpinner()
    const by = interruption.by()
    if (by !== 'EPIPE') tell(ended, { flags, watched, screen, view, place }) // else nobody listens any more
    await new Promise((resolve) => out.write('', resolve)) // whether somebody does is known when it is written
    return { ended, by, code: interruption.by() === 'EPIPE' ? exitCodes.readerGone : exitCodeOf(ended, by) }
  } finally {
    screen.stopSpinner()
    putBack()
    interruption.dispose()
  }
}

function eventSink(flags: ShowFlags, { out, view }: { out: Output; view: LiveView }): (event: AgentEvent) => void {
  if (flags.json === true) return (event) => void out.write(`${jsonText(event)}\n`)
  return flags.quiet === true ? () => undefined : (event) => view.show(event)
}

type Following = {
  readonly flags: ShowFlags
  readonly signal: AbortSignal
  readonly show: (event: AgentEvent) => void
}

async function follow(watched: Watched, { flags, signal, show }: Following): Promise<Run<unknown>> {
  const live = watched.start({ signal, deltas: flags.stream })
  for await (const event of live) show(event)
  return live.run
}

type Telling = {
  readonly flags: ShowFlags
  readonly watched: Watched
  readonly screen: Screen
  readonly view: LiveView
  readonly place: Place
}

/** What is left to say when it is over. */
function tell(ended: Run<unknown>, { flags, watched, screen, view, place }: Telling): void {
  const { way, saysWhere = true } = watched
  if (flags.json === true) place.out.write(`${jsonText(resultLine(ended, way?.session))}\n`)
  else {
    tellPerson(ended, flags, { screen, view, env: place.env })
    const waits = ended.status === 'suspended'
    if (way !== undefined && (waits || (saysWhere && flags.quiet !== true))) {
      for (const line of nextSteps(ended, way)) screen.line(screen.colors.dim(line))
    }
  }
  if (flags.explain === true) screen.line(printable(explain(ended)))
}

function tellPerson(
  ended: Run<unknown>,
  flags: ShowFlags,
  { screen, view, env }: { screen: Screen; view: LiveView; env: Environment },
): void {
  const wasLive = flags.quiet !== true
  if (!(wasLive && view.showsAnswers && isInText(ended))) {
    const answer = answerOf(ended)
    screen.answer(view.showsAnswers ? view.shownAs(answer) : answer) // what is read by a program is what it is
  }
  screen.endAnswer()
  if (flags.quiet === true && ended.status === 'completed') return
  if (ended.status === 'suspended' && !wasLive) {
    for (const question of ended.pending) screen.line(`${screen.colors.yellow('?')} ${questionWords(question, screen)}`)
  }
  const { elapsedMs } = view
  screen.line(summary(ended, { elapsedMs, colors: screen.colors, hasTold: (message) => view.hasTold(message) }))
  const hint = ended.status === 'failed' ? hintFor(ended.error, env) : undefined
  if (hint !== undefined) screen.line(hint)
}

/** The answer as text: of a typed one its JSON, whatever the model said beside it. */
function answerOf(ended: Run<unknown>): string {
  if (ended.status !== 'completed') return ended.text
  return typeof ended.output === 'string' ? ended.output : jsonText(ended.output, 2)
}

/** Whether who has seen the text has seen the answer. */
function isInText(ended: Run<unknown>): boolean {
  if (ended.status !== 'completed' || ended.output === ended.text) return true
  return typeof ended.output !== 'string' && /^\s*[[{]/.test(ended.text)
}
