import { tool, type Tool, type ToolRun } from '../../agent/tool.ts'
import type { HeldDirectory } from './held-directory.ts'
import { oneAtATime } from './one-at-a-time.ts'
import { decodeExactly, fingerprintOf, isBinary, openFile, readAll, type Fingerprint } from './reading.ts'
import { makeFolders, replaceFile, type Before } from './replace-file.ts'
import { replaceText } from './replace-text.ts'
import { PathRefused } from './roots.ts'
import { result, seenOf, type FileResult } from './seen.ts'
import { unifiedDiff } from './unified-diff.ts'
import { judgeWrite, withPath, type Opened, type Workspace } from './workspace.ts'

export type ChangeLimits = { readonly maxFileBytes: number; readonly readFirst: boolean }

/** What guards have judged about a call, by its arguments: the real path that a person was asked about. */
export type AskedPaths = WeakMap<object, string>

type Tools = { readonly limits: ChangeLimits; readonly asked: AskedPaths }
type WriteArgs = { readonly path: string; readonly content: string; readonly overwrite?: boolean }
type EditArgs = {
  readonly path: string
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean
}

/** A diff is limited by itself; as JSON every character of it may take six. */
const MAX_OUTPUT_CHARS = 262_144

export function writeFileTool(workspace: Workspace, how: Tools): Tool {
  return tool({
    name: 'write_file',
    description:
      'Writes a whole text file; folders that are missing are made. A file that is there is only replaced if you have read it, ' +
      'or with overwrite. To change a part of a file, use edit_file.',
    input: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The file, relative to the root.' },
        content: { type: 'string', description: 'All of its content.' },
        overwrite: { type: 'boolean', description: 'Replace a file that is there although you have not read it.' },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    maxOutputChars: MAX_OUTPUT_CHARS,
    execute: (args, run) => changed(workspace, { args, run, ...how }, write),
  })
}

export function editFileTool(workspace: Workspace, how: Tools): Tool {
  return tool({
    name: 'edit_file',
    description:
      'Replaces a text in a file that you have read. old_string must be exactly what is in the file, white space included, and be found ' +
      'once; give more of what is around it if it is not unique, or set replace_all. Answers with a diff.',
    input: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The file, relative to the root.' },
        old_string: { type: 'string', description: 'The text to replace, without line numbers.' },
        new_string: { type: 'string', description: 'What to put in its place. It is taken literally.' },
        replace_all: { type: 'boolean', description: 'Replace every place where old_string is found.' },
      },
      required: ['path', 'old_string', 'new_string'],
      additionalProperties: false,
    },
    maxOutputChars: MAX_OUTPUT_CHARS,
    execute: (args, run) => changed(workspace, { args, run, ...how }, edit),
  })
}

type Call<A> = Tools & { readonly args: A; readonly run: ToolRun }
type Change<A> = (opened: Opened, call: Call<A>) => Promise<FileResult>

/** The path may lead elsewhere than when guards judged it, so it is judged again, where it is held. */
function changed<A extends { readonly path: string }>(
  workspace: Workspace,
  call: Tools & { readonly args: unknown; readonly run: ToolRun },
  change: Change<A>,
): Promise<FileResult> {
  const args = call.args as A
  return withPath(workspace, args.path, async (opened) => {
    const judged = judgeWrite(workspace, opened)
    if (judged?.verdict === 'block') throw new PathRefused(judged.message)
    if (judged?.verdict === 'ask' && call.asked.get(args) !== opened.realPath) {
      throw new PathRefused(`${opened.shown} leads elsewhere than when it was judged. Nothing was written.`)
    }
    return oneAtATime(opened.realPath, () => {
      call.run.signal.throwIfAborted() // it may have waited long
      return change(opened, { ...call, args })
    })
  })
}

async function write(opened: Opened, call: Call<WriteArgs>): Promise<FileResult> {
  const { args, run, limits } = call
  const content = toBytes('content', args.content)
  if (content.length > limits.maxFileBytes) throw tooLarge('The content', limits)
  const size = `${content.length} bytes`
  if (opened.kind === 'absent') {
    const { mtimeMs } = await create(opened, content, run.signal)
    return result(`Created ${opened.shown} (${size}).`, opened.realPath, fingerprintOf(content, mtimeMs))
  }
  const current = await readCurrent(opened, limits)
  const seen = seenOf(run.state, opened.realPath)
  const same = current.bytes?.equals(content) === true
  if (same) {
    const text = `${opened.shown} has exactly this content already. Nothing was written.`
    return result(text, opened.realPath, fingerprintOf(content, current.mtimeMs))
  }
  if (seen === undefined && args.overwrite !== true) {
    throw new Error(`${opened.shown} exists and was not read. Read it first, or set overwrite to replace it.`)
  }
  if (seen !== undefined) refuseStale(opened, seen, current)
  const { mtimeMs } = await replaceFile(opened.directory, nameOf(opened), {
    content,
    before: current,
    signal: run.signal,
  })
  const [old, now] = [textOf(current.bytes), textOf(content)]
  const diff = old === undefined || now === undefined ? '' : `\n\n${unifiedDiff(opened.shown, old, now)}`
  const text = `Replaced ${opened.shown} (${size}).${linksNote(current)}${diff}`
  return result(text, opened.realPath, fingerprintOf(content, mtimeMs))
}

async function edit(opened: Opened, { args, run, limits }: Call<EditArgs>): Promise<FileResult> {
  const seen = seenOf(run.state, opened.realPath)
  const current = await readCurrent(opened, limits)
  if (current.bytes === undefined) throw tooLarge(opened.shown, limits)
  if (seen === undefined && limits.readFirst) throw new Error(`${opened.shown} was not read yet. Read it first.`)
  if (seen !== undefined) refuseStale(opened, seen, current)
  const before = textOf(current.bytes)
  if (before === undefined) {
    throw new Error(`${opened.shown} is binary or not UTF-8. Editing would damage it, so it was not changed.`)
  }
  const { text, places } = replaceText(before, {
    find: args.old_string,
    put: args.new_string,
    all: args.replace_all === true,
    maxLength: limits.maxFileBytes,
  })
  if (text === undefined) throw tooLarge('The result', limits)
  const content = toBytes('new_string', text)
  if (content.length > limits.maxFileBytes) throw tooLarge('The result', limits)
  const { mtimeMs } = await replaceFile(opened.directory, nameOf(opened), {
    content,
    before: current,
    signal: run.signal,
  })
  const words = `Edited ${opened.shown} (${places === 1 ? '1 place' : `${places} places`}).${linksNote(current)}`
  const diff = unifiedDiff(opened.shown, before, text)
  return result(`${words}\n\n${diff}`, opened.realPath, fingerprintOf(content, mtimeMs))
}

type Current = Before & { readonly bytes: Buffer | undefined; readonly mtimeMs: number; readonly links: number }

/** What is there now; its bytes unless they are too many. */
async function readCurrent(opened: Opened, { maxFileBytes }: ChangeLimits): Promise<Current> {
  const { handle, ...facts } = await openFile(opened)
  try {
    return { bytes: await readAll(handle, maxFileBytes), ...facts }
  } finally {
    await handle.close()
  }
}

async function create(
  opened: Opened & { readonly kind: 'absent' },
  content: Uint8Array,
  signal: AbortSignal,
): Promise<{ readonly mtimeMs: number }> {
  const folders = opened.missing.slice(0, -1)
  const directory: HeldDirectory = await makeFolders(opened.directory, folders)
  try {
    return await replaceFile(directory, opened.missing.at(-1)!, { content, before: undefined, signal })
  } finally {
    if (directory !== opened.directory) await directory.close()
  }
}

function refuseStale(opened: Opened, seen: Fingerprint, { bytes, mtimeMs }: Current): void {
  if (bytes !== undefined && fingerprintOf(bytes, mtimeMs).hash === seen.hash) return
  throw new Error(`${opened.shown} was changed by somebody else since you read it. Read it again. Nothing was written.`)
}

/** Half a surrogate pair has no bytes: it would silently become something else. */
function toBytes(what: string, text: string): Buffer {
  if (!text.isWellFormed()) throw new Error(`${what} contains half a character, which cannot be written.`)
  return Buffer.from(text, 'utf8')
}

function nameOf(opened: Opened): string {
  return opened.names.at(-1)!
}

function textOf(bytes: Buffer | undefined): string | undefined {
  return bytes === undefined || isBinary(bytes) ? undefined : decodeExactly(bytes)
}

/** A hard link is not followed: the other names keep what they have. */
function linksNote({ links }: Current): string {
  return links > 1 ? ' It had other names (hard links); they keep the old content.' : ''
}

function tooLarge(what: string, { maxFileBytes }: ChangeLimits): Error {
  return new Error(`${what} is larger than ${maxFileBytes} bytes, so it is not written or edited here.`)
}
