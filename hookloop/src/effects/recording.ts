import { checkArgument, checkNoOptions } from '../state/check-options.ts'
import { isJsonObject, storedJson, type Json, type JsonObject } from '../state/json.ts'
import { toStopRequest, type StopRequest } from '../state/stop-request.ts'
import { must, number, object, oneOf, optional, present, shapeOf, string, type Shape } from '../state/shape.ts'
import type { RunEnd } from './run-time.ts'
import { AgentError, messageOf, type ErrorCode, errorCodes, clause } from '../errors.ts'

export const RECORDING_VERSION = 1

export type ErrorText = { readonly code: ErrorCode; readonly message: string; readonly value?: Json }

/** What happened in a run, one entry each. An effect begins before it is performed, and ends before its result is used. */
export type RecordEntry =
  | { readonly type: 'run'; readonly version: number; readonly id: string; readonly at: number }
  | {
      readonly type: 'begin'
      readonly key: string
      readonly kind: string
      readonly input: Json
      /** Missing in recordings of version 0.1. */
      readonly at?: number
      /** The whole request of a model call, if the run records requests. */
      readonly request?: JsonObject
      /** Whether it may be performed again if it has no end. */
      readonly idempotent?: true
    }
  | { readonly type: 'end'; readonly key: string; readonly at: number; readonly value: Json }
  | { readonly type: 'end'; readonly key: string; readonly at: number; readonly error: ErrorText }
  | {
      readonly type: 'timeout'
      readonly key: string
      readonly at: number
      readonly ms: number
      readonly after?: RunEnd
    }
  /** The signal aborted during a wait: the run was cancelled or, with `by`, had reached its time limit. */
  | { readonly type: 'abort'; readonly key: string; readonly by?: 'limit' }
  /** The run, or the subagent of a scope, noticed at its n-th check that it was cancelled or, with `by`, had timed out. */
  | {
      readonly type: 'cancel'
      readonly check: number
      readonly scope?: string
      readonly by?: 'limit'
      /** Who asked for it, if the run was stopped on request. */
      readonly stop?: StopRequest
    }

/** Where a run is recorded. `append` must have stored the entry when it returns. */
export interface Recording {
  append(entry: RecordEntry): void
  entries(): readonly RecordEntry[]
}

export function isRecording(value: unknown): value is Recording {
  const { append, entries } = Object(value) as { readonly append?: unknown; readonly entries?: unknown }
  return typeof append === 'function' && typeof entries === 'function'
}

export function checkRecording(where: string, recording: unknown): asserts recording is Recording {
  checkArgument(where, ['recording', recording], isRecording(recording), 'a recording, such as memoryRecording()')
}

/**
 * A recording in memory, empty or with entries that were stored elsewhere.
 *
 * @example
 * const recording = memoryRecording()
 * await agent.run('Hello.', { effects: recordEffects(recording) })
 */
export function memoryRecording(entries: readonly RecordEntry[] = []): Recording {
  const isValid = Array.isArray(entries) && entries.every((each) => isJsonObject(each))
  checkArgument('memoryRecording', ['entries', entries], isValid, 'a list of entries')
  const stored = [...entries]
  return { append: (entry) => void stored.push(storedJson(entry, 'entry') as RecordEntry), entries: () => stored }
}

/** A recording as JSON lines in a file, which is created if it is missing. A file that has a run is read-only. */
export function fileRecording(path: string, ...more: []): Recording & { close(): void } {
  checkNoOptions('fileRecording', more)
  checkArgument('fileRecording', ['path', path], typeof path === 'string' && path !== '', 'the path of a file')
  const fs = process.getBuiltinModule('node:fs')
  let file = usingFile<number | undefined>(path, () => fs.openSync(path, 'a', 0o600))
  const text = usingFile(path, () => fs.readFileSync(path))
  fs.ftruncateSync(file!, text.lastIndexOf('\n') + 1) // an incomplete line would become part of the next one
  return {
    append(entry) {
      if (file === undefined) throw new AgentError('RECORDING_FAILED', `The recording ${path} is closed.`)
      fs.appendFileSync(file, `${JSON.stringify(entry)}\n`)
    },
    entries: () => parseRecording(usingFile(path, () => fs.readFileSync(path, 'utf8'))),
    close() {
      if (file !== undefined) fs.closeSync(file)
      file = undefined
    },
  }
}

function usingFile<T>(path: string, use: () => T): T {
  try {
    return use()
  } catch (thrown) {
    const message = `The recording ${path} cannot be used: ${clause(messageOf(thrown))}. It must be a file in a folder that exists.`
    throw new AgentError('RECORDING_FAILED', message, { value: path, cause: thrown })
  }
}

/** A recording as JSON lines, for `parseRecording`. */
export function formatRecording(recording: Recording): string {
  checkRecording('formatRecording', recording)
  return recording
    .entries()
    .map((entry) => `${JSON.stringify(entry)}\n`)
    .join('')
}

/**
 * Reads the JSON lines of a recording. Throws RECORDING_INVALID with the number of the invalid line. A last line without a
 * newline was cut off by a crash and is dropped.
 */
export function parseRecording(text: string): readonly RecordEntry[] {
  checkArgument('parseRecording', ['text', text], typeof text === 'string', 'the text of a recording')
  const lines = text.split('\n')
  lines.pop() // what follows the last newline is empty or incomplete
  return lines.map((line, index) => {
    const entry = parseLine(line, index + 1)
    if (index === 0 ? entry.type !== 'run' : entry.type === 'run') {
      throw invalid(index + 1, 'the first line, and only the first, must be of type "run"')
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
  ['begin', shapeOf({ key: string, kind: string, input: present, at: optional(number), request: optional(object) })],
  ['end', (entry, path) => (isJsonObject(entry) && 'value' in entry ? succeeded : failed)(entry, path)],
  ['timeout', shapeOf({ key: string, at: number, ms: number, after: optional(oneOf('cancel', 'limit')) })],
  ['abort', shapeOf({ key: string, by: optional(oneOf('limit')) })],
  ['cancel', shapeOf({ check: number, scope: optional(string), by: optional(oneOf('limit')), stop: optional(object) })],
])

/** What is wrong with an entry, if anything is. */
export function problemOfEntry(entry: JsonObject): string | undefined {
  const { type } = entry
  const shape = entryShapes.get(type)
  if (shape !== undefined) return shape(entry, '')
  return `"type" is ${JSON.stringify(type) ?? 'missing'}; it must be one of ${[...entryShapes.keys()].join(', ')}`
}

/** What a recording, or a part of one, says about each key. */
export class RecordIndex {
  readonly begins = new Map<string, Json>()
  /** Effects that were declared idempotent when they began. */
  readonly idempotent = new Set<string>()
  /** Waits during which the signal aborted, and why it did. */
  readonly aborts = new Map<string, RunEnd>()
  readonly ends = new Map<string, { readonly outcome: EndEntry; readonly line: number }>()
  readonly timeouts = new Map<string, Extract<RecordEntry, { type: 'timeout' }>>()
  /** By scope: the check at which it noticed that the run must end, and why. */
  readonly endedAt = new Map<string, { readonly check: number; readonly by: RunEnd }>()
  /** Whether the run was already cancelled when a process resumed it. */
  readonly cancelledBefore: boolean
  /** Who asked to stop the run, if that is why it was cancelled. */
  readonly stopRequest: StopRequest | undefined
  readonly lastBegin: number
  /** A key that begins more than once: because processes died, or by mistake. */
  readonly repeated: string | undefined

  constructor(entries: readonly RecordEntry[]) {
    let cancelledBefore = false
    let stopRequest: StopRequest | undefined
    let lastBegin = 0
    let repeated: string | undefined
    for (const [i, entry] of entries.entries()) {
      if (entry.type === 'begin') {
        if (this.begins.has(entry.key)) repeated ??= entry.key
        this.begins.set(entry.key, entry.input)
        if (entry.idempotent === true) this.idempotent.add(entry.key)
        lastBegin = i + 1
      }
      if (entry.type === 'end') this.ends.set(entry.key, { outcome: entry, line: i + 1 })
      if (entry.type === 'abort') this.aborts.set(entry.key, entry.by ?? 'cancel')
      if (entry.type === 'timeout') this.timeouts.set(entry.key, entry)
      if (entry.type === 'cancel') {
        this.endedAt.set(entry.scope ?? '', { check: entry.check, by: entry.by ?? 'cancel' })
        cancelledBefore ||= entry.check === 0
        stopRequest ??= toStopRequest(entry.stop)
      }
    }
    this.cancelledBefore = cancelledBefore
    this.stopRequest = stopRequest
    this.lastBegin = lastBegin
    this.repeated = repeated
  }
}

export type EndEntry = Extract<RecordEntry, { type: 'end' }>

/** The result of an effect that has ended: returns its value or throws its error. */
export function resultOf<T extends Json>(end: EndEntry): T {
  if ('value' in end) return end.value as T
  throw new AgentError(end.error.code, end.error.message, { value: end.error.value })
}

/** Counts how often each name came. */
export class Counter {
  readonly #counts = new Map<string, number>()

  next(name: string): number {
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    return count
  }

  /** A unique key: the second `key` becomes `key~2`, as after a retry. */
  unique(key: string): string {
    return repeatedKey(key, this.next(key))
  }

  clear(): void {
    this.#counts.clear()
  }
}

export function repeatedKey(key: string, times: number): string {
  const plain = key.includes('~') ? key.replaceAll('~', '~~') : key // the name of a hook may contain it
  return times === 1 ? plain : `${plain}~${times}`
}

function invalid(line: number, why: string): AgentError {
  return new AgentError('RECORDING_INVALID', `Line ${line} of the recording cannot be read: ${clause(why)}.`, {
    value: line,
  })
}
