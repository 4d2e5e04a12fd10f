import { readdirSync, type Dirent } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { messageOf } from '../errors.ts'
import type { Json } from '../values/json.ts'
import { readFrontMatter } from '../system/files/front-matter.ts'
import { realPath } from './trust/fingerprint.ts'

/** A Markdown file that may have hooks in its front matter: a skill, a command (a skill of one file) or an agent. */
export type Head = {
  readonly kind: 'skill' | 'agent'
  readonly file: string
  readonly root: string
  readonly name: string
}

const MAX_ENTRIES = 1_000

/** Those of a `.claude` or `.hookloop` folder: `skills/<name>/SKILL.md`, and all of `commands` and `agents`. */
export function headsIn(folder: string): readonly Head[] {
  const skills = entriesOf(join(folder, 'skills')).map(({ name }) => join(folder, 'skills', name, 'SKILL.md'))
  const others = ['commands', 'agents'].flatMap((name) => markdownFiles(join(folder, name), { followLinks: true }))
  return [...skills, ...others].map(headAt)
}

export function headAt(file: string): Head {
  const root = dirname(file)
  if (basename(file) === 'SKILL.md') return { kind: 'skill', file, root, name: basename(root) }
  const nearest = root.split(sep).findLast((name) => ['agents', 'commands', 'skills'].includes(name))
  const name = basename(file).replace(/\.md$/i, '')
  return { kind: nearest === 'agents' ? 'agent' : 'skill', file, root, name }
}

/** Often written as `[issue] [priority]`, which is not YAML. */
export const HINT = /^argument-hint:.*$/m

/** A field of the front matter of a file with its line, and the name that the file gives. Throws if it cannot be parsed. */
export function headField(
  text: string,
  key: string,
): { readonly value: Json; readonly line: number; readonly name: string | undefined } | undefined {
  const line = lineOfField(text, key)
  if (line === undefined) return undefined
  const { [key]: value, name } = fieldsOf(text)
  if (value === undefined) return undefined
  return { value, line, name: typeof name === 'string' && name.trim() !== '' ? name.trim() : undefined }
}

/** The line of a field of the front matter, which is not parsed. */
export function lineOfField(text: string, key: string): number | undefined {
  const head = /^\uFEFF?---[^]*?\n(?=(?:---|\.\.\.)[ \t]*(?:\r?\n|$))/.exec(text)?.[0] ?? ''
  const at = head.split('\n').findIndex((line) => new RegExp(`(?:^|[{,])[ \\t]*["']?${key}["']?[ \\t]*:`).test(line))
  return at === -1 ? undefined : at + 1
}

function fieldsOf(text: string): ReturnType<typeof readFrontMatter>['fields'] {
  try {
    return readFrontMatter(text.replace(HINT, ''), { plainTexts: true }).fields
  } catch (error) {
    throw new Error(messageOf(error), { cause: error })
  }
}

/** The `.md` files of a folder and its subfolders. Each folder is read once, because links may form a cycle. */
export function markdownFiles(
  root: string,
  { followLinks = false }: { readonly followLinks?: boolean } = {},
): readonly string[] {
  const seen = new Set<string>()
  const walk = (folder: string): readonly string[] => {
    const real = realPath(folder)
    if (seen.has(real) || seen.size >= MAX_ENTRIES) return []
    seen.add(real)
    return entriesOf(folder).flatMap((entry) => {
      const path = join(folder, entry.name)
      const isMarkdown = /\.md$/i.test(path)
      if (entry.isDirectory() || (followLinks && entry.isSymbolicLink() && !isMarkdown)) return walk(path)
      return isMarkdown ? [path] : []
    })
  }
  return walk(root).slice(0, MAX_ENTRIES)
}

/** The entries of a folder, sorted by name. Empty if it cannot be read. */
function entriesOf(folder: string): readonly Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    return entries.slice(0, MAX_ENTRIES)
  } catch {
    return []
  }
}
