import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { corruptLine } from './session-log.ts'
import type { SessionRecord } from './session-records.ts'

/** A value of an earlier record: how many lines it is back, and where it is in the record. */
type Place = readonly (string | number)[]
/** A value with places, or the value itself if it has the key. */
type Reference = { readonly [KEY]: Place | JsonObject }

const KEY = '$'
/** What is shorter, such as an id, is stored again. */
const MIN_CHARS = 48
/** `value.content[0].input` */
const MAX_DEPTH = 5
/** The longest text that V8 can make. References to references would multiply without a limit. */
const MAX_CHARS = 2 ** 29
/** What later records repeat of a record. */
const parts = ['message', 'hooks', 'input', 'value'] as const

/**
 * The change of a step contains what its effects have ended with: the same objects, and the same texts. Its line refers to
 * their lines: `{ "$": [3, "value", "content"] }`, if it is 3 lines back. No reference leads to a line before the last checkpoint,
 * so there is no snapshot in between, and an export without snapshots has the same references.
 */
export class References {
  /** The records since the last checkpoint, by their lines. */
  readonly #records = new Map<number, { readonly json: JsonObject; readonly chars: number }>()
  /** Where their values are. */
  readonly #places = new Map<unknown, Place>()
  /** The most that the text of the record that is read can have, with all that it refers to. */
  #chars = 0
  /** The lines of records whose values are not among the places yet: only what writes needs them. */
  #unread: number[] = []

  /** The record as it is stored in a line. */
  write(record: SessionRecord, line: number): JsonObject {
    for (const each of this.#unread) this.#remember(each)
    this.#unread = []
    const json = record as unknown as JsonObject
    const stored = this.#withReferences(json, line) as JsonObject
    this.#chars = 0 // what this process writes has a limit already
    this.#follow(record, line)
    return stored
  }

  /** The record that was stored in a line, given its text. */
  read(stored: JsonObject, text: string, line: number): JsonObject {
    this.#chars = text.length
    const record = text.includes(`"${KEY}":`) ? (this.#resolved(stored, line) as JsonObject) : stored
    this.#follow(record as unknown as SessionRecord, line)
    return record
  }

  #follow(record: SessionRecord, line: number): void {
    const { t } = record
    if (t === 'step' ? record.path === undefined : t === 'input' || t === 'final' || t === 'rewound') {
      this.#records.clear()
      this.#places.clear()
      this.#unread = []
    }
    if (t !== 'input' && t !== 'begin' && t !== 'end') return
    this.#records.set(line, { json: record as unknown as JsonObject, chars: this.#chars })
    this.#unread.push(line)
  }

  #remember(line: number): void {
    const { json } = this.#records.get(line)!
    for (const part of parts) if (json[part] !== undefined) this.#place(json[part], [line, part])
  }

  /** Returns about how long the text of the value is: a short one is not worth a reference. */
  #place(value: Json | undefined, place: Place): number {
    let length = typeof value === 'string' ? value.length : 4
    if (typeof value === 'object' && value !== null && place.length <= MAX_DEPTH) {
      const entries = Array.isArray(value) ? value.entries() : Object.entries(value)
      for (const [key, item] of entries) {
        const ofKey = typeof key === 'string' ? key.length + 3 : 1
        length += ofKey + this.#place(item as Json | undefined, [...place, key])
      }
    }
    if (length >= MIN_CHARS) this.#places.set(value, place)
    return length
  }

  #withReferences(value: Json, line: number): Json {
    if (typeof value === 'string' && value.length < MIN_CHARS) return value
    const [first, ...path] = this.#places.get(value) ?? []
    if (first !== undefined) return { [KEY]: [line - (first as number), ...path] }
    const replaced = mapped(value, (item) => this.#withReferences(item, line))
    return isReference(replaced) ? { [KEY]: replaced } : replaced
  }

  #resolved(value: Json, line: number): Json {
    if (!isReference(value)) return mapped(value, (item) => this.#resolved(item, line))
    const place = value[KEY]
    if (!Array.isArray(place)) return mapped(place, (item) => this.#resolved(item, line))
    const [back, ...path] = place as Place
    const record = this.#records.get(line - (back as number))
    this.#chars += record?.chars ?? 0
    if (this.#chars > MAX_CHARS) throw corruptLine(line, 'what it refers to is too long')
    let found: Json | undefined = record?.json
    for (const key of path) found = Object.hasOwn(Object(found) as object, key) ? (found as JsonObject)[key] : undefined
    if (found === undefined) throw corruptLine(line, `it refers to ${JSON.stringify(place)}, which is not recorded`)
    return found
  }
}

function isReference(value: Json): value is Reference {
  return isJsonObject(value) && Object.hasOwn(value, KEY)
}

/** A value with other items. The value itself if they are the same. */
function mapped(value: Json, change: (item: Json) => Json): Json {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => change(item as Json))
    return items.every((item, i) => item === value[i]) ? value : Object.freeze(items)
  }
  let copy: { [key: string]: Json } | undefined
  for (const [key, item] of Object.entries(value)) {
    const changed = item === undefined ? item : change(item)
    if (changed !== item) (copy ??= { ...(value as JsonObject) })[key] = changed
  }
  return copy === undefined ? value : Object.freeze(copy)
}
