import { optionTypes, type OptionType } from '../../values/option-types.ts'
import { checkOptions } from '../../values/check-options.ts'
import { hashText, isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { redactor, secretName, secretPatterns } from '../../values/secrets.ts'
import { AgentError, messageOf, clause } from '../../errors.ts'
import { escapeInJson } from '../../system/sanitize-text.ts'
import { endInHead, readHistory, readSession } from '../log/read-session.ts'
import { headOf } from './session-head.ts'
import { References } from '../log/references.ts'
import { encodeLine, noLine } from '../log/session-log.ts'
import { SessionReader } from '../log/session-reader.ts'
import { toRecord } from '../log/session-records.ts'
import { checkSessionId, type SessionStore } from '../stores/store.ts'

/** Version 1 had no checksum. */
const EXPORT_VERSION = 4

/** A parsed line takes a multiple of its text, so a text without a limit could take all memory. */
const MAX_BYTES = 64 * 1024 * 1024

/** Options of `exportSession`. */
export type ExportOptions = {
  /** Patterns and strings to redact, in addition to the built-in rules for secrets. `false` redacts nothing. Default: these rules only. */
  readonly redact?: readonly (RegExp | string)[] | false
}

/**
 * A session as JSON lines in one string, to store elsewhere or to share. Secrets are redacted by default.
 *
 * @example
 * await writeFile('chat-1.jsonl', await exportSession(store, 'chat-1', { redact: [/ACME-\d+/g] }))
 */
export async function exportSession(store: SessionStore, id: string, options: ExportOptions = {}): Promise<string> {
  checkOptions('exportSession', options, { redact: redactType })
  const { redact = [] } = options
  const { lines: stored } = await readHistory(store, id)
  const reader = new SessionReader({ id })
  const clean =
    redact === false
      ? (value: Json): Json => value
      : redactor([...secretPatterns, ...redact], (name) => secretName.test(name))
  const header = { type: 'export', version: EXPORT_VERSION, id, redacted: redact !== false }
  const lines: string[] = []
  for (const record of reader.decode(stored)) {
    reader.add(record)
    const { seq: _seq, ...rest } = record as unknown as JsonObject
    if (record.t !== 'snapshot') lines.push(JSON.stringify(clean(rest))) // a snapshot repeats all other records
  }
  const body = escapeInJson([JSON.stringify(header), ...lines].join('\n')) // it is printed, and looked at with other programs
  return `${body}\n${JSON.stringify({ type: 'exportEnd', lines: lines.length + 1, sum: hashText(body) })}\n`
}

const redactType: OptionType = [
  (value) => value === false || optionTypes.secrets[0](value),
  `${optionTypes.secrets[1]}, or false`,
]

/** Options of `importSession`. */
export type ImportOptions = {
  /** The id of the imported session. Default: its own. */
  readonly as?: string
  /** The size of the text. Default 67,108,864. */
  readonly maxBytes?: number
}

/**
 * Stores an exported session, under its own id or `as` another one, and returns the id. Throws SESSION_CORRUPT if the text is not
 * an exported session, is too long, or was changed: its checksum covers every line. The checksum detects damage and edits; it is
 * not a signature, so import only what you trust.
 *
 * @example
 * await importSession(store, await readFile('chat-1.jsonl', 'utf8'), { as: 'chat-1-copy' })
 */
export async function importSession(store: SessionStore, text: string, options: ImportOptions = {}): Promise<string> {
  checkOptions('importSession', options, ['as', 'maxBytes'])
  const { maxBytes = MAX_BYTES } = options
  if (Buffer.byteLength(text) > maxBytes)
    throw new AgentError(
      'SESSION_CORRUPT',
      `The exported session is longer than ${maxBytes} bytes. Set maxBytes to import it.`,
    )
  const first = text.slice(0, text.indexOf('\n'))
  const header = parseLine(first === '' ? text : first, 0)
  const version = header['type'] === 'export' ? header['version'] : undefined
  if (typeof version !== 'number') throw invalid(0, 'it is not the header of an export')
  if (version !== EXPORT_VERSION) {
    throw new AgentError(
      'STATE_VERSION',
      `The export has version ${version}; this Hookloop reads version ${EXPORT_VERSION}. Use the version that exported it.`,
      { value: version },
    )
  }
  const id = checkSessionId(options.as ?? header['id'])
  const body = checkedBody(text) // before anything else is parsed
  const lines: string[] = []
  const references = new References()
  let end = noLine
  for (const [i, line] of body.split('\n').entries()) {
    if (i === 0 || line === '') continue
    const record = parseLine(line, i)
    // The first invalid record ends the import.
    const checked = toRecord(record['t'] === 'session' ? { ...record, id } : record, lines.length)
    const encoded = encodeLine(references.write(checked, lines.length), end)
    lines.push(encoded.line)
    end = encoded.end
  }
  const { agent, createdAt = 0, state } = readSession(lines, id) // checks how the records fit together before any is stored
  const writer = await store.open(id, { create: true })
  try {
    if (writer.length > 0) {
      throw new AgentError('SESSION_BUSY', `The session "${id}" already exists. Import it under another id.`, {
        value: id,
      })
    }
    const head = state === undefined ? {} : headOf(state, { agent, createdAt })
    await writer.append(lines, { head: { ...head, end: endInHead(end) } })
  } finally {
    await writer.release()
  }
  return id
}

/** The header and the records of an export whose checksum is right. */
function checkedBody(text: string): string {
  const trimmed = text.endsWith('\n') ? text.slice(0, -1) : text
  const at = trimmed.lastIndexOf('\n')
  const body = trimmed.slice(0, Math.max(0, at))
  const last = trimmed.slice(at + 1)
  const end = last.startsWith('{"type":"exportEnd",') ? parseLine(last, 0) : undefined
  if (end?.['sum'] === hashText(body)) return body
  throw new AgentError('SESSION_CORRUPT', 'The exported session was changed or is incomplete: its checksum is wrong.')
}

function parseLine(line: string, index: number): JsonObject {
  try {
    const value = JSON.parse(line) as unknown
    if (isJsonObject(value)) return value
  } catch (error) {
    throw invalid(index, messageOf(error))
  }
  throw invalid(index, 'it is not an object')
}

function invalid(index: number, why: string): AgentError {
  return new AgentError(
    'SESSION_CORRUPT',
    `Line ${index + 1} of the exported session cannot be read: ${clause(why)}.`,
    {
      value: index,
    },
  )
}
