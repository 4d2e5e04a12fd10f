import { openForAppend, readFile, replaceFile, writeAll } from './file-access.ts'
import type { PagesChange } from './store.ts'

// The pages of a session, one per line. They are written before the lines that refer to them; if those are never written, or if a
// writer that has lost its lock wrote here, the checksum in the lines does not fit the pages, and nothing is read from them.

const PAGES = 'pages.jsonl'

export function readPages(id: string, folder: string): readonly string[] {
  const text = readFile(id, pathIn(folder))?.toString('utf8') ?? ''
  return text.split('\n').slice(0, -1) // what follows the last newline is empty or incomplete
}

export function changePages(
  id: string,
  folder: string,
  { keep, add, epoch, sync }: PagesChange & { readonly epoch: number; readonly sync: boolean },
): void {
  const path = pathIn(folder)
  const bytes = readFile(id, path)
  const pages = readPages(id, folder)
  const text = add.map((page) => `${page}\n`).join('')
  const isWhole = bytes !== undefined && bytes.at(-1) === 10 && keep === pages.length
  if (!isWhole) {
    const kept = pages.slice(0, keep).map((page) => `${page}\n`)
    return replaceFile(path, `${kept.join('')}${text}`, { temporary: `${path}.${epoch}`, sync })
  }
  const fs = process.getBuiltinModule('node:fs')
  const file = openForAppend(id, path)
  try {
    writeAll(file, text)
    if (sync) fs.fdatasyncSync(file)
  } finally {
    fs.closeSync(file)
  }
}

function pathIn(folder: string): string {
  return process.getBuiltinModule('node:path').join(folder, PAGES)
}
