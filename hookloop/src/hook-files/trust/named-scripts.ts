import { closeSync, globSync, openSync, readSync, statSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { fingerprint, isInside, realPath, type Fingerprint } from './fingerprint.ts'

export type NamedIn = {
  /** The project. */
  readonly dir: string
  /** Where the command runs, if that is elsewhere. */
  readonly cwd?: string
  /** What variables in it stand for. */
  readonly variables?: Readonly<Record<string, string>>
}

/**
 * The files that a command line names, with their fingerprints: scripts, what they are given, and what says what `npm run`
 * or `make` do. Those of the system are not among them, nor what looks like data, which hooks write. A shell may build
 * other names, and a script may load other files, so this finds what is written; the command line itself is part of the
 * file that holds it.
 */
export function namedScripts(command: string, { dir, cwd = dir, variables = {} }: NamedIn): readonly Fingerprint[] {
  const known: Readonly<Record<string, string>> = { CLAUDE_PROJECT_DIR: dir, PWD: cwd, HOME: homedir(), ...variables }
  const filled = command
    .replace(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced: string | undefined, bare: string | undefined) => {
      const name = (braced ?? bare)!
      return Object.hasOwn(known, name) ? known[name]! : all
    })
    .replace(/(?<=^|[\s=:'"])~(?=\/)/g, homedir())
    .replace(/(?:\d|&)?>>?\s*(?:"[^"]*"|'[^']*'|[^\s;&|<>()]+)/g, ' ')
  const words = wordsOf(filled)
  const folders = [cwd, dir, ...words.map((word) => resolve(cwd, word)).filter(isFolder)] // of `cd hooks && ./check.sh`
  const placesOf = (names: readonly string[]): readonly string[] =>
    names.flatMap((name) => (isAbsolute(name) ? [name] : folders.map((folder) => join(folder, name))))
  const root = realPath(dir)
  const found = [
    ...filesAt(placesOf(words)).filter((path) => isWatched(path, root) && !isData(path)),
    ...filesAt(placesOf(manifestsOf(words))),
  ]
  return [...new Set(found)].flatMap((path) => fingerprint(path) ?? [])
}

function wordsOf(line: string): readonly string[] {
  const bare = line.split(/[\s;&|<>()`{}]+/).map((word) => word.replaceAll(/["']/g, ''))
  const quoted = [...line.matchAll(/"([^"]+)"|'([^']+)'/g)].map(([, double, single]) => (double ?? single)!)
  const inner = quoted.flatMap((text) => text.split(/[\s;&|<>()`]+/))
  const words = [...bare, ...quoted, ...inner]
  const values = words.flatMap((word) => (word.includes('=') ? word.split('=').slice(1) : [])) // --rules=hooks/rules.json
  return [...new Set([...words, ...values])].filter((word) => word !== '' && word !== '.' && word !== '..')
}

/** What says what a command does that has no path. */
const manifests: { readonly [program: string]: readonly string[] } = {
  npm: ['package.json'],
  npx: ['package.json'],
  pnpm: ['package.json'],
  yarn: ['package.json'],
  bun: ['package.json'],
  make: ['Makefile', 'makefile', 'GNUmakefile'],
  just: ['justfile', 'Justfile'],
  deno: ['deno.json', 'deno.jsonc'],
  cargo: ['Cargo.toml'],
  composer: ['composer.json'],
  uv: ['pyproject.toml'],
  poetry: ['pyproject.toml'],
}

function manifestsOf(words: readonly string[]): readonly string[] {
  return words.flatMap((word) => (Object.hasOwn(manifests, word) ? manifests[word]! : []))
}

const MAX_MATCHES = 1_000

/** The real paths of the files that there are. */
function filesAt(places: readonly string[]): readonly string[] {
  const paths = places.flatMap((place) => (isPattern(place) ? [place, ...matchesOf(place)] : [place]))
  return paths.filter(isFile).map(realPath)
}

/** A program that stands in the line, or an expression for `grep`, has such signs as well, and takes long to search for. */
function isPattern(place: string): boolean {
  if (!/^[\w./~@%+:,\-*?[\]! ]{1,512}$/.test(place)) return false
  const open = place.split('/').filter((name) => /[*?[]/.test(name)).length
  return open > 0 && open <= MAX_OPEN
}

/** With more names left open than these, the whole disk might have to be looked at. */
const MAX_OPEN = 2

function matchesOf(pattern: string): readonly string[] {
  try {
    return globSync(pattern.replaceAll('**', '*')).slice(0, MAX_MATCHES) // two are as one to a shell, unless it was told
  } catch {
    return [] // at [[:space:]]- for one, which is not what it looks like here
  }
}

/** Programs of the system change with every update, and who may change them may do anything. */
const ofSystem = /^\/(?:bin|sbin|lib\w*|usr|opt|nix|etc|dev|proc|sys|System|Library|Applications)\//

function isWatched(path: string, root: string): boolean {
  return isInside(root, path) || (!ofSystem.test(path) && path !== realPath(process.execPath))
}

const dataNames =
  /(?:^|\/)[^./]*$|\/\.[^./]*$|\.(?:log|txt|out|err|tmp|bak|jsonl|ndjson|csv|tsv|db|sqlite3?|lock|pid|md|stamp)$/i

/** What is neither executable nor says what runs it, and has no ending or that of notes. */
function isData(path: string): boolean {
  if (!dataNames.test(path)) return false
  try {
    if ((statSync(path).mode & 0o111) !== 0) return false
    const fd = openSync(path, 'r')
    try {
      const start = Buffer.alloc(2)
      return readSync(fd, start, 0, 2, 0) < 2 || start.toString('latin1') !== '#!'
    } finally {
      closeSync(fd)
    }
  } catch {
    return false
  }
}

function isFolder(path: string): boolean {
  return statAt(path)?.isDirectory() === true
}

function isFile(path: string): boolean {
  return statAt(path)?.isFile() === true
}

function statAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false }) // most words are no files, and an error takes its time
  } catch {
    return undefined // such as a name that is too long
  }
}
