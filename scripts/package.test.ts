import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { buildPackage, type BuiltPackage } from './runtimes/built-package.ts'

// The package as npm would publish it: built into a folder and packed there, without a network.

const MAX_UNPACKED_BYTES = 4_000_000

type Packed = { readonly unpackedSize: number; readonly files: readonly { readonly path: string }[] }

const windows = process.platform === 'win32'
let built: BuiltPackage
let folder: string
let packed: Packed
let paths: readonly string[]

suite('the published package', () => {
  before(() => {
    built = buildPackage('package')
    folder = join(built.folder, 'node_modules/hookloop')
    const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
    const json: unknown = JSON.parse(execFileSync('npm', args, { cwd: folder, encoding: 'utf8', shell: windows }))
    packed = Object.values(json as { readonly [name: string]: Packed })[0]!
    paths = packed.files.map(({ path }) => path)
  })
  after(() => built.remove())

  test(`has at most ${MAX_UNPACKED_BYTES / 1e6} MB unpacked`, () => {
    assert.ok(packed.unpackedSize <= MAX_UNPACKED_BYTES, `${packed.unpackedSize} bytes`)
  })

  test('has what it needs to run, to be typed and to be read, and nothing else', () => {
    const folders = new Set(paths.map((path) => (path.includes('/') ? path.split('/')[0] : path)))
    const expected = ['LICENSE', 'README.md', 'bin', 'dist', 'docs', 'hooks.schema.json', 'package.json']
    assert.deepEqual(folders, new Set(expected))
    assert.deepEqual(
      paths.filter(
        (path) => /\.(test|types|fixture)\./.test(path) || (path.endsWith('.ts') && !path.endsWith('.d.ts')),
      ),
      [],
    )
  })

  test('has the file and the types of every entry point', () => {
    const { exports } = JSON.parse(readFileSync('hookloop/package.json', 'utf8')) as { exports: object }
    const targets = Object.values(exports).flatMap((entry: string | { types: string; default: string }) =>
      typeof entry === 'string' ? [entry] : [entry.types, entry.default],
    )
    assert.deepEqual(
      targets.filter((target) => !paths.includes(target.replace('./', ''))),
      [],
    )
  })

  test('loads every entry point', () => {
    const { exports } = JSON.parse(readFileSync('hookloop/package.json', 'utf8')) as { exports: object }
    const names = Object.keys(exports).filter((name) => !name.endsWith('.json'))
    const code = `for (const name of ${JSON.stringify(names)}) await import(name.replace('.', 'hookloop'))`
    execFileSync(process.execPath, ['--input-type=module', '--eval', code], { cwd: folder, stdio: 'inherit' })
  })

  test('has every page of the docs, with links that lead somewhere', () => {
    const pages = globSync('**/*.md', { cwd: 'site', exclude: (name) => name === 'node_modules' })
    assert.deepEqual(
      pages.filter((page) => !paths.includes(`docs/${page}`)),
      [],
    )
    const broken = pages.flatMap((page) =>
      [...readFileSync(join(folder, 'docs', page), 'utf8').matchAll(/\]\((\.\.?\/[^)#\s]+)/g)]
        .map(([, link]) => join(folder, 'docs', dirname(page), link!))
        .filter((path) => !existsSync(path) && !existsSync(`${path}.md`)),
    )
    assert.deepEqual(broken, [])
  })

  test('has a README whose links are absolute', () => {
    const links = [...readFileSync('hookloop/README.md', 'utf8').matchAll(/\]\(([^)]+)\)/g)].map(([, link]) => link!)
    assert.ok(links.length > 0)
    assert.deepEqual(
      links.filter((link) => !link.startsWith('https://')),
      [],
    )
  })

  test('needs no other package, except for types and what is optional', () => {
    const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { dependencies: object }
    assert.deepEqual(Object.keys(dependencies), ['@standard-schema/spec'])
    assert.match(readFileSync(join(folder, 'dist/THIRD-PARTY-LICENSES.txt'), 'utf8'), /^re2js [\d.]+\n\n/m)
  })

  test('says so if one of its files is missing', () => {
    rmSync(join(folder, 'dist/packages/re2js.cjs'))
    const code = `
      import { createAgent, guard } from 'hookloop'
      import { scriptedModel } from 'hookloop/testing'
      try {
        createAgent({ model: scriptedModel([]), use: [guard('beforeToolUse', (ctx) => ctx, { tool: /^a/ })] })
      } catch (error) {
        console.log(error.code, error.message)
      }`
    const args = ['--input-type=module', '--eval', code]
    const printed = execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    assert.match(printed, /^PACKAGE_INCOMPLETE .*re2js\.cjs/)
  })
})
