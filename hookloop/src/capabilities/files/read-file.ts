import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { tool, type Tool } from '../../agent/tool.ts'
import { isBinary, openFile, SNIFF_BYTES, type Fingerprint } from './reading.ts'
import { result, type FileResult } from './seen.ts'
import { withPath, type Workspace } from './workspace.ts'

export type ReadLimits = {
  readonly maxLines: number
  readonly maxReadBytes: number
  readonly maxLineBytes: number
  readonly maxFileBytes: number
  readonly timeoutMs: number
}

type Args = { readonly path: string; readonly offset?: number; readonly limit?: number }

/** Shows numbered lines of a text. However large a file is, only what is shown is kept in memory. */
export function readFileTool(workspace: Workspace, limits: ReadLimits): Tool {
  return tool({
    name: 'read_file',
    description:
      `Reads a text file. Lines are shown with their numbers, at most ${limits.maxLines} of them or ${limits.maxReadBytes} bytes at a time; ` +
      'the end says with which offset to go on. The number and the tab in front of a line are not part of the file. Binary files are not shown.',
    input: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The file, relative to the root.' },
        offset: { type: 'integer', minimum: 0, description: 'How many lines to skip. 0 unless told.' },
        limit: { type: 'integer', minimum: 1, description: `How many lines to show. ${limits.maxLines} unless told.` },
      },
      required: ['path'],
      additionalProperties: false,
    },
    concurrent: true,
    maxOutputChars: limits.maxReadBytes * 8 + 4_096, // every byte as an escape of JSON; what is read is limited before
    execute: (args, { signal }) => read(workspace, args as Args, { limits, signal }),
  })
}

async function read(
  workspace: Workspace,
  { path, offset = 0, limit }: Args,
  { limits, signal }: { limits: ReadLimits; signal: AbortSignal },
): Promise<FileResult> {
  return withPath(workspace, path, async (opened) => {
    const { handle, size, mtimeMs } = await openFile(opened)
    try {
      const whole = size <= limits.maxFileBytes // only what can be edited must be known in full
      const page = new Page(limits, { skip: offset, limit: limit ?? limits.maxLines, stopsInLongLine: !whole })
      const scan = await scanFile(handle, page, { whole, until: performance.now() + limits.timeoutMs, signal })
      if (scan === 'binary') return result(`${opened.shown} is a binary file of ${size} bytes. It is not shown.`)
      const file: Fingerprint | undefined =
        scan.hash === undefined ? undefined : { hash: scan.hash, size: scan.bytes, mtimeMs }
      return result(page.text(opened.shown, { size, ended: scan.ended, editable: whole }), opened.realPath, file)
    } finally {
      await handle.close()
    }
  })
}

const CHUNK = 65_536
const NUMBER_BYTES = 8

/** Feeds a page from a file, to the end of the file if all of it must be known. */
async function scanFile(
  handle: FileHandle,
  page: Page,
  { whole, until, signal }: { whole: boolean; until: number; signal: AbortSignal },
): Promise<'binary' | { readonly hash: string | undefined; readonly bytes: number; readonly ended: boolean }> {
  const hash: Hash | undefined = whole ? createHash('sha256') : undefined
  const buffer = Buffer.allocUnsafe(CHUNK)
  let position = 0
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, CHUNK, position)
    const bytes = buffer.subarray(0, bytesRead)
    if (position === 0 && isBinary(bytes.subarray(0, SNIFF_BYTES))) return 'binary'
    if (bytesRead === 0) {
      page.end()
      return { hash: hash?.digest('hex'), bytes: position, ended: true }
    }
    if (position > 0 && performance.now() > until) {
      throw new Error(`The file is too large to go that far into it: time was over after ${position} bytes.`)
    }
    position += bytesRead
    hash?.update(bytes)
    page.add(bytes)
    if (page.isFull && !whole) return { hash: undefined, bytes: position, ended: false }
  }
}

/** The lines that are shown. It is given all bytes from the beginning and keeps what lies in its window. */
class Page {
  readonly #skip: number
  readonly #limit: number
  readonly #limits: ReadLimits
  /** Whether the end of a long line is looked for. In a file without end it might be far. */
  readonly #stopsInLongLine: boolean
  readonly #lines: string[] = []
  readonly #open: Buffer[] = []
  /** Bytes of the line at hand, and how many of them are kept. */
  #lineBytes = 0
  #kept = 0
  #line = 0
  #shownBytes = 0
  #crlf = 0
  #lossy = false
  isFull = false

  constructor(limits: ReadLimits, at: { skip: number; limit: number; stopsInLongLine: boolean }) {
    this.#limits = limits
    this.#skip = at.skip
    this.#limit = at.limit
    this.#stopsInLongLine = at.stopsInLongLine
  }

  add(bytes: Buffer): void {
    for (let from = 0; from < bytes.length && !(this.isFull && this.#stopsInLongLine);) {
      const newline = bytes.indexOf(10, from)
      const to = newline === -1 ? bytes.length : newline
      this.#extend(bytes.subarray(from, to))
      if (newline !== -1) this.#close()
      from = newline === -1 ? bytes.length : newline + 1
    }
  }

  end(): void {
    if (this.#lineBytes > 0) this.#close()
  }

  #extend(bytes: Buffer): void {
    this.#lineBytes += bytes.length
    if (this.isFull || this.#line < this.#skip) return
    const room = this.#limits.maxLineBytes - this.#kept
    if (room > 0) this.#open.push(Buffer.from(bytes.subarray(0, room)))
    this.#kept += Math.min(room, bytes.length)
    if (this.#stopsInLongLine && this.#lineBytes > this.#kept) {
      this.#show()
      this.isFull = true
    }
  }

  #close(): void {
    if (!this.isFull && this.#line >= this.#skip) this.#show()
    this.#line++
    this.#lineBytes = 0
    this.#kept = 0
    this.#open.length = 0
  }

  #show(): void {
    const bytes = Buffer.concat(this.#open)
    const size = bytes.length + NUMBER_BYTES // an empty line is shown with its number, too
    const isFirst = this.#lines.length === 0
    if (!isFirst && (this.#lines.length >= this.#limit || this.#shownBytes + size > this.#limits.maxReadBytes)) {
      this.isFull = true
      return
    }
    const cut = this.#lineBytes > bytes.length
    let text = decoder.decode(cut ? wholeCharacters(bytes) : bytes)
    if (text.includes('\uFFFD') && !bytes.includes(REPLACEMENT)) this.#lossy = true
    if (text.endsWith('\r') && !cut) {
      text = text.slice(0, -1)
      this.#crlf++
    }
    this.#shownBytes += size
    const missing = this.#stopsInLongLine ? '' : ` for ${this.#lineBytes - bytes.length} bytes`
    const rest = cut ? ` [… the line goes on${missing}]` : ''
    this.#lines.push(`${String(this.#line + 1).padStart(6)}\t${text}${rest}`)
    if (this.#lines.length >= this.#limit) this.isFull = true
  }

  text(shown: string, { size, ended, editable }: { size: number; ended: boolean; editable: boolean }): string {
    if (ended && this.#line === 0) return '(empty file)'
    const first = this.#skip + 1
    const last = this.#skip + this.#lines.length
    if (this.#lines.length === 0) {
      const why = `The file ${shown} has ${this.#line} lines, so there is none after offset ${this.#skip}.`
      throw new Error(ended && this.#line <= this.#skip ? why : `Line ${first} of ${shown} cannot be shown.`)
    }
    const notes: string[] = []
    if (!ended) notes.push(`Lines ${first} to ${last} of a file of ${size} bytes. Use offset=${last} to go on.`)
    else if (last < this.#line) notes.push(`Lines ${first} to ${last} of ${this.#line}. Use offset=${last} to go on.`)
    if (this.#crlf > 0) notes.push('Lines end with CRLF.')
    if (this.#lossy)
      notes.push('This is not UTF-8: what could not be read is shown as \uFFFD, and it cannot be edited.')
    if (!editable) notes.push('The file is too large to be edited or searched.')
    return [...this.#lines, ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `[${note}]`)])].join('\n')
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: false })
const REPLACEMENT = Buffer.from('\uFFFD')

/** Without the first bytes of a character whose rest was cut off. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return bytes
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return length > back ? bytes.subarray(0, bytes.length - back) : bytes
    }
  }
  return bytes
}
