import type { AgentEvent } from '../../state/event.ts'
import type { Json } from '../../state/json.ts'
import type { Approval, ToolCall } from '../../state/tool-call.ts'
import { addUsage, noUsage } from '../../state/usage.ts'
import { dollars, duration, tokens } from './amounts.ts'
import type { Colors } from './colors.ts'
import { hookWords, type Decision } from './hook-words.ts'
import { oneLine } from './printable.ts'
import type { Screen } from './screen.ts'

type Event<T extends AgentEvent['type']> = Extract<AgentEvent, { type: T }>
type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'blue' | 'dim'

const MAX_MESSAGE = 600

export type LiveViewOptions = {
  readonly now?: () => number
  /** Whether questions are asked on this screen, by somebody who waits for `reached`. */
  readonly asksHere?: boolean
  /** Whether answers are shown as they come; otherwise only the last one will be wanted. */
  readonly showsAnswers?: boolean
  /** What is shown of an answer that was not shown while it was written. */
  readonly shownAs?: ((text: string) => string) | undefined
}

/** A run as a person at a terminal sees it. */
export class LiveView {
  readonly #screen: Screen
  readonly #now: () => number
  readonly #startedAt: number
  readonly #running = new Map<string, string>()
  readonly #told = new Set<string>()
  readonly #asksHere: boolean
  /** Whether answers are shown as they come. */
  readonly showsAnswers: boolean
  readonly shownAs: (text: string) => string
  readonly #questions = new Map<string, PromiseWithResolvers<void>>()
  #spent = noUsage
  #activity = ''
  #isThinking = false
  #isCancelling = false
  /** Whether anything of the answer at hand was shown. */
  #isAnswering = false

  constructor(
    screen: Screen,
    {
      now = () => performance.now(),
      asksHere = false,
      showsAnswers = true,
      shownAs = (text) => text,
    }: LiveViewOptions = {},
  ) {
    this.#screen = screen
    this.#now = now
    this.#startedAt = now()
    this.#asksHere = asksHere
    this.showsAnswers = showsAnswers
    this.shownAs = shownAs
  }

  get elapsedMs(): number {
    return this.#now() - this.#startedAt
  }

  /** What the spinner says: how long, how much, and what is going on. */
  get status(): string {
    const { inputTokens, outputTokens, costUsd } = this.#spent
    return [
      `${(this.elapsedMs / 1000).toFixed(1)} s`,
      ...(inputTokens + outputTokens > 0 ? [tokens(this.#spent)] : []),
      ...(costUsd > 0 ? [dollars(costUsd)] : []),
      [...this.#running.values()].join(', ') || this.#activity || 'starting',
    ].join(' · ')
  }

  /** Says on the spinner that the end is near. What was shown until then stays: nothing will come instead. */
  cancelling(): void {
    this.#isCancelling = true
    this.#running.clear()
    this.#activity = 'cancelling; Ctrl-C again leaves at once'
  }

  /** Whether these words stand on the screen already. */
  hasTold(message: string): boolean {
    return this.#told.has(message)
  }

  /** Resolves when everything that came before a question is on the screen. */
  reached({ id }: Approval): Promise<void> {
    return this.#question(id).promise
  }

  show(event: AgentEvent): void {
    if (event.type !== 'reasoning') this.#isThinking = false
    switch (event.type) {
      case 'inferenceStarted':
        this.#activity = oneLine(event.hook === undefined ? event.model : `${event.hook} asks ${event.model}`, 60)
        return
      case 'text':
        return this.#answer(event.delta)
      case 'reasoning':
        return this.#think(event.delta)
      case 'toolCallDelta':
        this.#activity = `writing a call of ${oneLine(event.toolName, 40)}`
        return
      case 'retracted':
        return this.#retracted(event)
      case 'responded':
        return this.#responded(event)
      case 'inferenceFailed':
        return this.#failed(event)
      case 'warning':
        return this.#row('yellow', '!', oneLine(event.message, MAX_MESSAGE))
      case 'toolStarted':
        return this.#toolStarted(event)
      case 'toolProgress':
        return this.#toolProgress(event)
      case 'toolFinished':
        return this.#toolFinished(event)
      case 'hook':
        for (const decision of hookWords(event.entry)) this.#decision(decision)
        return
      case 'compacted':
        return this.#row('cyan', '≡', `${event.before} messages became ${event.after}: the rest is a summary now`)
      case 'asked':
        return this.#asked(event.approval)
      case 'error':
        return this.#error(event)
      case 'subagent':
        return this.#subagent(event)
      case 'started':
      case 'stepStarted':
      case 'stepFinished': // its calls and votes have been shown
      case 'counted':
      case 'resumed':
      case 'suspended': // how it ended is told with the run
      case 'finished':
        return
      default:
        return event satisfies never
    }
  }

  #answer(delta: string): void {
    if (!this.showsAnswers) return
    this.#isAnswering = true
    this.#screen.answer(delta)
  }

  #retracted({ why }: Event<'retracted'>): void {
    this.#screen.endAnswer()
    const isVoid = this.#isAnswering && !this.#isCancelling
    this.#isAnswering = false
    if (isVoid) this.#row('yellow', '↶', `what was shown of this answer is void: ${oneLine(why, MAX_MESSAGE)}`)
  }

  #responded({ text, usage }: Event<'responded'>): void {
    this.#spent = addUsage(this.#spent, usage)
    if (!this.#isAnswering) this.#answer(this.shownAs(text)) // it was not streamed
    this.#isAnswering = false
    this.#screen.endAnswer()
  }

  #think(delta: string): void {
    if (!this.#isThinking) this.#screen.aside('thinking: ')
    this.#isThinking = true
    this.#screen.aside(delta)
  }

  #failed({ attempt, model, error, hook }: Event<'inferenceFailed'>): void {
    const which = hook !== undefined ? `, asked by ${oneLine(hook, 40)}` : attempt > 1 ? `, attempt ${attempt}` : ''
    const isKnown = this.#told.has(error.message)
    const words = isKnown ? 'the same again' : withName(oneLine(error.message, MAX_MESSAGE), model)
    this.#told.add(error.message)
    this.#row('red', '!', `${error.code}${which}: ${words}`)
  }

  #toolStarted({ call }: Event<'toolStarted'>): void {
    const name = oneLine(call.name, 60)
    this.#running.set(call.id, name)
    this.#row('blue', '▸', callWords(call, this.#screen))
  }

  #toolProgress({ callId, update }: Event<'toolProgress'>): void {
    const name = this.#running.get(callId)?.split(': ')[0]
    if (name !== undefined) this.#running.set(callId, `${name}: ${oneLine(valueWords(update), 60)}`)
  }

  #toolFinished({ call, execution, durationMs }: Event<'toolFinished'>): void {
    this.#running.delete(call.id)
    const { status, output, by, withheld, interrupted } = execution
    const { dim, red } = this.#screen.colors
    // How long it ran in a process that died is not known either.
    const took = durationMs === undefined || interrupted === true ? '' : dim(` ${duration(durationMs)}`)
    const name = oneLine(call.name, 60)
    const room = this.#screen.width - name.length - 16
    const words = oneLine(valueWords(output), status === 'ok' ? room : MAX_MESSAGE)
    if (withheld === true)
      return this.#row('red', '⊘', `${name}${took} ${red(`withheld by ${by ?? 'a hook'}`)}: ${words}`)
    switch (status) {
      case 'ok':
        return this.#row('green', '✓', `${name}${took} ${dim(words)}`)
      case 'failed':
        return this.#row('red', '✗', `${name}${took} ${words}`)
      case 'outcomeUnknown':
        return this.#row('yellow', '?', `${name}${took} was cut off; whether it took effect is not known`)
      case 'blocked':
        this.#told.add(valueWords(output))
        return this.#row(
          'red',
          '⊘',
          `${callWords(call, this.#screen)} ${red(`blocked by ${by ?? 'a hook'}`)}: ${words}`,
        )
      default:
        return status satisfies never
    }
  }

  #decision({ glyph, color, text, message }: Decision): void {
    if (glyph === '!' && this.hasTold(message ?? '')) return // a hook that hands a failure on has not failed itself
    const words = message === undefined ? '' : `: ${oneLine(message, MAX_MESSAGE)}`
    if (message !== undefined) this.#told.add(message)
    this.#row(color, glyph, `${text}${words}`)
  }

  #asked(approval: Approval): void {
    if (this.#asksHere) return this.#question(approval.id).resolve()
    this.#row('yellow', '?', questionWords(approval, this.#screen))
  }

  /** Of what goes on in another agent: its calls, what was decided about them, and what it asks. */
  #subagent({ path, event }: Event<'subagent'>): void {
    const who = path.map(({ agent }) => oneLine(agent, 40)).join(' › ')
    switch (event.type) {
      case 'asked':
        return this.#asked(event.approval)
      case 'responded':
        this.#spent = addUsage(this.#spent, event.usage)
        return
      case 'toolStarted':
        return this.#row('blue', '▸', `${who}: ${callWords(event.call, this.#screen)}`)
      case 'hook':
        for (const decision of hookWords(event.entry)) this.#decision({ ...decision, text: `${who}: ${decision.text}` })
        return
      case 'inferenceFailed':
        return this.#row('red', '!', `${who}: ${event.error.code}: ${oneLine(event.error.message, MAX_MESSAGE)}`)
      default:
        return // what became of it is told with the call it works for
    }
  }

  #question(id: string): PromiseWithResolvers<void> {
    const question = this.#questions.get(id) ?? Promise.withResolvers<void>()
    this.#questions.set(id, question)
    return question
  }

  #error({ error }: Event<'error'>): void {
    if (this.#told.has(error.message)) return
    this.#told.add(error.message)
    this.#row('red', '!', `${error.code} at ${error.during}: ${oneLine(error.message, MAX_MESSAGE)}`)
  }

  #row(color: Color, glyph: string, text: string): void {
    const paint: Colors[Color] = this.#screen.colors[color]
    this.#screen.line(`${paint(glyph)} ${text}`)
  }
}

/** A question and who asks it, on one line. */
export function questionWords({ toolCall, message, by, path }: Approval, screen: Screen): string {
  const who = path === undefined ? '' : `, about ${path.map(({ agent }) => oneLine(agent, 40)).join(' › ')}`
  return `${callWords(toolCall, screen)} ${oneLine(message, MAX_MESSAGE)} (asked by ${oneLine(by, 100)}${who})`
}

/** A call with as much of its arguments as fits. */
function callWords({ name, args }: ToolCall, { width, colors }: Screen): string {
  const entries = Object.entries(args as { readonly [name: string]: Json })
  const words = entries.map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(', ')
  const shown = oneLine(words, Math.max(20, Math.floor(width * 0.6)))
  return `${colors.bold(oneLine(name, 60))}${shown === '' ? '' : ` ${shown}`}`
}

/** Most failures name the model they are about. */
function withName(message: string, model: string): string {
  return message.startsWith(model) ? message : `${oneLine(model, 60)}: ${message}`
}

function valueWords(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
