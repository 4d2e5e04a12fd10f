import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { tool, type Tool } from '../../plugin.ts'
import { trimCutEnd } from '../../system/processes/capped-output.ts'
import { isBinary, openFile } from './open-file.ts'
import type { FilesSettings } from './options.ts'
import type { FileResult } from './seen-files.ts'
import { withPath, type Workspace } from './workspace.ts'

type Args = { readonly path: string; readonly offset?: number; readonly limit?: number }

/** Shows numbered lines of a text file. Only the lines that are shown are kept in memory. */
export function readFileTool(workspace: Workspace, limits: FilesSettings): Tool {
  return tool({
    name: 'read_file',
    description:
      `Reads a text file. Shows numbered lines, at most ${limits.maxLines} lines or ${limits.maxReadBytes} bytes at a time; ` +
      'the end says which offset to continue with. The number and the tab before a line are not part of the file. Binary files are not shown.',
    input: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The file, relative to the root.' },
        offset: { type: 'integer', minimum: 0, description: 'How many lines to skip. Default 0.' },
        limit: { type: 'integer', minimum: 1, description: `How many lines to show. Default ${limits.maxLines}.` },
      },
      required: ['path'],
      additionalProperties: false,
    },
    concurrent: true,
    maxOutputChars: limits.maxReadBytes * 8 + 4_096, // each byte may be escaped in JSON; what is read is limited above
    execute: (args, { signal }) => read(workspace, args as Args, { limits, signal }),
  })
}

async function read(
  workspace: Workspace,
  { path, offset = 0, limit }: Args,
  { limits, signal }: { limits: FilesSettings; signal: AbortSignal },
): Promise<FileResult> {
  return withPath(workspace, path, async (opened) => {
    const { handle, stats } = await openFile(opened)
    const { size } = stats
    try {
      const isEditable = size <= limits.maxFileBytes // then it is read to the end for its hash
      const page = new Page(limits, { skip: offset, limit: limit ?? limits.maxLines, stopsInLongLine: !isEditable })
      const scan = await scanFile(handle, page, {
        toEnd: isEditable,
        until: performance.now() + limits.timeoutMs,
        signal,
      })
      if (scan === 'binary') return { text: `${opened.shown} is a binary file of ${size} bytes. It is not shown.` }
      const { hash, ended } = scan
      const text = page.text(opened.shown, { size, ended, editable: isEditable })
      return hash === undefined ? { text } : { text, seen: { path: opened.realPath, hash } }
    } finally {
      await handle.close()
    }
  })
}

const CHUNK = 65_536
const NUMBER_BYTES = 8

/** Reads a file into a page; with `toEnd` also beyond the page, for the hash of the file. */
async function scanFile(
  handle: FileHandle,
  page: Page,
  { toEnd, until, signal }: { toEnd: boolean; until: number; signal: AbortSignal },
): Promise<'binary' | { readonly hash: string | undefined; readonly ended: boolean }> {
  const hash: Hash | undefined = toEnd ? createHash('sha256') : undefined
  const buffer = Buffer.allocUnsafe(CHUNK)
  let position = 0
  for (;;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, CHUNK, position)
    const bytes = buffer.subarray(0, bytesRead)
    if (position === 0 && isBinary(bytes)) return 'binary'
    if (bytesRead === 0) {
      page.end()
      return { hash: hash?.digest('hex'), ended: true }
    }
    if (position > 0 && performance.now() > until) {
      throw new Error(`The offset is too far into the file: reading timed out after ${position} bytes.`)
    }
    position += bytesRead
    hash?.update(bytes)
    page.add(bytes)
    if (page.isFull && !toEnd) return { hash: undefined, ended: false }
  }
}

/** Collects the lines to show from the bytes of the file. */
class Page {
  readonly #skip: number
  readonly #limit: number
  readonly #limits: FilesSettings
  /** Whether to stop in a long line instead of looking for its end, which may be far away in a large file. */
  readonly #stopsInLongLine: boolean
  readonly #lines: string[] = []
  readonly #open: Buffer[] = []
  /** Bytes of the current line, and how many of them are stored. */
  #lineBytes = 0
  #storedBytes = 0
  #line = 0
  #shownBytes = 0
  #crlf = 0
  #lossy = false
  isFull = false

  constructor(limits: FilesSettings, at: { skip: number; limit: number; stopsInLongLine: boolean }) {
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
    const room = this.#limits.maxLineBytes - this.#storedBytes
    if (room > 0) this.#open.push(Buffer.from(bytes.subarray(0, room)))
    this.#storedBytes += Math.min(room, bytes.length)
    if (this.#stopsInLongLine && this.#lineBytes > this.#storedBytes) {
      this.#show()
      this.isFull = true
    }
  }

  #close(): void {
    if (!this.isFull && this.#line >= this.#skip) this.#show()
    this.#line++
    this.#lineBytes = 0
    this.#storedBytes = 0
    this.#open.length = 0
  }

  #show(): void {
    const bytes = Buffer.concat(this.#open)
    const size = bytes.length + NUMBER_BYTES // an empty line is shown with its number too
    const isFirst = this.#lines.length === 0
    if (!isFirst && (this.#lines.length >= this.#limit || this.#shownBytes + size > this.#limits.maxReadBytes)) {
      this.isFull = true
      return
    }
    const cut = this.#lineBytes > bytes.length
    let text = decoder.decode(cut ? trimCutEnd(bytes) : bytes)
    if (text.includes('\uFFFD') && !bytes.includes(REPLACEMENT)) this.#lossy = true
    if (text.endsWith('\r') && !cut) {
      text = text.slice(0, -1)
      this.#crlf++
    }
    this.#shownBytes += size
    const missing = this.#stopsInLongLine ? '' : ` for ${this.#lineBytes - bytes.length} bytes`
    const rest = cut ? ` [… the line continues${missing}]` : ''
    this.#lines.push(`${String(this.#line + 1).padStart(6)}\t${text}${rest}`)
    if (this.#lines.length >= this.#limit) this.isFull = true
  }

  text(shown: string, { size, ended, editable }: { size: number; ended: boolean; editable: boolean }): string {
    if (ended && this.#line === 0) return '(empty file)'
    const first = this.#skip + 1
    const last = this.#skip + this.#lines.length
    if (this.#lines.length === 0) {
      const why = `The file ${shown} has ${this.#line} lines, so offset ${this.#skip} is past its end.`
      throw new Error(ended && this.#line <= this.#skip ? why : `Line ${first} of ${shown} cannot be shown.`)
    }
    const notes: string[] = []
    if (!ended) notes.push(`Lines ${first} to ${last} of a file of ${size} bytes. Use offset=${last} to continue.`)
    else if (last < this.#line)
      notes.push(`Lines ${first} to ${last} of ${this.#line}. Use offset=${last} to continue.`)
    if (this.#crlf > 0) notes.push('Lines end with CRLF.')
    if (this.#lossy) notes.push('The file is not UTF-8: invalid bytes are shown as \uFFFD, and it cannot be edited.')
    if (!editable) notes.push('The file is too large to be edited or searched.')
    return [...this.#lines, ...(notes.length === 0 ? [] : ['', ...notes.map((note) => `[${note}]`)])].join('\n')
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: false })
const REPLACEMENT = Buffer.from('\uFFFD')
