// Builds the package: `node build.mjs [folder]`, by default into this folder. dist/ has the entry points, the command, the
// chunks that they share, and the page of the studio; docs/ has the pages of site/, for readers of node_modules.
// Packages are bundled too, except for optional peers: the bundle of a user then contains all of Hookloop. Names stay, so
// that stack traces are readable; there are no source maps.
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bundlePage } from './src/studio/page/bundle-page.ts'

const here = fileURLToPath(new URL('.', import.meta.url))
const target = resolve(process.argv[2] ?? here)
process.chdir(here)
const { exports, homepage, peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8'))
const entryPoints = Object.values(exports).flatMap((entry) =>
  typeof entry === 'object' ? [entry['hookloop-source']] : [],
)
const inputs = [...entryPoints, 'src/cli/index.ts']
const [dist, docs] = [join(target, 'dist'), join(target, 'docs')]

for (const folder of [dist, docs]) rmSync(folder, { recursive: true, force: true })
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: inputs,
  outdir: dist,
  outbase: 'src',
  bundle: true,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  mainFields: ['module', 'main'],
  external: [...Object.keys(peerDependencies), '*/bundle-page.ts'], // used when running from source only
  minifyWhitespace: true,
  lineLimit: 120,
  legalComments: 'none', // see writeLicenses
  metafile: true,
  plugins: [fewChunks(), builtinsOnFirstUse()],
})
writeLicenses([...Object.keys(metafile.inputs), ...(await buildStudioPage())])
const shell = process.platform === 'win32'
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', dist], { stdio: 'inherit', shell })
copyDocs('../site', docs)

/**
 * Every entry point, and every module that is loaded later, first imports the whole core, and what uses a part of hook files
 * imports all of them. So each is one chunk: Node takes twice as long to load forty files as to load one.
 */
function fewChunks() {
  const sources = globSync('src/**/*.ts').filter((file) => !/\.(test|fixture)\.ts$/.test(file))
  const later = sources.flatMap((file) =>
    Array.from(readFileSync(file, 'utf8').matchAll(/(?:await|=>) import\('(\.[^']+)'\)/g), ([, path]) =>
      resolve(dirname(file), path),
    ),
  )
  const starts = new Set([...inputs.map((file) => resolve(file)), ...later])
  const core = sources
    .filter((file) => /^src.((index|plugin)\.ts|system.(?!files))/.test(file))
    .map((file) => resolve(file))
  const hookFiles = resolve('src/hook-files/index.ts')
  const usesHookFiles = /^import (?!type)[^']*'[^']*\/hook-files\/(?!defined)|import\('[^']*\/hook-files\//m
  return {
    name: 'few-chunks',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        // What is required on first use becomes part of the chunk, and is run on first use.
        const text = readFileSync(path, 'utf8').replace(/^const require = createRequire\(import\.meta\.url\)$/m, '')
        const isStart = starts.has(path)
        const isPart = usesHookFiles.test(text) || (isStart && path.startsWith(dirname(hookFiles)))
        const whole = [...(isPart ? [hookFiles] : []), ...(isStart ? core : [])].filter((file) => file !== path)
        return { contents: whole.map((file) => `import ${JSON.stringify(file)};`).join('') + text, loader: 'ts' }
      })
    },
  }
}

async function buildStudioPage() {
  const { script, style, inputs } = await bundlePage()
  mkdirSync(join(dist, 'studio'))
  writeFileSync(join(dist, 'studio/page.js'), script)
  writeFileSync(join(dist, 'studio/page.css'), style)
  return inputs
}

/**
 * Built-in modules without an import. An import of `node:fs` or `node:util` reads all of its exports, and some of them load
 * streams or worker threads. Modules that Node has not loaded take some milliseconds each: the first call loads them.
 */
function builtinsOnFirstUse() {
  const loaded = /^(node:)?(buffer|fs|process|util)$/
  const slow = /^node:(child_process|crypto|dns|fs\/promises|net|readline|stream|timers\/promises|vm)$/
  return {
    name: 'builtins-on-first-use',
    setup({ onResolve, onLoad }) {
      for (const filter of [loaded, slow])
        onResolve({ filter }, ({ path }) => ({ path, namespace: 'builtin', sideEffects: false }))
      onLoad({ filter: loaded, namespace: 'builtin' }, ({ path }) => builtin(path, valueOf))
      onLoad({ filter: slow, namespace: 'builtin' }, ({ path }) => builtin(path, wrapperOf))
    },
  }
}

function builtin(name, exportOf) {
  const exported = Object.entries(process.getBuiltinModule(name)).filter(([key]) => /^[A-Za-z]\w*$/.test(key))
  const lines = exported.map(([key, value]) => exportOf(key, value))
  const contents = `const module$ = () => process.getBuiltinModule('${name}')
export default /* @__PURE__ */ new Proxy({}, { get: (_, key) => module$()[key] })
${lines.join('\n')}`
  return { contents }
}

function valueOf(key) {
  return `export const ${key} = /* @__PURE__ */ (() => module$().${key})()`
}

function wrapperOf(key, value) {
  if (typeof value !== 'function') return ''
  const call = /^[A-Z]/.test(key) ? `new (module$().${key})` : `module$().${key}`
  return `export const ${key} = function (...args) { return ${call}(...args) }`
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
  const exclude = (path) => ['node_modules', 'api'].includes(basename(path))
  for (const page of globSync('**/*.md', { cwd: from, exclude })) {
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
