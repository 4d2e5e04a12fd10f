import type { Environment } from '../../models/providers.ts'
import { colorsFor, type Colors } from './colors.ts'
import { printable } from './printable.ts'
import { Spinner } from './spinner.ts'

/** A stream to write on, such as `process.stdout`. */
export type Output = {
  readonly write: (text: string) => unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

export type ScreenOptions = {
  readonly out: Output
  readonly err: Output
  readonly env: Environment
  /** What the spinner says. */
  readonly status?: () => string
}

const WIDTH_OF_A_FILE = 160

/**
 * The answer on stdout, everything else on stderr, and a spinner when stderr is a terminal. Often both are the same
 * terminal: then a line of one may not begin in the middle of a line of the other.
 */
export class Screen {
  readonly colors: Colors
  readonly #out: Output
  readonly #err: Output
  readonly #isShared: boolean
  readonly #spinner: Spinner | undefined
  /** Whether the last line of the answer, and that of the rest, still lacks its end. */
  #isOutOpen = false
  #isErrOpen = false
  /** The first half of a character whose second half is in the next piece. */
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

  /** How long a line may be. */
  get width(): number {
    return this.#err.isTTY === true ? Math.max(40, this.#err.columns ?? 80) : WIDTH_OF_A_FILE
  }

  startSpinner(): void {
    this.#spinner?.start()
  }

  stopSpinner(): void {
    this.#spinner?.stop()
  }

  /** A piece of the answer. */
  answer(piece: string): void {
    const { text, half } = whole(this.#outHalf + printable(piece))
    this.#outHalf = half
    if (text === '') return
    this.#spinner?.clear()
    this.#endAside()
    this.#out.write(text)
    this.#isOutOpen = !text.endsWith('\n')
  }

  /** The answer is over, or another one begins: what follows stands on a line of its own. */
  endAnswer(): void {
    if (!this.#isOutOpen && this.#outHalf === '') return
    this.#spinner?.clear()
    this.#out.write(`${this.#outHalf}\n`)
    this.#outHalf = ''
    this.#isOutOpen = false
  }

  /** A piece of something that is told beside the answer, such as what the model thinks. */
  aside(piece: string): void {
    const { text, half } = whole(this.#errHalf + printable(piece))
    this.#errHalf = half
    if (text === '') return
    this.#beginOnErr()
    this.#err.write(this.colors.dim(text))
    this.#isErrOpen = !text.endsWith('\n')
  }

  /** A whole line beside the answer. It is written as it is: what is not ours must be printable already. */
  line(text: string): void {
    this.#beginOnErr()
    this.#endAside()
    this.#err.write(`${text}\n`)
  }

  /** The beginning of a line that the user ends; `read` gives what was typed, or nothing if no line was. */
  async ask(question: string, read: () => Promise<string | undefined>): Promise<string | undefined> {
    this.#beginOnErr()
    this.#endAside()
    this.#err.write(question)
    this.#isErrOpen = true
    const typed = await read()
    if (typed === undefined) this.#endAside()
    this.#isErrOpen = false
    return typed
  }

  #beginOnErr(): void {
    this.#spinner?.clear()
    if (!this.#isShared || !this.#isOutOpen) return
    this.#err.write('\n') // on the terminal only: the answer itself has no such line end
    this.#isOutOpen = false
  }

  #endAside(): void {
    if (this.#isErrOpen) this.#err.write('\n')
    this.#isErrOpen = false
    this.#errHalf = ''
  }
}

/** A piece may end in the middle of a character. Written like that, both halves would be lost. */
function whole(text: string): { readonly text: string; readonly half: string } {
  const end = /[\uD800-\uDBFF]$/.test(text) ? text.length - 1 : text.length
  return { text: text.slice(0, end), half: text.slice(end) }
}
