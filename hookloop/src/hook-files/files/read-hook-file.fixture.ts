import { readHooks, type FileSource, type ReadHooks, type ReadHooksOptions } from './hook-file.ts'
import { readDocument } from './read-document.ts'

export function readHookFile(text: string, source: FileSource, options: ReadHooksOptions): ReadHooks {
  return readHooks(readDocument(text, source.file), source, options)
}
