import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fingerprint, isInside, realPath, uniqueByPath, type Fingerprint } from './fingerprint.ts'

type Variables = Readonly<Record<string, string>>

const MAX_LOOK_UPS = 20_000
const MAX_PATH = 1_000

/**
 * The files below a project that the texts of a command name: its command line or arguments, and the values of its variables.
 * A name is looked up in the working directory, the project, and the folders that the texts name. Left out are files that the
 * command writes, by their place (`>> notes`, `tee notes`) or their name (`run.log`). What the files load in turn is not seen.
 */
export function namedFiles(
  texts: readonly string[],
  { dir, cwd = dir, variables = {} }: { readonly dir: string; readonly cwd?: string; readonly variables?: Variables },
): readonly Fingerprint[] {
  const [root, project] = [realPath(dir), resolve(dir)]
  const known = { CLAUDE_PROJECT_DIR: project, HOOKLOOP_PROJECT_DIR: project, PWD: cwd, HOME: homedir(), ...variables }
  const words = [...new Set(texts.flatMap((text) => [text, ...wordsIn(fillVariables(text, known))]))]
  const start = [resolve(cwd), project]
  const tooMany = [{ path: root, hash: '', problem: 'its command names too many files to check them' }]
  if (words.length * start.length > MAX_LOOK_UPS) return tooMany
  const folders = [...new Set([...start, ...pathsIn(start, words).filter((path) => kindOf(path) === 'folder')])]
  if (words.length * folders.length > MAX_LOOK_UPS) return tooMany
  const files = pathsIn(['/', ...folders], words).filter((path) => !data.test(path) && kindOf(path) === 'file')
  const own = files.filter((path) => isInside(project, path) || isInside(root, realPath(path)))
  return uniqueByPath(
    own.map((path) => fingerprint(path) ?? { path: realPath(path), hash: '', problem: 'it cannot be read' }),
  )
}

function pathsIn(folders: readonly string[], words: readonly string[]): readonly string[] {
  const names = words.filter((word) => word.length <= MAX_PATH)
  return [...new Set(folders.flatMap((folder) => names.map((name) => join(folder, name))))]
}

/** Replaces `$NAME`, `${NAME}` and `${NAME:-other}`. A variable that is not known is left out. */
export function fillVariables(text: string, variables: Variables): string {
  return text.replace(
    /\$(?:\{(\w+)(?::?[-=+]([^${}]*))?\}|(\w+))/g,
    (_all, braced: string | undefined, instead: string | undefined, bare: string | undefined) => {
      const name = (braced ?? bare)!
      return Object.hasOwn(variables, name) ? variables[name]! : (instead ?? '')
    },
  )
}

const quotedOrPlain = /(?:"[^"]*"|'[^']*'|\\.|[^\s;&|()<>"'\\`])+/g
const written = /(?:\d?>[>|&]?\s*|(?<![^\s|;&])tee\s+(?:-a\s+)?)(?:"[^"]*"|'[^']*'|[^\s;&|()<>"'])+/g
const data = /\.(?:log|jsonl|ndjson|csv|tsv|db|sqlite3?|out|err|tmp|lock|pid)$/
const between = /[\s;&|()<>"'`=:,]+/

/** The words of a command line without quotes, and the parts of each: `--rules=a.json`, `bash -c "sh a.sh"`. */
function wordsIn(text: string): readonly string[] {
  const words = text.replaceAll(written, ' ').match(quotedOrPlain) ?? []
  return words.flatMap((quoted) => {
    const word = quoted.replaceAll(/["']|\\(?=.)/g, '').replace(/^~(?=\/)/, homedir())
    return [word, ...word.split(between)]
  })
}

function kindOf(path: string): 'file' | 'folder' | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.isFile() === true ? 'file' : stats?.isDirectory() === true ? 'folder' : undefined
  } catch {
    return undefined // for example a name that is too long
  }
}
