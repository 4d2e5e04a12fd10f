import { readdirSync, type Dirent } from 'node:fs'
import { join } from 'node:path'
import { realPath } from './trust/fingerprint.ts'

const MAX_ENTRIES = 1_000

export type MarkdownOptions = {
  /** Whether links to folders are followed. Default: false. */
  readonly followLinks?: boolean
  /** How many levels of folders are read. Default: all. */
  readonly maxDepth?: number
}

/** The `.md` files of a folder and its subfolders. Each folder is read once, because links may form a cycle. */
export function markdownFiles(root: string, options: MarkdownOptions = {}): readonly string[] {
  const { followLinks = false, maxDepth = Infinity } = options
  const seen = new Set<string>()
  const walk = (folder: string, depth: number): readonly string[] => {
    const real = realPath(folder)
    if (depth > maxDepth || seen.has(real) || seen.size >= MAX_ENTRIES) return []
    seen.add(real)
    return entriesOf(folder).flatMap((entry) => {
      const path = join(folder, entry.name)
      if (entry.isDirectory() || (followLinks && entry.isSymbolicLink() && !isMarkdown(path)))
        return walk(path, depth + 1)
      return isMarkdown(path) ? [path] : []
    })
  }
  return walk(root, 1).slice(0, MAX_ENTRIES)
}

function isMarkdown(path: string): boolean {
  return /\.md$/i.test(path)
}

/** The entries of a folder, sorted by name. Empty if it cannot be read. */
export function entriesOf(folder: string): readonly Dirent[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1))
    return entries.slice(0, MAX_ENTRIES)
  } catch {
    return []
  }
}
