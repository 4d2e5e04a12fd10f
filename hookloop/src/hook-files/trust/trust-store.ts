import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { configFolder, homeFolder } from '../../system/files/user-folders.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { AgentError } from '../../errors.ts'
import { lockFile } from './lock-file.ts'
import { fingerprint, hashFiles, isInside, readWithFingerprint, realPath, type Fingerprint } from './fingerprint.ts'

/** `changed`: the file was trusted with different content. */
export type TrustStatus = 'trusted' | 'changed' | 'untrusted'

/** A file that keeps hooks from running. */
export type UntrustedFile = Fingerprint & { readonly status: Exclude<TrustStatus, 'trusted'> }

export function statusText({ status, problem }: UntrustedFile): string {
  if (problem !== undefined) return `cannot be trusted (${problem})`
  return status === 'changed' ? 'has changed since it was trusted' : 'is not trusted'
}

/**
 * The files that the user trusts, by real path and content. The list is stored in the home folder of the user, where a
 * project cannot write. A file that is new or has changed is not trusted.
 *
 * @example
 * const trust = new TrustStore()
 * trust.trust(hookFilesOf(dir)) // after the user has read them
 * createAgent({ model, use: [projectHooks({ dir, trust })] })
 */
export class TrustStore {
  readonly file: string
  readonly #given: ReadonlyMap<string, string> | undefined

  constructor(file = defaultTrustFile(), given?: readonly Fingerprint[]) {
    this.file = resolve(file)
    this.#given = given && new Map(given.map(({ path, hash }) => [path, hash]))
  }

  /** Trusts these files in memory only. */
  static of(files: readonly Fingerprint[]): TrustStore {
    return new TrustStore('-', files)
  }

  statusOf(file: Fingerprint): TrustStatus {
    return this.untrusted([file])[0]?.status ?? 'trusted'
  }

  /** Those of the files that are not trusted. */
  untrusted(files: readonly Fingerprint[]): readonly UntrustedFile[] {
    const all = this.#read()
    return files.flatMap((file) => {
      const known = all.get(file.path)
      if (known === file.hash && file.hash !== '') return []
      return [{ ...file, status: known === undefined ? 'untrusted' : 'changed' }]
    })
  }

  /**
   * Trusts files with the content of their fingerprints, and stores a copy of each, to show later what has changed. Those that
   * cannot be trusted are left out.
   */
  trust(files: readonly Fingerprint[]): void {
    const usable = files.filter(({ hash }) => hash !== '')
    this.#change((all) => {
      for (const { path, hash } of usable) all.set(path, hash)
    })
    for (const file of usable) this.#storeCopy(file)
  }

  /** Files with hooks below a folder that were trusted and do not exist any more. */
  missingFiles(dir: string): readonly string[] {
    const root = realPath(dir)
    return [...this.#read().keys()].filter((path) => isInside(root, path) && hookFile.test(path) && !existsSync(path))
  }

  /**
   * Files with hooks below a folder that have changed since they were trusted, also if they contain no hooks any more. The
   * hash of a file that cannot be read is empty.
   */
  changedFiles(dir: string): readonly Fingerprint[] {
    const root = realPath(dir)
    return [...this.#read()].flatMap(([path, hash]) => {
      const isHookFile = hookFile.test(path) || markdown.test(path)
      if (!isInside(root, path) || !isHookFile || isGone(path)) return []
      const now = fingerprint(path)
      return now?.hash === hash && now.path === path ? [] : [{ path, hash: now?.hash ?? '' }]
    })
  }

  /** The content of a file when it was trusted, if a copy was stored. */
  trustedText({ path }: Fingerprint): string | undefined {
    const hash = this.#read().get(path)
    const copy = hash === undefined ? undefined : readWithFingerprint(this.#copyOf(hash))
    return copy?.hash === hash ? copy?.text : undefined
  }

  #copyOf(hash: string): string {
    return join(dirname(this.file), 'trusted', hash)
  }

  #storeCopy({ path, hash }: Fingerprint): void {
    const read = readWithFingerprint(path)
    if (read?.hash !== hash || read.text.length > MAX_COPY) return
    const copy = this.#copyOf(hash)
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 })
    try {
      writeFileSync(copy, readFileSync(path), { mode: 0o600, flag: 'wx' })
    } catch {
      // It exists already, or cannot be written: then `trustedText` is undefined.
    }
  }

  /** Removes all files below a folder from the list, and returns how many there were. */
  forget(dir: string): number {
    const root = realPath(dir)
    let forgotten = 0
    this.#change((all) => {
      for (const path of all.keys()) if (isInside(root, path) && all.delete(path)) forgotten++
    })
    return forgotten
  }

  /** Throws if the project could write the list. */
  checkOutside(dir: string): void {
    const isUsual = this.file === join(homeFolder(), '.config', 'hookloop', 'trust.json') // inside a project that is the home folder
    if (this.#given !== undefined || isUsual || !isInside(realPath(dir), realPath(this.file))) return
    throw new AgentError(
      'CONFIG_INVALID',
      `The list of trusted files, ${this.file}, is inside the project, which could change it. Use a path outside of it.`,
      { value: this.file },
    )
  }

  #read(): ReadonlyMap<string, string> {
    if (this.#given !== undefined) return this.#given
    try {
      const value = JSON.parse(readOwn(this.file)) as Json
      const files = isJsonObject(value) && value['version'] === 1 ? value['files'] : undefined
      if (!isJsonObject(files)) throw new Error('it has an unknown format')
      const entries = Object.entries(files)
      const bad = entries.find(
        ([path, hash]) => !isAbsolute(path) || !/^[0-9a-f]{64}$/.test(typeof hash === 'string' ? hash : ''),
      )
      if (bad !== undefined) throw new Error(`the entry ${bad[0]} is invalid`)
      return new Map(entries as [string, string][])
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return new Map()
      throw this.#unreadable(error)
    }
  }

  /** Under a lock, so that changes by other processes are not lost. */
  #change(change: (all: Map<string, string>) => void): void {
    if (this.#given !== undefined) throw new Error('This list of trusted files is in memory and cannot be changed.')
    const unlock = this.#lock()
    try {
      const all = new Map(this.#read())
      change(all)
      this.#write(Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1))))
    } finally {
      unlock()
    }
  }

  #lock(): () => void {
    let unlock: (() => void) | undefined
    try {
      unlock = lockFile(`${this.file}.lock`, LOCK_WAIT_MS)
    } catch (error) {
      throw this.#unreadable(error)
    }
    if (unlock !== undefined) return unlock
    throw new AgentError('CONFIG_INVALID', `${this.file} is locked by another process. Try again later.`, {
      value: this.file,
    })
  }

  /** Atomically, and only for the user. */
  #write(files: JsonObject): void {
    const temporary = `${this.file}.${crypto.randomUUID()}`
    try {
      writeFileSync(temporary, `${JSON.stringify({ version: 1, files }, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
      chmodSync(temporary, 0o600)
      renameSync(temporary, this.file)
    } finally {
      rmSync(temporary, { force: true })
    }
  }

  #unreadable(cause: unknown): AgentError {
    const why = cause instanceof Error ? ` (${cause.message})` : ''
    return new AgentError(
      'CONFIG_INVALID',
      `The list of trusted files, ${this.file}, cannot be used${why}. Fix or delete it: until then no project is trusted.`,
      { value: this.file, cause },
    )
  }
}

/** Whether a path does not exist any more. In a folder that cannot be read, that is unknown. */
function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

/** Files with hooks. */
const hookFile = /\/(?:\.hookloop\/hooks\.\w+|\.claude\/settings(?:\.local)?\.json)$/
/** Skills, commands and agents, which may have hooks. */
const markdown = /\/\.(?:claude|hookloop)\/.+\.md$/

const MAX_STORE_BYTES = 16_000_000
const MAX_COPY = 262_144

/** Reads a file that only the user or root can have written. */
function readOwn(file: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const { mode, uid, size } = fstatSync(fd)
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw new Error('it is not a file')
    if (process.platform !== 'win32' && (mode & 0o022) !== 0) throw new Error('other users can write to it')
    const own = process.getuid?.()
    if (own !== undefined && uid !== own && uid !== 0) throw new Error('it belongs to another user')
    if (size > MAX_STORE_BYTES) throw new Error('it is too large')
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

const LOCK_WAIT_MS = 20_000

export function defaultTrustFile(env: NodeJS.ProcessEnv = process.env): string {
  return env['HOOKLOOP_TRUST'] || join(configFolder(env), 'trust.json')
}

const MIN_HASH_CHARS = 16

/** Trusts files if their hash, or at least its first 16 characters, is the one that the user gave. */
export function trustedByHash(
  files: readonly Fingerprint[],
  { dir, hash }: { readonly dir: string; readonly hash: string },
): TrustStore | undefined {
  const wanted = hash.trim().toLowerCase()
  const isHash = wanted.length >= MIN_HASH_CHARS && /^[0-9a-f]+$/.test(wanted)
  return isHash && files.length > 0 && hashFiles(files, dir).startsWith(wanted) ? TrustStore.of(files) : undefined
}
