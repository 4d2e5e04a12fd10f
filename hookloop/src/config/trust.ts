import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { isJsonObject, type Json, type JsonObject } from '../data/json.ts'
import { AgentError } from '../errors.ts'

/** A file that runs, or says what runs, as it was looked at. */
export type Fingerprint = { readonly path: string; readonly hash: string }

export type TrustStatus = 'trusted' | 'changed' | 'untrusted'

/** What was trusted in one project, by the real path of each file. */
export type Trusted = { readonly [path: string]: string }

/**
 * Which files people have looked at and trust, by content. A project has no say in it: the list is kept with the user, and
 * a file that is new or has changed is not trusted, whatever folder it lies in.
 */
export class TrustStore {
  readonly file: string

  constructor(file = defaultTrustFile()) {
    this.file = file
  }

  statusOf({ path, hash }: Fingerprint): TrustStatus {
    const known = this.#read()[path]
    return known === undefined ? 'untrusted' : known === hash ? 'trusted' : 'changed'
  }

  /** Remembers files as they are now. */
  trust(files: readonly Fingerprint[]): void {
    const all = { ...this.#read(), ...Object.fromEntries(files.map(({ path, hash }) => [path, hash])) }
    this.#write(all)
  }

  /** Forgets every file below a folder, and says how many they were. */
  forget(dir: string): number {
    const root = realPath(dir)
    const [before, after] = [Object.entries(this.#read()), [] as [string, string][]]
    for (const entry of before) if (!isInside(root, entry[0])) after.push(entry)
    this.#write(Object.fromEntries(after))
    return before.length - after.length
  }

  #read(): Trusted {
    let text: string
    try {
      text = readFileSync(this.file, 'utf8')
    } catch (error) {
      if ((error as { code?: string }).code === 'ENOENT') return {}
      throw this.#unreadable(error)
    }
    try {
      const value = JSON.parse(text) as Json
      const files = isJsonObject(value) ? value['files'] : undefined
      if (!isJsonObject(value) || value['version'] !== 1 || !isJsonObject(files))
        throw new Error('its form is not known')
      return Object.fromEntries(
        Object.entries(files).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      )
    } catch (error) {
      throw this.#unreadable(error)
    }
  }

  /** Nobody else may read it or add to it, and half of it is never seen. */
  #write(files: JsonObject): void {
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 })
    const whole = `${JSON.stringify({ version: 1, files }, undefined, 2)}\n`
    const beside = `${this.file}.${process.pid}`
    writeFileSync(beside, whole, { mode: 0o600 })
    chmodSync(beside, 0o600)
    renameSync(beside, this.file)
  }

  #unreadable(cause: unknown): AgentError {
    return new AgentError(
      'CONFIG_INVALID',
      `The list of what is trusted, ${this.file}, cannot be read. Mend or delete it.`,
      { cause },
    )
  }
}

export function defaultTrustFile(env: NodeJS.ProcessEnv = process.env): string {
  return env['HOOKLOOP_TRUST'] ?? join(env['XDG_CONFIG_HOME'] ?? join(homedir(), '.config'), 'hookloop', 'trust.json')
}

/** A file by its real path and its content; undefined if it cannot be read, or is no file. */
export function fingerprint(path: string): Fingerprint | undefined {
  try {
    const real = realpathSync(path)
    if (!statSync(real).isFile()) return undefined
    return { path: real, hash: createHash('sha256').update(readFileSync(real)).digest('hex') }
  } catch {
    return undefined
  }
}

/**
 * The files of a project that a command line names: words that are paths to files there. A shell may build other names,
 * so this finds what is written, and the command line itself is part of the file that holds it.
 */
export function scriptsIn(
  command: string,
  { dir, variables = {} }: { readonly dir: string; readonly variables?: Readonly<Record<string, string>> },
): readonly Fingerprint[] {
  const known: Readonly<Record<string, string>> = { CLAUDE_PROJECT_DIR: dir, PWD: dir, ...variables }
  const filled = command.replace(
    /\$(?:\{(\w+)\}|(\w+))/g,
    (all, braced: string | undefined, bare: string | undefined) => {
      const name = (braced ?? bare)!
      return Object.hasOwn(known, name) ? known[name]! : all
    },
  )
  const words = filled.split(/[\s;&|<>()]+/).map((word) => word.replaceAll(/["']/g, ''))
  const whole = [...filled.matchAll(/"([^"]+)"|'([^']+)'/g)].map(([, double, single]) => (double ?? single)!)
  const found = [...new Set([...words, ...whole])]
    .filter((word) => word !== '')
    .flatMap((word) => {
      const print = fingerprint(isAbsolute(word) ? word : resolve(dir, word))
      return print !== undefined && isInside(realPath(dir), print.path) ? [print] : []
    })
  return found.filter(({ path }, i) => found.findIndex((each) => each.path === path) === i)
}

export function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way)
}

export function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
