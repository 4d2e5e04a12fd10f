import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, type Dirent } from 'node:fs'
import { isAbsolute, join, sep } from 'node:path'
import { readBytes } from '../../system/files/read-text.ts'
import { realPathOf } from '../../system/files/real-path.ts'
import { sanitizeText } from '../../system/sanitize-text.ts'
import { oneLine } from './skill.ts'

/** Folders whose files a skill offers, besides text files next to its SKILL.md. */
const FOLDERS: readonly string[] = ['scripts', 'references', 'assets', 'examples']
const TEXT = /\.(?:md|txt)$/i
const MAX_DEPTH = 4
const SNIFF_BYTES = 8_192

/** The paths of at most `max` files of a skill, in a stable order, without links and devices. */
export function listResources(folder: string, max: number): readonly string[] {
  const found: string[] = []
  const visit = (path: string, depth: number): void => {
    for (const entry of entriesOf(join(folder, path))) {
      if (found.length >= max) return
      const inside = path === '' ? entry.name : `${path}/${entry.name}`
      if (entry.isFile() && isOffered(inside)) found.push(inside)
      else if (entry.isDirectory() && depth < MAX_DEPTH && (path !== '' || FOLDERS.includes(entry.name)))
        visit(inside, depth + 1)
    }
  }
  visit('', 0)
  return found
}

/** The text of one resource. Throws with a message for the model if it may not be read. */
export function readResource(folder: string, path: string, maxBytes: number): string {
  const asked = path.split('/').filter((name) => name !== '' && name !== '.')
  if (isAbsolute(path) || path.includes('\0') || path.includes('\\') || asked.includes('..')) {
    throw new Error('The path must be relative to the folder of the skill, without "..".')
  }
  const inside = asked.join('/')
  if (!isOffered(inside))
    throw new Error(`Resources are files in ${FOLDERS.join(', ')}, or text files next to SKILL.md.`)
  const real = realPathOf(join(folder, inside))
  if (real === undefined) throw new Error(`The skill has no resource ${JSON.stringify(inside)}.`)
  if (!real.startsWith(folder + sep)) throw new Error('The path leads outside the folder of the skill.')
  return readText(real, inside, maxBytes)
}

/** A name that does not fit on one line is not offered. */
function isOffered(path: string): boolean {
  if (oneLine(path) !== path) return false
  const [first = '', ...rest] = path.split('/')
  return rest.length > 0 ? FOLDERS.includes(first) : TEXT.test(first) && first !== 'SKILL.md'
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

/** Opens exactly the file at the real path: no link that replaced it, and no pipe, which would block. */
function readText(real: string, shown: string, maxBytes: number): string {
  const handle = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const [opened, there] = [fstatSync(handle), lstatSync(real)]
    if (!opened.isFile()) throw new Error(`${shown} is not a regular file.`)
    if (opened.ino !== there.ino || opened.dev !== there.dev || realPathOf(real) !== real) {
      throw new Error(`${shown} was replaced while it was opened.`)
    }
    const bytes = readBytes(handle, maxBytes)
    if (bytes.subarray(0, SNIFF_BYTES).includes(0))
      throw new Error(`${shown} is a binary file and cannot be read as text.`)
    const rest = opened.size - bytes.length
    return sanitizeText(bytes.toString('utf8')) + (rest > 0 ? `\n[cut off: ${rest} more bytes]` : '')
  } finally {
    closeSync(handle)
  }
}
