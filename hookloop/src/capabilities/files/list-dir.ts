import { lstatSync } from 'node:fs'
import { tool, type Tool } from '../../agent/tool.ts'
import { showName } from './names.ts'
import { walk, WorkLimit, type Entry } from './walk.ts'
import { withPath, type Workspace } from './workspace.ts'

export type ListLimits = {
  readonly maxEntries: number
  readonly maxDepth: number
  readonly timeoutMs: number
  readonly isSkipped: (name: string) => boolean
}

type Args = { readonly path?: string; readonly depth?: number }

/** Lists a folder, and folders in it as deep as asked for. Links are named, not followed. */
export function listDirTool(workspace: Workspace, limits: ListLimits): Tool {
  return tool({
    name: 'list_dir',
    description:
      `Lists a folder: folders end with "/", files have their size in bytes. At most ${limits.maxEntries} entries are shown. ` +
      'With depth, what is in its folders is listed as well.',
    input: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The folder, relative to the root. The root unless told.' },
        depth: {
          type: 'integer',
          minimum: 1,
          maximum: limits.maxDepth,
          description: 'How deep to look. 1 unless told.',
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
  { limits, signal }: { limits: ListLimits; signal: AbortSignal },
): Promise<string> {
  return withPath(workspace, path, async (opened) => {
    if (opened.kind === 'absent') throw new Error(`There is no folder ${opened.shown}.`)
    if (opened.kind !== 'directory') throw new Error(`${opened.shown} is not a folder. Use read_file.`)
    const limit = new WorkLimit(limits.timeoutMs, signal)
    const lines: string[] = []
    let count = 0
    const entries = walk(opened.directory, {
      limit,
      lookup: workspace.lookup,
      maxDepth: depth,
      isHidden: (names) => workspace.hidden([...opened.names, ...names]) !== undefined,
      isSkipped: limits.isSkipped,
    })
    for await (const entry of entries) {
      count++
      if (lines.length < limits.maxEntries) lines.push(lineOf(entry, limits))
    }
    await opened.directory.check()
    const notes: string[] = []
    if (count > lines.length)
      notes.push(
        `[${count - lines.length} more entries are not shown. List a folder in it, or use search_files with a glob.]`,
      )
    if (limit.isOver) notes.push('[Time was over, so there may be more.]')
    if (count === 0 && notes.length === 0) return '(empty folder)'
    return [...lines, ...notes].join('\n')
  })
}

function lineOf({ names, kind, path }: Entry, { isSkipped }: ListLimits): string {
  const shown = showName(names.join('/'))
  if (kind === 'directory') return `${shown}/${isSkipped(names.at(-1)!) ? ' (not looked into)' : ''}`
  if (kind === 'link') return `${shown} (link)`
  if (kind === 'other') return `${shown} (not a regular file)`
  try {
    return `${shown}\t${lstatSync(path).size}`
  } catch {
    return shown
  }
}
