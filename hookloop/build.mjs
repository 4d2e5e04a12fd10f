// Builds the package: `node build.mjs [folder]`, by default into this folder.
//
// - dist/: everything behind the main entry point is one file, because Node takes more than twice as long to load forty.
//   Every other entry point and the command are bundled beside it, with shared chunks. errors.js is separate: the
//   command needs it before it knows whether it needs anything else.
// - docs/: the pages of site/ as Markdown, for people and agents that read node_modules.
//
// There are no source maps, and src/ is not published. The JavaScript is not minified, so that a stack trace leads to
// readable code. Measured: 2.5 MB as it is; 5.7 MB with maps that contain their sources, or with src/ and maps that refer
// to it; 3.6 MB with maps alone, which lead a debugger to files that are missing.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const here = fileURLToPath(new URL('.', import.meta.url))
const target = resolve(process.argv[2] ?? here)
process.chdir(here)
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const entryPoints = Object.values(exports).flatMap((entry) =>
  typeof entry === 'object' ? [entry['hookloop-source']] : [],
)
const [errors, main] = ['src/errors.ts', 'src/index.ts']
const [dist, docs] = [join(target, 'dist'), join(target, 'docs')]

const bundled = {
  absWorkingDir: here,
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  packages: 'external',
}
const written = { ...bundled, outdir: dist, outbase: 'src' }

for (const folder of [dist, docs]) rmSync(folder, { recursive: true, force: true })
const core = await modulesOf(main)
await build({ ...written, entryPoints: [errors] })
await build({
  ...written,
  stdin: { contents: exportAll(core), resolveDir: '.' },
  entryNames: 'core',
  plugins: [builtElsewhere({ '#errors': [errors] })],
})
await build({
  ...written,
  entryPoints: [...entryPoints, './src/cli/index.ts'],
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  plugins: [builtElsewhere({ '#errors': [errors], '#core': Object.keys(core) })],
})
const shell = process.platform === 'win32'
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', dist], { stdio: 'inherit', shell })
copyDocs('../site', docs)

/** The modules behind an entry point, each with the names of its exports. */
async function modulesOf(entryPoint) {
  const inMemory = { absWorkingDir: here, write: false, metafile: true, outdir: '.', outbase: '.' }
  const { inputs } = (await build({ ...bundled, ...inMemory, entryPoints: [entryPoint] })).metafile
  const files = Object.keys(inputs).filter((file) => file !== entryPoint && file !== errors)
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
