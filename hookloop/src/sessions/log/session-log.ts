import { hashText, isJsonObject, parsedJson, type JsonObject } from '../../state/json.ts'
import { AgentError, messageOf, clause } from '../../errors.ts'

export const SUM_LENGTH = 16
/** What precedes and follows the checksum of a line. */
const [BEFORE_SUM, AFTER_SUM] = [',"sum":"', '"}']
const END_LENGTH = BEFORE_SUM.length + SUM_LENGTH + AFTER_SUM.length

/** The checksum before the first line. */
export const NO_SUM = '0'.repeat(SUM_LENGTH)

/** The number of a line and its checksum. */
export type LineEnd = { readonly seq: number; readonly sum: string }

/** Where the first line follows. */
export const noLine: LineEnd = Object.freeze({ seq: -1, sum: NO_SUM })

/**
 * Encodes records as lines of JSON. Each line has its number, and a checksum of itself and the checksum before it. So a line
 * that was edited, moved, removed or inserted is detected. A log without its last lines is valid, as after a crash. The
 * checksum detects damage, not an attacker who computes it.
 */
export class LineEncoder {
  #seq: number
  #sum: string

  constructor(after: LineEnd = noLine) {
    this.#seq = after.seq
    this.#sum = after.sum
  }

  /** The number and the checksum of the last line. */
  get end(): LineEnd {
    return { seq: this.#seq, sum: this.#sum }
  }

  encode(record: JsonObject): string {
    const rest = JSON.stringify(record).slice(1)
    const chained = `${this.#sum}{"seq":${++this.#seq}${rest === '}' ? '' : ','}${rest}`
    this.#sum = sumOf(chained)
    return `${chained.slice(SUM_LENGTH, -1)}${BEFORE_SUM}${this.#sum}${AFTER_SUM}` // one string for both, because copying a line costs as much as its checksum
  }
}

/** The records of lines, and where the next line continues. */
export type ReadLines = {
  readonly records: readonly JsonObject[]
  readonly end: LineEnd
}

/** Decodes lines that follow the line `after`. Throws SESSION_CORRUPT with the number of the invalid line. */
export function readLines(lines: readonly string[], after: LineEnd = noLine): ReadLines {
  let { sum } = after
  const records = lines.map((line, i) => {
    const seq = after.seq + 1 + i
    const chained = `${sum}${line.slice(0, -END_LENGTH)}}`
    sum = sumOf(chained)
    if (!line.endsWith(`${BEFORE_SUM}${sum}${AFTER_SUM}`))
      throw corrupt(seq, 'its checksum is wrong: it was changed, or a line before it was removed')
    const record = parse(chained.slice(SUM_LENGTH), seq) // a part of the text whose checksum was made: it is not copied
    if (record['seq'] !== seq) throw corrupt(seq, 'it has the number of another line')
    return record
  })
  return { records, end: { seq: after.seq + lines.length, sum } }
}

function parse(body: string, seq: number): JsonObject {
  let value: unknown
  try {
    value = parsedJson(/__proto__|\\u005f/i.test(body) ? JSON.parse(body, rejectProto) : JSON.parse(body), 'record')
  } catch (error) {
    throw corrupt(seq, messageOf(error))
  }
  if (isJsonObject(value)) return value
  throw corrupt(seq, 'it is not an object')
}

/** Hookloop never writes this key: it is an attempt to set a prototype. */
function rejectProto(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new Error('it has a key "__proto__"')
  return value
}

/** The checksum of a line, given the one before it followed by the line. */
function sumOf(chained: string): string {
  return hashText(chained).slice(0, SUM_LENGTH)
}

function corrupt(seq: number, why: string): AgentError {
  return new AgentError('SESSION_CORRUPT', `Line ${seq + 1} of the session cannot be read: ${clause(why)}.`, {
    value: seq,
  })
}
