import { basename, extname } from 'node:path'
import { isJsonObject } from '../../state/json.ts'

/** The names under which an interpreter looks for a module or a script. */
const ofJavaScript = '|.js|.cjs|.mjs|.ts|.cts|.mts|.json|/index.js|/index.mjs|/index.cjs|/index.ts|/package.json'.split(
  '|',
)
const ofPython = ['', '.py', '/__main__.py', '/__init__.py']
export const endings = [...new Set([...ofJavaScript, ...ofPython, '.sh', '.rb', '.pl', '.pm', '.php', '.lua'])]

/** How scripts of a language name other files, by the extension of a script or the name of an interpreter. */
export function modulesOf(language: string): {
  readonly ends: readonly string[]
  readonly isPathOnly: boolean
  readonly hasPackages?: true
  readonly isShell?: true
} {
  if (/^(?:[cm]?[jt]sx?|node|bun|deno|ts-node|tsx)$/.test(language))
    return { ends: ofJavaScript, isPathOnly: true, hasPackages: true }
  if (/^py(?:thon[\d.]*)?$/.test(language)) return { ends: ofPython, isPathOnly: false }
  if (isShellName(language)) return { ends: [''], isPathOnly: true, isShell: true }
  return { ends: endings, isPathOnly: false }
}

/** The language of a script: its extension, or the program of its first line, or the one that runs it. */
export function languageOf(path: string, text: string, runBy: string): string {
  const shebang = /^#!\s*(?:\S*\/)?(\S+)(?:[ \t]+(?:-\S+[ \t]+)*(\S+))?/.exec(text)
  const program = shebang?.[1] === 'env' ? shebang[2] : shebang?.[1]
  return extname(path).slice(1) || (program ?? runBy)
}

/** The commands in a script of a shell, or in the recipes of a Makefile. */
export function commandsIn(path: string, text: string, language: string): string | undefined {
  if (isShellName(language)) return text
  if (!/^(?:gnu)?makefile$|\.mk$/i.test(basename(path))) return undefined
  const recipes = text.split('\n').filter((line) => line.startsWith('\t'))
  return recipes.map((line) => line.replace(/^\t[@+-]*/, '').replaceAll('$$', '$')).join('\n')
}

function isShellName(language: string): boolean {
  return /^(?:(?:ba|da|z|k|fi)?sh|eval|source|\.)$/.test(language)
}

/** The commands of a package.json that a command names, with those that run before and after them. */
export function scriptsIn(text: string, words: readonly string[]): readonly string[] {
  const { scripts } = packageOf(text)
  if (!isJsonObject(scripts)) return []
  const named = words.map((word) => (/^t(?:st)?$/.test(word) ? 'test' : word))
  return Object.entries(scripts).flatMap(([name, line]) => {
    const isNamed = named.some((word) => [word, `pre${word}`, `post${word}`].includes(name))
    return isNamed && typeof line === 'string' ? [line] : []
  })
}

/** The name of a package, and the files that its package.json says are loaded. */
export function entriesIn(text: string): { readonly name: unknown; readonly files: readonly string[] } {
  const { name, main, module, exports, imports } = packageOf(text)
  const strings = (value: unknown): readonly string[] =>
    typeof value === 'string'
      ? [value]
      : typeof value === 'object' && value !== null
        ? Object.values(value).flatMap(strings)
        : []
  return { name, files: [main, module, exports, imports].flatMap(strings) }
}

function packageOf(text: string): { readonly [field: string]: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}
