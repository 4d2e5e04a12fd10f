import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
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
    const expected = [
      'LICENSE',
      'README.md',
      'bin',
      'dist',
      'docs',
      'events.schema.json',
      'hooks.schema.json',
      'package.json',
    ]
    assert.deepEqual(folders, new Set(expected))
    assert.deepEqual(
      paths.filter(
        (path) => /\.(test|types|fixture)\./.test(path) || (path.endsWith('.ts') && !path.endsWith('.d.ts')),
      ),
      [],
    )
  })

  test('names its repository, its homepage, its license and where to report bugs', () => {
    const named = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { [name: string]: unknown }
    const { url, directory } = named['repository'] as { readonly url: string; readonly directory: string }
    assert.match(url, /^git\+https:\/\/github\.com\//)
    assert.ok(existsSync(join(import.meta.dirname, '..', directory, 'package.json')))
    for (const name of ['homepage', 'bugs']) assert.match(String(named[name]), /^https:\/\//, name)
    assert.equal(named['license'], 'MIT')
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

  test('has every declaration that another one imports', () => {
    const missing = paths
      .filter((path) => path.endsWith('.d.ts'))
      .flatMap((path) => {
        const imports = readFileSync(join(folder, path), 'utf8').matchAll(/['"](\.\.?\/[^'"]+)\.[jt]s['"]/g)
        return [...imports]
          .map(([, each]) => join(dirname(path), `${each}.d.ts`))
          .filter((each) => !paths.includes(each))
      })
    assert.deepEqual(missing, [])
  })

  test('exports a name for every type that its functions return', () => {
    const { exports } = JSON.parse(readFileSync('hookloop/package.json', 'utf8')) as {
      exports: { readonly [name: string]: { readonly types?: string } }
    }
    const called = Object.entries(exports).flatMap(([name, { types }]) => {
      if (types === undefined) return []
      const text = readFileSync(join(folder, types), 'utf8')
      const listed = [...text.matchAll(/^export \{([^}]*)\}/gm)].flatMap(([, list]) => list!.split(','))
      const defined = [...text.matchAll(/^export declare (?:function|const) (\w+)/gm)].map(([, each]) => each!)
      const values = [...listed.map((each) => each.trim()), ...defined].filter((each) => /^\w+$/.test(each))
      const module = name.replaceAll(/\W/g, '_')
      const results = values.map((each) => `export const ${module}_${each} = called(${module}.${each})`)
      return [`import * as ${module} from '${name.replace('.', 'hookloop')}'`, ...results]
    })
    assert.ok(called.length > 100)
    const declared = 'declare function called<F>(f: F): F extends (...args: never[]) => infer R ? R : F'
    writeFileSync(join(built.folder, 'called.ts'), [declared, ...called].join('\n'))
    cpSync('scripts/package-types.fixture.ts', join(built.folder, 'program.ts'))
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2024',
      strict: true,
      skipLibCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      outDir: 'types',
    }
    const config = { compilerOptions, files: ['called.ts', 'program.ts'] }
    writeFileSync(join(built.folder, 'tsconfig.json'), JSON.stringify(config))
    const { stdout } = spawnSync(join('node_modules', '.bin', 'tsc'), ['-p', built.folder], { encoding: 'utf8' })
    assert.equal(stdout, '')
  })

  test('loads every entry point', () => {
    const { exports } = JSON.parse(readFileSync('hookloop/package.json', 'utf8')) as { exports: object }
    const names = Object.keys(exports).filter((name) => !name.endsWith('.json'))
    const code = `for (const name of ${JSON.stringify(names)}) await import(name.replace('.', 'hookloop'))`
    execFileSync(process.execPath, ['--input-type=module', '--eval', code], { cwd: folder, stdio: 'inherit' })
  })

  test('has every page of the docs, with links that lead somewhere', () => {
    const pages = globSync('**/*.md', {
      cwd: 'site',
      exclude: (path) => ['node_modules', 'api'].includes(basename(path)),
    })
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

  test('loads nothing on import that is not needed before something is called', () => {
    const { exports } = JSON.parse(readFileSync('hookloop/package.json', 'utf8')) as { exports: object }
    const names = Object.keys(exports).filter((name) => !/\.json$|tracing/.test(name)) // OpenTelemetry is a package of its own
    const slow = '/^NativeModule (child_process|crypto|dns|http|net|readline|sqlite|vm)$/'
    const code = `
      const before = new Set(process.moduleLoadList)
      for (const name of ${JSON.stringify(names)}) await import(name.replace('.', 'hookloop'))
      const loaded = process.moduleLoadList.filter((name) => !before.has(name) && ${slow}.test(name))
      console.log(JSON.stringify(loaded))`
    const args = ['--input-type=module', '--eval', code]
    assert.deepEqual(JSON.parse(execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })), [])
  })

  test('has a command that keeps compiled code in the cache folder of the user', () => {
    const args = ['bin/hookloop.mjs', 'policy', 'bash']
    const env: NodeJS.ProcessEnv = { ...process.env, XDG_CACHE_HOME: join(built.folder, 'cache') }
    for (const name of ['NODE_COMPILE_CACHE', 'NODE_OPTIONS']) delete env[name]
    const printed = execFileSync(process.execPath, args, { cwd: folder, env, input: 'ls\n', encoding: 'utf8' })
    assert.match(printed, /^(allow|ask) +ls/)
    assert.ok(existsSync(join(built.folder, 'cache/hookloop/compiled')))
  })
})
