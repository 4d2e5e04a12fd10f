import { closeSync, fstatSync, openSync } from 'node:fs'
import { tool, type Tool } from '../../plugin.ts'
import { messageOf, clause } from '../../errors.ts'
import { readBytes } from '../../system/files/read-text.ts'
import { toPathTest } from './glob.ts'
import { lineMatcher, type LineMatcher, type Pattern } from './line-matcher.ts'
import { isBinary } from './open-file.ts'
import { openFlags } from './open-folder.ts'
import type { FilesSettings } from './options.ts'
import { showPlace } from './paths.ts'
import { walk, WorkLimit, type Entry } from './walk.ts'
import { withPath, type Workspace } from './workspace.ts'

type Args = {
  readonly pattern?: string
  readonly path?: string
  readonly glob?: string
  readonly literal?: boolean
  readonly ignore_case?: boolean
  readonly limit?: number
}

const MAX_PATTERN = 1_000

/** Searches the lines or the names of files. Every file that is shown was opened and checked like any other. */
export function searchFilesTool(workspace: Workspace, limits: FilesSettings): Tool {
  return tool({
    name: 'search_files',
    description:
      `Searches files below a folder for lines that match a regular expression (RE2 syntax). Shows path:line: text, at most ${limits.maxMatches} lines. ` +
      'With glob, only matching files are searched; with glob and no pattern, the matching files are listed. ' +
      `Binary files and files of more than ${limits.maxFileBytes} bytes are left out.`,
    input: {
      type: 'object',
      properties: {
        pattern: { type: 'string', minLength: 1, maxLength: MAX_PATTERN, description: 'What a line must contain.' },
        path: {
          type: 'string',
          description: 'The folder or file to search, relative to the root. Default: the root.',
        },
        glob: {
          type: 'string',
          minLength: 1,
          maxLength: MAX_PATTERN,
          description: 'Which files, such as "*.ts" or "src/**/*.{ts,tsx}".',
        },
        literal: { type: 'boolean', description: 'The pattern is plain text.' },
        ignore_case: { type: 'boolean', description: 'Ignore case.' },
        limit: { type: 'integer', minimum: 1, maximum: limits.maxMatches, description: 'How many lines to show.' },
      },
      additionalProperties: false,
    },
    concurrent: true,
    execute: (args, { signal }) => search(workspace, args as Args, { limits, signal }),
  })
}

async function search(
  workspace: Workspace,
  args: Args,
  { limits, signal }: { limits: FilesSettings; signal: AbortSignal },
): Promise<string> {
  const { path = '.', glob, limit = limits.maxMatches } = args
  if (args.pattern === undefined && glob === undefined) throw new Error('Give a pattern, a glob or both.')
  const matcher = args.pattern === undefined ? undefined : lineMatcher(toPattern(args.pattern, args))
  const matchesGlob = glob === undefined ? undefined : globTest(glob)
  return withPath(workspace, path, async (opened) => {
    if (opened.kind === 'absent') throw new Error(`The file or folder ${opened.shown} does not exist.`)
    if (opened.kind === 'other') throw new Error(`${opened.shown} is not a regular file.`)
    const work = new WorkLimit(limits.timeoutMs, signal)
    const hits = new Hits(limit, limits.maxSearchBytes)
    const entries =
      opened.kind === 'file'
        ? [{ names: [], kind: 'file', path: opened.directory.at(opened.name) } as const]
        : walk(opened.directory, {
            limit: work,
            maxDepth: limits.maxDepth,
            isHidden: (names) => workspace.hidden([...opened.names, ...names]) !== undefined,
            skip: limits.skip,
          })
    for await (const entry of entries) {
      if (entry.kind !== 'file') continue
      const names = [...opened.names, ...entry.names]
      if (matchesGlob?.(names, entry.names) === false) continue
      const shown = showPlace({ root: opened.root, names }, workspace.roots)
      if (matcher === undefined) hits.add(shown)
      else await searchFile(entry, matcher, { shown, hits, work, maxBytes: limits.maxFileBytes })
      if (hits.isFull || work.isOver) break
    }
    await opened.directory.check()
    return hits.text(work.isOver)
  })
}

function toPattern(pattern: string, { literal = false, ignore_case: ignoreCase = false }: Args): Pattern {
  if (/[\n\r]/.test(pattern))
    throw new Error('A pattern cannot contain a line break: each line is searched separately.')
  if (!pattern.isWellFormed()) throw new Error('The pattern contains half a character.')
  return { pattern, literal, ignoreCase }
}

/** As in ripgrep: a glob without a slash matches the name, one with a slash the path. */
function globTest(glob: string): (names: readonly string[], below: readonly string[]) => boolean {
  try {
    const matches = toPathTest(glob.replace(/^(?:\.?\/)+/, ''))
    if (!glob.includes('/')) return (names) => matches(names.at(-1)!)
    return (names, below) => matches(names.join('/')) || matches(below.join('/'))
  } catch (error) {
    throw new Error(`The glob is not valid: ${clause(messageOf(error))}.`, { cause: error })
  }
}

const MAX_LINE_SHOWN = 300

async function searchFile(
  { path }: Entry,
  matcher: LineMatcher,
  { shown, hits, work, maxBytes }: { shown: string; hits: Hits; work: WorkLimit; maxBytes: number },
): Promise<void> {
  const bytes = readRegular(path, maxBytes)
  hits.bytes += bytes?.length ?? 0
  if (bytes === undefined || isBinary(bytes) || matcher.cannotMatch(bytes)) return
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
  for (let [from, number] = [0, 1]; from < text.length; number++) {
    const newline = text.indexOf('\n', from)
    const end = newline === -1 ? text.length : newline
    const line = text.slice(from, end > from && text[end - 1] === '\r' ? end - 1 : end)
    const start = matcher.find(line)
    if (start !== undefined) hits.add(`${shown}:${number}: ${window(line, start)}`)
    if (hits.isFull) return
    if (work.mustYield) await work.yieldTurn()
    if (work.isOver) return
    from = end + 1
  }
}

/** The bytes of a regular file, or undefined if it is too large. The path is in a folder that is held open. */
function readRegular(path: string, max: number): Buffer | undefined {
  let fd: number
  try {
    fd = openSync(path, openFlags.file)
  } catch {
    return undefined // removed, replaced by a link, or not readable
  }
  try {
    const stats = fstatSync(fd)
    return stats.isFile() && stats.size <= max ? readBytes(fd, stats.size) : undefined
  } catch {
    return undefined
  } finally {
    closeSync(fd)
  }
}

/** The part of a line around the match. */
function window(line: string, start: number): string {
  if (line.length <= MAX_LINE_SHOWN) return line
  const from = Math.max(0, Math.min(start - 100, line.length - MAX_LINE_SHOWN))
  const to = from + MAX_LINE_SHOWN
  return `${from > 0 ? '… ' : ''}${line.slice(from, to).toWellFormed()}${to < line.length ? ' …' : ''}`
}

/** The matches, and why some are missing. */
class Hits {
  readonly #limit: number
  readonly #maxBytes: number
  readonly #lines: string[] = []
  #more = false
  /** How many bytes were searched. */
  bytes = 0

  constructor(limit: number, maxBytes: number) {
    this.#limit = limit
    this.#maxBytes = maxBytes
  }

  /** One more match than is shown is searched for, to know whether there are more. */
  get isFull(): boolean {
    return this.#more || this.bytes > this.#maxBytes
  }

  add(line: string): void {
    if (this.#lines.length < this.#limit) this.#lines.push(line)
    else this.#more = true
  }

  text(isOver: boolean): string {
    const notes: string[] = []
    if (this.#more)
      notes.push(`[There are more than ${this.#limit} matches. Narrow the search with path, glob or a longer pattern.]`)
    if (isOver) notes.push('[The search timed out before all files were searched. Narrow it with path or glob.]')
    if (this.bytes > this.#maxBytes)
      notes.push('[The search stopped at its size limit before all files were searched. Narrow it with path or glob.]')
    return [...(this.#lines.length === 0 ? ['(no matches)'] : this.#lines), ...notes].join('\n')
  }
}
