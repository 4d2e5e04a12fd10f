import { openForAppend, readFile, replaceFile, writeAll } from './file-access.ts'
import type { Batch, NumberedEvent } from './open-writers.ts'

// The events of a session, one per line.

const EVENTS = 'events.jsonl'

export function addEvents(
  id: string,
  folder: string,
  {
    events,
    startsTurn,
    epoch,
    sync,
  }: Pick<Batch, 'events' | 'startsTurn'> & { readonly epoch: number; readonly sync: boolean },
): void {
  const path = pathIn(folder)
  const stored = readFile(id, path)
  const textOf = (all: readonly NumberedEvent[]): string => all.map((each) => `${JSON.stringify(each)}\n`).join('')
  if (stored === undefined || startsTurn) {
    const { log, events: found } = readEvents(id, folder)
    const kept = found.filter(({ transient }) => !startsTurn || !transient)
    const text = `${log ?? crypto.randomUUID()}\n${textOf([...kept, ...events])}`
    return replaceFile(path, text, { temporary: `${path}.${epoch}`, sync })
  }
  const fs = process.getBuiltinModule('node:fs')
  const file = openForAppend(id, path)
  try {
    writeAll(file, textOf(events))
    if (sync) fs.fdatasyncSync(file)
  } finally {
    fs.closeSync(file)
  }
}

export function readEvents(
  id: string,
  folder: string,
): {
  /** A name that no other log has; undefined if it does not exist yet. */
  readonly log: string | undefined
  readonly events: readonly NumberedEvent[]
} {
  const [log, ...lines] = (readFile(id, pathIn(folder))?.toString('utf8') ?? '').split('\n').slice(0, -1)
  return { log, events: lines.map((line) => JSON.parse(line) as NumberedEvent) }
}

function pathIn(folder: string): string {
  return process.getBuiltinModule('node:path').join(folder, EVENTS)
}
