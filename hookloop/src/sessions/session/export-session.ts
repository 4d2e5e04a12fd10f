import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { redactor, secretName, secretPatterns } from '../../state/secrets.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { readSession } from '../log/read-session.ts'
import { headOf } from './session-head.ts'
import { LineEncoder } from '../log/session-log.ts'
import { agentOf, createdAt } from './session-lock.ts'
import { checkSessionId, sessionUnknown, type SessionStore } from '../stores/store.ts'

export const EXPORT_VERSION = 1

/** Options of `exportSession`. */
export type ExportOptions = {
  /** Patterns and texts to take out, beside what secrets look like; `false` takes out nothing. */
  readonly redact?: readonly (RegExp | string)[] | false
}

/** A session as one text, JSON lines, to be kept elsewhere or sent to somebody. Secrets are taken out by rule. */
export async function exportSession(
  store: SessionStore,
  id: string,
  { redact = [] }: ExportOptions = {},
): Promise<string> {
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  const { records } = readSession(stored.lines, id)
  const clean =
    redact === false
      ? (value: Json): Json => value
      : redactor([...secretPatterns, ...redact], (name) => secretName.test(name))
  const header = { type: 'export', version: EXPORT_VERSION, id, redacted: redact !== false }
  const lines = records.map((record) => {
    const { seq: _seq, ...rest } = record as unknown as JsonObject
    return JSON.stringify(clean(rest))
  })
  return `${[JSON.stringify(header), ...lines].join('\n')}\n`
}

/** Puts an exported session into a store, under its id or another one. Refuses what is not one. */
export async function importSession(
  store: SessionStore,
  text: string,
  options: { readonly as?: string } = {},
): Promise<string> {
  const [header, ...records] = text
    .split('\n')
    .filter((line) => line !== '')
    .map(parseLine)
  const version = header?.['type'] === 'export' ? header['version'] : undefined
  if (header === undefined || typeof version !== 'number') throw invalid(0, 'it does not begin as an export does')
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
  const snapshot = readSession(lines, id) // checks everything before anything is written
  const writer = await store.open(id, { create: true })
  try {
    if (writer.lines.length > 0) {
      throw new AgentError('SESSION_BUSY', `There is a session "${id}" already. Import it as another one.`, {
        value: id,
      })
    }
    const head =
      snapshot.state === undefined
        ? {}
        : headOf(snapshot.state, { agent: agentOf(snapshot), createdAt: createdAt(snapshot) ?? 0 })
    await writer.append(lines, head)
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
  return new AgentError('SESSION_CORRUPT', `Line ${index + 1} of the exported session cannot be used: ${why}.`, {
    value: index,
  })
}
