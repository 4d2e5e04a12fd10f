import { createInterface } from 'node:readline'
import type { Stdin } from '../run/input.ts'

/** Lines that come so soon after each other were pasted, and are one message. */
const PASTE_MS = 20
const MAX_HISTORY = 500
const MORE = '… '

export type Typed = { readonly text: string } | 'interrupted' | 'ended'

/** What was typed of a line that is not finished. */
export type Left = { readonly left: string }

export type ReadOptions = {
  /** When it aborts, the line is left as it is. */
  readonly until?: AbortSignal
  /** What was typed of it before. */
  readonly typed?: string
}

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

  /** A line, or what there was of one when somebody else had to be heard first. */
  read(prompt: string, { until, typed = '' }: ReadOptions = {}): Promise<Typed | Left> {
    const { stdin, output, words = [] } = this.#options
    if (until?.aborted === true) return Promise.resolve({ left: typed })
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
    const { promise, resolve } = Promise.withResolvers<Typed | Left>()
    const pasted: string[] = []
    let timer: NodeJS.Timeout | undefined
    const end = (ended: Typed | Left): void => {
      clearTimeout(timer)
      until?.removeEventListener('abort', leave)
      resolve(ended)
      editor.close()
    }
    const leave = (): void => {
      if (pasted.length > 0) return // a message is on its way, and is heard first
      const { line } = editor
      output.write('\n')
      end({ left: line })
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
    editor.write(typed)
    until?.addEventListener('abort', leave)
    return promise
  }
}

/** A line that ends in one goes on in the next. */
function withoutBackslash(line: string): string {
  return line.replace(/\\$/, '')
}
