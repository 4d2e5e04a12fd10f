import { BoundedMap } from '../../state/bounded-map.ts'
import { hashed } from './fingerprint.ts'

/** What a script mentions that may be other code. */
export type References = {
  /** Names in lines that load or run something: `import`, `require`, `source`, `sh` and the like. */
  readonly names: readonly string[]
  /** Everything that looks like a path. */
  readonly paths: readonly string[]
  /** Names that a shell reads as its own commands, whatever they look like. */
  readonly sourced: readonly string[]
}

const loading =
  /\b(?:source|require\w*|include\w*|import\w*|from|load\w*|use|exec\w*|eval|spawn\w*|fork|system|popen|run|call|Worker|sh|bash|dash|zsh|ksh|node|deno|bun|tsx|python[\d.]*|ruby|perl|php|lua|make|npm|npx|pnpm|yarn)\b/
const sourcing = /(?:^|[\s;&|(])(?:source|\.)\s/
const comment = /^\s*(?:#(?!!)|\/\/|\*)/
const known = new BoundedMap<string, References>(1_000)

/** Finds the references in a text. Names that a script builds at run time are not found. */
export function referencesIn(text: string): References {
  return known.getOrAdd(hashed(text), () => {
    const found = { names: new Set<string>(), paths: new Set<string>(), sourced: new Set<string>() }
    for (const line of text.split('\n')) {
      if (comment.test(line)) continue
      const tokens = tokensOf(line)
      for (const token of tokens) {
        if (token.includes('/')) found.paths.add(token)
        if (loading.test(line)) found.names.add(token)
        if (sourcing.test(line)) found.sourced.add(token)
      }
    }
    return { names: withModules(found.names), paths: [...found.paths], sourced: [...found.sourced] }
  })
}

/** The texts between characters that are not part of paths. `$DIR/lib.sh` leaves `/lib.sh`, which is looked up beside the script. */
function tokensOf(line: string): readonly string[] {
  const plain = line.replace(/\\ /g, '\uE000').replace(/\$(?:\{[^}]*\}|\w+)/g, ' ')
  return plain
    .split(/[^\w./@~+\-\u0080-\uFFFF]+/)
    .map((token) => token.replaceAll('\uE000', ' '))
    .filter((token) => token !== '' && !/^\.*\/*$/.test(token) && token.length <= 500)
}

/** `a.b` in Python is the file `a/b.py`; `.a` is beside the script. */
function withModules(names: ReadonlySet<string>): readonly string[] {
  const modules = [...names].filter((name) => /^\.*\w+(?:\.\w+)*$/.test(name))
  return [...new Set([...names, ...modules.map((name) => name.replace(/^\.+/, '').replaceAll('.', '/'))])]
}
