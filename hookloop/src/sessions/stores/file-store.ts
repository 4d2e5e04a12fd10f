import { checkArgument, checkChoice, checkOptions } from '../../state/check-options.ts'
import type { Json } from '../../state/json.ts'
import type { StopRequest } from '../../state/stop-request.ts'
import { AgentError, messageOf } from '../../errors.ts'
import { createFolder, isMissing, namesIn, readFile, replaceFile, syncFolder } from './file-access.ts'
import { EventsReader, sizesOf } from './file-events.ts'
import { lockSession, removeOldLocks, sessionLock } from './file-lock.ts'
import { lastSegment, segmentPath } from './file-log.ts'
import { currentEnd, readLines, readPart } from './file-reader.ts'
import { addStop, findStop } from './file-stops.ts'
import { openSession, type Settings } from './file-writer.ts'
import { folderName, idOfFolder, writeIdFile } from './session-folders.ts'
import { checkLease } from './lock-owner.ts'
import { countOf, pageOf, pruneSessions } from './list-sessions.ts'
import { OpenWriters } from './open-writers.ts'
import { changedText, retryChange, unlessBusy, type ValueChange } from './shared-value.ts'
import { StopListeners } from './stop-listeners.ts'
import {
  checkSessionId,
  checkStoreCall,
  headNow,
  isOpenStatus,
  sessionUnknown,
  storeFailed,
  useOf,
  type ListedSession,
  type SessionStore,
} from './store.ts'
import { EventWatchers, pollEvery } from './watch-events.ts'

/** Options of `fileStore`. */
export type FileStoreOptions = {
  /** `full` waits for the disk and survives a power loss; `normal` survives a crash of the process. Default `normal`. */
  readonly durability?: 'normal' | 'full'
  /** How long a lock stays in force after its owner last renewed it, if the owner cannot be checked. Default 30,000. */
  readonly leaseMs?: number
}

const DELETED = '.deleted-'
const VALUES = '.value-'
const MAX_ATTEMPTS = 8
const POLL_MS = 20
/** How often a store with runs checks whether another process has requested to stop one. */
const STOP_POLL_MS = 250

/**
 * A session store in a folder, for all processes of one machine: each session is a folder of JSON lines. It must not be on a
 * network drive, where two machines may see a lock file at different times.
 *
 * @example
 * const store = fileStore('.hookloop/sessions')
 * const agent = createAgent({ model, store })
 * await agent.run('Hello.', { session: 'chat-1' })
 */
export function fileStore(folder: string, options: FileStoreOptions = {}): SessionStore {
  checkOptions('fileStore', options, ['durability', 'leaseMs'])
  checkArgument('fileStore', ['folder', folder], typeof folder === 'string' && folder !== '', 'the path of a folder')
  checkChoice('fileStore', 'durability', options.durability ?? 'normal', ['normal', 'full'])
  const settings = { sync: options.durability === 'full', leaseMs: checkLease(options.leaseMs) }
  const root = path().resolve(folder)
  const folderOf = (id: string): string => path().join(root, folderName(root, checkSessionId(id)))
  const watchers = new EventWatchers({
    polling: pollEvery(
      () => POLL_MS,
      () => watchers.check((id) => sizesOf(id, folderOf(id))),
    ),
  })
  const readStops = (ids: readonly string[]): ReadonlyMap<string, StopRequest> =>
    new Map(
      ids.flatMap((id) => {
        const request = findStop(id, folderOf(id))
        return request === undefined ? [] : [[id, request]]
      }),
    )
  const stops: StopListeners = new StopListeners(
    readStops,
    pollEvery(
      () => STOP_POLL_MS,
      () => stops.check(),
      { ref: false },
    ),
  )
  const writers = new OpenWriters(watchers, stops, settings.leaseMs)
  const listed = (): readonly ListedSession[] =>
    namesInStore(root).flatMap((name) => listSession(name, path().join(root, name)) ?? [])
  const store: SessionStore = {
    async open(id, given = {}) {
      checkStoreCall('open', id, given)
      const { create = false } = given
      const own = folderOf(id)
      await writers.releaseStale(id)
      return attempt(id, () => {
        if (create) createSession(id, own)
        else if (lastSegment(id, own) === undefined && readLines(id, own) === undefined) throw sessionUnknown(id)
        return writers.add(openSession(id, own, settings))
      })
    },
    async read(id, options = {}) {
      checkStoreCall('read', id, options)
      const own = folderOf(id)
      return attempt(id, () => readPart(id, own, options))
    },
    async list(given = {}) {
      return pageOf(
        listed().map((each) => ({ ...each, updatedAt: Math.trunc(each.updatedAt) })),
        given,
      )
    },
    count: async (filter = {}) => countOf(listed(), filter),
    async delete(id, given = {}) {
      checkStoreCall('delete', id, given)
      const { before = Infinity } = given
      const own = folderOf(id)
      const isDeleted = attempt(
        id,
        () => namesIn(id, own) !== undefined && deleteSession(id, own, { ...settings, before }),
      )
      if (isDeleted) watchers.changed(id)
      return isDeleted
    },
    prune: (given) => pruneSessions(store, given),
    async update(name, change) {
      const own = path().join(root, `${VALUES}${folderName(root, checkSessionId(name))}`)
      return retryChange(name, () =>
        unlessBusy(() => attempt(name, () => changeValue(name, own, { ...settings, change }))),
      )
    },
    watch: (id, given = {}) =>
      watchers.watch(id, given, () => {
        const reader = new EventsReader(id, folderOf(id))
        return (after) => attempt(id, () => reader.read(after))
      }),
    async requestStop(id, request) {
      checkStoreCall('requestStop', id, request)
      const own = folderOf(id)
      const isInUse = (): boolean =>
        sessionLock(id, own) !== undefined || isOpenStatus(currentEnd(id, own)?.head['status'])
      const isStored = attempt(
        id,
        () => namesIn(id, own) !== undefined && addStop(id, own, { request, isInUse, sync: settings.sync }),
      )
      if (isStored) await stops.check(id)
      return isStored
    },
    async close() {
      watchers.close()
      await writers.close()
    },
  }
  return store
}

/** A value has a folder and a lock like a session. */
function changeValue(
  name: string,
  folder: string,
  { change, leaseMs, sync }: Settings & { readonly change: ValueChange },
): Json {
  createFolder(folder)
  const lock = lockSession(name, folder, leaseMs)
  try {
    const target = path().join(folder, 'value.json')
    const { text, value } = changedText(readFile(name, target)?.toString('utf8'), change)
    replaceFile(target, text, { temporary: `${target}.${lock.epoch}`, sync })
    removeOldLocks(name, folder, lock.epoch)
    return value
  } finally {
    lock.end('released')
  }
}

function namesInStore(root: string): readonly string[] {
  try {
    return fs().readdirSync(root)
  } catch (error) {
    if (isMissing(error)) return []
    throw storeFailed(`The store ${root} cannot be read`, error)
  }
}

/** A session may be deleted and created again while it is read: if a file is missing, everything is read again. */
function attempt<T>(id: string, work: () => T): T {
  for (let left = MAX_ATTEMPTS; ; left--) {
    try {
      return work()
    } catch (error) {
      const missing = isMissing(error) || (error instanceof AgentError && isMissing(error.cause))
      if (left === 0 || !missing) throw storeFailed(`The session "${id}" cannot be read or written`, error)
    }
  }
}

function createSession(id: string, folder: string): void {
  createFolder(folder)
  writeIdFile(id, folder)
}

function listSession(name: string, folder: string): ListedSession | undefined {
  const found = fs().lstatSync(folder, { throwIfNoEntry: false })
  const id = found === undefined || found.isFile() ? undefined : idOfFolder(name, folder)
  if (id === undefined) return undefined // not a session
  let updatedAt = 0
  try {
    return attempt(id, () => {
      const last = lastSegment(id, folder)
      const file = last === undefined ? undefined : fs().lstatSync(segmentPath(folder, last), { throwIfNoEntry: false })
      updatedAt = file?.mtimeMs ?? 0
      const end = currentEnd(id, folder)
      const lock = sessionLock(id, folder)
      const use = useOf(lock, findStop(id, folder))
      return end && { id, head: headNow(end.head, lock !== undefined), updatedAt, ...use }
    })
  } catch (error) {
    return { id, head: {}, updatedAt, problem: messageOf(error) }
  }
}

/** The folder is renamed first, so that no process ever finds a part of the session. */
function deleteSession(id: string, folder: string, settings: Settings & { readonly before: number }): boolean {
  const lock = lockSession(id, folder, settings.leaseMs)
  const root = path().dirname(folder)
  try {
    const last = lastSegment(id, folder)
    const file = last === undefined ? undefined : fs().lstatSync(segmentPath(folder, last), { throwIfNoEntry: false })
    if ((file?.mtimeMs ?? 0) >= settings.before) {
      lock.withdraw()
      return false
    }
    fs().renameSync(folder, path().join(root, `${DELETED}${lock.token}`))
  } catch (error) {
    lock.end('left')
    throw error
  }
  lock.end('left')
  if (settings.sync) syncFolder(root)
  for (const name of fs().readdirSync(root)) if (name.startsWith(DELETED)) removeFolder(path().join(root, name))
  return true
}

function removeFolder(folder: string): void {
  try {
    fs().rmSync(folder, { recursive: true, force: true })
  } catch {
    // Another process removes it as well, or the next `delete` does.
  }
}

function fs(): typeof import('node:fs') {
  return process.getBuiltinModule('node:fs')
}

function path(): typeof import('node:path') {
  return process.getBuiltinModule('node:path')
}
