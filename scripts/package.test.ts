import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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

  test('loads nothing on import that is not needed before something is called', () => {
    const { exports } = JSON.parse(readFileSync('hookloop/package.json', 'utf8')) as { exports: object }
    const names = Object.keys(exports).filter((name) => !/\.json$|tracing/.test(name)) // OpenTelemetry is a package of its own
    const slow = '/^NativeModule (child_process|crypto|dns|http|net|readline|sqlite|vm)$/'
    const code = `
      import { registerHooks } from 'node:module'
      const before = new Set(process.moduleLoadList)
      const files = []
      registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) })
      for (const name of ${JSON.stringify(names)}) await import(name.replace('.', 'hookloop'))
      const loaded = process.moduleLoadList.filter((name) => !before.has(name) && ${slow}.test(name))
      console.log(JSON.stringify([...loaded, ...files.filter((url) => url.endsWith('.cjs'))]))`
    const args = ['--input-type=module', '--eval', code]
    assert.deepEqual(JSON.parse(execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })), [])
  })

  test('has a command that loads what it needs, and keeps compiled code in the cache folder of the user', () => {
    const trace = `
      import { registerHooks } from 'node:module'
      import { appendFileSync } from 'node:fs'
      const load = (url, context, next) => (appendFileSync(process.env.LOADED, url + ' '), next(url, context))
      registerHooks({ load })`
    const loaded = join(built.folder, 'loaded')
    const args = ['--import', `data:text/javascript,${encodeURIComponent(trace)}`, 'bin/hookloop.mjs', 'policy', 'bash']
    const env: NodeJS.ProcessEnv = { ...process.env, XDG_CACHE_HOME: join(built.folder, 'cache'), LOADED: loaded }
    for (const name of ['NODE_COMPILE_CACHE', 'NODE_OPTIONS']) delete env[name]
    const printed = execFileSync(process.execPath, args, { cwd: folder, env, input: 'ls\n', encoding: 'utf8' })
    assert.match(printed, /^(allow|ask) +ls/)
    assert.doesNotMatch(readFileSync(loaded, 'utf8'), /\/dist\/(core|hook-files|system)\.js/)
    assert.ok(existsSync(join(built.folder, 'cache/hookloop/compiled')))
  })

  test('loads a part of the core when it is first used, and no file twice', () => {
    const code = `
      import { registerHooks } from 'node:module'
      const files = []
      registerHooks({ load: (url, context, next) => (files.push(url), next(url, context)) })
      const parts = () => files.flatMap((url) => /\\/parts\\/(.+)\\.js$/.exec(url)?.[1] ?? [])
      const { createAgent, explain, guard, tool } = await import('hookloop')
      const infer = async ({ messages: { length } }) => ({
        content: [length > 1 ? { type: 'text', text: 'ok' } : { type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} }],
        finishReason: 'stop',
      })
      const input = { '~standard': { validate: (value) => ({ value }), jsonSchema: { input: () => ({ type: 'object' }) } } }
      const use = [tool({ name: 't', description: 't', input, execute: () => 1 }), guard('beforeStep', async (ctx) => ctx)]
      const run = await createAgent({ model: { provider: 'p', modelId: 'm', infer }, use }).run('hi')
      const seen = [run.status, parts()]
      explain(run)
      seen.push(parts())
      for (const name of ['hookloop/replay', 'hookloop/sessions', 'hookloop/subagents']) await import(name)
      explain(run)
      console.log(JSON.stringify([...seen, files.length - new Set(files).size]))`
    assert.deepEqual(JSON.parse(printedBy(code)), ['completed', [], ['explain'], 0])
  })

  test('says so if one of its files is missing', () => {
    for (const file of ['packages/re2js.cjs', 'parts/explain.js']) rmSync(join(folder, 'dist', file))
    const code = `
      import { createAgent, explain, guard } from 'hookloop'
      import { scriptedModel } from 'hookloop/testing'
      const patterned = () =>
        createAgent({ model: scriptedModel([]), use: [guard('beforeToolUse', (ctx) => ctx, { tool: /^a/ })] })
      for (const act of [patterned, explain]) {
        try {
          act()
        } catch (error) {
          console.log(error.code, error.message)
        }
      }`
    const printed = printedBy(code)
    assert.match(printed, /^PACKAGE_INCOMPLETE .*re2js\.cjs/m)
    assert.match(printed, /^PACKAGE_INCOMPLETE .*explain\.js/m)
  })

  test('says so if it cannot read front matter, instead of leaving out skills, agents, commands and hooks', () => {
    rmSync(join(folder, 'dist/packages/yaml.cjs'))
    for (const file of ['skills/a/SKILL.md', 'agents/a.md', 'commands/a.md']) {
      mkdirSync(join(folder, '.claude', file, '..'), { recursive: true })
      const hooks = 'hooks:\n  PreToolUse:\n    - hooks: [{ type: command, command: "exit 2" }]'
      writeFileSync(join(folder, '.claude', file), `---\nname: a\ndescription: b\n${hooks}\n---\nText.\n`)
    }
    const code = `
      import { claudeCommands, claudeHooks } from 'hookloop/hook-files'
      import { skills } from 'hookloop/skills'
      import { readAgents } from 'hookloop/subagents'
      const dir = ${JSON.stringify(folder)}
      const acts = {
        skills: () => skills({ dirs: [dir + '/.claude/skills'] }),
        agents: () => readAgents(dir + '/.claude/agents'),
        commands: () => claudeCommands({ dir, home: false }),
        hooks: () => claudeHooks({ dir, home: false, trust: 'all' }),
      }
      for (const [name, act] of Object.entries(acts)) {
        try {
          act()
          console.log(name, 'left out')
        } catch (error) {
          console.log(name, error.code)
        }
      }`
    const names = ['skills', 'agents', 'commands', 'hooks']
    assert.equal(printedBy(code).trim(), names.map((name) => `${name} PACKAGE_INCOMPLETE`).join('\n'))
  })

  /** What a program that uses the package prints. */
  function printedBy(code: string): string {
    return execFileSync(process.execPath, ['--input-type=module', '--eval', code], { cwd: folder, encoding: 'utf8' })
  }
})
