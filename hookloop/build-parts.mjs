// The parts of the core that are loaded on first use: V8 takes longer to read code than to run it, and most programs do not
// need most parts, or not at once. The core has a function in place of each function and class of a part, which loads the
// part with the first call. See build.mjs.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

const under = (folder, ...names) => names.map((name) => `${folder}/${name}`)

/** The parts, and how the paths of their files begin. */
const beginnings = {
  sessions: ['sessions/', ...under('core/effects', 'save-run', 'tape')],
  models: under('models', 'ai-sdk/', 'by-name', 'provider'),
  explain: ['core/agent/describe-agent', ...under('core/explain', 'advice', 'explain', 'explanation')],
  capabilities: [
    ...under('capabilities', 'approval', 'cache-', 'cancellation', 'context-', 'metadata', 'redact-', 'response-'),
    ...under('capabilities', 'retry-limit', 'self-'),
  ],
  'json-schema': under('values', 'json-schema', 'untrusted-schema', 'schema-problem'),
  more: [
    ...under('core', 'output/', 'subagents/', 'agent/agent-tool', 'agent/hook-agent'),
    ...under('core/loop', 'answer-stream', 'attempts', 'compact', 'resume'),
    ...under('core/model', 'hook-infer', 'infer'),
    'capabilities/output',
    ...under(
      'core/hooks',
      'changes',
      'check-outcome',
      'missing-method',
      'outcome',
      'perform-hook',
      'run-around',
      'run-shadow',
    ),
    ...under('values', 'partial-pattern', 'redact-stream'),
  ],
}

/** The files of each part. */
export function partsOf(files) {
  const isIn = (file, starts) => starts.some((start) => file.startsWith(`src/${start}`))
  return Object.fromEntries(
    Object.entries(beginnings).map(([name, starts]) => [`#part/${name}`, files.filter((file) => isIn(file, starts))]),
  )
}

/** Where each file of some groups is built. */
export function placesIn(groups) {
  return new Map(Object.entries(groups).flatMap(([place, files]) => files.map((file) => [file, place])))
}

export function sourceAt(folder, path) {
  return relative('.', join(folder, path)).replaceAll(sep, '/')
}

/** For the core: what it imports from a part, and what it exports of all parts, is loaded with the first call. */
export function partsOnFirstUse(parts) {
  const places = placesIn(parts)
  const namespace = 'part'
  return {
    name: 'parts-on-first-use',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^#parts$/ }, ({ path }) => ({ path, external: true, sideEffects: false }))
      onResolve({ filter: /^#part\// }, ({ path }) => ({ path, namespace, sideEffects: false }))
      onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir, importer }) => {
        const file = sourceAt(resolveDir, path)
        const place = places.get(file)
        if (place === undefined) return undefined
        if (!canWait(importer, path, file))
          throw new Error(`${importer} needs ${file} at once: it cannot be in ${place}`)
        return { path: place, namespace, sideEffects: false }
      })
      onLoad({ filter: /.*/, namespace }, ({ path }) => ({ contents: wrappersOf(path, parts[path]) }))
    },
  }
}

function wrappersOf(name, files) {
  const load = `parts['${nameOf(name)}']()`
  const lines = files.flatMap((file) =>
    Array.from(declarationsIn(file), ([each, kind]) => {
      const call = kind === 'class' ? `new (${load}.${each})(...args)` : `${load}.${each}(...args)`
      return `export function ${each}(...args) { return ${call} }`
    }),
  )
  return `import { parts } from '#parts'\n${lines.join('\n')}`
}

/**
 * How a part is loaded: Node requires it, synchronously, because the functions that need it are synchronous. Everything
 * else, such as a bundler, gets a core that imports all parts. "imports" in package.json decides by conditions that only
 * Node sets, and only if it can require ES modules.
 */
export function writePartLoaders(parts, dist) {
  const names = Object.keys(parts).map(nameOf)
  const files = {
    'parts.node': [
      "import { onFirstUse } from '#packages'",
      "const load = (path) => process.getBuiltinModule('node:module').createRequire(import.meta.url)(path)",
      'export const parts = {',
      ...names.map((name) => `  '${name}': onFirstUse(() => load('./parts/${name}.js')),`),
      '}',
    ],
    parts: ['export const parts = {}'],
    // The core comes first: parts need it when they are evaluated, and it needs them when something is called.
    'core.all': [
      "export * from './core.js'",
      "import { parts } from '#parts'",
      ...names.map((name, i) => `import * as part${i} from './parts/${name}.js'`),
      ...names.map((name, i) => `parts['${name}'] = () => part${i}`),
    ],
  }
  for (const [name, lines] of Object.entries(files)) writeFileSync(join(dist, `${name}.js`), `${lines.join('\n')}\n`)
}

function nameOf(part) {
  return part.replace('#part/', '')
}

/**
 * Whether a module can import another one on first use: it calls functions and creates instances of classes, no more, and not
 * while it is loaded.
 */
export function canWait(importer, path, file) {
  const text = readFileSync(importer, 'utf8')
  const declared = declarationsIn(file)
  const imports = [...text.matchAll(/^(import|export) \{([^}]*)\} from '([^']+)'/gm)]
  return imports
    .filter(([, , , from]) => from === path)
    .flatMap(([, keyword, names]) => names.split(',').map((name) => [keyword, name.trim()]))
    .filter(([, name]) => name !== '' && !name.startsWith('type '))
    .every(([keyword, name]) => {
      const kind = declared.get(name)
      if (new RegExp(`^(?:export )?const \\w+(?:: .*)? = (?:new )?${name}\\(`, 'm').test(text)) return false
      const isOnlyCreated = !new RegExp(`\\b(instanceof|extends) ${name}\\b|\\b${name}\\.`).test(text)
      return kind === 'function' || (kind === 'class' && keyword === 'import' && isOnlyCreated)
    })
}

/** The functions and classes that a module exports, by name. */
function declarationsIn(file) {
  const found = readFileSync(file, 'utf8').matchAll(/^export (?:async |abstract )?(function|class)\*? (\w+)/gm)
  return new Map(Array.from(found, ([, kind, name]) => [name, kind]))
}
