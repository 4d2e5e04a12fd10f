import { constants } from 'node:fs'
import { access, readFile, stat } from 'node:fs/promises'
import { basename, extname } from 'node:path'
import type { FilePart, TextPart } from '../../core/state/message.ts'
import { messageOf } from '../../errors.ts'
import { UsageError } from '../usage-error.ts'

const MEGABYTE = 1024 * 1024
const MAX_BYTES = 20 * MEGABYTE

/** Files that are sent as files, by extension. */
const mediaTypes: { readonly [extension: string]: string | undefined } = {
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.pdf': 'application/pdf',
  '.mp3': 'audio/mpeg',
  '.wav': 'audio/wav',
}

/** Files that are sent as text, under their name. */
const textExtensions: ReadonlySet<string> = new Set(
  `.txt .md .csv .tsv .json .jsonl .xml .html .css .yaml .yml .toml .ini .log .diff .patch .sql .sh
   .js .mjs .cjs .ts .mts .cts .jsx .tsx .py .rb .rs .go .java .kt .c .h .cpp .hpp .cs .php .swift`.split(/\s+/),
)

/** A file as a part of a message. */
export async function attachment(path: string): Promise<FilePart | TextPart> {
  const size = await sizeOf(path)
  const extension = extname(path).toLowerCase()
  const mediaType = mediaTypes[extension]
  if (mediaType === undefined && !textExtensions.has(extension)) throw unknownType(path, extension)
  if (size > MAX_BYTES) {
    const megabytes = (size / MEGABYTE).toFixed(1)
    throw new UsageError(`--file ${path} has ${megabytes} MB. The maximum is ${MAX_BYTES / MEGABYTE} MB.`)
  }
  const bytes = await readFile(path)
  if (mediaType === undefined) return { type: 'text', text: `${basename(path)}:\n\n${bytes.toString('utf8')}` }
  return { type: 'file', mediaType, data: bytes.toString('base64'), filename: basename(path) }
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (found.isDirectory()) throw new UsageError(`--file ${path} is a directory. Name its files one by one.`)
    // a device or a pipe has no size, and may have no end
    if (!found.isFile()) throw new UsageError(`--file ${path} is not a regular file.`)
    await access(path, constants.R_OK)
    return found.size
  } catch (thrown) {
    if (thrown instanceof UsageError) throw thrown
    const isMissing = (thrown as NodeJS.ErrnoException).code === 'ENOENT'
    throw new UsageError(`--file ${path}: ${isMissing ? 'file not found.' : messageOf(thrown)}`)
  }
}

function unknownType(path: string, extension: string): UsageError {
  const known = Object.keys(mediaTypes).join(' ')
  return new UsageError(
    `--file ${path}: ${extension === '' ? 'the file name has no extension.' : `unknown file type "${extension}".`} ` +
      `Known: ${known}, and text such as .txt .md .csv .json .ts .py. Pipe in any other text: … < ${path}`,
  )
}
