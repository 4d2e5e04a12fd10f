import { isJsonObject, type Json, type JsonObject } from '../data/json.ts'
import { AgentError, messageOf } from '../errors.ts'
import { readSession } from './kept-session.ts'
import { headOf } from './session-head.ts'
import { LineSealer } from './session-log.ts'
import { agentOf, createdAt } from './held-session.ts'
import { checkSessionId, sessionUnknown, type SessionStore } from './store.ts'

export const EXPORT_VERSION = 1

/** What is taken out of an exported session unless told otherwise: what keys, tokens and passwords look like. */
export const secretPatterns: readonly RegExp[] = [
  /\b(?:sk|pk|rk|gsk|xai|gh[oprsu]|github_pat|glpat|hf|xox[a-z]|api|key)[-_][A-Za-z0-9_-]{12,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{20,}/g,
  /\bBearer\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]{1,8000}?-----END [A-Z ]*PRIVATE KEY-----|[\s\S]{0,8000})/g,
  /(?<=:\/\/)[^/\s:@]*:[^/\s@]+(?=@)/g,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}/g,
  /(?<=(?:password|passwd|passphrase|secret|token|(?:api|access|private)[-_]?key)["']?\s{0,8}[:=]\s{0,8}["']?)[^\s"',;]{4,}/gi,
  /(?<=authorization["']?\s{0,8}[:=]\s{0,8}["']?)[^\s"',;]+(?: [^\s"',;]+)?/gi,
]

/** Names under which a text is a secret whatever it looks like. */
const SECRET_NAME = /(?:password|passwd|passphrase|secret|token|(?:api|access|private)[-_]?key|authorization|cookie)$/i

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
  const clean = redact === false ? (value: Json): Json => value : redactor([...secretPatterns, ...redact])
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
  const sealer = new LineSealer()
  const lines = records.map((record) => sealer.seal(record['type'] === 'session' ? { ...record, id } : record))
  const kept = readSession(lines, id) // checks everything before anything is written
  const writer = await store.open(id, { create: true })
  try {
    if (writer.lines.length > 0) {
      throw new AgentError('SESSION_BUSY', `There is a session "${id}" already. Import it as another one.`, {
        value: id,
      })
    }
    const head =
      kept.state === undefined ? {} : headOf(kept.state, { agent: agentOf(kept), createdAt: createdAt(kept) ?? 0 })
    await writer.append(lines, head)
  } finally {
    await writer.release()
  }
  return id
}

const REDACTED = '[redacted]'

function redactor(rules: readonly (RegExp | string)[]): (value: Json) => Json {
  const patterns = rules.filter((rule) => rule !== '').map((rule) => (typeof rule === 'string' ? rule : global(rule)))
  const clean = (text: string): string => patterns.reduce<string>((rest, rule) => rest.replaceAll(rule, REDACTED), text)
  const walk = (value: Json): Json => {
    if (typeof value === 'string') return clean(value)
    if (Array.isArray(value)) return value.map(walk)
    if (!isJsonObject(value)) return value
    const isSecret = (name: string, inner: Json): boolean => typeof inner === 'string' && SECRET_NAME.test(name)
    return Object.fromEntries(
      Object.entries(value).map(([name, inner]) => [clean(name), isSecret(name, inner) ? REDACTED : walk(inner)]),
    )
  }
  return walk
}

function global(rule: RegExp): RegExp {
  return rule.global ? rule : new RegExp(rule.source, `${rule.flags}g`)
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
