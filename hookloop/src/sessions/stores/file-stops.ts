import type { StopRequest } from '../../state/stop-request.ts'
import { createFileWith, namesIn, readFile, replaceFile, syncFolder } from './file-access.ts'
import { latestEpoch } from './file-lock.ts'
import { readStop, sessionBusy } from './store.ts'

// A request to stop a run is a file with the number of the lock that it was made under: `stop-3.json`. Only the file of the latest
// lock counts. A process that locks the session takes over a request if the run is open. A process that requests a stop looks for
// a new lock after it has created the file: if there is none, a process that locks the session later finds the file.

const STOP = /^stop-(\d{1,15})\.json$/
const MAX_BYTES = 65_536
const MAX_ATTEMPTS = 16

/** Stores a request, unless there is one. `isInUse` says whether there is a run to stop. */
export function addStop(
  id: string,
  folder: string,
  {
    request,
    isInUse,
    sync,
  }: { readonly request: StopRequest; readonly isInUse: () => boolean; readonly sync: boolean },
): boolean {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const epoch = latestEpoch(id, folder)
    if (!isInUse()) return false
    const path = stopPath(folder, epoch)
    const file = createFileWith(path, JSON.stringify(request), { temporary: `${path}.${crypto.randomUUID()}` })
    const fs = process.getBuiltinModule('node:fs')
    if (file !== undefined) {
      if (sync) fs.fsyncSync(file)
      fs.closeSync(file)
      if (sync) syncFolder(folder)
    }
    if (latestEpoch(id, folder) === epoch) return true
  }
  throw sessionBusy(id, 'several other processes')
}

/** The request that counts now. */
export function findStop(id: string, folder: string): StopRequest | undefined {
  if (!(namesIn(id, folder) ?? []).some((name) => STOP.test(name))) return undefined
  return readStopAt(id, folder, latestEpoch(id, folder))
}

/** Takes over the request that was made under an earlier lock, if the run is open. Old files are removed with old locks. */
export function takeStop(
  id: string,
  folder: string,
  { epoch, isOpen, sync }: { readonly epoch: number; readonly isOpen: boolean; readonly sync: boolean },
): StopRequest | undefined {
  const epochs = (namesIn(id, folder) ?? []).flatMap((name) => STOP.exec(name)?.[1] ?? []).map(Number)
  if (!isOpen || epochs.length === 0) return undefined
  const request = readStopAt(id, folder, Math.max(...epochs))
  if (request === undefined || epochs.includes(epoch)) return request
  const path = stopPath(folder, epoch)
  replaceFile(path, JSON.stringify(request), { temporary: `${path}.${crypto.randomUUID()}`, sync })
  return request
}

export function removeStop(folder: string, epoch: number): void {
  process.getBuiltinModule('node:fs').rmSync(stopPath(folder, epoch), { force: true })
}

function readStopAt(id: string, folder: string, epoch: number): StopRequest | undefined {
  return readStop(readFile(id, stopPath(folder, epoch), { limit: MAX_BYTES })?.toString('utf8'))
}

function stopPath(folder: string, epoch: number): string {
  return process.getBuiltinModule('node:path').join(folder, `stop-${epoch}.json`)
}
