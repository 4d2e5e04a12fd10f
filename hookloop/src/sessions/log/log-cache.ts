import { readLines, type ReadLines } from './session-log.ts'
import { toRecord, type SessionRecord } from './session-records.ts'

type Log = {
  readonly lines: readonly string[]
  readonly characters: number
  readonly records: readonly SessionRecord[]
  readonly end: ReadLines['end']
}

/** A parsed line takes a few times the memory of its text. */
const MAX_CHARACTERS = 16_000_000
const CLEAR_AFTER_MS = 60_000

/**
 * Caches the records of logs that were read recently, so that each message of a long conversation need not check all lines
 * again. A log only grows: if it starts with the cached lines, only the rest is read. A log that was changed in any other way
 * is read from its first line.
 */
export class LogCache {
  /** By their first line, which has the id of the session. The last one read is the last entry. */
  readonly #logs = new Map<string, Log>()
  #characters = 0
  #clearing: NodeJS.Timeout | undefined

  read(lines: readonly string[]): Pick<Log, 'records' | 'end'> {
    const [first] = lines
    if (first === undefined) return { records: [], end: readLines([]).end }
    const known = this.#find(lines)
    const { records: fresh, end } = readLines(lines, known?.end)
    const before = known?.records ?? []
    const records = [...before, ...fresh.map((record, i) => toRecord(record, before.length + i))]
    const characters = lines.reduce((sum, { length }) => sum + length, 0)
    this.#store(first, { lines: lines.slice(), characters, records, end })
    return { records, end }
  }

  #find(lines: readonly string[]): Log | undefined {
    const known = this.#logs.get(lines[0]!)
    return known?.lines.every((line, i) => line === lines[i]) === true ? known : undefined
  }

  #store(first: string, log: Log): void {
    this.#remove(first)
    this.#logs.set(first, log)
    this.#characters += log.characters
    for (const oldest of this.#logs.keys()) {
      if (this.#characters <= MAX_CHARACTERS) break
      this.#remove(oldest)
    }
    clearTimeout(this.#clearing)
    this.#clearing = setTimeout(() => this.#clear(), CLEAR_AFTER_MS).unref()
  }

  #remove(first: string): void {
    const log = this.#logs.get(first)
    if (log === undefined) return
    this.#logs.delete(first)
    this.#characters -= log.characters
  }

  #clear(): void {
    this.#logs.clear()
    this.#characters = 0
  }
}
