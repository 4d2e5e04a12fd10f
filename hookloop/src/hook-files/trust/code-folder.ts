import { closeSync, openSync, readdirSync, readlinkSync, readSync, statSync, type Dirent, type Stats } from 'node:fs'
import { join, relative } from 'node:path'
import { realPathOf } from '../../system/files/real-path.ts'
import { fingerprint, hashed, readWithFingerprint, type Fingerprint } from './fingerprint.ts'

/** More is never trusted: a user cannot review it, and every check would be slow. */
const MAX_FILES = 5_000
const MAX_BYTES = 128_000_000
/** Folders and data files included. */
const MAX_ENTRIES = 2 * MAX_FILES

/** Folders that no hook reads as its own code. Python reads the code in `__pycache__` from a private folder instead. */
const leftOut = new Set(['.git', '.hg', '.svn', 'node_modules', '__pycache__'])

/**
 * Every file below a folder except data files, and the folder itself with a hash of all names, so that a file that is added
 * or removed is a change. Folders that links lead to are included. Its paths are real paths.
 */
export function codeInFolder(folder: string): readonly Fingerprint[] {
  const found: Fingerprint[] = []
  const names: string[] = []
  const seen = new Set<string>()
  let [bytes, entries] = [0, 0]
  const walk = (place: string): boolean => {
    const real = realPathOf(place)
    if (real === undefined || seen.has(real)) return true
    seen.add(real)
    return entriesIn(real).every((entry) => {
      const path = join(real, entry.name)
      if (leftOut.has(entry.name)) return true
      if (++entries > MAX_ENTRIES) return false
      const stats = statAt(path)
      if (entry.isSymbolicLink()) names.push(`${relative(folder, path)} -> ${readlinkSync(path)}`)
      if (stats?.isDirectory() === true) return walk(path)
      if (stats?.isFile() !== true || isData(path)) return true
      names.push(relative(folder, path))
      bytes += stats.size
      if (found.length >= MAX_FILES || bytes > MAX_BYTES) return false
      found.push(fingerprint(path) ?? { path, hash: '', problem: 'it cannot be read' })
      return true
    })
  }
  if (walk(folder)) return [{ path: folder, hash: hashed(names.toSorted().join('\n')) }, ...found]
  const problem =
    `it has more than ${MAX_FILES.toLocaleString('en')} files or ${MAX_BYTES / 1e6} MB, and a hook may run any of them: ` +
    'move the script of the hook into a folder of its own'
  return [{ path: folder, hash: '', problem }]
}

/** The code directly in a folder. */
export function codeAt(folder: string): readonly string[] {
  const paths = entriesIn(folder).map(({ name }) => join(folder, name))
  return paths.filter((path) => statAt(path)?.isFile() === true && isCode(path))
}

function entriesIn(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

const dataNames = /(?:\/\.[^./]*|\.(?:log|txt|out|err|tmp|bak|jsonl|ndjson|csv|tsv|db|sqlite3?|lock|pid|md|stamp))$/i

/** Whether a file has the extension of a data file, which hooks write, or is hidden, and cannot be run. */
export function isData(path: string): boolean {
  return dataNames.test(path) && !isRunnable(path)
}

const codeNames =
  /\.(?:sh|bash|zsh|fish|ksh|[cm]?[jt]sx?|py|rb|pl|pm|php|lua|awk|jq|r|ps1|tcl|exs?|groovy|kts?|scala|clj|jar|wasm|so|dylib)$/i

/** Whether a file has the extension of a script, or can be run. */
export function isCode(path: string): boolean {
  return codeNames.test(path) || isRunnable(path)
}

/** Whether a file is executable or has a shebang line. */
function isRunnable(path: string): boolean {
  if (((statAt(path)?.mode ?? 0) & 0o111) !== 0) return true
  try {
    const fd = openSync(path, 'r')
    try {
      const start = Buffer.alloc(2)
      return readSync(fd, start, 0, 2, 0) === 2 && start.toString('latin1') === '#!'
    } finally {
      closeSync(fd)
    }
  } catch {
    return false
  }
}

export function statAt(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false }) // most words are not files, and errors are slow
  } catch {
    return undefined // for example a name that is too long
  }
}

/** The path, if it is a file. */
export function filesAt(path: string): readonly string[] {
  return statAt(path)?.isFile() === true ? [path] : []
}

/** Whether an executable is a script. Its arguments are data then; those of an interpreter may be scripts. */
export function isScriptFile(path: string): boolean {
  return scriptText(path) !== undefined
}

/** Larger files are programs or bundles, whose code is in the file itself. */
const MAX_SCRIPT_BYTES = 512_000

/** The text of a file; undefined if it is too large for a script, or not a text. */
export function scriptText(path: string): string | undefined {
  const size = statAt(path)?.size ?? Infinity
  const text = size > MAX_SCRIPT_BYTES ? undefined : readWithFingerprint(path)?.text
  return text?.includes('\0') === true ? undefined : text
}
