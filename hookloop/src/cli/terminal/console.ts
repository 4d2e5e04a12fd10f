import { Console } from 'node:console'
import { Writable } from 'node:stream'
import { printable } from './printable.ts'

/** What agent files and their tools log is not the answer: it goes where it is told. Gives how to put it back. */
export function consoleTo(write: (line: string) => void): () => void {
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
