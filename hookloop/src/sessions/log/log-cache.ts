import { readLines, type ReadLines } from './session-log.ts'
import { toRecord, type SessionRecord } from './session-records.ts'

type Log = {
  readonly lines: readonly string[]
  readonly characters: number
  readonly records: readonly SessionRecord[]
  readonly end: ReadLines['end']
}

/** So many characters of lines are known at most: what is made of them takes a few times as much memory. */
const MAX_CHARACTERS = 16_000_000
/** Who has not been asked for so long is asked no more. */
const FORGOTTEN_MS = 60_000

/**
 * The logs that were read last. A log only grows, and to read all of it at each message of a long conversation would take
 * longer with each: so what was read and found sound is known, and reading goes on from there. It is known by its lines, all
 * of them, so that one which was changed is read as a new one.
 */
export class LogCache {
  /** By their first line, which names the session. The latest is last. */
  readonly #logs = new Map<string, Log>()
  #characters = 0
  #forgetting: NodeJS.Timeout | undefined

  read(lines: readonly string[]): Pick<Log, 'records' | 'end'> {
    const [first] = lines
    if (first === undefined) return { records: [], end: readLines([]).end }
    const known = this.#knownOf(lines)
    const { records: fresh, end } = readLines(lines, known?.end)
    const before = known?.records ?? []
    const records = [...before, ...fresh.map((record, i) => toRecord(record, before.length + i))]
    const characters = lines.reduce((sum, { length }) => sum + length, 0)
    this.#remember(first, { lines: lines.slice(), characters, records, end })
    return { records, end }
  }

  #knownOf(lines: readonly string[]): Log | undefined {
    const known = this.#logs.get(lines[0]!)
    return known?.lines.every((line, i) => line === lines[i]) === true ? known : undefined
  }

  #remember(first: string, log: Log): void {
    this.#forget(first)
    this.#logs.set(first, log)
    this.#characters += log.characters
    for (const oldest of this.#logs.keys()) {
      if (this.#characters <= MAX_CHARACTERS) break
      this.#forget(oldest)
    }
    clearTimeout(this.#forgetting)
    this.#forgetting = setTimeout(() => this.#forgetAll(), FORGOTTEN_MS).unref()
  }

  #forget(first: string): void {
    const log = this.#logs.get(first)
    if (log === undefined) return
    this.#logs.delete(first)
    this.#characters -= log.characters
  }

  #forgetAll(): void {
    this.#logs.clear()
    this.#characters = 0
  }
}
