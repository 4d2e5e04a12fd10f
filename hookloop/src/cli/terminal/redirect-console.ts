import { Console } from 'node:console'
import { Writable } from 'node:stream'
import { printable } from './printable.ts'

/** Sends what agent files and tools log to `write`, because stdout is for the answer. Returns a function that undoes it. */
export function redirectConsole(write: (line: string) => void): () => void {
  const before = globalThis.console
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      write(printable(text).replace(/\n$/, ''))
      done()
    },
  })
  globalThis.console = new Console(stream)
  return () => void (globalThis.console = before)
}
