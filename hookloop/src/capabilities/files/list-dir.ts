import { lstatSync } from 'node:fs'
import { tool, type Tool } from '../../plugin.ts'
import type { FilesSettings } from './options.ts'
import { showName } from './paths.ts'
import { walk, WorkLimit, type Entry } from './walk.ts'
import { withPath, type Workspace } from './workspace.ts'

type Args = { readonly path?: string; readonly depth?: number }

/** Lists a folder and, with a depth, its subfolders. Links are listed, not followed. */
export function listDirTool(workspace: Workspace, limits: FilesSettings): Tool {
  return tool({
    name: 'list_dir',
    description:
      `Lists a folder: folders end with "/", files have their size in bytes. At most ${limits.maxEntries} entries are shown. ` +
      'With depth, subfolders are listed too.',
    input: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The folder, relative to the root. Default: the root.' },
        depth: {
          type: 'integer',
          minimum: 1,
          maximum: limits.maxDepth,
          description: 'How many levels to list. Default 1.',
        },
      },
      additionalProperties: false,
    },
    concurrent: true,
    execute: (args, { signal }) => list(workspace, args as Args, { limits, signal }),
  })
}

function list(
  workspace: Workspace,
  { path = '.', depth = 1 }: Args,
  { limits, signal }: { limits: FilesSettings; signal: AbortSignal },
): Promise<string> {
  return withPath(workspace, path, async (opened) => {
    if (opened.kind === 'absent') throw new Error(`The folder ${opened.shown} does not exist.`)
    if (opened.kind !== 'directory') throw new Error(`${opened.shown} is not a folder. Use read_file.`)
    const limit = new WorkLimit(limits.timeoutMs, signal)
    const lines: string[] = []
    let count = 0
    const entries = walk(opened.directory, {
      limit,
      maxDepth: depth,
      isHidden: (names) => workspace.hidden([...opened.names, ...names]) !== undefined,
      skip: limits.skip,
    })
    for await (const entry of entries) {
      count++
      if (lines.length < limits.maxEntries) lines.push(lineOf(entry, limits))
    }
    await opened.directory.check()
    const notes: string[] = []
    if (count > lines.length)
      notes.push(
        `[${count - lines.length} more entries are not shown. List a subfolder, or use search_files with a glob.]`,
      )
    if (limit.isOver) notes.push('[Listing timed out, so there may be more.]')
    if (count === 0 && notes.length === 0) return '(empty folder)'
    return [...lines, ...notes].join('\n')
  })
}

function lineOf({ names, kind, path }: Entry, { skip }: FilesSettings): string {
  const shown = showName(names.join('/'))
  if (kind === 'directory') return `${shown}/${skip.includes(names.at(-1)!) ? ' (not listed)' : ''}`
  if (kind === 'link') return `${shown} (link)`
  if (kind === 'other') return `${shown} (not a regular file)`
  try {
    return `${shown}\t${lstatSync(path).size}`
  } catch {
    return shown
  }
}
