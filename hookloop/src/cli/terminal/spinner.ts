const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
const CLEAR_LINE = '\r\u001B[K'

/** What a spinner writes on. */
export type Terminal = { readonly write: (text: string) => unknown; readonly columns?: number | undefined }

export type SpinnerOptions = {
  /** What it says, in plain characters. */
  readonly line: () => string
  readonly paint: (line: string) => string
  /** Whether the cursor stands where a line may be drawn. */
  readonly mayDraw: () => boolean
}

/**
 * One line at the bottom of a terminal that is drawn again and again. It owns that line only as long as nobody else
 * writes: whoever does clears it before, and it comes back with the next frame that is allowed.
 */
export class Spinner {
  readonly #terminal: Terminal
  readonly #options: SpinnerOptions
  #timer: NodeJS.Timeout | undefined
  #frame = 0
  #isDrawn = false

  constructor(terminal: Terminal, options: SpinnerOptions) {
    this.#terminal = terminal
    this.#options = options
  }

  start(): void {
    this.#timer ??= setInterval(() => this.draw(), FRAME_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.clear()
  }

  draw(): void {
    const { line, paint, mayDraw } = this.#options
    if (!mayDraw()) return
    const text = `${FRAMES[this.#frame++ % FRAMES.length]!} ${line()}`
    const width = (this.#terminal.columns ?? 80) - 1 // a line that wraps could not be cleared again
    this.#terminal.write(`${CLEAR_LINE}${paint(text.length <= width ? text : `${text.slice(0, width - 1)}…`)}`)
    this.#isDrawn = true
  }

  clear(): void {
    if (this.#isDrawn) this.#terminal.write(CLEAR_LINE)
    this.#isDrawn = false
  }
}
