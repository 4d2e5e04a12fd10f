import { createInterface } from 'node:readline'
import type { Stdin } from '../runs/input.ts'

/** Lines that come so soon after each other were pasted, and are one message. */
const PASTE_MS = 20
const MAX_HISTORY = 500
const MORE = '… '

export type Typed = { readonly text: string } | 'interrupted' | 'ended'

export type LineEditorOptions = {
  readonly stdin: Stdin
  readonly output: NodeJS.WritableStream
  /** What was typed before, the latest last. */
  readonly history?: readonly string[]
  /** What the tab key can complete a line to. */
  readonly words?: readonly string[]
}

/**
 * Lines from a terminal, with the keys that people expect. It has the terminal only while a line is being typed: in
 * between it is as it was, so that Ctrl-C is a signal and others may read.
 */
export class LineEditor {
  readonly #options: LineEditorOptions
  /** As readline has it: the latest first. */
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
    const end = (typed: Typed): void => {
      clearTimeout(timer)
      resolve(typed)
      editor.close()
    }
    const pause = (): void => {
      if (editor.line !== '') return // what was pasted without a last line end is still being typed
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

/** A line that ends in one goes on in the next. */
function withoutBackslash(line: string): string {
  return line.replace(/\\$/, '')
}
