import { isJsonObject, type Json } from './json.ts'
import { partialPattern } from './partial-pattern.ts'
import { REDACTED, rulesOf, type Redaction } from './secrets.ts'

/** How much waits before the last update. If it is more, what may be the start of a secret is redacted. */
const MAX_HELD_CHARS = 16_384
const MAX_HELD_UPDATES = 1_024
/** How much is remembered of the start of a secret that was too long to wait for its end. */
const MAX_START_CHARS = 4_096
/** Further texts of an update are read as one. */
const MAX_TEXTS = 64
/** How much text before a secret is remembered, for patterns that look at it. */
const CONTEXT_CHARS = 512

/** Receives the updates of one source, and passes them on. */
export type RedactStream = {
  readonly write: (update: Json) => void
  /** Passes on what is held back. Later updates are passed on at once. */
  readonly end: () => void
}

/**
 * Redacts secrets that are split over several updates: strings, or objects with strings at the same place. A field `stream`
 * separates texts, such as those of stdout and stderr. An update waits while its end may be the start of a secret. It finds
 * what the rules of `redactor` describe; `show` must still redact each update.
 */
export function redactStream(redact: Redaction | undefined, show: (update: Json) => void): RedactStream {
  const rules = redact === undefined ? [] : rulesOf(redact)
  return rules.length === 0 ? { write: show, end: () => undefined } : new HoldingStream(new Finder(rules), show)
}

type Piece = { readonly text: Text; readonly start: number; readonly end: number }
type Held = {
  readonly update: Json
  readonly stream: string
  readonly pieces: readonly Piece[]
  readonly chars: number
}
type Span = readonly [start: number, end: number]

class HoldingStream implements RedactStream {
  readonly #finder: Finder
  readonly #show: (update: Json) => void
  readonly #texts = new Map<string, Text>()
  readonly #held: Held[] = []
  #chars = 0
  #hasEnded = false

  constructor(finder: Finder, show: (update: Json) => void) {
    this.#finder = finder
    this.#show = show
  }

  write(update: Json): void {
    const pieces: Piece[] = []
    const stream = isJsonObject(update) && typeof update['stream'] === 'string' ? update['stream'] : ''
    mapStrings(update, `${stream.slice(0, 64)}:`, (piece, place) => {
      const text = this.#textAt(place)
      pieces.push({ text, ...text.append(piece) })
      return piece
    })
    const chars = pieces.reduce((sum, { start, end }) => sum + end - start, 0)
    this.#held.push({ update, stream, pieces, chars })
    this.#chars += chars
    for (const text of new Set(pieces.map((piece) => piece.text))) text.judge(this.#finder, this.#hasEnded)
    this.#release()
  }

  end(): void {
    this.#hasEnded = true
    for (const text of this.#texts.values()) text.judge(this.#finder, true)
    this.#release()
  }

  #textAt(place: string): Text {
    const name = this.#texts.has(place) || this.#texts.size < MAX_TEXTS ? place : ''
    const known = this.#texts.get(name) ?? new Text()
    this.#texts.set(name, known)
    return known
  }

  /** Updates of one stream keep their order. Another stream does not wait for it. */
  #release(): void {
    const waiting = new Set<string>()
    for (const next of this.#held.slice()) {
      const isReady = !waiting.has(next.stream) && next.pieces.every(({ text, end }) => end <= text.safe)
      if (isReady || this.#isFull()) this.#pass(next)
      else waiting.add(next.stream)
    }
  }

  #isFull(): boolean {
    const before = this.#chars - this.#held.at(-1)!.chars
    return before > MAX_HELD_CHARS || this.#held.length > MAX_HELD_UPDATES
  }

  #pass(next: Held): void {
    this.#held.splice(this.#held.indexOf(next), 1)
    this.#chars -= next.chars
    let at = 0
    this.#show(
      mapStrings(next.update, '', () => {
        const { text, start, end } = next.pieces[at++]!
        return text.release(start, end)
      }),
    )
  }
}

/** All text of one place, by positions since the start of the call. What was released long ago is forgotten. */
class Text {
  /** No secret that starts before this position is incomplete. */
  safe = 0
  #recent = ''
  /** The position of the first recent character. */
  #from = 0
  #secrets: readonly Span[] = []
  /** Whether the last part ended inside what may be a secret. */
  #wasCut = false

  append(piece: string): { readonly start: number; readonly end: number } {
    const start = this.#from + this.#recent.length
    this.#recent += piece
    return { start, end: start + piece.length }
  }

  judge(finder: Finder, isComplete: boolean): void {
    const { spans, safe } = finder.scan(this.#recent, isComplete)
    this.safe = this.#from + safe
    const found = spans.map(([from, to]): Span => [this.#from + from, this.#from + to])
    this.#secrets = merged([...this.#secrets, ...found.filter(([start]) => start < this.safe)])
  }

  /** A part without secrets. The position of a secret is marked where it starts. */
  release(start: number, end: number): string {
    const isCut = end > this.safe
    const spans = isCut ? merged([...this.#secrets, [Math.max(start, this.safe), end]]) : this.#secrets
    let [clean, at] = ['', start]
    for (const [from, to] of spans) {
      if (to <= start || from >= end) continue
      const isStart = from > start || (from === start && !this.#wasCut)
      clean += this.#slice(at, from) + (isStart ? REDACTED : '')
      at = to
    }
    clean += this.#slice(at, end)
    this.#wasCut = isCut
    this.#secrets = this.#secrets.filter(([, to]) => to > end)
    if (isCut) this.#shorten(end)
    this.#forget(Math.min(end, this.safe) - CONTEXT_CHARS)
    return clean
  }

  /** Removes the middle of a secret whose start must be remembered. */
  #shorten(end: number): void {
    const excess = end - this.safe - MAX_START_CHARS
    if (excess <= 0) return
    this.#recent = this.#recent.slice(0, end - excess - this.#from) + this.#recent.slice(end - this.#from)
    this.#from += excess
    this.safe += excess
  }

  #slice(start: number, end: number): string {
    return start < end ? this.#recent.slice(start - this.#from, end - this.#from) : ''
  }

  #forget(before: number): void {
    if (before <= this.#from) return
    this.#recent = this.#recent.slice(before - this.#from)
    this.#from = before
  }
}

/** Finds secrets in a text, and the position before which none of them is incomplete. */
class Finder {
  readonly #rules: readonly { readonly whole: RegExp | string; readonly partial: RegExp | string }[]

  constructor(rules: readonly (RegExp | string)[]) {
    this.#rules = rules.map((whole) => ({ whole, partial: typeof whole === 'string' ? whole : partialPattern(whole) }))
  }

  scan(text: string, isComplete: boolean): { readonly spans: readonly Span[]; readonly safe: number } {
    const spans = this.#rules.flatMap(({ whole, partial }) => placesOf(isComplete ? whole : partial, text))
    if (isComplete) return { spans, safe: text.length }
    const starts = this.#rules.map(({ partial }) => text.length - commonEnd(text, partial))
    const open = spans.flatMap(([start, end]) => (end === text.length ? [start] : []))
    return { spans, safe: Math.min(...starts, ...open) }
  }
}

function placesOf(rule: RegExp | string, text: string): readonly Span[] {
  if (typeof rule !== 'string')
    return [...text.matchAll(rule)].flatMap(({ 0: found, index }) =>
      found === '' ? [] : [[index, index + found.length]],
    )
  const found: Span[] = []
  for (let at = text.indexOf(rule); at !== -1; at = text.indexOf(rule, at + rule.length))
    found.push([at, at + rule.length])
  return found
}

/** How many characters at the end of a text are the start of another one, but not all of it. */
function commonEnd(text: string, other: RegExp | string): number {
  if (typeof other !== 'string') return 0
  let at = text.indexOf(other[0]!, Math.max(0, text.length - other.length + 1))
  while (at !== -1 && !other.startsWith(text.slice(at))) at = text.indexOf(other[0]!, at + 1)
  return at === -1 ? 0 : text.length - at
}

function merged(spans: readonly Span[]): readonly Span[] {
  const all: [number, number][] = []
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    const last = all.at(-1)
    if (last !== undefined && start < last[1]) last[1] = Math.max(last[1], end)
    else all.push([start, end])
  }
  return all
}

/** A copy with other strings. Names of fields are not changed. */
function mapStrings(value: Json, place: string, change: (text: string, place: string) => string): Json {
  if (typeof value === 'string') return change(value, place)
  if (Array.isArray(value)) return value.map((each, i) => mapStrings(each, `${place}/${i}`, change))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name, mapStrings(inner, `${place}/${name}`, change)]),
  )
}
