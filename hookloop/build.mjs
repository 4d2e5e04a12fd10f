// Builds the package: `node build.mjs [folder]`, by default into this folder.
//
// - dist/: files that are loaded together are one file, see groups; what most programs do not need at once is in
//   dist/parts/, see build-parts.mjs. Every entry point and the command are bundled beside them, with shared chunks. The
//   page of the studio is in dist/studio/.
// - docs/: the pages of site/ as Markdown, for people and agents that read node_modules.
//
// Packages are bundled too, except for optional peers: the bundle of a user then contains all of Hookloop. What is loaded
// on first use stays so, without a file that a bundler could miss; see buildPackages and builtinsOnFirstUse.
//
// There are no source maps, and src/ is not published. The JavaScript is not minified, so that a stack trace leads to
// readable code. Measured: 2.5 MB as it is; 5.7 MB with maps that contain their sources, or with src/ and maps that refer
// to it; 3.6 MB with maps alone, which lead a debugger to files that are missing.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { canWait, partsOf, partsOnFirstUse, placesIn, sourceAt, writePartLoaders } from './build-parts.mjs'
import { bundlePage } from './src/studio/page/bundle-page.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const target = resolve(process.argv[2] ?? here)
process.chdir(here)
const { exports, homepage, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
const entryPoints = Object.values(exports).flatMap((entry) =>
  typeof entry === 'object' ? [entry['hookloop-source']] : [],
)
const [errors, packages] = ['src/errors.ts', 'src/values/packages.ts']
const [main, command] = ['src/index.ts', 'src/cli/index.ts']
const [dist, docs] = [join(target, 'dist'), join(target, 'docs')]

const bundled = {
  absWorkingDir: here,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  external: [...Object.keys(peerDependencies), '*/bundle-page.ts'], // used when running from source only
  mainFields: ['module', 'main'],
  legalComments: 'none', // see writeLicenses
  metafile: true,
}
const written = { ...bundled, outdir: dist, outbase: 'src' }
/** Names stay, and lines are short enough for stack traces. Not for files that a bundler must shake: it loses PURE comments. */
const dense = { minifyWhitespace: true, lineLimit: 120 }
const denseGroups = /^#(?:policy|hook-files|files|skills|actions|part\/.*)$/

for (const folder of [dist, docs]) rmSync(folder, { recursive: true, force: true })
await build({ ...written, entryPoints: [errors] })
const packageFiles = await buildPackages()
const bundledFiles = new Set()
const { parts, ...grouped } = await groups()
const built = { '#errors': [errors], '#packages': [packages] }
for (const [name, files] of Object.entries(grouped)) {
  const own = name === '#core' ? await buildParts(files) : files
  const plugins = name === '#core' ? [partsOnFirstUse(parts), builtElsewhere(built)] : [builtElsewhere(built, parts)]
  noteBundled(await buildGroup(name, own, plugins))
  built[name] = own
}
const elsewhere = [builtElsewhere(built, parts), builtinsOnFirstUse()]
await build({ ...written, entryPoints: [main], plugins: elsewhere }) // alone: all of it is in groups, and it needs no chunk
const { metafile } = await build({
  ...written,
  entryPoints: [...entryPoints.filter((file) => file !== `./${main}`), command],
  ...dense,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  plugins: elsewhere,
})
noteBundled(metafile)
checkLoads()
writeLicenses([...packageFiles, ...bundledFiles, ...(await buildStudioPage())])
const shell = process.platform === 'win32'
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', dist], { stdio: 'inherit', shell })
removeUnusedTypes()
copyDocs('../site', docs)

async function buildGroup(name, files, plugins) {
  const reexported = name === '#core' ? Object.keys(parts).map((part) => `export * from '${part}'`) : []
  const { metafile } = await build({
    ...written,
    ...(denseGroups.test(name) && dense),
    stdin: { contents: [await exportAll(files), ...reexported].join('\n'), resolveDir: '.' },
    entryNames: name.slice(1).replace('part/', 'parts/'),
    plugins: [...plugins, builtinsOnFirstUse()],
  })
  const other = Object.keys(metafile.inputs).find((file) => file.startsWith('src/') && !files.includes(file))
  if (other !== undefined) throw new Error(`${other} would be loaded twice: ${name} imports it, and it is in no group`)
  return metafile
}

/**
 * Builds the parts of the core that are loaded on first use. V8 takes longer to read code than to run it, and most programs
 * do not need most parts, or not at once. Returns the files that are loaded at once.
 */
async function buildParts(core) {
  const later = new Set(Object.values(parts).flat())
  const rest = core.filter((file) => !later.has(file))
  for (const [name, files] of Object.entries(parts)) {
    const { [name]: _own, ...others } = parts
    noteBundled(await buildGroup(name, files, [builtElsewhere({ ...built, '#core': rest }, others)]))
  }
  writePartLoaders(parts, dist)
  return rest
}

/**
 * Modules that are one file each, because Node takes twice as long to load forty files as to load one. A group imports only
 * from groups before it.
 */
async function groups() {
  const all = await modulesOf([...entryPoints, command])
  const core = await modulesOf([main])
  // The command loads the base at once, and the rest of the core only if it needs an agent.
  const small = [command, 'src/cli/commands/policy-bash.ts']
  const base = (await modulesOf(small, ['./commands/*'])).filter((file) => !/^src\/(cli|capabilities)\//.test(file))
  const ofCore = core.filter((file) => !base.includes(file))
  const grouped = new Set([...core, ...base])
  const below = async (folder) => {
    const own = all.filter((file) => file.startsWith(`src/${folder}/`) && !entryPoints.includes(`./${file}`))
    const files = [...own, ...(await modulesOf(own))].filter((file) => !grouped.has(file))
    for (const file of files) grouped.add(file)
    return files
  }
  return {
    '#base': base,
    '#core': ofCore,
    '#system': await below('system'),
    '#policy': await below('capabilities/bash/policy'),
    '#files': await below('capabilities/files'),
    '#skills': await below('capabilities/skills'),
    '#actions': await below('actions'),
    '#hook-files': await below('hook-files'),
    parts: partsOf(ofCore),
  }
}

/** Fails if a file of a package is part of two builds: it would be loaded twice. */
function noteBundled({ inputs }) {
  for (const file of Object.keys(inputs).filter((each) => each.includes('node_modules/'))) {
    if (bundledFiles.has(file)) throw new Error(`${file} would be loaded twice: two groups import it`)
    bundledFiles.add(file)
  }
}

/** The source files that some of them import, without the entry points themselves and without what is built alone. */
async function modulesOf(entryPoints, external = []) {
  const options = {
    ...bundled,
    external: [...bundled.external, ...external],
    packages: 'external',
    write: false,
    outdir: '.',
  }
  const { inputs } = (await build({ ...options, entryPoints, plugins: [] })).metafile
  const alone = [...entryPoints.map((file) => file.replace('./', '')), errors, packages]
  return Object.keys(inputs).filter((file) => file.startsWith('src/') && !alone.includes(file))
}

/** Others import more from these modules than an entry point exports. Two equal names fail the build. */
async function exportAll(files) {
  const options = { absWorkingDir: here, write: false, metafile: true, outdir: '.', outbase: '.', format: 'esm' }
  const { outputs } = (await build({ ...options, entryPoints: files })).metafile
  return Object.values(outputs)
    .filter(({ exports: names }) => names.length > 0)
    .map(({ entryPoint, exports: names }) => `export { ${names.join(', ')} } from './${entryPoint}'`)
    .join('\n')
}

/**
 * Imports modules from where they were built, so that each is loaded once. "imports" in package.json has the paths. The
 * core exports what its parts declare, so a part itself is only imported where that is not enough.
 */
function builtElsewhere(built, parts = {}) {
  const [places, placesOfParts] = [placesIn(built), placesIn(parts)]
  return {
    name: 'built-elsewhere',
    setup({ onResolve }) {
      onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir, importer }) => {
        const file = sourceAt(resolveDir, path)
        const part = placesOfParts.get(file)
        const place = part === undefined ? places.get(file) : canWait(importer, path, file) ? '#core' : part
        return place && { path: place, external: true, sideEffects: false }
      })
    },
  }
}

/**
 * The packages that are loaded on first use, in two forms. Node requires a CommonJS file; that costs nothing before.
 * Everything else, such as a bundler, imports ES modules with a function around each package. "imports" in package.json
 * decides by a condition that only Node sets.
 */
async function buildPackages() {
  const required = /createRequire\(import\.meta\.url\)\('([^']+)'\)/g
  const names = [...readFileSync(packages, 'utf8').matchAll(required)].map(([, name]) => name)
  const inputs = []
  for (const name of names) {
    const one = { ...written, entryNames: `packages/${basename(name)}`, minify: true }
    await build({ ...one, format: 'cjs', entryPoints: [name], outExtension: { '.js': '.cjs' } })
    const contents = `export const load = () => require('${name}')`
    // Neutral: nothing in it may require a built-in module, which an ES module cannot.
    const { metafile } = await build({ ...one, platform: 'neutral', stdin: { contents, resolveDir: here } })
    inputs.push(...Object.keys(metafile.inputs))
  }
  const imported = names.map((name, i) => `import { load as load${i} } from './packages/${basename(name)}.js'`)
  const variants = {
    'packages.node': (text) =>
      text.replaceAll(required, (_, name) => `createRequire(import.meta.url)('./packages/${basename(name)}.cjs')`),
    packages: (text) =>
      text
        .replace(/^import .*'node:module'\n/m, `${imported.join('\n')}\n`)
        .replaceAll(required, (_, name) => `load${names.indexOf(name)}()`),
  }
  for (const [entryNames, change] of Object.entries(variants))
    await build({
      ...written,
      entryNames,
      entryPoints: [packages],
      external: ['./packages/*'],
      plugins: [builtElsewhere({ '#errors': [errors] }), rewritten(packages, change), builtinsOnFirstUse()],
    })
  return inputs
}

async function buildStudioPage() {
  const { script, style, inputs } = await bundlePage()
  mkdirSync(join(dist, 'studio'))
  writeFileSync(join(dist, 'studio/page.js'), script)
  writeFileSync(join(dist, 'studio/page.css'), style)
  return inputs
}

/** A source file with changes. */
function rewritten(file, change) {
  return {
    name: 'rewritten',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        if (relative('.', path).replaceAll(sep, '/') !== file) return undefined
        return { contents: change(readFileSync(path, 'utf8')), loader: 'ts' }
      })
    },
  }
}

/**
 * Built-in modules without an import. An import of one that Node has loaded already still reads all of its exports, and
 * some of these load much more: with `node:fs` come streams, with `node:util` worker threads. Those that Node has not loaded
 * take it some milliseconds each, and are loaded with the first call.
 */
function builtinsOnFirstUse() {
  const loaded = /^(node:)?(console|events|fs|module|os|path|process|string_decoder|url|util)$/
  const slow = /^node:(child_process|crypto|dns|fs\/promises|net|readline|stream|timers\/promises|vm)$/
  return {
    name: 'builtins-on-first-use',
    setup({ onResolve, onLoad }) {
      for (const [filter, moduleOf] of [
        [loaded, valuesOf],
        [slow, wrappersOf],
      ]) {
        onResolve({ filter }, ({ path }) => ({ path, namespace: 'builtin', sideEffects: false }))
        onLoad({ filter, namespace: 'builtin' }, ({ path }) => ({ contents: moduleOf(path) }))
      }
    },
  }
}

/** A module with the exports of a built-in one. Only those that are imported are read. */
function valuesOf(name) {
  const keys = Object.keys(process.getBuiltinModule(name)).filter((key) => /^[A-Za-z]\w*$/.test(key))
  const lines = keys.map((key) => `export const ${key} = /* @__PURE__ */ read$('${key}')`)
  return `const module$ = /* @__PURE__ */ process.getBuiltinModule('${name}')
const read$ = (name) => module$[name]
export default module$
${lines.join('\n')}`
}

/** A module with the functions and classes of a built-in one, which is loaded with the first call. */
function wrappersOf(name) {
  const lines = Object.entries(process.getBuiltinModule(name)).flatMap(([key, value]) => {
    if (typeof value !== 'function' || !/^\w+$/.test(key)) return []
    const isClass = /^[A-Z]/.test(key)
    const call = isClass ? `new (loaded$().${key})(...args)` : `loaded$().${key}(...args)`
    return [`export const ${key} = function (...args) { return ${call} }`]
  })
  return `let module$
const loaded$ = () => (module$ ??= process.getBuiltinModule('${name}'))
export default new Proxy({}, { get: (_, key) => loaded$()[key] })
${lines.join('\n')}`
}

/** Fails if a bundler could miss something: a path that is known only when the program runs. */
function checkLoads() {
  for (const file of globSync('**/*.js', { cwd: dist })) {
    const found = /createRequire|Dynamic require of/.exec(readFileSync(join(dist, file), 'utf8'))
    if (found !== null && !['packages.node.js', 'parts.node.js'].includes(file))
      throw new Error(`${file} has "${found[0]}"`)
  }
}

/** Removes the declarations that no entry point needs: a third of them. */
function removeUnusedTypes() {
  const needed = new Set()
  const need = (file) => {
    if (needed.has(file)) return
    needed.add(file)
    const imports = readFileSync(file, 'utf8').matchAll(/(?:from |import\()['"](\.[^'"]+)\.(?:ts|js)['"]/g)
    for (const [, path] of imports) need(join(dirname(file), `${path}.d.ts`))
  }
  for (const { types } of Object.values(exports)) if (types !== undefined) need(join(target, types))
  for (const file of globSync('**/*.d.ts', { cwd: dist })) if (!needed.has(join(dist, file))) rmSync(join(dist, file))
}

/** The licenses of the packages that are part of dist/. */
function writeLicenses(inputs) {
  const folders = new Set(inputs.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []))
  const texts = Array.from(folders, (folder) => {
    const { name, version, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const [file] = globSync('LICEN[CS]E*', { cwd: folder })
    const text = file === undefined ? `${license}, ${author?.name ?? author}` : readFileSync(join(folder, file), 'utf8')
    return `${name} ${version}\n\n${text.trim()}\n`
  })
  writeFileSync(join(dist, 'THIRD-PARTY-LICENSES.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`))
}

/** Copies Markdown pages. A link to a file outside of them leads to the repository, and one to the API to the site. */
function copyDocs(from, to) {
  const repository = 'https://github.com/hookloop/hookloop/blob/main/'
  for (const page of globSync('**/*.md', { cwd: from, exclude: (name) => name === 'node_modules' })) {
    const text = readFileSync(join(from, page), 'utf8')
    const linked = text.replaceAll(/(?<=\]\()(\.\.?\/[^)\s]+)(?=\))/g, (link) => {
      const path = relative('..', join(from, dirname(page), link)).replaceAll(sep, '/')
      if (path.startsWith('site/reference/api/')) return `${homepage}${path.slice('site'.length).replace('.md', '')}`
      return path.startsWith('site/') ? link : repository + path
    })
    mkdirSync(join(to, dirname(page)), { recursive: true })
    writeFileSync(join(to, page), linked)
  }
  cpSync('../CHANGELOG.md', join(to, 'CHANGELOG.md'))
}
