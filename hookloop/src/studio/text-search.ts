import type { ListedSession, SessionStore } from '../sessions/stores/store.ts'
import type { Json } from '../values/json.ts'

/**
 * What one page of sessions may read of their content. A session is read as a whole, so the last one may exceed it; then the
 * page ends, and the next one continues.
 */
const MAX_CHARS = 16_000_000

/** Whose texts were said: by users, models, tools and approvers. All other texts are names, ids and what Hookloop notes. */
const said: ReadonlySet<string> = new Set(['text', 'input', 'args', 'output', 'ok', 'allow', 'block'])

/**
 * Searches the conversations of sessions for a text: messages, arguments and results of tools. Case is ignored. A session that
 * was searched before is searched only in what was appended since.
 */
export class TextSearch {
  readonly #store: SessionStore
  readonly #words: string
  /** The same as JSON has it, to find the lines that may contain it without parsing all. */
  readonly #escaped: string
  readonly #known = new Map<string, { readonly lines: number; readonly updatedAt: number; readonly isFound: boolean }>()
  #chars = 0

  constructor(store: SessionStore, text: string) {
    this.#store = store
    this.#words = text.toLowerCase()
    this.#escaped = JSON.stringify(this.#words).slice(1, -1)
  }

  /** Starts a page. */
  start(): void {
    this.#chars = 0
  }

  /** Whether this page has read as much as it may. */
  get isSpent(): boolean {
    return this.#chars >= MAX_CHARS
  }

  async finds({ id, updatedAt }: Pick<ListedSession, 'id' | 'updatedAt'>): Promise<boolean> {
    const known = this.#known.get(id)
    if (known?.isFound === true || known?.updatedAt === updatedAt) return known.isFound
    const from = known?.lines ?? 0
    const read = this.#store.read(id, { after: from - 1 })
    const { lines } = (await read.catch(() => undefined)) ?? { lines: [] } // damaged, or deleted since
    await new Promise((resolve) => setImmediate(resolve)) // a store may read without leaving this process to others
    this.#chars += lines.reduce((sum, { length }) => sum + length, 0)
    const isFound = lines.some((line) => this.#isIn(line))
    this.#known.set(id, { lines: from + lines.length, updatedAt, isFound })
    return isFound
  }

  #isIn(line: string): boolean {
    if (!line.toLowerCase().includes(this.#escaped)) return false
    try {
      const { input, ...record } = JSON.parse(line) as { readonly input?: Json }
      return this.#isSaid(record, false) || (input !== undefined && this.#isSaid(input, false)) // of an effect: it has names as well
    } catch {
      return false // the line is damaged
    }
  }

  #isSaid(value: Json, isSaid: boolean): boolean {
    if (typeof value === 'string') return isSaid && value.toLowerCase().includes(this.#words)
    if (typeof value !== 'object' || value === null) return false
    if (Array.isArray(value)) return value.some((each) => this.#isSaid(each as Json, isSaid))
    return Object.entries(value).some(([name, each]) => this.#isSaid(each, isSaid || said.has(name)))
  }
}
