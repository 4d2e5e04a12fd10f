import { tool, type Tool, type ToolRun } from '../../agent/tool.ts'
import { decodeUtf8, fingerprintOf, isBinary, openFile, readAll, type Fingerprint } from './open-file.ts'
import type { FilesSettings } from './options.ts'
import { PathRefused } from './paths.ts'
import { makeFolders, replaceFile, type Before } from './replace-file.ts'
import { replaceText } from './replace-text.ts'
import { result, seenFile, type FileResult } from './seen-files.ts'
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
  if (opened.kind === 'absent') {
    const { mtimeMs } = await create(opened, content, run.signal)
    return result(`Created ${opened.shown} (${size}).`, opened.realPath, fingerprintOf(content, mtimeMs))
  }
  const current = await readCurrent(opened, settings)
  const seen = seenFile(run.state, opened.realPath)
  if (current.bytes?.equals(content) === true) {
    const text = `${opened.shown} already has exactly this content. Nothing was written.`
    return result(text, opened.realPath, fingerprintOf(content, current.mtimeMs))
  }
  if (seen === undefined && args.overwrite !== true) {
    throw new Error(`${opened.shown} exists and was not read. Read it first, or set overwrite to replace it.`)
  }
  if (seen !== undefined) refuseStale(opened, seen, current)
  const fingerprint = await replace(opened, { content, current, signal: run.signal })
  const [old, now] = [textOf(current.bytes), textOf(content)]
  const diff = old === undefined || now === undefined ? '' : `\n\n${unifiedDiff(opened.shown, old, now)}`
  return result(`Replaced ${opened.shown} (${size}).${linksNote(current)}${diff}`, opened.realPath, fingerprint)
}

async function edit(opened: Opened, { args, run, settings }: Call<EditArgs>): Promise<FileResult> {
  const seen = seenFile(run.state, opened.realPath)
  const current = await readCurrent(opened, settings)
  if (current.bytes === undefined) throw tooLarge(opened.shown, settings)
  if (seen === undefined && settings.readFirst) throw new Error(`${opened.shown} was not read yet. Read it first.`)
  if (seen !== undefined) refuseStale(opened, seen, current)
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
  const fingerprint = await replace(opened, { content, current, signal: run.signal })
  const summary = `Edited ${opened.shown} (${places === 1 ? '1 place' : `${places} places`}).${linksNote(current)}`
  return result(`${summary}\n\n${unifiedDiff(opened.shown, before, text)}`, opened.realPath, fingerprint)
}

type Current = Before & { readonly bytes: Buffer | undefined; readonly mtimeMs: number; readonly links: number }

/** The file as it is now; `bytes` is undefined if it is too large. */
async function readCurrent(opened: Opened, { maxFileBytes }: FilesSettings): Promise<Current> {
  const { handle, ...facts } = await openFile(opened)
  try {
    return { bytes: await readAll(handle, maxFileBytes), ...facts }
  } finally {
    await handle.close()
  }
}

async function replace(
  { directory, names }: Opened,
  { content, current, signal }: { content: Buffer; current: Current; signal: AbortSignal },
): Promise<Fingerprint> {
  const { mtimeMs } = await replaceFile(directory, names.at(-1)!, { content, before: current, signal })
  return fingerprintOf(content, mtimeMs)
}

async function create(
  opened: Opened & { readonly kind: 'absent' },
  content: Uint8Array,
  signal: AbortSignal,
): Promise<{ readonly mtimeMs: number }> {
  const directory = await makeFolders(opened.directory, opened.missing.slice(0, -1))
  try {
    return await replaceFile(directory, opened.missing.at(-1)!, { content, before: undefined, signal })
  } finally {
    if (directory !== opened.directory) await directory.close()
  }
}

function refuseStale(opened: Opened, seen: Fingerprint, { bytes, mtimeMs }: Current): void {
  if (bytes !== undefined && fingerprintOf(bytes, mtimeMs).hash === seen.hash) return
  throw new Error(`${opened.shown} was changed since you read it. Read it again. Nothing was written.`)
}

/** A lone surrogate cannot be encoded: it would silently become another character. */
function toBytes(what: string, text: string): Buffer {
  if (!text.isWellFormed()) throw new Error(`${what} contains half a character, which cannot be written.`)
  return Buffer.from(text, 'utf8')
}

function textOf(bytes: Buffer | undefined): string | undefined {
  return bytes === undefined || isBinary(bytes) ? undefined : decodeUtf8(bytes)
}

function linksNote({ links }: Current): string {
  return links > 1 ? ' It had other names (hard links); they keep the old content.' : ''
}

function tooLarge(what: string, { maxFileBytes }: FilesSettings): Error {
  return new Error(`${what} is larger than ${maxFileBytes} bytes, so it is not written or edited here.`)
}
