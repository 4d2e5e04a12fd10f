import type { ListedSession, SessionStore } from '../sessions/stores/store.ts'
import type { Json } from '../values/json.ts'

/** Whose texts were said: by users, models, tools and approvers. All other texts are names, ids and what Hookloop notes. */
const said: ReadonlySet<string> = new Set(['text', 'input', 'args', 'output', 'ok', 'allow', 'block'])

/**
 * Searches the conversations of sessions for a text: messages, arguments and results of tools. Case is ignored. A session is read
 * again only if it has changed since.
 */
export class TextSearch {
  /** The number of sessions that were read. */
  reads = 0
  readonly #store: SessionStore
  readonly #words: string
  /** The same as JSON has it, to find the lines that may contain it without parsing all. */
  readonly #escaped: string
  readonly #known = new Map<string, { readonly updatedAt: number; readonly isFound: boolean }>()

  constructor(store: SessionStore, text: string) {
    this.#store = store
    this.#words = text.toLowerCase()
    this.#escaped = JSON.stringify(this.#words).slice(1, -1)
  }

  async finds({ id, updatedAt }: Pick<ListedSession, 'id' | 'updatedAt'>): Promise<boolean> {
    const known = this.#known.get(id)
    if (known?.isFound === true || known?.updatedAt === updatedAt) return known.isFound
    this.reads++
    const stored = await this.#store.read(id).catch(() => undefined) // damaged, or deleted since
    await new Promise((resolve) => setImmediate(resolve)) // a store may read without leaving this process to others
    const isFound = stored?.lines.some((line) => this.#isIn(line)) === true
    this.#known.set(id, { updatedAt, isFound })
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
