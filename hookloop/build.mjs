// Builds the package: `node build.mjs [folder]`, by default into this folder.
//
// - dist/: everything behind the main entry point is one file, because Node takes more than twice as long to load forty.
//   Every other entry point and the command are bundled beside it, with shared chunks. errors.js is separate: the
//   command needs it before it knows whether it needs anything else.
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

const here = fileURLToPath(new URL('.', import.meta.url))
const target = resolve(process.argv[2] ?? here)
process.chdir(here)
const { exports, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
const entryPoints = Object.values(exports).flatMap((entry) =>
  typeof entry === 'object' ? [entry['hookloop-source']] : [],
)
const [errors, packages, main] = ['src/errors.ts', 'src/state/packages.ts', 'src/index.ts']
const [dist, docs] = [join(target, 'dist'), join(target, 'docs')]

const bundled = {
  absWorkingDir: here,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  external: Object.keys(peerDependencies),
  mainFields: ['module', 'main'],
  legalComments: 'none', // see writeLicenses
  metafile: true,
}
const written = { ...bundled, outdir: dist, outbase: 'src' }

for (const folder of [dist, docs]) rmSync(folder, { recursive: true, force: true })
const core = await modulesOf(main)
await build({ ...written, entryPoints: [errors] })
const packageFiles = await buildPackages()
await build({
  ...written,
  stdin: { contents: exportAll(core), resolveDir: '.' },
  entryNames: 'core',
  plugins: [builtElsewhere({ '#errors': [errors], '#packages': [packages] }), builtinsOnFirstUse()],
})
const builtRest = await build({
  ...written,
  entryPoints: [...entryPoints, './src/cli/index.ts'],
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  plugins: [
    builtElsewhere({ '#errors': [errors], '#packages': [packages], '#core': Object.keys(core) }),
    builtinsOnFirstUse(),
  ],
})
checkLoads()
writeLicenses([...packageFiles, ...Object.keys(builtRest.metafile.inputs)])
const shell = process.platform === 'win32'
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', dist], { stdio: 'inherit', shell })
copyDocs('../site', docs)

/** The modules behind an entry point, each with the names of its exports. */
async function modulesOf(entryPoint) {
  const inMemory = { absWorkingDir: here, write: false, metafile: true, outdir: '.', outbase: '.' }
  const { inputs } = (await build({ ...bundled, ...inMemory, packages: 'external', entryPoints: [entryPoint] }))
    .metafile
  const files = Object.keys(inputs).filter((file) => ![entryPoint, errors, packages].includes(file))
  const { outputs } = (await build({ ...inMemory, format: 'esm', entryPoints: files })).metafile
  return Object.fromEntries(Object.values(outputs).map(({ entryPoint: file, exports: names }) => [file, names]))
}

/** Other entry points import more from these modules than the main one exports. Two equal names fail the build. */
function exportAll(modules) {
  const lines = Object.entries(modules).map(([file, names]) => `export { ${names.join(', ')} } from './${file}'`)
  return lines.join('\n')
}

/** Imports modules from where they were built, so that each is loaded once. "imports" in package.json has the paths. */
function builtElsewhere(built) {
  const places = new Map(Object.entries(built).flatMap(([place, files]) => files.map((file) => [file, place])))
  return {
    name: 'built-elsewhere',
    setup({ onResolve }) {
      onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir }) => {
        const place = places.get(relative('.', join(resolveDir, path)).replaceAll(sep, '/'))
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
      plugins: [builtElsewhere({ '#errors': [errors] }), rewritten(packages, change)],
    })
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

/** Built-in modules that take Node some milliseconds to load, and that are not needed before something is called. */
function builtinsOnFirstUse() {
  const slow = /^node:(child_process|crypto|dns|fs\/promises|net|readline|stream|timers\/promises)$/
  return {
    name: 'builtins-on-first-use',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: slow }, ({ path }) => ({ path, namespace: 'builtin', sideEffects: false }))
      onLoad({ filter: slow, namespace: 'builtin' }, ({ path }) => ({ contents: wrapperOf(path) }))
    },
  }
}

/** A module with the functions and classes of a built-in one, which is loaded with the first call. */
function wrapperOf(name) {
  const lines = Object.entries(process.getBuiltinModule(name)).flatMap(([key, value]) => {
    if (typeof value !== 'function' || !/^\w+$/.test(key)) return []
    const isClass = /^[A-Z]/.test(key)
    const call = isClass ? `new (loaded().${key})(...args)` : `loaded().${key}(...args)`
    return [`export const ${key} = function (...args) { return ${call} }`]
  })
  return `let module
const loaded = () => (module ??= process.getBuiltinModule('${name}'))
export default new Proxy({}, { get: (_, key) => loaded()[key] })
${lines.join('\n')}`
}

/** Fails if a bundler could miss something: a path that is known only when the program runs. */
function checkLoads() {
  for (const file of globSync('**/*.js', { cwd: dist })) {
    const found = /createRequire|Dynamic require of/.exec(readFileSync(join(dist, file), 'utf8'))
    if (found !== null && file !== 'packages.node.js') throw new Error(`${file} has "${found[0]}"`)
  }
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

/** Copies Markdown pages. A link to a file outside of them becomes a link to the repository. */
function copyDocs(from, to) {
  const repository = 'https://github.com/hookloop/hookloop/blob/main/'
  for (const page of globSync('**/*.md', { cwd: from, exclude: (name) => name === 'node_modules' })) {
    const text = readFileSync(join(from, page), 'utf8')
    const linked = text.replaceAll(/(?<=\]\()(\.\.?\/[^)\s]+)(?=\))/g, (link) => {
      const path = relative('..', join(from, dirname(page), link)).replaceAll(sep, '/')
      return path.startsWith('site/') ? link : repository + path
    })
    mkdirSync(join(to, dirname(page)), { recursive: true })
    writeFileSync(join(to, page), linked)
  }
  cpSync('../CHANGELOG.md', join(to, 'CHANGELOG.md'))
}
