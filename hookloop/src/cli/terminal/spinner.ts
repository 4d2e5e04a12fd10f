const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 100
const CLEAR_LINE = '\r\u001B[K'

export type Terminal = { readonly write: (text: string) => unknown; readonly columns?: number | undefined }

type SpinnerOptions = {
  /** Its text, without colours. */
  readonly line: () => string
  readonly paint: (line: string) => string
  readonly mayDraw: () => boolean
}

/** An animated line at the bottom of a terminal. Clear it before writing anything else; it returns with the next frame. */
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
    const width = (this.#terminal.columns ?? 80) - 1 // a line that wraps cannot be cleared
    this.#terminal.write(`${CLEAR_LINE}${paint(text.length <= width ? text : `${text.slice(0, width - 1)}…`)}`)
    this.#isDrawn = true
  }

  clear(): void {
    if (this.#isDrawn) this.#terminal.write(CLEAR_LINE)
    this.#isDrawn = false
  }
}
