import {
  fromLedgerRow,
  isLedgerRow,
  type LedgerEntry,
  type LedgerRow,
  type TimedLedgerEntry,
} from '../../state/ledger.ts'
import { List } from '../../state/list.ts'
import { triggerNames, type HookTrigger } from '../../hooks/triggers.ts'

/** The hook of an entry, or the loop itself. */
type Noted = {
  readonly name: string
  readonly mode: LedgerEntry['mode']
  readonly shadow?: boolean
  readonly bookkeeping?: boolean
  readonly definedAt?: () => string | undefined
}

/** The parts of a code share the 53 bits of a number: a million steps, a thousand hooks, 32,767 calls per step. */
const [HOOKS, TRIGGERS, CALLS] = [1024, 32, 32_768]
const LOOP = HOOKS - 1 // a stack holds fewer hooks than that

/** A chunk of 64 entries, about nine steps. Copying it is three times as fast as growing an array. */
const blank: readonly number[] = Array.from({ length: 128 }, () => 0.5)
const CHUNK = blank.length

const loop: Noted = { name: 'hookloop', mode: 'loop' }

/** The parts of a code. */
function parts(code: number): { call: number; trigger: number; hook: number; step: number } {
  const call = code % CALLS
  const place = (code - call) / CALLS
  const trigger = place % TRIGGERS
  const who = (place - trigger) / TRIGGERS
  const hook = who % HOOKS
  return { call, trigger, hook, step: (who - hook) / HOOKS }
}

/**
 * Writes the ledger. Most hooks decide nothing, and most entries are never read, so each is stored as two numbers, a code
 * and a duration: an object would cost more than the call of the hook. Decisions and changes are stored separately.
 */
export class LedgerWriter {
  /** Pairs of a code and a duration, in chunks, so that growing copies nothing. */
  readonly #chunks: number[][] = []
  #chunk: number[] = []
  #length = 0
  #opinions: Map<number, Partial<LedgerEntry>> | undefined
  readonly #earlier: List<TimedLedgerEntry | LedgerRow>
  readonly #late: TimedLedgerEntry[] = []
  readonly #hooks: readonly Noted[]
  readonly #callId: (step: number, index: number) => string | undefined
  /** Undefined until they are first read: the ledger of a long run that was resumed is only loaded if it is needed. */
  #read: List<LedgerEntry> | undefined
  #readTo = 0
  #readTimed: List<TimedLedgerEntry> | undefined
  #readTimedTo = 0

  constructor(options: {
    readonly hooks: readonly Noted[]
    readonly callId: (step: number, index: number) => string | undefined
    readonly earlier?: Iterable<TimedLedgerEntry | LedgerRow> | undefined
  }) {
    this.#hooks = options.hooks
    this.#callId = options.callId
    this.#earlier = List.from(options.earlier ?? [])
  }

  /** Adds an entry. Takes numbers only: it is called for every hook at every trigger. */
  note(step: number, trigger: number, hook: number | undefined, call: number | undefined, ms: number): void {
    const at = (2 * this.#length++) % CHUNK
    if (at === 0) this.#chunks.push((this.#chunk = blank.slice()))
    const chunk = this.#chunk
    const place = (step * HOOKS + (hook ?? LOOP)) * TRIGGERS + trigger
    chunk[at] = place * CALLS + (call === undefined ? 0 : Math.min(call + 1, CALLS - 1))
    chunk[at + 1] = ms
  }

  /** Adds the decision, changes or error of the last entry. */
  explainLast(what: Partial<LedgerEntry>): void {
    this.#opinions ??= new Map()
    this.#opinions.set(this.#length - 1, what)
  }

  /** Adds an entry of a subagent. */
  adopt(entry: LedgerEntry, ms: number): void {
    this.note(entry.step, triggerNames.indexOf(entry.trigger as HookTrigger), undefined, undefined, ms)
    this.explainLast(entry)
  }

  /** Adds an entry of an observer that failed in the background. Hooks never see it: its time differs from run to run. */
  noteLate(entry: TimedLedgerEntry): void {
    const definedAt = this.#hooks.find(({ name }) => name === entry.hook)?.definedAt?.()
    this.#late.push({ ...entry, ...(definedAt !== undefined && { definedAt }) })
  }

  /** All entries but those of shadow hooks. Reading them after each step costs only what is new. */
  get entries(): List<LedgerEntry> {
    let read =
      this.#read ?? List.from(this.#earlierInForce().map(({ durationMs: _ms, ...entry }) => Object.freeze(entry)))
    for (; this.#readTo < this.#length; this.#readTo++) {
      const entry = this.#entry(this.#readTo)
      if (isInForce(entry)) read = read.append(entry)
    }
    this.#read = read
    return read
  }

  /** The same with durations. For observers only: they differ from run to run, and no decision may depend on them. */
  get timedEntries(): List<TimedLedgerEntry> {
    let read = this.#readTimed ?? List.from(this.#earlierInForce())
    for (; this.#readTimedTo < this.#length; this.#readTimedTo++) {
      const entry = this.#timedEntry(this.#readTimedTo)
      if (isInForce(entry)) read = read.append(entry)
    }
    this.#readTimed = read
    return read
  }

  #earlierInForce(): readonly TimedLedgerEntry[] {
    return this.#earlierFrom(0).filter(isInForce)
  }

  #earlierFrom(index: number): readonly TimedLedgerEntry[] {
    return this.#earlier.slice(index).map((entry) => (isLedgerRow(entry) ? fromLedgerRow(entry) : entry))
  }

  /** All entries from an index on, including those of shadow hooks. */
  since(index: number): readonly TimedLedgerEntry[] {
    const from = Math.max(0, index - this.#earlier.length)
    const own = Array.from({ length: this.#length - from }, (_, i) => this.#timedEntry(from + i))
    return [...this.#earlierFrom(index), ...own]
  }

  /** The same as stored rows. */
  rowsSince(index: number): readonly (TimedLedgerEntry | LedgerRow)[] {
    const rows: (TimedLedgerEntry | LedgerRow)[] = this.#earlier.slice(index)
    for (let i = Math.max(0, index - this.#earlier.length); i < this.#length; i++) rows.push(this.#row(i))
    return rows
  }

  #row(i: number): TimedLedgerEntry | LedgerRow {
    if (this.#opinions?.has(i) === true) return this.#timedEntry(i)
    const { call, trigger, hook, step } = parts(this.#at(2 * i))
    const noted = this.#hooks[hook] ?? loop
    if (noted.shadow === true) return this.#timedEntry(i)
    const ms = Math.round(this.#at(2 * i + 1) * 1000) / 1000
    const callId = call === 0 ? undefined : this.#callId(step, call - 1)
    const [name, { name: by, mode }] = [triggerNames[trigger]!, noted]
    return callId === undefined ? [step, name, by, mode, ms] : [step, name, by, mode, ms, callId]
  }

  /** All entries with durations. */
  timed(): readonly TimedLedgerEntry[] {
    return Object.freeze([...this.since(0), ...this.#late])
  }

  last(): TimedLedgerEntry {
    return this.#timedEntry(this.#length - 1)
  }

  #at(position: number): number {
    return this.#chunks[Math.floor(position / CHUNK)]![position % CHUNK]!
  }

  #timedEntry(i: number): TimedLedgerEntry {
    const durationMs = Math.round(this.#at(2 * i + 1) * 1000) / 1000
    return Object.freeze({ ...this.#entry(i), durationMs })
  }

  #entry(i: number): LedgerEntry {
    const { call, trigger, hook, step } = parts(this.#at(2 * i))
    const noted = this.#hooks[hook] ?? loop
    const callId = call === 0 ? undefined : this.#callId(step, call - 1)
    const opinion = this.#opinions?.get(i)
    const definedAt = opinion === undefined || opinion.decision === 'skipped' ? undefined : noted.definedAt?.()
    return Object.freeze({
      step,
      trigger: triggerNames[trigger]!,
      hook: noted.name,
      mode: noted.mode,
      ...(callId !== undefined && { call: callId }),
      ...(definedAt !== undefined && { definedAt }),
      ...(opinion !== undefined && noted.bookkeeping === true && { bookkeeping: true as const }),
      ...opinion,
      ...(noted.shadow === true && { shadow: noted.shadow }),
    })
  }
}

function isInForce({ shadow }: LedgerEntry): boolean {
  return shadow !== true
}
