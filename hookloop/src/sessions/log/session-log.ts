import { hashText, isJsonObject, parsedJson, type JsonObject } from '../../values/json.ts'
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
 * Encodes a record as a line of JSON, with its number, and a checksum of itself and the checksum before it. So a line that was
 * edited, moved, removed or inserted is detected; lines that are missing at the end are detected by the head of the session. The
 * checksum detects damage, not an attacker who computes it.
 */
export function encodeLine(
  record: JsonObject,
  after: LineEnd = noLine,
): { readonly line: string; readonly end: LineEnd } {
  const seq = after.seq + 1
  const rest = JSON.stringify(record).slice(1)
  const chained = `${after.sum}{"seq":${seq}${rest === '}' ? '' : ','}${rest}`
  const sum = sumOf(chained) // one string for both, because copying a line costs as much as its checksum
  return { line: `${chained.slice(SUM_LENGTH, -1)}${BEFORE_SUM}${sum}${AFTER_SUM}`, end: { seq, sum } }
}

/** Decodes the line that follows another one. Throws SESSION_CORRUPT with its number. */
export function decodeLine(line: string, after: LineEnd): { readonly record: JsonObject; readonly end: LineEnd } {
  const seq = after.seq + 1
  const chained = `${after.sum}${line.slice(0, -END_LENGTH)}}`
  const sum = sumOf(chained)
  if (!line.endsWith(`${BEFORE_SUM}${sum}${AFTER_SUM}`))
    throw corruptLine(seq, 'its checksum is wrong: it was changed, or a line before it was removed')
  const record = parse(chained.slice(SUM_LENGTH), seq) // a part of the text whose checksum was made: it is not copied
  if (record['seq'] !== seq) throw corruptLine(seq, 'it has the number of another line')
  return { record, end: { seq, sum } }
}

function parse(body: string, seq: number): JsonObject {
  let value: unknown
  try {
    const isSuspicious = body.includes('__proto__') || body.includes('\\u00') // a letter may be written as \u005f
    value = parsedJson(isSuspicious ? JSON.parse(body, rejectProto) : JSON.parse(body), 'record')
  } catch (error) {
    throw corruptLine(seq, messageOf(error))
  }
  if (isJsonObject(value)) return value
  throw corruptLine(seq, 'it is not an object')
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

export function corruptLine(seq: number, why: string): AgentError {
  return new AgentError('SESSION_CORRUPT', `Line ${seq + 1} of the session cannot be read: ${clause(why)}.`, {
    value: seq,
  })
}
