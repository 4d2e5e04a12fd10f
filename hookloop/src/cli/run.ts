import { Console } from 'node:console'
import { Writable } from 'node:stream'
import type { Agent } from '../agent/build-agent.ts'
import { explain } from '../agent/explain.ts'
import type { Run } from '../agent/run.ts'
import { approval } from '../capabilities/approval.ts'
import type { AgentEvent } from '../data/event.ts'
import type { Message } from '../data/message.ts'
import type { Environment } from '../models/providers.ts'
import { agentFor, type AgentFlags } from './agent-for.ts'
import { askHere } from './ask.ts'
import { exitCodeOf, exitCodes, type ExitCode } from './exit-codes.ts'
import { hintFor } from './hints.ts'
import { readInput, type Stdin } from './input.ts'
import { interruptible } from './interruption.ts'
import { jsonText, resultLine } from './json-lines.ts'
import { LiveView, questionWords } from './live-view.ts'
import { printable } from './printable.ts'
import { Screen, type Output } from './screen.ts'
import { summary } from './summary.ts'

export type RunFlags = AgentFlags & {
  readonly file?: readonly string[]
  readonly stream: boolean
  readonly json?: boolean
  readonly quiet?: boolean
  readonly explain?: boolean
}

/** What the command stands in: its streams, its variables, and how it was called. */
export type Place = {
  readonly stdin: Stdin
  readonly out: Writable & Output
  readonly err: Writable & Output
  readonly env: Environment
  readonly command: string
}

/** `hookloop run`: one run of one agent, seen as it happens. */
export async function run(words: readonly string[], flags: RunFlags, place: Place): Promise<ExitCode> {
  const { stdin, out, err, env } = place
  const isLive = flags.json !== true && flags.quiet !== true
  const screen: Screen = new Screen({ out, err, env, ...(isLive && { status: () => view.status }) })
  if (flags.agent !== undefined) globalThis.console = consoleOn(screen)
  const input = await readInput(words, { ...place, files: flags.file ?? [] })
  const described = await agentFor(flags, place)
  const hasPerson = flags.json !== true && stdin.isTTY === true && err.isTTY === true
  const asksHere = hasPerson && described.describe().approval === 'deny' // else it knows whom to ask
  const view = new LiveView(screen, { asksHere, showsAnswers: out.isTTY === true })
  const agent = asksHere ? asking(described, { screen, stdin, view, flags }) : described
  const interruption = interruptible(out, () => view.cancelling())
  const show = eventSink(flags, { out, view })
  screen.startSpinner()
  try {
    const ended = await follow(agent, input, { stream: flags.stream, signal: interruption.signal, show })
    screen.stopSpinner()
    const by = interruption.by()
    if (by !== 'EPIPE') tell(ended, flags, { ...place, screen, view }) // else nobody listens any more
    await new Promise((resolve) => out.write('', resolve)) // whether somebody does is known when it is written
    return interruption.by() === 'EPIPE' ? exitCodes.readerGone : exitCodeOf(ended, by)
  } finally {
    screen.stopSpinner()
    interruption.dispose()
  }
}

/** Lets a person at the terminal answer, once everything before the question is on the screen. */
function asking(
  agent: Agent<unknown>,
  { screen, stdin, view, flags }: { screen: Screen; stdin: Stdin; view: LiveView; flags: RunFlags },
): Agent<unknown> {
  return agent.with(
    approval(async (question, signal) => {
      if (flags.quiet !== true) await view.reached(question)
      return askHere(question, { screen, stdin, signal })
    }),
  )
}

function eventSink(flags: RunFlags, { out, view }: { out: Output; view: LiveView }): (event: AgentEvent) => void {
  if (flags.json === true) return (event) => void out.write(`${jsonText(event)}\n`)
  return flags.quiet === true ? () => undefined : (event) => view.show(event)
}

type Following = {
  readonly stream: boolean
  readonly signal: AbortSignal
  readonly show: (event: AgentEvent) => void
}

async function follow(
  agent: Agent<unknown>,
  input: Message,
  { stream, signal, show }: Following,
): Promise<Run<unknown>> {
  const live = agent.stream(input, { signal, deltas: stream })
  for await (const event of live) show(event)
  return live.run
}

/** What is left to say when it is over. */
function tell(ended: Run<unknown>, flags: RunFlags, at: Place & { screen: Screen; view: LiveView }): void {
  const { screen, view, out, env } = at
  if (flags.json === true) out.write(`${jsonText(resultLine(ended))}\n`)
  else tellPerson(ended, flags, { screen, view, env })
  if (flags.explain === true) screen.line(printable(explain(ended)))
}

function tellPerson(
  ended: Run<unknown>,
  flags: RunFlags,
  { screen, view, env }: { screen: Screen; view: LiveView; env: Environment },
): void {
  const wasLive = flags.quiet !== true
  if (!(wasLive && view.showsAnswers && isInText(ended))) screen.answer(answerOf(ended))
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

/** What an agent file and its tools log is not the answer. */
function consoleOn(screen: Screen): Console {
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      screen.line(printable(text).replace(/\n$/, ''))
      done()
    },
  })
  return new Console(stream)
}
