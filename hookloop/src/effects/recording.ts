import { isJsonObject, storedJson, type Json } from '../state/json.ts'
import { AgentError, messageOf, type ErrorCode, errorCodes } from '../errors.ts'

export const RECORDING_VERSION = 1

export type ErrorText = { readonly code: ErrorCode; readonly message: string; readonly value?: Json }

/** What happened in a run, one line each: its begin before it is done, its end before anybody sees it. */
export type RecordEntry =
  | { readonly type: 'run'; readonly version: number; readonly id: string; readonly at: number }
  | { readonly type: 'begin'; readonly key: string; readonly kind: string; readonly input: Json }
  | { readonly type: 'end'; readonly key: string; readonly at: number; readonly value: Json }
  | { readonly type: 'end'; readonly key: string; readonly at: number; readonly error: ErrorText }
  | { readonly type: 'timeout'; readonly key: string; readonly at: number; readonly ms: number }
  | { readonly type: 'abort'; readonly key: string }
  /** A cancel was noticed when it was looked for so often: by the run itself, or by an agent inside it. */
  | { readonly type: 'cancel'; readonly check: number; readonly scope?: string }

/** Where a run is written down. `append` must have stored the entry when it returns. */
export interface Recording {
  append(entry: RecordEntry): void
  entries(): readonly RecordEntry[]
}

/** A recording in memory, empty or of entries that were kept elsewhere. */
export function memoryRecording(entries: readonly RecordEntry[] = []): Recording {
  const kept = [...entries]
  return { append: (entry) => void kept.push(storedJson(entry, 'entry') as RecordEntry), entries: () => kept }
}

/** A recording as JSON lines in a file, which it creates; one that holds a run can be read, not written to. */
export function fileRecording(path: string): Recording & { close(): void } {
  const fs = process.getBuiltinModule('node:fs')
  let file: number | undefined = fs.openSync(path, 'a', 0o600)
  const text = fs.readFileSync(path)
  fs.ftruncateSync(file, text.lastIndexOf('\n') + 1) // a torn line would be glued to the next one
  return {
    append(entry) {
      if (file === undefined) throw new AgentError('RECORDING_FAILED', `The recording ${path} is closed.`)
      fs.appendFileSync(file, `${JSON.stringify(entry)}\n`)
    },
    entries: () => parseRecording(fs.readFileSync(path, 'utf8')),
    close() {
      if (file !== undefined) fs.closeSync(file)
      file = undefined
    },
  }
}

/** The JSON lines of a recording. */
export function formatRecording(recording: Recording): string {
  return recording
    .entries()
    .map((entry) => `${JSON.stringify(entry)}\n`)
    .join('')
}

/**
 * Reads JSON lines back, or throws RECORDING_INVALID with the line at fault. A last line without its newline was cut
 * off while it was written and is dropped; anything else that does not fit is refused, never guessed.
 */
export function parseRecording(text: string): readonly RecordEntry[] {
  const lines = text.split('\n')
  lines.pop() // what follows the last newline is empty or torn
  return lines.map((line, index) => {
    const entry = parseLine(line, index + 1)
    if (index === 0 ? entry.type !== 'run' : entry.type === 'run') {
      throw invalid(index + 1, 'a recording begins with its one line of type "run"')
    }
    return entry
  })
}

function parseLine(line: string, number: number): RecordEntry {
  let value: Json
  try {
    value = storedJson(JSON.parse(line), 'recording')
  } catch (error) {
    throw invalid(number, messageOf(error))
  }
  if (!isJsonObject(value)) throw invalid(number, 'it is not an object')
  const problem = problemOfEntry(value)
  if (problem !== undefined) throw invalid(number, problem)
  if (value['type'] === 'run' && (value['version'] as number) > RECORDING_VERSION) {
    throw new AgentError(
      'STATE_VERSION',
      `The recording has version ${JSON.stringify(value['version'])}; this Hookloop reads up to ${RECORDING_VERSION}. Use a newer one.`,
      { value: value['version'] },
    )
  }
  return value as RecordEntry
}

/** What is wrong with an entry, if anything is. */
export function problemOfEntry(entry: { readonly [key: string]: Json }): string | undefined {
  const needs = (key: string, type: 'string' | 'number'): string | undefined =>
    typeof entry[key] === type ? undefined : `"${key}" must be a ${type}`
  switch (entry['type']) {
    case 'run':
      return needs('version', 'number') ?? needs('id', 'string') ?? needs('at', 'number')
    case 'begin':
      return needs('key', 'string') ?? needs('kind', 'string') ?? ('input' in entry ? undefined : '"input" is missing')
    case 'end':
      return needs('key', 'string') ?? needs('at', 'number') ?? problemOfEnd(entry)
    case 'timeout':
      return needs('key', 'string') ?? needs('at', 'number') ?? needs('ms', 'number')
    case 'abort':
      return needs('key', 'string')
    case 'cancel':
      return needs('check', 'number') ?? (entry['scope'] === undefined ? undefined : needs('scope', 'string'))
    default:
      return `"type" is ${JSON.stringify(entry['type']) ?? 'missing'}; known are run, begin, end, timeout, abort and cancel`
  }
}

function problemOfEnd(entry: { readonly [key: string]: Json }): string | undefined {
  if ('value' in entry) return undefined
  const error = entry['error']
  if (error === undefined) return '"value" or "error" is missing'
  const fits =
    isJsonObject(error) &&
    typeof error['message'] === 'string' &&
    typeof error['code'] === 'string' &&
    Object.hasOwn(errorCodes, error['code'])
  return fits ? undefined : '"error" needs a known code and a message'
}

function invalid(line: number, why: string): AgentError {
  return new AgentError('RECORDING_INVALID', `Line ${line} of the recording cannot be read: ${why}.`, { value: line })
}
