// Builds the library: what `hookloop` itself consists of as one file, one more for each other door and for what only
// those share, and the declarations beside them. One file, because Node takes more than twice as long to load forty. The
// errors are apart from it: the command needs them before it knows whether it needs anything else.
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

process.chdir(fileURLToPath(new URL('.', import.meta.url)))
const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const doors = Object.values(exports).flatMap((door) => (typeof door === 'object' ? [door['hookloop-source']] : []))
const [errors, main] = ['src/errors.ts', 'src/index.ts']

const bundled = { bundle: true, format: 'esm', platform: 'node', target: 'node22.18', packages: 'external' }
const written = { ...bundled, outdir: 'dist', outbase: 'src', sourcemap: true }

rmSync('dist', { recursive: true, force: true })
const core = await modulesOf(main)
await build({ ...written, entryPoints: [errors] })
await build({
  ...written,
  stdin: { contents: exportAll(core), resolveDir: '.' },
  entryNames: 'core',
  plugins: [taken({ '#errors': [errors] })],
})
await build({
  ...written,
  entryPoints: [...doors, './src/cli/index.ts'],
  splitting: true,
  plugins: [taken({ '#errors': [errors], '#core': Object.keys(core) })],
})
execFileSync('tsc', ['-p', 'tsconfig.build.json'], { stdio: 'inherit', shell: process.platform === 'win32' })

/** The files that the main door leads to, each with the names of its exports. */
async function modulesOf(door) {
  const inMemory = { write: false, metafile: true, outdir: '.', outbase: '.' }
  const { inputs } = (await build({ ...bundled, ...inMemory, entryPoints: [door] })).metafile
  const files = Object.keys(inputs).filter((file) => file !== door && file !== errors)
  const { outputs } = (await build({ ...inMemory, format: 'esm', entryPoints: files })).metafile
  return Object.fromEntries(Object.values(outputs).map(({ entryPoint, exports }) => [entryPoint, exports]))
}

/** The other doors need more of these files than the main door shows. Two exports of one name end the build. */
function exportAll(modules) {
  const lines = Object.entries(modules).map(([file, names]) => `export { ${names.join(', ')} } from './${file}'`)
  return lines.join('\n')
}

/** Has files imported from where they were built to, so that each is loaded once. package.json says where that is. */
function taken(built) {
  const places = new Map(Object.entries(built).flatMap(([place, files]) => files.map((file) => [file, place])))
  return {
    name: 'taken',
    setup({ onResolve }) {
      onResolve({ filter: /^\..*\.ts$/ }, ({ path, resolveDir }) => {
        const place = places.get(relative('.', join(resolveDir, path)).replaceAll(sep, '/'))
        return place && { path: place, external: true, sideEffects: false }
      })
    },
  }
}
