import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { build, type BuildOptions } from 'esbuild'
import { buildPackage, type BuiltPackage } from './built-package.ts'
import { bunProgram } from './bun-program.ts'
import { testScenarios } from './run-scenarios.ts'

// A program that is bundled with the built package, alone in a folder without node_modules.

const forms: { readonly [name: string]: BuildOptions } = {
  'in a bundle': { format: 'esm' },
  'in a minified bundle': { format: 'esm', minify: true },
  'in a bundle with chunks': { format: 'esm', splitting: true },
  'in a CommonJS bundle': { format: 'cjs' },
}

let built: BuiltPackage
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-bundle-')))
before(() => {
  built = buildPackage('bundles')
  for (const file of ['main.ts', 'scenarios.ts', 'scenario-work.ts'])
    cpSync(join(import.meta.dirname, file), join(built.folder, file))
})
after(() => {
  built.remove()
  rmSync(folder, { recursive: true, force: true })
})

for (const [name, options] of Object.entries(forms)) {
  testScenarios(name, async () => {
    const outdir = join(folder, name.replaceAll(' ', '-'))
    const extension = options.format === 'cjs' ? '.cjs' : '.mjs'
    await bundle({ ...options, outdir, outExtension: { '.js': extension } })
    return [process.execPath, join(outdir, `main${extension}`)]
  })
}

for (const target of ['node', 'bun']) {
  const name = `in a bundle made by Bun for ${target === 'bun' ? 'Bun' : 'Node'}`
  testScenarios(name, async () => {
    const bun = bunProgram()
    if (!existsSync(bun)) {
      console.log(`NOT TESTED ${name}: npm test has not installed Bun, or there is no package of it for this machine.`)
      return undefined
    }
    const outfile = join(folder, `bun-${target}`, 'main.mjs')
    const main = join(built.folder, 'main.ts')
    execFileSync(bun, ['build', main, `--target=${target}`, `--outfile=${outfile}`], { stdio: 'pipe' })
    return target === 'bun' ? [bun, 'run', outfile] : [process.execPath, outfile]
  })
}

test('a bundle has no warning, and contains only the packages that it needs', async () => {
  const outdir = join(folder, 'small')
  const contents = `import { createAgent } from 'hookloop'; console.log(createAgent)`
  const { warnings } = await bundle({ stdin: { contents, resolveDir: built.folder }, format: 'esm', outdir })
  assert.deepEqual(warnings, [])
  const text = readFileSync(join(outdir, 'stdin.js'), 'utf8')
  assert.ok(!text.includes('yaml.org'), 'it contains the YAML parser')
  assert.ok(!existsSync(join(outdir, 'node_modules')))
})

function bundle(options: BuildOptions) {
  const entryPoints = options.stdin === undefined ? [join(built.folder, 'main.ts')] : []
  return build({ bundle: true, platform: 'node', logLevel: 'silent', entryPoints, ...options })
}
