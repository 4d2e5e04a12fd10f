import { checkArgument, checkOptions } from '../../state/check-options.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { redactor, secretName, secretPatterns } from '../../state/secrets.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { readSession, readStoredSession } from '../log/read-session.ts'
import { headOf } from './session-head.ts'
import { LineEncoder } from '../log/session-log.ts'
import { checkSessionId, checkStore, type SessionStore } from '../stores/store.ts'

export const EXPORT_VERSION = 1

/** Options of `exportSession`. */
export type ExportOptions = {
  /** Patterns and strings to redact, in addition to the built-in rules for secrets. `false` redacts nothing. */
  readonly redact?: readonly (RegExp | string)[] | false
}

/**
 * A session as JSON lines in one string, to store elsewhere or to share. Secrets are redacted by default.
 *
 * @example
 * await writeFile('chat-1.jsonl', await exportSession(store, 'chat-1', { redact: [/ACME-\d+/g] }))
 */
export async function exportSession(store: SessionStore, id: string, options: ExportOptions = {}): Promise<string> {
  checkStore('exportSession', store)
  checkOptions('exportSession', options, ['redact'])
  const { redact = [] } = options
  checkArgument('exportSession', ['redact', redact], redact === false || Array.isArray(redact), 'a list, or false')
  const { records } = await readStoredSession(store, id)
  const clean =
    redact === false
      ? (value: Json): Json => value
      : redactor([...secretPatterns, ...redact], (name) => secretName.test(name))
  const header = { type: 'export', version: EXPORT_VERSION, id, redacted: redact !== false }
  const lines = records.flatMap((record) => {
    const { seq: _seq, ...rest } = record as unknown as JsonObject
    return record.type === 'snapshot' ? [] : [JSON.stringify(clean(rest))] // it only repeats the other records
  })
  return `${[JSON.stringify(header), ...lines].join('\n')}\n`
}

/**
 * Stores an exported session, under its own id or `as` another one, and returns the id. Throws SESSION_CORRUPT if the text is not
 * an exported session.
 *
 * @example
 * await importSession(store, await readFile('chat-1.jsonl', 'utf8'), { as: 'chat-1-copy' })
 */
export async function importSession(
  store: SessionStore,
  text: string,
  options: { readonly as?: string } = {},
): Promise<string> {
  checkStore('importSession', store)
  checkOptions('importSession', options, ['as'])
  checkArgument('importSession', ['text', text], typeof text === 'string', 'the text of an exported session')
  const [header, ...records] = text
    .split('\n')
    .filter((line) => line !== '')
    .map(parseLine)
  const version = header?.['type'] === 'export' ? header['version'] : undefined
  if (header === undefined || typeof version !== 'number') throw invalid(0, 'it is not the header of an export')
  if (version > EXPORT_VERSION) {
    throw new AgentError(
      'STATE_VERSION',
      `The export has version ${version}; this Hookloop reads up to ${EXPORT_VERSION}. Use a newer one.`,
      { value: version },
    )
  }
  const id = checkSessionId(options.as ?? header['id'])
  const encoder = new LineEncoder()
  const lines = records.map((record) => encoder.encode(record['type'] === 'session' ? { ...record, id } : record))
  const snapshot = readSession(lines, id) // checks all records before any is stored
  const writer = await store.open(id, { create: true })
  try {
    if (writer.length > 0) {
      throw new AgentError('SESSION_BUSY', `The session "${id}" already exists. Import it under another id.`, {
        value: id,
      })
    }
    const { agent, createdAt = 0, state } = snapshot
    await writer.append(lines, state === undefined ? {} : headOf(state, { agent, createdAt }))
  } finally {
    await writer.release()
  }
  return id
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
  return new AgentError('SESSION_CORRUPT', `Line ${index + 1} of the exported session cannot be read: ${why}.`, {
    value: index,
  })
}
