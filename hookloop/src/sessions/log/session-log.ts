import { hashText, isJsonObject, storedJson, type JsonObject } from '../../state/json.ts'
import { AgentError, messageOf } from '../../errors.ts'

const SUM_LENGTH = 16
const CHECKSUM = /,"sum":"([0-9a-f]{16})"}$/

/** The beginning of every log: what the first line is chained to. */
export const NO_SUM = '0'.repeat(SUM_LENGTH)

/**
 * Records as lines of JSON. Each has its number and a sum over itself and the line before it, so that a line that was
 * edited, moved, left out or added is found. A log without its last lines is one of an earlier moment, as after a crash.
 * The sum finds damage, not somebody who knows how it is made.
 */
export class LineEncoder {
  #seq: number
  #sum: string

  constructor(after: { readonly seq: number; readonly sum: string } = { seq: -1, sum: NO_SUM }) {
    this.#seq = after.seq
    this.#sum = after.sum
  }

  encode(record: JsonObject): string {
    const rest = JSON.stringify(record).slice(1)
    const chained = `${this.#sum}{"seq":${++this.#seq}${rest === '}' ? '' : ','}${rest}`
    this.#sum = sumOf(chained)
    return `${chained.slice(SUM_LENGTH, -1)},"sum":"${this.#sum}"}` // one text for both: each copy of a line costs as much as its sum
  }
}

/** What lines say, and what the next one will be chained to. */
export type ReadLines = {
  readonly records: readonly JsonObject[]
  readonly end: { readonly seq: number; readonly sum: string }
}

/** Reads lines back, or throws SESSION_CORRUPT with the line at fault. Those up to `after` were read before, and are left out. */
export function readLines(lines: readonly string[], after: ReadLines['end'] = { seq: -1, sum: NO_SUM }): ReadLines {
  let { sum } = after
  const records = lines.slice(after.seq + 1).map((line, i) => {
    const seq = after.seq + 1 + i
    const match = CHECKSUM.exec(line)
    const body = match === null ? '' : `${line.slice(0, match.index)}}`
    sum = sumOf(sum + body)
    if (match?.[1] !== sum) throw corrupt(seq, 'it was changed, or a line before it was taken out')
    const record = parse(body, seq)
    if (record['seq'] !== seq) throw corrupt(seq, 'it stands in another place than it was written to')
    return record
  })
  return { records, end: { seq: lines.length - 1, sum } }
}

function parse(body: string, seq: number): JsonObject {
  let value: unknown
  try {
    value = storedJson(/__proto__|\\u005f/i.test(body) ? JSON.parse(body, refuseProto) : JSON.parse(body), 'record')
  } catch (error) {
    throw corrupt(seq, messageOf(error))
  }
  if (isJsonObject(value)) return value
  throw corrupt(seq, 'it is not an object')
}

/** We never write this key. Whoever did wants it to become the prototype of something. */
function refuseProto(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new Error('it has a key "__proto__"')
  return value
}

/** Of a line without its sum, behind that of the line before it. */
function sumOf(chained: string): string {
  return hashText(chained).slice(0, SUM_LENGTH)
}

function corrupt(seq: number, why: string): AgentError {
  return new AgentError('SESSION_CORRUPT', `Line ${seq + 1} of the session cannot be used: ${why}.`, { value: seq })
}
