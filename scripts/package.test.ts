import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, suite, test } from 'node:test'

// The package as npm would publish it: built into a folder and packed there, without a network.

const MAX_UNPACKED_BYTES = 4_000_000

type Packed = { readonly unpackedSize: number; readonly files: readonly { readonly path: string }[] }

// Inside the repository, so that the build finds its packages.
const folder = join(import.meta.dirname, '../.cache', `package-${process.pid}`)
const windows = process.platform === 'win32'
let packed: Packed
let paths: readonly string[]

suite('the published package', () => {
  before(() => {
    mkdirSync(folder, { recursive: true })
    execFileSync(process.execPath, ['hookloop/build.mjs', folder], { env: withBin(), stdio: 'inherit' })
    for (const file of ['package.json', 'README.md', 'LICENSE', 'bin', 'hooks.schema.json'])
      cpSync(join('hookloop', file), join(folder, file), { recursive: true })
    const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
    const json: unknown = JSON.parse(execFileSync('npm', args, { cwd: folder, encoding: 'utf8', shell: windows }))
    packed = Object.values(json as { readonly [name: string]: Packed })[0]!
    paths = packed.files.map(({ path }) => path)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

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
})

/** The environment with the commands of the workspace, which `npm run` would add. */
function withBin(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${join(import.meta.dirname, '../node_modules/.bin')}:${process.env['PATH']}` }
}
