import { createInterface } from 'node:readline'
import type { Stdin } from '../cli-context.ts'

/** Lines that arrive within this time of each other were pasted, and are one message. */
const PASTE_MS = 20
const MAX_HISTORY = 500
const MORE = '… '

export type Typed = { readonly text: string } | 'interrupted' | 'ended'

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

  read(prompt: string): Promise<Typed> {
    const { stdin, output, words = [] } = this.#options
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
    const { promise, resolve } = Promise.withResolvers<Typed>()
    const pasted: string[] = []
    let timer: NodeJS.Timeout | undefined
    const end = (ended: Typed): void => {
      clearTimeout(timer)
      resolve(ended)
      editor.close()
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
    return promise
  }
}

/** A backslash at the end continues a line. */
function withoutBackslash(line: string): string {
  return line.replace(/\\$/, '')
}
