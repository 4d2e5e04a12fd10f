import { isJsonObject, storedJson, type Json, type JsonObject } from '../state/json.ts'
import { must, number, optional, present, shapeOf, string, type Shape } from '../state/shape.ts'
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

const isKnownError = (value: Json | undefined): boolean =>
  isJsonObject(value) &&
  typeof value['message'] === 'string' &&
  typeof value['code'] === 'string' &&
  Object.hasOwn(errorCodes, value['code'])

const end = { key: string, at: number }
const succeeded = shapeOf({ ...end, value: present })
const failed = shapeOf({ ...end, error: must(isKnownError, 'needs a known code and a message if there is no "value"') })
const entryShapes = new Map<unknown, Shape>([
  ['run', shapeOf({ version: number, id: string, at: number })],
  ['begin', shapeOf({ key: string, kind: string, input: present })],
  ['end', (entry, path) => (isJsonObject(entry) && 'value' in entry ? succeeded : failed)(entry, path)],
  ['timeout', shapeOf({ key: string, at: number, ms: number })],
  ['abort', shapeOf({ key: string })],
  ['cancel', shapeOf({ check: number, scope: optional(string) })],
])

/** What is wrong with an entry, if anything is. */
export function problemOfEntry(entry: JsonObject): string | undefined {
  const { type } = entry
  const shape = entryShapes.get(type)
  if (shape !== undefined) return shape(entry, '')
  return `"type" is ${JSON.stringify(type) ?? 'missing'}; it must be one of ${[...entryShapes.keys()].join(', ')}`
}

function invalid(line: number, why: string): AgentError {
  return new AgentError('RECORDING_INVALID', `Line ${line} of the recording cannot be read: ${why}.`, { value: line })
}
