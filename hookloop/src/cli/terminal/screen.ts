import type { Environment } from '../../models/providers.ts'
import { colorsFor, type Colors } from './colors.ts'
import { printable, printableLine } from './printable.ts'
import { Spinner } from './spinner.ts'

/** A stream to write to, such as `process.stdout`. */
export type Output = {
  readonly write: (text: string) => unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

type ScreenOptions = {
  readonly out: Output
  readonly err: Output
  readonly env: Environment
  readonly status?: () => string
}

const FILE_WIDTH = 160

/**
 * Writes the answer to stdout, everything else to stderr, and a spinner if stderr is a terminal. Often both are the same
 * terminal: then a line of one must not start in the middle of a line of the other.
 */
export class Screen {
  readonly colors: Colors
  readonly #out: Output
  readonly #err: Output
  readonly #isShared: boolean
  readonly #spinner: Spinner | undefined
  #isOutOpen = false
  #isErrOpen = false
  /** The first half of a surrogate pair whose second half is in the next piece. */
  #outHalf = ''
  #errHalf = ''

  constructor({ out, err, env, status }: ScreenOptions) {
    this.#out = out
    this.#err = err
    this.#isShared = out.isTTY === true && err.isTTY === true
    this.colors = colorsFor(err, env)
    if (status !== undefined && err.isTTY === true && env['TERM'] !== 'dumb') {
      this.#spinner = new Spinner(err, {
        line: status,
        paint: this.colors.dim,
        mayDraw: () => !this.#isErrOpen && !(this.#isShared && this.#isOutOpen),
      })
    }
  }

  /** The width of the terminal; undefined if there is none, where lines are not broken. */
  get columns(): number | undefined {
    return this.#err.isTTY === true ? this.width : undefined
  }

  get width(): number {
    return this.#err.isTTY === true ? Math.max(40, this.#err.columns ?? 80) : FILE_WIDTH
  }

  startSpinner(): void {
    this.#spinner?.start()
  }

  stopSpinner(): void {
    this.#spinner?.stop()
  }

  answer(piece: string): void {
    const { text, half } = splitSurrogate(this.#outHalf + printable(piece))
    this.#outHalf = half
    if (text === '') return
    this.#spinner?.clear()
    this.#endAside()
    this.#out.write(text)
    this.#isOutOpen = !text.endsWith('\n')
  }

  /** Ends the line of the answer, so that what follows is on its own line. */
  endAnswer(): void {
    if (!this.#isOutOpen && this.#outHalf === '') return
    this.#spinner?.clear()
    this.#out.write(`${this.#outHalf}\n`)
    this.#outHalf = ''
    this.#isOutOpen = false
  }

  /** A piece of text beside the answer, such as reasoning. */
  aside(piece: string): void {
    const { text, half } = splitSurrogate(this.#errHalf + printable(piece))
    this.#errHalf = half
    if (text === '') return
    this.#startOnErr()
    this.#err.write(this.colors.dim(text))
    this.#isErrOpen = !text.endsWith('\n')
  }

  /** A line beside the answer. Colours stay, so the caller makes foreign text printable. */
  line(text: string): void {
    this.#startOnErr()
    this.#endAside()
    this.#err.write(`${printableLine(text)}\n`)
  }

  /** A question on a line that the user completes; `read` returns what was typed, or undefined if no line was. */
  async ask(question: string, read: () => Promise<string | undefined>): Promise<string | undefined> {
    this.#startOnErr()
    this.#endAside()
    this.#err.write(question)
    this.#isErrOpen = true
    const typed = await read()
    if (typed === undefined) this.#endAside()
    this.#isErrOpen = false
    return typed
  }

  #startOnErr(): void {
    this.#spinner?.clear()
    if (!this.#isShared || !this.#isOutOpen) return
    this.#err.write('\n') // only on the terminal: the answer itself has no line end here
    this.#isOutOpen = false
  }

  #endAside(): void {
    if (this.#isErrOpen) this.#err.write('\n')
    this.#isErrOpen = false
    this.#errHalf = ''
  }
}

/** A piece may end in the middle of a surrogate pair. Written separately, both halves would be lost. */
function splitSurrogate(text: string): { readonly text: string; readonly half: string } {
  const end = /[\uD800-\uDBFF]$/.test(text) ? text.length - 1 : text.length
  return { text: text.slice(0, end), half: text.slice(end) }
}
