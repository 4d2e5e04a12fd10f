import { closeSync, globSync, openSync, readSync, statSync, type Stats } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { fingerprint, isInside, realPath, type Fingerprint } from './fingerprint.ts'

export type NamedIn = {
  /** The project. */
  readonly dir: string
  /** The working directory of the command. Default: `dir`. */
  readonly cwd?: string
  /** The values of variables in the command. */
  readonly variables?: Readonly<Record<string, string>>
}

/**
 * The files that a command line names, with their fingerprints: scripts, their arguments, and the files that define what
 * `npm run` or `make` do. Files of the system and data files, which hooks write, are left out. Names that a shell builds
 * and files that a script loads are not found.
 */
export function namedScripts(command: string, { dir, cwd = dir, variables = {} }: NamedIn): readonly Fingerprint[] {
  const known: Readonly<Record<string, string>> = { CLAUDE_PROJECT_DIR: dir, PWD: cwd, HOME: homedir(), ...variables }
  const filled = fillVariables(command, known)
    .replace(/(?<=^|[\s=:'"])~(?=\/)/g, homedir())
    .replace(/(?:\d|&)?>>?\s*(?:"[^"]*"|'[^']*'|[^\s;&|<>()]+)/g, ' ')
  const words = wordsOf(filled)
  const folders = [cwd, dir, ...words.map((word) => resolve(cwd, word)).filter(isFolder)] // for `cd hooks && ./check.sh`
  const placesOf = (names: readonly string[]): readonly string[] =>
    names.flatMap((name) => (isAbsolute(name) ? [name] : folders.map((folder) => join(folder, name))))
  const root = realPath(dir)
  const found = [
    ...filesAt(placesOf(words)).filter((path) => isWatched(path, root) && !isData(path)),
    ...filesAt(placesOf(manifestsOf(words))),
  ]
  return [...new Set(found)].flatMap((path) => fingerprint(path) ?? [])
}

/** Replaces `$NAME` and `${NAME}` where the value is known. */
export function fillVariables(text: string, known: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced: string | undefined, bare: string | undefined) => {
    const name = (braced ?? bare)!
    return Object.hasOwn(known, name) ? known[name]! : all
  })
}

function wordsOf(line: string): readonly string[] {
  const bare = line.split(/[\s;&|<>()`{}]+/).map((word) => word.replaceAll(/["']/g, ''))
  const quoted = [...line.matchAll(/"([^"]+)"|'([^']+)'/g)].map(([, double, single]) => (double ?? single)!)
  const inner = quoted.flatMap((text) => text.split(/[\s;&|<>()`]+/))
  const words = [...bare, ...quoted, ...inner]
  const values = words.flatMap((word) => (word.includes('=') ? word.split('=').slice(1) : [])) // --rules=hooks/rules.json
  return [...new Set([...words, ...values])].filter((word) => word !== '' && word !== '.' && word !== '..')
}

/** The files that define what a program without a path does. */
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

/** The real paths of those that are files. */
function filesAt(places: readonly string[]): readonly string[] {
  const paths = places.flatMap((place) => (isPattern(place) ? [place, ...matchesOf(place)] : [place]))
  return paths.filter(isFile).map(realPath)
}

/** Inline programs and expressions for `grep` look like patterns as well, and would take long to search for. */
function isPattern(place: string): boolean {
  if (!/^[\w./~@%+:,\-*?[\]! ]{1,512}$/.test(place)) return false
  const open = place.split('/').filter((name) => /[*?[]/.test(name)).length
  return open > 0 && open <= MAX_OPEN
}

/** With more wildcards, the search could visit the whole disk. */
const MAX_OPEN = 2

function matchesOf(pattern: string): readonly string[] {
  try {
    return globSync(pattern.replaceAll('**', '*')).slice(0, MAX_MATCHES) // as in a shell without globstar
  } catch {
    return [] // for example at [[:space:]]-
  }
}

/** Programs of the system change with every update, and only an administrator can change them. */
const ofSystem = /^\/(?:bin|sbin|lib\w*|usr|opt|nix|etc|dev|proc|sys|System|Library|Applications)\//

function isWatched(path: string, root: string): boolean {
  return isInside(root, path) || (!ofSystem.test(path) && path !== realPath(process.execPath))
}

const dataNames =
  /(?:^|\/)[^./]*$|\/\.[^./]*$|\.(?:log|txt|out|err|tmp|bak|jsonl|ndjson|csv|tsv|db|sqlite3?|lock|pid|md|stamp)$/i

/** Whether a file without an extension, or with that of a data file, is neither executable nor has a shebang line. */
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
    return statSync(path, { throwIfNoEntry: false }) // most words are not files, and errors are slow
  } catch {
    return undefined // for example a name that is too long
  }
}
