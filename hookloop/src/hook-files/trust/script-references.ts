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
  /** Names that other programs read as code, whatever they look like: `include` in a Makefile, `exec(open(…))` and the like. */
  readonly evaluated: readonly string[]
  /** Folders from which something is loaded under a name that is built at run time: `require('./rules/' + name)`. */
  readonly folders: readonly string[]
  /** Texts in lines that load something or build paths: some may be folders. */
  readonly near: readonly string[]
  /** What `import` and `require` of JavaScript name. */
  readonly modules: readonly string[]
}

const loading =
  /\b(?:source|require\w*|include\w*|import\w*|from|load\w*|use|exec\w*|eval|spawn\w*|fork|system|popen|run|call|Worker|sh|bash|dash|zsh|ksh|node|deno|bun|tsx|python[\d.]*|ruby|perl|php|lua|make|npm|npx|pnpm|yarn)\b/
const sourcing = /(?:^|[\s;&|(])(?:source|\.)\s/
const evaluating =
  /(?:^|[\s;&|(])(?:[-s]?include|import|do|load|exec|eval)[\s(]|\b(?:run_path|execfile|instance_eval)\b/
const importing = /\b(?:source|require\w*|include\w*|import\w*|from|load\w*|use|Worker)\b|(?:^|[\s;&|(])\.\s/
const building = /path|dir|glob|join/i
/** `from './x'`, `import './x'`, `import('./x')`, `require('./x')`, on one line or several. */
const specifiers = /\b(?:from|import|require(?:\.resolve)?|Worker)\s*\(?\s*(["'`])([^"'`\n]{1,300})\1/g
const joined = /\b(?:join|resolve)\s*\(([^()]{1,500})\)/g
const comment = /^\s*(?:#(?!!)|\/\/|\*)/
const known = new BoundedMap<string, References>(1_000)

/** Finds the references in a text. Names that a script builds at run time are not found. */
export function referencesIn(text: string): References {
  return known.getOrAdd(hashed(text), () => {
    const found = {
      names: new Set<string>(joinedPaths(text)),
      paths: new Set<string>(),
      sourced: new Set<string>(),
      evaluated: new Set<string>(),
      folders: new Set<string>(),
      near: new Set<string>(),
    }
    for (const line of text.split('\n')) {
      if (comment.test(line)) continue
      const tokens = tokensOf(line)
      const [isLoading, isImporting] = [loading.test(line), importing.test(line)]
      const [isSourcing, isEvaluating] = [sourcing.test(line), evaluating.test(line)]
      const isNear = isLoading || building.test(line)
      for (const token of tokens) {
        if (token.includes('/')) found.paths.add(token)
        if (isLoading) found.names.add(token)
        if (isSourcing) found.sourced.add(token)
        if (isImporting && token.endsWith('/')) found.folders.add(token)
        if (isEvaluating) found.evaluated.add(token)
        if (isNear) found.near.add(token)
      }
    }
    const { paths, sourced, evaluated, folders, near } = found
    const modules = [...text.matchAll(specifiers)].map((match) => match[2]!)
    return {
      names: withModules(found.names),
      paths: [...paths],
      sourced: [...sourced],
      evaluated: [...evaluated],
      folders: [...folders],
      near: [...near],
      modules: [...new Set(modules)],
    }
  })
}

/** `join(dir, 'rules', 'all')` names `rules/all`. */
function joinedPaths(text: string): readonly string[] {
  return [...text.matchAll(joined)].flatMap(([, args = '']) => {
    const parts = [...args.matchAll(/["'`]([^"'`]+)["'`]/g)].map((match) => match[1]!)
    return parts.length < 2 ? [] : [parts.join('/')]
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
