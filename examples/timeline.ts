import { stripVTControlCharacters, styleText } from 'node:util'
import type { AgentEvent, FinalRecord, Json, Limits, TimedLedgerEntry, ToolCall, ToolExecution } from 'hookloop'

type Event<T extends AgentEvent['type']> = Extract<AgentEvent, { type: T }>
type Format = Parameters<typeof styleText>[0]

export type TimelineOptions = {
  readonly out?: NodeJS.WriteStream
  /** Shown next to what was spent. */
  readonly limits?: Limits
  /** Shown when an approval was answered. */
  readonly answeredBy?: string
}

/** The column of the text: after the time, the symbol and the label. */
const TEXT = 23

/** Prints events as rows with a time, a label and details. Hooks that decided nothing are left out. */
export class Timeline {
  readonly #out: NodeJS.WriteStream
  readonly #options: TimelineOptions
  readonly #width: number
  readonly #started = performance.now()
  readonly #running = new Map<string, number>()
  #column = 0 // column of the model's text; 0 while it does not write
  #lastCall: string | undefined
  #tokens = 0
  #steps = 0
  #calls = 0

  constructor(options: TimelineOptions = {}) {
    this.#options = options
    this.#out = options.out ?? process.stdout
    this.#width = Math.min(Math.max(this.#out.columns ?? 100, 60), 110)
  }

  show(event: AgentEvent): void {
    if (event.type !== 'text') this.#endText()
    switch (event.type) {
      case 'stepStarted':
        return this.#step(event)
      case 'text':
        return this.#text(event.delta)
      case 'retracted':
        return this.#row('dim', '↶ retracted', event.why)
      case 'responded':
        this.#tokens += event.usage.inputTokens + event.usage.outputTokens
        return
      case 'toolStarted':
        return this.#call(event.call)
      case 'toolProgress':
        return this.#row('dim', '… progress', words(event.update))
      case 'toolFinished':
        this.#calls++
        return this.#result(event)
      case 'hook':
        return this.#hook(event.entry)
      case 'asked': {
        const { toolCall, by, message } = event.approval
        this.#row('yellow', '? asked', callWords(toolCall))
        return this.#detail(`${by}: ${message}`)
      }
      case 'compacted':
        return this.#row('cyan', '≡ summary', `${event.before} messages replaced by ${event.after}`)
      case 'error':
        return this.#row('red', '! error', `${event.error.during}: ${event.error.message}`)
      case 'suspended':
        return this.#row('yellow', '‖ suspended', `${event.pending.length} pending approvals`)
      case 'finished':
        return this.#finished(event.record)
      case 'subagent':
        return this.#subagent(event)
      case 'inferenceFailed':
        return this.#row('red', '! model', event.error.message)
      case 'warning':
        return this.#row('yellow', '! warning', event.message)
      case 'input':
      case 'answered': // the ledger says it too
      case 'rewound':
      case 'started':
      case 'inferenceStarted':
      case 'reasoning':
      case 'toolCallDelta':
      case 'stepFinished': // its calls and votes were already shown
      case 'resumed':
        return
      default:
        return event satisfies never
    }
  }

  /** Events of subagents, with their names. */
  #subagent({ path, event }: Event<'subagent'>): void {
    const who = path.map(({ agent }) => agent).join(' › ')
    if (event.type === 'started') return this.#row('cyan', '┌ agent', who)
    if (event.type === 'toolStarted') return this.#row('cyan', '│ call', `${who}: ${callWords(event.call)}`)
    if (event.type === 'hook') return this.#hook(event.entry)
    if (event.type === 'finished') return this.#row('cyan', '└ agent', `${who} ${event.record.status}`)
  }

  #step({ step }: Event<'stepStarted'>): void {
    const { maxSteps } = this.#options.limits ?? {}
    this.#steps = step + 1
    const title = `step ${this.#steps}${maxSteps ? ` of ${maxSteps}` : ''} `
    const spent = this.#spent()
    const rule = '─'.repeat(Math.max(3, this.#width - 10 - title.length - spent.length - 1))
    this.#line('')
    this.#line(`${this.#time()}  ${this.#paint('bold', title)}${this.#paint('dim', `${rule} ${spent}`)}`)
  }

  #spent(): string {
    const { maxToolCalls, maxTokens } = this.#options.limits ?? {}
    return `${this.#calls}${outOf(maxToolCalls)} calls · ${amount(this.#tokens)}${outOf(maxTokens)} tokens`
  }

  /** The model's text as it arrives, wrapped at the width of the terminal. */
  #text(delta: string): void {
    for (const word of stripVTControlCharacters(delta).match(/\S+/g) ?? []) {
      if (this.#column === 0) {
        this.#out.write(this.#head('cyan', '» model'))
        this.#column = TEXT
      } else if (this.#column + 1 + word.length > this.#width) {
        this.#out.write(`\n${' '.repeat(TEXT)}`)
        this.#column = TEXT
      } else {
        this.#out.write(' ')
        this.#column++
      }
      this.#out.write(word)
      this.#column += word.length
    }
  }

  #endText(): void {
    if (this.#column > 0) this.#line('')
    this.#column = 0
  }

  #call(call: ToolCall): void {
    this.#running.set(call.id, performance.now())
    this.#row('blue', '▸ call', callWords(call))
    this.#lastCall = call.id
    this.#edit(call)
  }

  /** Shows the arguments of an edit as a diff. */
  #edit({ args }: ToolCall): void {
    const { find, replace } = args as { find?: Json; replace?: Json }
    if (typeof find !== 'string' || typeof replace !== 'string') return
    this.#detail(`- ${find}`, 'red')
    this.#detail(`+ ${replace}`, 'green')
  }

  #result({ call, execution }: Event<'toolFinished'>): void {
    if (execution.status === 'blocked') {
      this.#row('red', '⊘ blocked', callWords(call))
      this.#edit(call)
      return this.#detail(`${execution.by ?? 'hookloop'}: ${words(execution.output)}`, 'red')
    }
    const started = this.#running.get(call.id)
    const took = started === undefined ? '' : `${Math.round(performance.now() - started)} ms`
    const name = this.#lastCall === call.id ? '' : `${callWords(call)} → `
    const ok = succeeded(execution)
    const what = execution.withheld ? `withheld by ${execution.by ?? 'hookloop'}` : gist(execution.output)
    this.#row(ok ? 'green' : 'red', ok ? '✓ result' : '✗ result', `${name}${what}`, took)
  }

  #hook({
    shadow,
    hook,
    trigger,
    mode,
    call,
    decision = '',
    message = '',
    changes = [],
    error,
  }: TimedLedgerEntry): void {
    const who = `${hook} at ${trigger}`
    if (shadow === true)
      return decision === '' ? undefined : this.#row('dim', '◌ would', `${who}: ${decision}, ${message}`)
    if (error !== undefined) this.#row('red', '! failed', `${who}: ${error}`)
    for (const { path, after } of changes) {
      const value = after === undefined ? 'removed' : words(after)
      this.#row('magenta', '~ changed', `${who}: ${path} → ${value}`)
    }
    if (mode === 'loop') return this.#loop(decision, message)
    // A blocked call and an approval are shown with their call.
    if (decision === 'block' && call === undefined) return this.#row('red', '⊘ blocked', `${who}: ${message}`)
    if (decision.includes('forbidContinuation')) return this.#row('red', '■ stop', `${who}: ${message}`)
    if (decision.includes('requestContinuation')) return this.#row('magenta', '↻ continue', `${who}: ${message}`)
    if (decision.includes('allowStop')) return this.#row('dim', '○ may stop', `${who}: ${message}`)
    if (/retry|ignore|called|substituted/.test(decision)) this.#row('magenta', '↻ again', `${who}: ${decision}`)
  }

  /** Entries of the loop itself, such as the answer to an approval. */
  #loop(decision: string, message: string): void {
    const by = this.#options.answeredBy ?? message
    if (decision.startsWith('approved')) return this.#row('yellow', '✓ approved', by)
    if (decision === 'blocked' || decision === 'postponed') return this.#row('yellow', `✗ ${decision}`, by)
    this.#row('yellow', `✗ ${decision}`, message)
  }

  #finished({ status, by, message }: FinalRecord): void {
    this.#line('')
    this.#row(status === 'completed' ? 'green' : 'red', `● ${status}`, `${by}: ${message}`)
    const { maxSteps, maxTimeMs } = this.#options.limits ?? {}
    const time = `${this.#seconds()}${maxTimeMs ? `/${maxTimeMs / 1000}` : ''} s`
    this.#detail(`spent ${this.#steps}${outOf(maxSteps)} steps · ${this.#spent()} · ${time}`, 'dim')
  }

  // ── rows

  #row(format: Format, label: string, text: string, tail = ''): void {
    const room = this.#width - TEXT - (tail === '' ? 0 : tail.length + 2)
    const [first = '', ...more] = wrap(text, room)
    const end = tail === '' ? '' : this.#paint('dim', tail.padStart(this.#width - TEXT - first.length))
    this.#line(`${this.#head(format, label)}${format === 'dim' ? this.#paint('dim', first) : first}${end}`)
    for (const line of more) this.#line(`${' '.repeat(TEXT)}${format === 'dim' ? this.#paint('dim', line) : line}`)
    this.#lastCall = undefined
  }

  #detail(text: string, format: Format = 'yellow'): void {
    for (const line of wrap(text, this.#width - TEXT)) this.#line(' '.repeat(TEXT) + this.#paint(format, line))
  }

  #head(format: Format, label: string): string {
    return `${this.#time()}  ${this.#paint(format, label.padEnd(TEXT - 10))}`
  }

  #time(): string {
    return this.#paint('dim', `${this.#seconds()}s`.padStart(8))
  }

  #seconds(): string {
    return ((performance.now() - this.#started) / 1000).toFixed(2)
  }

  #paint(format: Format, text: string): string {
    return styleText(format, text, { stream: this.#out })
  }

  #line(text: string): void {
    this.#out.write(`${text}\n`)
  }
}

function callWords({ name, args }: ToolCall): string {
  const { find: _find, replace: _replace, ...rest } = args
  return [name, ...Object.values(rest).flat().map(words)].join(' ')
}

/** A short form of a result: the length of long texts, fields one after the other. */
function gist(output: Json): string {
  if (typeof output === 'string') {
    const lines = output.trimEnd().split('\n')
    return lines.length === 1 ? output : `${lines.length} lines`
  }
  if (typeof output !== 'object' || output === null || Array.isArray(output)) return words(output)
  const parts = Object.entries(output).map(([key, value]) => {
    if (key === 'exitCode') return `exit ${words(value)}`
    if (typeof value === 'number') return `${value} ${key}`
    const text = words(value)
    return text === '' ? '' : `${key}: ${text}`
  })
  return parts.filter((part) => part !== '').join(' · ')
}

/** A value in one line: the first line of a text, the items of a list. */
function words(value: Json): string {
  if (Array.isArray(value)) return value.map(words).join(', ')
  if (typeof value !== 'string') return JSON.stringify(value)
  const [first = '', ...more] = value.trimEnd().split('\n')
  return more.length === 0 ? first : `${first} … (${more.length + 1} lines)`
}

function succeeded({ status, output, withheld }: ToolExecution): boolean {
  const { exitCode = 0 } = (output ?? {}) as { exitCode?: Json }
  return status === 'ok' && exitCode === 0 && withheld !== true
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of stripVTControlCharacters(text).split(/\s+/)) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

function outOf(limit: number | null | undefined): string {
  return limit ? `/${amount(limit)}` : ''
}

function amount(n: number): string {
  return n.toLocaleString('en-US')
}
