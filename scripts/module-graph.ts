import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** What the text of a file imports, as it is written there. Imports of types only are left out unless asked for. */
export function importsIn(text: string, options: { readonly types?: boolean } = {}): readonly string[] {
  const found = text.matchAll(
    /^(?:import|export)\s+(type\s+)?[^'"()]*?from\s+'([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...found].flatMap(([, type, from, bare, dynamic]) =>
    type !== undefined && options.types !== true ? [] : [(from ?? bare ?? dynamic)!],
  )
}

/** All that a file can load: files of this repository by their path, packages and builtins by their name. */
export function modulesOf(file: string): ReadonlySet<string> {
  const found = new Set([file])
  for (const each of found) {
    if (!existsSync(each)) continue
    for (const name of importsIn(readFileSync(each, 'utf8'))) found.add(resolve(each, name))
  }
  return found
}

const entryPoints = (
  JSON.parse(readFileSync(join(import.meta.dirname, '../hookloop/package.json'), 'utf8')) as {
    exports: Record<string, { 'hookloop-source'?: string }>
  }
).exports

function resolve(from: string, name: string): string {
  if (name.startsWith('.')) return join(dirname(from), name)
  const source = name.split('/')[0] === 'hookloop' ? entryPoints[`.${name.slice(8)}`]?.['hookloop-source'] : undefined
  return source === undefined ? name : join('hookloop', source)
}
