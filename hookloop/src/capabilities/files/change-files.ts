import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { tool, type Tool, type ToolRun } from '../../plugin.ts'
import { decodeUtf8, isBinary, openFile, readAll } from './open-file.ts'
import type { FilesSettings } from './options.ts'
import { PathRefused } from './paths.ts'
import { makeFolders, replaceFile } from './replace-file.ts'
import { replaceText } from './replace-text.ts'
import { seenFile, type FileResult } from './seen-files.ts'
import { unifiedDiff } from './unified-diff.ts'
import { judgeWrite, withPath, type Opened, type Workspace } from './workspace.ts'

/** The real paths that approvers were asked about, by the arguments of the call. */
export type ApprovedPaths = WeakMap<object, string>

type WriteArgs = { readonly path: string; readonly content: string; readonly overwrite?: boolean }
type EditArgs = {
  readonly path: string
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean
}

/** A diff is limited by itself; as JSON each of its characters may take six. */
const MAX_OUTPUT_CHARS = 262_144

export function writeFileTool(workspace: Workspace, settings: FilesSettings, approved: ApprovedPaths): Tool {
  return tool({
    name: 'write_file',
    description:
      'Writes a complete text file, and creates missing folders. An existing file is only replaced if you have read it, ' +
      'or with overwrite. To change a part of a file, use edit_file.',
    input: inputSchema(
      {
        content: { type: 'string', description: 'The complete content.' },
        overwrite: { type: 'boolean', description: 'Replace an existing file that you have not read.' },
      },
      ['content'],
    ),
    maxOutputChars: MAX_OUTPUT_CHARS,
    execute: (args, run) => change(workspace, { args: args as WriteArgs, run, settings, approved }, write),
  })
}

export function editFileTool(workspace: Workspace, settings: FilesSettings, approved: ApprovedPaths): Tool {
  return tool({
    name: 'edit_file',
    description:
      'Replaces text in a file that you have read. old_string must match the file exactly, including white space, and occur ' +
      'once; include more of the surrounding text if it is not unique, or set replace_all. Returns a diff.',
    input: inputSchema(
      {
        old_string: { type: 'string', description: 'The text to replace, without line numbers.' },
        new_string: { type: 'string', description: 'The replacement. It is taken literally.' },
        replace_all: { type: 'boolean', description: 'Replace every occurrence of old_string.' },
      },
      ['old_string', 'new_string'],
    ),
    maxOutputChars: MAX_OUTPUT_CHARS,
    execute: (args, run) => change(workspace, { args: args as EditArgs, run, settings, approved }, edit),
  })
}

function inputSchema(properties: { readonly [name: string]: object }, required: readonly string[]) {
  return {
    type: 'object',
    properties: { path: { type: 'string', description: 'The file, relative to the root.' }, ...properties },
    required: ['path', ...required],
    additionalProperties: false,
  } as const
}

type Call<A> = {
  readonly args: A
  readonly run: ToolRun
  readonly settings: FilesSettings
  readonly approved: ApprovedPaths
}

/** The path may lead elsewhere than when the guards judged it. So it is judged again, with its folder held open. */
function change<A extends WriteArgs | EditArgs>(
  workspace: Workspace,
  call: Call<A>,
  act: (opened: Opened, call: Call<A>) => Promise<FileResult>,
): Promise<FileResult> {
  const { args, run, approved } = call
  return withPath(workspace, args.path, async (opened) => {
    const judged = judgeWrite(workspace, opened)
    if (judged?.verdict === 'block') throw new PathRefused(judged.message)
    if (judged?.verdict === 'ask' && approved.get(args) !== opened.realPath) {
      throw new PathRefused(`${opened.shown} leads to another file than when it was judged. Nothing was written.`)
    }
    return oneAtATime(opened.realPath, () => {
      run.signal.throwIfAborted() // it may have waited long
      return act(opened, call)
    })
  })
}

const queues = new Map<string, Promise<unknown>>()

/** Runs the changes of one path one after the other, for all agents of this process. */
export async function oneAtATime<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(path) ?? Promise.resolve()
  const mine = before.then(work, work)
  queues.set(path, mine)
  try {
    return await mine
  } finally {
    if (queues.get(path) === mine) queues.delete(path)
  }
}

async function write(opened: Opened, { args, run, settings }: Call<WriteArgs>): Promise<FileResult> {
  const content = toBytes('content', args.content)
  if (content.length > settings.maxFileBytes) throw tooLarge('The content', settings)
  const size = `${content.length} bytes`
  const seen = { path: opened.realPath, hash: hashOf(content) }
  if (opened.kind === 'absent') {
    await save(opened, content, { before: undefined, signal: run.signal })
    return { text: `Created ${opened.shown} (${size}).`, seen }
  }
  const current = await readCurrent(opened, settings)
  const read = seenFile(run.state, opened.realPath)
  if (current.bytes?.equals(content) === true) {
    return { text: `${opened.shown} already has exactly this content. Nothing was written.`, seen }
  }
  if (read === undefined && args.overwrite !== true) {
    throw new Error(`${opened.shown} exists and was not read. Read it first, or set overwrite to replace it.`)
  }
  if (read !== undefined) refuseStale(opened, read, current)
  await save(opened, content, { before: current.stats, signal: run.signal })
  const [old, now] = [textOf(current.bytes), textOf(content)]
  const diff = old === undefined || now === undefined ? '' : `\n\n${unifiedDiff(opened.shown, old, now)}`
  return { text: `Replaced ${opened.shown} (${size}).${linksNote(current)}${diff}`, seen }
}

async function edit(opened: Opened, { args, run, settings }: Call<EditArgs>): Promise<FileResult> {
  const read = seenFile(run.state, opened.realPath)
  const current = await readCurrent(opened, settings)
  if (current.bytes === undefined) throw tooLarge(opened.shown, settings)
  if (read === undefined && settings.readFirst) throw new Error(`${opened.shown} was not read yet. Read it first.`)
  if (read !== undefined) refuseStale(opened, read, current)
  const before = textOf(current.bytes)
  if (before === undefined) {
    throw new Error(`${opened.shown} is binary or not UTF-8. Editing would damage it, so it was not changed.`)
  }
  const { text, places } = replaceText(before, {
    find: args.old_string,
    put: args.new_string,
    all: args.replace_all === true,
    maxLength: settings.maxFileBytes,
  })
  if (text === undefined) throw tooLarge('The result', settings)
  const content = toBytes('new_string', text)
  if (content.length > settings.maxFileBytes) throw tooLarge('The result', settings)
  await save(opened, content, { before: current.stats, signal: run.signal })
  const summary = `Edited ${opened.shown} (${places === 1 ? '1 place' : `${places} places`}).${linksNote(current)}`
  const seen = { path: opened.realPath, hash: hashOf(content) }
  return { text: `${summary}\n\n${unifiedDiff(opened.shown, before, text)}`, seen }
}

type Current = { readonly bytes: Buffer | undefined; readonly stats: Stats }

/** The file as it is now; `bytes` is undefined if it is too large. */
async function readCurrent(opened: Opened, { maxFileBytes }: FilesSettings): Promise<Current> {
  const { handle, stats } = await openFile(opened)
  try {
    return { bytes: await readAll(handle, maxFileBytes), stats }
  } finally {
    await handle.close()
  }
}

/** Replaces the file or, without `before`, creates it and its missing folders. */
async function save(
  opened: Opened,
  content: Buffer,
  { before, signal }: { before: Stats | undefined; signal: AbortSignal },
): Promise<void> {
  const missing = opened.kind === 'absent' ? opened.missing.slice(0, -1) : []
  const directory = await makeFolders(opened.directory, missing)
  try {
    await replaceFile(directory, opened.names.at(-1)!, { content, before, signal })
  } finally {
    if (directory !== opened.directory) await directory.close()
  }
}

function refuseStale(opened: Opened, read: string, { bytes }: Current): void {
  if (bytes !== undefined && hashOf(bytes) === read) return
  throw new Error(`${opened.shown} was changed since you read it. Read it again. Nothing was written.`)
}

function hashOf(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** A lone surrogate cannot be encoded: it would silently become another character. */
function toBytes(what: string, text: string): Buffer {
  if (!text.isWellFormed()) throw new Error(`${what} contains half a character, which cannot be written.`)
  return Buffer.from(text, 'utf8')
}

function textOf(bytes: Buffer | undefined): string | undefined {
  return bytes === undefined || isBinary(bytes) ? undefined : decodeUtf8(bytes)
}

function linksNote({ stats }: Current): string {
  return stats.nlink > 1 ? ' It had other names (hard links); they keep the old content.' : ''
}

function tooLarge(what: string, { maxFileBytes }: FilesSettings): Error {
  return new Error(`${what} is larger than ${maxFileBytes} bytes, so it is not written or edited here.`)
}
