import { randomUUID } from 'node:crypto'
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
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { AgentError } from '../../errors.ts'
import { fingerprint, isInside, readPrinted, realPath, type Fingerprint } from './fingerprint.ts'

/** `changed`: another content of this file was trusted. */
export type TrustStatus = 'trusted' | 'changed' | 'untrusted'

/**
 * Which files people have looked at and trust, by real path and content. A project has no say in it: the list is kept with
 * the user, and a file that is new or has changed is not trusted, whatever folder it lies in.
 */
export class TrustStore {
  readonly file: string
  readonly #given: ReadonlyMap<string, string> | undefined

  constructor(file = defaultTrustFile(), given?: readonly Fingerprint[]) {
    this.file = resolve(file)
    this.#given = given && new Map(given.map(({ path, hash }) => [path, hash]))
  }

  /** Trust in some files as they were, for this process and nobody else. */
  static holding(files: readonly Fingerprint[]): TrustStore {
    return new TrustStore('-', files)
  }

  statusOf({ path, hash }: Fingerprint): TrustStatus {
    const known = this.#read().get(path)
    return known === undefined ? 'untrusted' : known === hash ? 'trusted' : 'changed'
  }

  /** Remembers files as they were looked at, and a copy of each, so that it can be said later what has changed. */
  trust(files: readonly Fingerprint[]): void {
    this.#change((all) => {
      for (const { path, hash } of files) all.set(path, hash)
    })
    for (const file of files) this.#keepCopy(file)
  }

  /** Files with hooks below a folder that were trusted and are not there any more. */
  goneFrom(dir: string): readonly string[] {
    const root = realPath(dir)
    const holds = /\/(?:\.hookloop\/hooks\.\w+|\.claude\/settings(?:\.local)?\.json)$/
    return [...this.#read().keys()].filter((path) => isInside(root, path) && holds.test(path) && !existsSync(path))
  }

  /**
   * Files below a folder that hold hooks, were trusted and are something else now: also if no hook is left in them, or if they
   * cannot be read any more, as their `hash` being empty says.
   */
  changedIn(dir: string): readonly Fingerprint[] {
    const root = realPath(dir)
    const holds = /\/(?:\.hookloop\/hooks\.\w+|\.claude\/settings(?:\.local)?\.json|\.(?:claude|hookloop)\/.+\.md)$/
    return [...this.#read()].flatMap(([path, hash]) => {
      if (!isInside(root, path) || !holds.test(path) || isGone(path)) return []
      const now = fingerprint(path)
      return now?.hash === hash && now.path === path ? [] : [{ path, hash: now?.hash ?? '' }]
    })
  }

  /** What was trusted of a file, if it is another one now and a copy was kept. */
  trustedText({ path }: Fingerprint): string | undefined {
    const hash = this.#read().get(path)
    const copy = hash === undefined ? undefined : readPrinted(this.#copyOf(hash))
    return copy?.hash === hash ? copy?.text : undefined
  }

  #copyOf(hash: string): string {
    return join(dirname(this.file), 'trusted', hash)
  }

  #keepCopy({ path, hash }: Fingerprint): void {
    const read = readPrinted(path)
    if (read?.hash !== hash || read.text.length > MAX_COPY) return
    const copy = this.#copyOf(hash)
    mkdirSync(dirname(copy), { recursive: true, mode: 0o700 })
    try {
      writeFileSync(copy, readFileSync(path), { mode: 0o600, flag: 'wx' })
    } catch {
      // It is there already, or there is no place for it: then nobody is told what has changed, only that it has.
    }
  }

  /** Forgets every file below a folder, and says how many they were. */
  forget(dir: string): number {
    const root = realPath(dir)
    let forgotten = 0
    this.#change((all) => {
      for (const path of all.keys()) if (isInside(root, path) && all.delete(path)) forgotten++
    })
    return forgotten
  }

  /** Refuses a list that a project could write itself. */
  checkOutside(dir: string): void {
    const isUsual = this.file === join(homedir(), '.config', 'hookloop', 'trust.json') // where work is done at home
    if (this.#given !== undefined || isUsual || !isInside(realPath(dir), realPath(this.file))) return
    throw new AgentError(
      'CONFIG_INVALID',
      `The list of what is trusted, ${this.file}, lies inside the project, which could write it. Keep it elsewhere.`,
      { value: this.file },
    )
  }

  #read(): ReadonlyMap<string, string> {
    if (this.#given !== undefined) return this.#given
    let text: string
    try {
      text = readOwn(this.file)
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return new Map()
      throw this.#unreadable(error)
    }
    try {
      const value = JSON.parse(text) as Json
      const files = isJsonObject(value) && value['version'] === 1 ? value['files'] : undefined
      if (!isJsonObject(files)) throw new Error('its form is not known')
      const entries = Object.entries(files)
      const bad = entries.find(
        ([path, hash]) => !isAbsolute(path) || !/^[0-9a-f]{64}$/.test(typeof hash === 'string' ? hash : ''),
      )
      if (bad !== undefined) throw new Error(`${bad[0]} is not how a file is written there`)
      return new Map(entries as [string, string][])
    } catch (error) {
      throw this.#unreadable(error)
    }
  }

  /** One at a time, over all processes: what another has trusted meanwhile is not lost. */
  #change(change: (all: Map<string, string>) => void): void {
    if (this.#given !== undefined) throw new Error('What is trusted here was given, and is not changed.')
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
    const release = takeLock(`${this.file}.lock`)
    try {
      const all = new Map(this.#read())
      change(all)
      this.#write(Object.fromEntries([...all].toSorted(([a], [b]) => (a < b ? -1 : 1))))
    } finally {
      release()
    }
  }

  /** Nobody else may read it or add to it, and half of it is never seen. */
  #write(files: JsonObject): void {
    const beside = `${this.file}.${randomUUID()}`
    try {
      writeFileSync(beside, `${JSON.stringify({ version: 1, files }, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
      chmodSync(beside, 0o600)
      renameSync(beside, this.file)
    } finally {
      rmSync(beside, { force: true })
    }
  }

  #unreadable(cause: unknown): AgentError {
    const why = cause instanceof Error ? ` (${cause.message})` : ''
    return new AgentError(
      'CONFIG_INVALID',
      `The list of what is trusted, ${this.file}, cannot be used${why}. Mend or delete it: until then no project is trusted.`,
      { value: this.file, cause },
    )
  }
}

/** Whether nothing is there any more. What is in a folder that nobody may look into is not gone. */
function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined
  } catch {
    return false
  }
}

const MAX_STORE_BYTES = 16_000_000
const MAX_COPY = 262_144

/** Reads a file that only its owner can have written. */
function readOwn(file: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const { mode, uid, size } = fstatSync(fd)
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw new Error('it is no file')
    if (process.platform !== 'win32' && (mode & 0o022) !== 0) throw new Error('others may write to it')
    const own = process.getuid?.()
    if (own !== undefined && uid !== own && uid !== 0) throw new Error('it belongs to somebody else')
    if (size > MAX_STORE_BYTES) throw new Error('it is too long')
    return readFileSync(fd, 'utf8')
  } finally {
    closeSync(fd)
  }
}

const LOCK_STALE_MS = 10_000
const LOCK_WAIT_MS = 20_000

function takeLock(path: string): () => void {
  const until = Date.now() + LOCK_WAIT_MS
  for (;;) {
    try {
      closeSync(openSync(path, 'wx', 0o600))
      return () => rmSync(path, { force: true })
    } catch (error) {
      if ((error as { code?: string }).code !== 'EEXIST') throw error
      if (Date.now() > until) throw new Error(`${path} is held by another process.`, { cause: error })
      if (ageOf(path) > LOCK_STALE_MS) rmSync(path, { force: true }) // whoever took it has died
      else Atomics.wait(pause, 0, 0, 10)
    }
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4))

function ageOf(path: string): number {
  try {
    return Date.now() - statSync(path).mtimeMs
  } catch {
    return 0
  }
}

export function defaultTrustFile(env: NodeJS.ProcessEnv = process.env): string {
  return env['HOOKLOOP_TRUST'] ?? join(env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'hookloop', 'trust.json')
}
