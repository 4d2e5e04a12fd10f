import type { LedgerEntry, LedgerRow, TimedLedgerEntry } from '../../state/ledger.ts'
import { List } from '../../state/list.ts'
import { triggerNames, type HookTrigger } from '../../hooks/triggers.ts'

/** Who an entry is about. Hooks know their index in the stack; the loop itself has none. */
type Noted = { readonly name: string; readonly mode: LedgerEntry['mode']; readonly shadow?: boolean }

/** Room for the parts of a code in the 53 bits of a number: a million steps, a thousand hooks, 32,767 calls a step. */
const [HOOKS, TRIGGERS, CALLS] = [1024, 32, 32_768]
const LOOP = HOOKS - 1 // a stack holds fewer hooks than that

/** Room for 64 firings, some nine steps. Copied and written over, it has its size at once: growing would cost thrice as much. */
const blank: readonly number[] = Array.from({ length: 128 }, () => 0.5)
const CHUNK = blank.length

const loop: Noted = { name: 'hookloop', mode: 'loop' }

/** What a code was made of. */
function parts(code: number): { call: number; trigger: number; hook: number; step: number } {
  const call = code % CALLS
  const place = (code - call) / CALLS
  const trigger = place % TRIGGERS
  const who = (place - trigger) / TRIGGERS
  const hook = who % HOOKS
  return { call, trigger, hook, step: (who - hook) / HOOKS }
}

/**
 * The ledger while it is written. Most firings have no opinion and nobody reads them before the run ends, so each is
 * kept as two numbers, what and how long: calling a hook costs less than an object that tells of it would. What a hook
 * did decide or change is kept beside them.
 */
export class LedgerWriter {
  /** Pairs of a code and a duration, in chunks, so that growing copies nothing. */
  readonly #chunks: number[][] = []
  #length = 0
  #opinions: Map<number, Partial<LedgerEntry>> | undefined
  readonly #earlier: readonly TimedLedgerEntry[]
  readonly #late: TimedLedgerEntry[] = []
  readonly #hooks: readonly Noted[]
  readonly #callId: (step: number, index: number) => string | undefined
  #read: List<LedgerEntry>
  #readTo = 0
  #readTimed: List<TimedLedgerEntry>
  #readTimedTo = 0

  constructor(options: {
    readonly hooks: readonly Noted[]
    readonly callId: (step: number, index: number) => string | undefined
    readonly earlier?: readonly TimedLedgerEntry[] | undefined
  }) {
    this.#hooks = options.hooks
    this.#callId = options.callId
    this.#earlier = options.earlier ?? []
    this.#readTimed = List.from(this.#earlier.filter(isInForce))
    this.#read = List.from(this.#readTimed.map(({ durationMs: _ms, ...entry }) => Object.freeze(entry)))
  }

  /** Everything as numbers: this is called for every hook at every trigger. */
  note(step: number, trigger: number, hook: number | undefined, call: number | undefined, ms: number): void {
    const at = (2 * this.#length++) % CHUNK
    if (at === 0) this.#chunks.push(blank.slice())
    const chunk = this.#chunks.at(-1)!
    const place = (step * HOOKS + (hook ?? LOOP)) * TRIGGERS + trigger
    chunk[at] = place * CALLS + (call === undefined ? 0 : Math.min(call + 1, CALLS - 1))
    chunk[at + 1] = ms
  }

  /** Adds what the last noted firing decided, changed or failed with. */
  explainLast(what: Partial<LedgerEntry>): void {
    this.#opinions ??= new Map()
    this.#opinions.set(this.#length - 1, what)
  }

  /** Takes over an entry of a subagent, as it is. */
  adopt(entry: LedgerEntry, ms: number): void {
    this.note(entry.step, triggerNames.indexOf(entry.trigger as HookTrigger), undefined, undefined, ms)
    this.explainLast(entry)
  }

  /** What came up after the loop had gone on. Hooks never see it: when it comes is a matter of chance. */
  noteLate(entry: TimedLedgerEntry): void {
    this.#late.push(entry)
  }

  /** The entries up to now, without those of shadows. Reading it after each step costs only what is new. */
  get entries(): List<LedgerEntry> {
    for (; this.#readTo < this.#length; this.#readTo++) {
      const entry = this.#entry(this.#readTo)
      if (isInForce(entry)) this.#read = this.#read.append(entry)
    }
    return this.#read
  }

  /** The same with the time each took. For observers alone: it differs from run to run, and nothing may depend on it. */
  get timedEntries(): List<TimedLedgerEntry> {
    for (; this.#readTimedTo < this.#length; this.#readTimedTo++) {
      const entry = this.#timedEntry(this.#readTimedTo)
      if (isInForce(entry)) this.#readTimed = this.#readTimed.append(entry)
    }
    return this.#readTimed
  }

  /** Everything from a certain entry on, as it is kept: also what shadows would have done. */
  since(index: number): readonly TimedLedgerEntry[] {
    const from = Math.max(0, index - this.#earlier.length)
    const own = Array.from({ length: this.#length - from }, (_, i) => this.#timedEntry(from + i))
    return [...this.#earlier.slice(index), ...own]
  }

  /** The same as it is written down. */
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
    const row = [step, triggerNames[trigger]!, noted.name, noted.mode, ms] as const
    return callId === undefined ? row : [...row, callId]
  }

  /** All entries with the time they took. */
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
    return Object.freeze({ ...this.#entry(i), durationMs: Math.round(this.#at(2 * i + 1) * 1000) / 1000 })
  }

  #entry(i: number): LedgerEntry {
    const { call, trigger, hook, step } = parts(this.#at(2 * i))
    const { name, mode, shadow } = this.#hooks[hook] ?? loop
    const callId = call === 0 ? undefined : this.#callId(step, call - 1)
    return Object.freeze({
      step,
      trigger: triggerNames[trigger]!,
      hook: name,
      mode,
      ...(callId !== undefined && { call: callId }),
      ...this.#opinions?.get(i),
      ...(shadow === true && { shadow }),
    })
  }
}

function isInForce({ shadow }: LedgerEntry): boolean {
  return shadow !== true
}
