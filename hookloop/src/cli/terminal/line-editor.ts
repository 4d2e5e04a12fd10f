import { createInterface } from 'node:readline'
import type { Stdin } from '../cli-context.ts'

/** Lines that arrive within this time of each other were pasted, and are one message. */
const PASTE_MS = 20
const MAX_HISTORY = 500
const MORE = '… '

export type Typed = { readonly text: string } | 'interrupted' | 'ended'

/** The text of a line that was interrupted by `until`. */
export type Unfinished = { readonly unfinished: string }

type ReadOptions = {
  /** Interrupts the line when it aborts. */
  readonly until?: AbortSignal
  /** The text of an unfinished line to continue. */
  readonly typed?: string
}

type LineEditorOptions = {
  readonly stdin: Stdin
  readonly output: NodeJS.WritableStream
  /** Earlier lines, the latest last. */
  readonly history?: readonly string[]
  /** Completions for the tab key. */
  readonly words?: readonly string[]
}

/**
 * Reads lines from a terminal, with history and completion. It controls the terminal only while a line is typed: in between,
 * Ctrl-C is a signal and others can read.
 */
export class LineEditor {
  readonly #options: LineEditorOptions
  /** The latest first, as readline has it. */
  #history: string[]

  constructor(options: LineEditorOptions) {
    this.#options = options
    this.#history = (options.history ?? []).slice(-MAX_HISTORY).toReversed()
  }

  read(prompt: string, { until, typed = '' }: ReadOptions = {}): Promise<Typed | Unfinished> {
    const { stdin, output, words = [] } = this.#options
    if (until?.aborted === true) return Promise.resolve({ unfinished: typed })
    const editor = createInterface({
      input: stdin,
      output,
      prompt,
      terminal: true,
      history: this.#history,
      historySize: MAX_HISTORY,
      removeHistoryDuplicates: true,
      completer: (line: string) => [words.filter((word) => line !== '' && word.startsWith(line)), line],
    })
    const { promise, resolve } = Promise.withResolvers<Typed | Unfinished>()
    const pasted: string[] = []
    let timer: NodeJS.Timeout | undefined
    const end = (ended: Typed | Unfinished): void => {
      clearTimeout(timer)
      until?.removeEventListener('abort', interrupt)
      resolve(ended)
      editor.close()
    }
    const interrupt = (): void => {
      if (pasted.length > 0) return // a pasted message is arriving, and is sent first
      const { line } = editor
      output.write('\n')
      end({ unfinished: line })
    }
    const pause = (): void => {
      if (editor.line !== '') return // text pasted without a final line end is still being typed
      if (!pasted.at(-1)!.endsWith('\\')) return end({ text: pasted.map(withoutBackslash).join('\n') })
      editor.setPrompt(MORE)
      editor.prompt()
    }
    editor.on('line', (line) => {
      pasted.push(line)
      clearTimeout(timer)
      timer = setTimeout(pause, PASTE_MS)
    })
    editor.on('history', (history) => (this.#history = history))
    editor.on('SIGINT', () => end('interrupted'))
    editor.on('close', () => end('ended'))
    editor.prompt()
    editor.write(typed)
    until?.addEventListener('abort', interrupt)
    return promise
  }
}

/** A backslash at the end continues a line. */
function withoutBackslash(line: string): string {
  return line.replace(/\\$/, '')
}
