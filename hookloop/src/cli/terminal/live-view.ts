import type { EmittedEvent } from '../../core/state/event.ts'
import { textOfJson, type Json } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../../core/state/ledger.ts'
import type { Approval, ToolCall } from '../../core/state/tool-call.ts'
import { addUsage, noUsage } from '../../core/state/usage.ts'
import { dollars, duration, tokens } from './amounts.ts'
import type { Colors } from './colors.ts'
import { hookLines, hookName, warningLine, type Decision } from './hook-lines.ts'
import { oneLine } from './printable.ts'
import type { Screen } from './screen.ts'
import { wrap } from './wrap.ts'

type Event<T extends EmittedEvent['type']> = Extract<EmittedEvent, { type: T }>
type Color = 'red' | 'green' | 'yellow' | 'cyan' | 'blue' | 'dim'

const MAX_MESSAGE = 600

type LiveViewOptions = {
  readonly now: () => number
  /** Whether approvals are asked on this screen, by an approver that waits for `reached`. */
  readonly asksHere: boolean
  readonly verbose: boolean
  /** Warnings that are on the screen already. */
  readonly reported: readonly string[]
  /** Whether answers are shown while they arrive; otherwise only the last one is printed. */
  readonly showsAnswers: boolean
}

/** Shows the events of a run at a terminal. */
export class LiveView {
  readonly #screen: Screen
  readonly #options: LiveViewOptions
  readonly #startedAt: number
  readonly #running = new Map<string, string>()
  readonly #shown = new Set<string>()
  readonly #questions = new Map<string, PromiseWithResolvers<void>>()
  /** The hooks that blocked, withheld or asked about a call, by the id of the call. */
  readonly #judges = new Map<string, TimedLedgerEntry>()
  #spent = noUsage
  #activity = ''
  #isThinking = false
  #isCancelling = false
  #isAnswering = false

  constructor(screen: Screen, options: Partial<LiveViewOptions> = {}) {
    const defaults = {
      now: () => performance.now(),
      asksHere: false,
      verbose: false,
      reported: [],
      showsAnswers: true,
    }
    this.#screen = screen
    this.#options = { ...defaults, ...options }
    this.#startedAt = this.#options.now()
    for (const each of this.#options.reported) this.#shown.add(each)
  }

  get elapsedMs(): number {
    return this.#options.now() - this.#startedAt
  }

  /** The text of the spinner: time, usage and current activity. */
  get status(): string {
    const { inputTokens, outputTokens, costUsd } = this.#spent
    return [
      `${(this.elapsedMs / 1000).toFixed(1)} s`,
      ...(inputTokens + outputTokens > 0 ? [tokens(this.#spent)] : []),
      ...(costUsd > 0 ? [dollars(costUsd)] : []),
      [...this.#running.values()].join(', ') || this.#activity || 'starting',
    ].join(' · ')
  }

  /** Shows on the spinner that the run is being cancelled. The part of the answer that was shown stays. */
  cancelling(): void {
    this.#isCancelling = true
    this.#running.clear()
    this.#activity = 'cancelling; press Ctrl-C again to exit at once'
  }

  hasShown(message: string): boolean {
    return this.#shown.has(message)
  }

  /** Resolves when everything before the question is on the screen. */
  reached({ id }: Approval): Promise<void> {
    return this.#question(id).promise
  }

  show(event: EmittedEvent): void {
    if (event.type !== 'reasoning') this.#isThinking = false
    switch (event.type) {
      case 'inferenceStarted':
        this.#activity = oneLine(event.hook === undefined ? event.model : `${event.hook} calls ${event.model}`, 60)
        return
      case 'text':
        return this.#answer(event.delta)
      case 'reasoning':
        if (!this.#isThinking) this.#screen.aside('thinking: ')
        this.#isThinking = true
        return this.#screen.aside(event.delta)
      case 'toolCallDelta':
        this.#activity = `writing a call to ${oneLine(event.toolName, 40)}`
        return
      case 'retracted':
        return this.#retracted(event)
      case 'responded':
        return this.#responded(event)
      case 'inferenceFailed':
        return this.#failed(event)
      case 'warning':
        return this.#warning(event)
      case 'toolStarted':
        this.#running.set(event.call.id, oneLine(event.call.name, 60))
        return this.#row('blue', '▸', callText(event.call, this.#screen))
      case 'toolProgress':
        return this.#toolProgress(event)
      case 'toolFinished':
        return this.#toolFinished(event)
      case 'hook':
        return this.#hook(event.entry)
      case 'compacted':
        return this.#row('cyan', '≡', `summarized: ${event.before} messages became ${event.after}`)
      case 'asked':
        return this.#asked(event.approval)
      case 'error':
        return this.#error(event)
      case 'subagent':
        return this.#subagent(event)
      case 'input':
      case 'answered':
      case 'rewound':
      case 'started':
      case 'stepStarted':
      case 'stepFinished': // its calls and votes were shown
      case 'resumed':
      case 'suspended': // the summary shows how the run ended
      case 'finished':
        return
      default:
        return event satisfies never
    }
  }

  #answer(delta: string): void {
    if (!this.#options.showsAnswers) return
    this.#isAnswering = true
    this.#screen.answer(delta)
  }

  #retracted({ why }: Event<'retracted'>): void {
    this.#screen.endAnswer()
    const isShown = this.#isAnswering && !this.#isCancelling
    this.#isAnswering = false
    if (isShown) this.#row('yellow', '↶', `discarded the answer above: ${oneLine(why, MAX_MESSAGE)}`)
  }

  #responded({ text, usage }: Event<'responded'>): void {
    this.#spent = addUsage(this.#spent, usage)
    if (!this.#isAnswering) this.#answer(text) // it was not streamed
    this.#isAnswering = false
    this.#screen.endAnswer()
  }

  #failed({ attempt, model, error, hook }: Event<'inferenceFailed'>): void {
    const which = hook !== undefined ? `, called by ${oneLine(hook, 40)}` : attempt > 1 ? `, attempt ${attempt}` : ''
    const isKnown = this.hasShown(error.message)
    const text = isKnown ? 'same error' : withName(oneLine(error.message, MAX_MESSAGE), model)
    this.#shown.add(error.message)
    this.#row('red', '!', `${error.code}${which}: ${text}`)
  }

  #toolProgress({ callId, update }: Event<'toolProgress'>): void {
    const name = this.#running.get(callId)?.split(': ')[0]
    if (name !== undefined) this.#running.set(callId, `${name}: ${oneLine(textOfJson(update), 60)}`)
  }

  #toolFinished({ call, execution, durationMs }: Event<'toolFinished'>): void {
    this.#running.delete(call.id)
    const { status, output, by, withheld, interrupted } = execution
    const { dim, red } = this.#screen.colors
    // How long it ran in a process that died is not known either.
    const took = durationMs === undefined || interrupted === true ? '' : dim(` ${duration(durationMs)}`)
    const name = oneLine(call.name, 60)
    const width = this.#screen.width - name.length - 16
    const judge = this.#judges.get(call.id)
    const isBlocked = withheld === true || status === 'blocked'
    // The error of a guard was shown before.
    const reason = isBlocked && judge?.hook === by && judge?.error !== undefined ? 'it failed' : textOfJson(output)
    const text = oneLine(reason, status === 'ok' ? width : MAX_MESSAGE)
    const who = judge?.hook === by && judge !== undefined ? hookName(judge) : oneLine(by ?? 'a hook', 100)
    if (withheld === true) return this.#row('red', '⊘', `${name}${took} ${red(`withheld by ${who}`)}: ${text}`)
    switch (status) {
      case 'ok':
        return this.#row('green', '✓', `${name}${took} ${dim(text)}`)
      case 'failed':
        return this.#row('red', '✗', `${name}${took} ${text}`)
      case 'outcomeUnknown':
        return this.#row('yellow', '?', `${name}${took} was interrupted; its outcome is unknown`)
      case 'blocked':
        this.#shown.add(textOfJson(output))
        return this.#row('red', '⊘', `${callText(call, this.#screen)} ${red(`blocked by ${who}`)}: ${text}`)
      default:
        return status satisfies never
    }
  }

  #hook(entry: TimedLedgerEntry, who = ''): void {
    const isVerdict = /\b(block|ask)\b/.test(entry.decision ?? '')
    if (entry.call !== undefined && isVerdict) this.#judges.set(entry.call, entry)
    for (const decision of hookLines(entry, this.#options)) this.#decision(decision, who)
  }

  #warning(event: Event<'warning'>, who = ''): void {
    const shown = warningLine(event)
    if (this.hasShown(shown)) return
    this.#shown.add(event.message).add(shown)
    this.#row('yellow', '!', `${who}${oneLine(shown, MAX_MESSAGE)}`)
  }

  #decision({ glyph, color, text: what, message, once }: Decision, who: string): void {
    const text = oneLine(`${who}${what}`, MAX_MESSAGE)
    if (once !== undefined) {
      if (this.hasShown(`${who}${once}`)) return
      this.#shown.add(`${who}${once}`)
    }
    const reason = message === undefined ? '' : `: ${oneLine(message, MAX_MESSAGE)}`
    if (message !== undefined) this.#shown.add(message)
    this.#row(color, glyph, `${text}${reason}`)
  }

  #asked(approval: Approval): void {
    if (this.#options.asksHere) return this.#question(approval.id).resolve()
    const judge = this.#judges.get(approval.toolCall.id)
    const by = judge?.hook === approval.by ? hookName(judge) : approval.by
    this.#row('yellow', '?', approvalText({ ...approval, by }, this.#screen))
  }

  /** Of a subagent: its calls, decisions and approvals. */
  #subagent({ path, event }: Event<'subagent'>): void {
    const who = path.map(({ agent }) => oneLine(agent, 40)).join(' › ')
    switch (event.type) {
      case 'asked':
        return this.#asked(event.approval)
      case 'responded':
        this.#spent = addUsage(this.#spent, event.usage)
        return
      case 'toolStarted':
        return this.#row('blue', '▸', `${who}: ${callText(event.call, this.#screen)}`)
      case 'hook':
        return this.#hook(event.entry, `${who}: `)
      case 'warning':
        return this.#warning(event, `${who}: `)
      case 'inferenceFailed':
        return this.#row('red', '!', `${who}: ${event.error.code}: ${oneLine(event.error.message, MAX_MESSAGE)}`)
      default:
        return // the result is shown with the call of the subagent
    }
  }

  #question(id: string): PromiseWithResolvers<void> {
    const question = this.#questions.get(id) ?? Promise.withResolvers<void>()
    this.#questions.set(id, question)
    return question
  }

  #error({ error }: Event<'error'>): void {
    if (this.#shown.has(error.message)) return
    this.#shown.add(error.message)
    this.#row('red', '!', `${error.code} on ${error.during}: ${oneLine(error.message, MAX_MESSAGE)}`)
  }

  #row(color: Color, glyph: string, text: string): void {
    const paint: Colors[Color] = this.#screen.colors[color]
    const line = `${paint(glyph)} ${text}`
    const { columns } = this.#screen
    this.#screen.line(columns === undefined ? line : wrap(line, columns, 2))
  }
}

/** An approval on one line. */
export function approvalText({ toolCall, message, by, path }: Approval, screen: Screen): string {
  const who = path === undefined ? '' : ` for ${path.map(({ agent }) => oneLine(agent, 40)).join(' › ')}`
  return `${callText(toolCall, screen)} ${oneLine(message, MAX_MESSAGE)} (asked by ${oneLine(by, 100)}${who})`
}

/** A call with its arguments, cut to the width of the screen. */
function callText({ name, args }: ToolCall, { width, colors }: Screen): string {
  const entries = Object.entries(args as { readonly [name: string]: Json })
  const text = entries.map(([key, value]) => `${key}: ${JSON.stringify(value)}`).join(', ')
  const shown = oneLine(text, Math.max(20, Math.floor(width * 0.6)))
  return `${colors.bold(oneLine(name, 60))}${shown === '' ? '' : ` ${shown}`}`
}

/** Most errors name the model already. */
function withName(message: string, model: string): string {
  return message.startsWith(model) ? message : `${oneLine(model, 60)}: ${message}`
}
