import { hashText } from '../../state/json.ts'
import { readFile, replaceFile } from './file-access.ts'

// The folder of a session has a name that is safe on every file system, also on one that does not distinguish upper and lower
// case or forms of the same letter. Lower case letters, digits, _ and - stand for themselves; everything else is %XX by its bytes.
// A name that would be too long ends with a hash, and the id is in a file in the folder.

const PLAIN = /^[a-z0-9][a-z0-9_-]{0,127}$/
/** Ids that were folder names before names were encoded. Their folders are still used. */
const EARLIER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/
const DEVICE = /^(?:con|prn|aux|nul|com\d|lpt\d)$/i
const HASHED = '%-'
const [MAX_NAME, MAX_START] = [200, 100]
const ID_FILE = 'id.txt'

/** The name of the folder of a session. */
export function folderName(root: string, id: string): string {
  const isPlain = PLAIN.test(id) && !DEVICE.test(id)
  return isPlain || (EARLIER.test(id) && isThere(root, id)) ? id : encoded(id)
}

/** The id of the session in a folder; undefined if it is not the folder of a session. */
export function idOfFolder(name: string, folder: string): string | undefined {
  if (EARLIER.test(name)) return name
  try {
    const id = name.includes(HASHED) ? readFile(name, pathIn(folder))?.toString('utf8') : decodeURIComponent(name)
    return id !== undefined && encoded(id) === name ? id : undefined
  } catch {
    return undefined
  }
}

/** Stores the id of a session whose folder does not have it in its name. */
export function writeIdFile(id: string, folder: string): void {
  const path = pathIn(folder)
  if (!folder.includes(HASHED) || readFile(id, path)?.toString('utf8') === id) return
  replaceFile(path, id, { temporary: `${path}.${crypto.randomUUID()}`, sync: false })
}

function encoded(id: string): string {
  const bytes = Buffer.from(id)
  const isReserved = DEVICE.test(id)
  let name = ''
  for (const [i, byte] of bytes.entries()) {
    const letter = String.fromCharCode(byte)
    const isSafe = /[a-z0-9_-]/.test(letter) && !(isReserved && i === 0) && !(i === 0 && /[_-]/.test(letter))
    name += isSafe ? letter : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  if (name.length <= MAX_NAME) return name
  return `${name.slice(0, MAX_START).replace(/%.?$/, '')}${HASHED}${hashText(id)}`
}

/** Whether there is a folder with exactly this name. */
function isThere(root: string, name: string): boolean {
  const path = process.getBuiltinModule('node:path')
  try {
    return path.basename(process.getBuiltinModule('node:fs').realpathSync.native(path.join(root, name))) === name
  } catch {
    return false
  }
}

function pathIn(folder: string): string {
  return process.getBuiltinModule('node:path').join(folder, ID_FILE)
}
