import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { after, test } from 'node:test'
import { providers } from '../hookloop/src/models/providers.ts'
import { parts } from '../site/.vitepress/sidebar.ts'
import type { ModuleOutput } from './run-modules.ts'
import { Command } from 'commander'
import * as hookloop from 'hookloop'
import * as replaying from 'hookloop/replay'
import * as stores from 'hookloop/sessions'
import * as testing from 'hookloop/testing'

// The docs are held to the code.

const sitePages = globSync('site/**/*.md').filter((page) => !/node_modules|reference\/api/.test(page))
const pages = ['README.md', ...sitePages, 'examples/README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']
const read = (file: string): string => readFileSync(file, 'utf8')
const docs = pages.map(read).join('\n')

/** The source of each entry point of the package. */
const { exports: published } = JSON.parse(read('hookloop/package.json')) as {
  exports: { readonly [path: string]: { readonly 'hookloop-source'?: string } }
}
const entries = new Map(
  Object.entries(published).flatMap(([path, { 'hookloop-source': source }]) =>
    source === undefined ? [] : [[`hookloop${path.slice(1)}`, join('hookloop', source)]],
  ),
)

// Inside the repository, so that the snippets find the packages.
const folder = join('.cache', `docs-${process.pid}`)
after(() => rmSync(folder, { recursive: true, force: true }))

test('the trigger table in the docs equals the table in the code', () => {
  const rows = [...read('site/concepts/lifecycle.md').matchAll(/^\| `(\w+)` *\| (.*?) *\| (.*?) *\| (.*?) *\|$/gm)]
  const declared = Object.entries(hookloop.triggers).map(([name, { carries, hook, guard }]) => [
    name,
    listed(carries),
    listed(hook),
    listed(guard),
  ])
  const written = rows.map(([, name, ...cells]) => [name, ...cells]).filter(([name = '']) => name in hookloop.triggers)
  assert.deepEqual(written.slice(0, declared.length), declared)
})

test('the docs list every error code with its text', () => {
  const rows = [...read('site/reference/errors.md').matchAll(/^\| `(\w+)` *\| (.*?) *\|$/gm)]
  assert.deepEqual(
    rows.map(([, code, text]) => [code, text]),
    Object.entries(hookloop.errorCodes),
  )
})

test('the docs list every warning code with its text', () => {
  const rows = [...read('site/reference/running.md').matchAll(/^\| `([A-Z_]+)` *\| (.*?) *\|$/gm)]
  assert.deepEqual(
    rows.map(([, code, text]) => [code, text]),
    Object.entries(hookloop.warningCodes),
  )
})

test('the docs list every event with its properties, in the order of the schema', () => {
  const page = read('site/reference/events.md')
  const [, table = ''] = page.split('| event |')
  const rows = [...table.matchAll(/^\| `(\w+)` \| ((?:`\w+\??`(?:, )?)*) ?\| .* \|$/gm)].map(([, name, properties]) => [
    name,
    properties!.replaceAll('`', ''),
  ])
  assert.deepEqual(rows, eventTypes())
})

test('the docs list every property of an entry of the ledger', () => {
  const [, section = ''] = read('site/reference/events.md').split('## Hook events')
  const [, body = ''] = /export type LedgerEntry = \{([^]*?)\n\}/.exec(read('hookloop/src/core/state/ledger.ts')) ?? []
  const names = [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, name]) => name!)
  assert.ok(names.length > 10)
  assert.deepEqual(
    names.filter((name) => !section.includes(`\`${name}\``)),
    [],
  )
})

/** Every type of event with its properties, as the schema has them. The compiler compares the schema with the types. */
function eventTypes(): readonly (readonly string[])[] {
  type Schema = { readonly required: readonly string[]; readonly properties: { readonly type: { const: string } } }
  const { anyOf } = JSON.parse(read('hookloop/events.schema.json')) as { readonly anyOf: readonly Schema[] }
  return anyOf.map(({ required, properties: { type, ...others } }) => {
    const own = Object.keys(others).filter((name) => !['seq', 'session', 'run', 'step', 'at'].includes(name))
    return [type.const, own.map((name) => (required.includes(name) ? name : `${name}?`)).join(', ')]
  })
}

/** Promises that name no test, and the tests that they name and that do not exist. */
function unheld(promises: readonly string[]): readonly string[] {
  const sources = globSync('hookloop/src/**/*.test.ts').map(read).join('\n')
  const literals = sources.matchAll(/\b(?:test|describe)\w*\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)
  const titles = new Set([...literals].map(([, , title]) => title!.replaceAll(/\\(.)/g, '$1')))
  return promises.flatMap((promise) => {
    const named = [...promise.matchAll(/<!-- test: (.*?) -->/g)].map(([, title]) => title!)
    const missing = named.filter((title) => !titles.has(title))
    return named.length === 0 ? [promise] : missing
  })
}

test('every promise of the security page names tests that exist', () => {
  const promised = read('site/concepts/security.md')
    .split(/^(?=## |Not guaranteed:|Guaranteed)/m)
    .filter((part) => /^(## Hooks|Guaranteed)/.test(part))
  const promises = promised.flatMap((part) => part.split(/^(?=- )/m).slice(1))
  assert.ok(promises.length > 25)
  assert.deepEqual(unheld(promises), [])
})

test('every promise of the guide to workers, and every failure in it, names tests that exist', () => {
  const promised = read('site/guides/workers.md')
    .split(/^(?=## )/m)
    .filter((part) => /^## What (workers promise|happens when something fails)/.test(part))
  const promises = promised.flatMap((part) => part.split(/^(?=- |\| a|\| the|\| clocks)/m).slice(1))
  assert.ok(promises.length >= 14)
  assert.deepEqual(unheld(promises), [])
})

test('what ARCHITECTURE.md lists as not in this version is held by tests', () => {
  const [, section = ''] = /## Not in this version\n\n([^]*?)\n\n/.exec(read('ARCHITECTURE.md')) ?? []
  const tests: { readonly [start: string]: string } = {
    '- A hook that wakes a run': 'the model gets the text of an asyncRewake script with the next event',
  }
  const starts = Object.keys(tests)
  const lines = section.split('\n')
  assert.deepEqual(
    lines.map((line) => starts.find((start) => line.startsWith(start)) ?? line),
    starts,
  )
  assert.deepEqual(unheld(Object.values(tests).map((title) => `<!-- test: ${title} -->`)), [])
})

test('a value that the docs offer for import is exported', () => {
  const names = new Set([hookloop, testing, stores, replaying].flatMap((entry) => Object.keys(entry)))
  const offered = [...docs.matchAll(/`(\w+)` (?:is this (?:table|list)|has the [\w ]+) as a value/g)].map(
    ([, name]) => name!,
  )
  assert.ok(offered.length > 2)
  assert.deepEqual(
    offered.filter((name) => !names.has(name)),
    [],
  )
})

test('every command line in the docs uses commands and options that exist', async () => {
  const { commands } = await import('../hookloop/src/cli/commands.ts')
  const entries = Object.values(commands).flat()
  const known = new Map<string, readonly string[]>()
  for (const { name, load } of entries) {
    const configured = load === undefined ? new Command() : (await load()).command.configure(new Command())
    known.set(
      name,
      configured.options.flatMap(({ long, short, negate }) => [
        long!,
        ...(short === undefined ? [] : [short]),
        ...(negate ? [long!.replace('--no-', '--')] : []),
      ]),
    )
  }
  const lines = pages.flatMap((page) =>
    [...read(page).matchAll(/(?<!install )\bhookloop ((?:[a-z]+ ?){1,2}[^`\n|]*)/g)].map(([line, words]) => ({
      page,
      line,
      words: words!,
    })),
  )
  const wrong = lines.flatMap(({ page, line, words }) => {
    const [first = '', second = ''] = words.split(/[\s,`]+/)
    const command = known.get(`${first} ${second}`) ?? known.get(first)
    if (command === undefined) return isWord.has(first) ? [] : [`${page}: ${line}`]
    const options = [...words.matchAll(/(?<![\w-])(--[a-z][a-z-]*)/g)].map(([, option]) => option!)
    return options
      .filter((option) => !command.includes(option) && option !== '--help')
      .map((option) => `${page}: ${option} of ${line}`)
  })
  assert.ok(lines.length > 40)
  assert.deepEqual(wrong, [])
})

/** What may follow the name of the package in a sentence. */
const isWord = new Set(['help', 'exports', 'from', 'import', 'is', 'package'])

test('every image of the docs exists, has a description and at most 150 KB', () => {
  const images = pages.flatMap((page) => [...read(page).matchAll(/<img src="\/([^"]+)"( alt="[^"]{10,}")?/g)])
  const wrong = images.filter(([, file, alt]) => {
    const stats = statSync(join('site/public', file!), { throwIfNoEntry: false })
    return alt === undefined || stats === undefined || stats.size > 150_000
  })
  assert.ok(images.length > 3)
  assert.deepEqual(
    wrong.map(([image]) => image),
    [],
  )
})

test('the docs mention every public name', () => {
  const names = [hookloop, testing, stores, replaying].flatMap((entry) => Object.keys(entry))
  assert.deepEqual(unmentioned(names), [])
})

test('the docs mention every event, stop reason and provider', () => {
  const names = [
    ...eventTypes().map(([name]) => name!),
    ...hookloop.stopReasons,
    ...providers.flatMap(({ name, package: from, keys }) => [name, from.slice(1), ...keys]),
  ]
  assert.ok(names.length > 50)
  assert.deepEqual(unmentioned(names), [])
})

test('every page has a title and some text', () => {
  assert.deepEqual(
    pages.filter((page) => page !== 'site/index.md' && (read(page).length < 200 || !read(page).startsWith('# '))),
    [],
  )
})

test('the sidebar of the site has every page once', () => {
  const listedPages = parts.flatMap((part) => part.pages.map((page) => `site/${page}.md`))
  assert.deepEqual(listedPages.toSorted(), sitePages.filter((page) => page !== 'site/index.md').toSorted())
})

test('the lock file of the site has the packages of every platform and names no host', () => {
  const text = read('site/package-lock.json')
  const { packages } = JSON.parse(text) as {
    packages: { readonly [path: string]: { readonly optionalDependencies?: { readonly [name: string]: string } } }
  }
  const optional = Object.values(packages).flatMap((each) => Object.keys(each.optionalDependencies ?? {}))
  assert.deepEqual(
    optional.filter((name) => packages[`node_modules/${name}`] === undefined),
    [], // npm leaves out packages that it cannot find, and `npm ci` then fails
  )
  assert.equal(text.includes('"resolved"'), false)
})

for (const [file, limit] of Object.entries({ 'README.md': 400, 'ARCHITECTURE.md': 1200 })) {
  test(`${file} has at most ${limit} words`, () => {
    const count = read(file).trim().split(/\s+/).length // code included, as `wc -w` counts
    assert.ok(count <= limit, `it has ${count}`)
  })
}

test('every source file that ARCHITECTURE.md and CONTRIBUTING.md name exists', () => {
  const text = read('ARCHITECTURE.md') + read('CONTRIBUTING.md')
  const named = [...text.matchAll(/(?<![\w./-])[\w-]+\/[\w/-]+\.ts\b/g)].map(([path]) => path)
  assert.ok(named.length > 5)
  assert.deepEqual(
    named.filter((path) => !existsSync(path) && !existsSync(join('hookloop/src', path))),
    [],
  )
})

test('every link inside the repository leads to a file, and to a heading in it', () => {
  const broken = pages.flatMap((page) =>
    [...withoutCode(read(page)).matchAll(/(?:\]\(|(?:src|href)=")(?!https?:|\/)([^)#"]*)(#[^)"]+)?/g)].flatMap(
      ([, to, hash]) => {
        const file = to === '' ? page : join(dirname(page), to!)
        if (file.startsWith('site/reference/api/'))
          return isOnApiPage(file, hash) ? [] : [`${page}: ${to}${hash ?? ''}`]
        if (!existsSync(file)) return [`${page}: ${to}`]
        return hash === undefined || !file.endsWith('.md') || anchors(file).includes(hash)
          ? []
          : [`${page}: ${to}${hash}`]
      },
    ),
  )
  assert.deepEqual(broken, [])
})

/** API pages are generated: one for each entry point, with a heading for each name that it exports. */
function isOnApiPage(file: string, hash: string | undefined): boolean {
  const source = entries.get(file.slice('site/reference/api/'.length, -'.md'.length))
  return source !== undefined && (hash === undefined || new RegExp(`\\b${hash.slice(1)}\\b`, 'i').test(read(source)))
}

test('every snippet compiles', () => {
  mkdirSync(folder, { recursive: true })
  const snippets = pages.flatMap((page) => snippetsOf(page).map(({ code }) => ({ page, code })))
  for (const [i, { page, code }] of snippets.entries()) {
    const own = /from 'hookloop(?!\/tracing)/.test(code)
    writeFileSync(
      join(folder, `${i}-${page.replace(/\W/g, '-')}.ts`),
      own ? code : `${preamble(code)}\n${code}\nexport {}\n`,
    )
  }
  const config = { extends: '../../tsconfig.json', compilerOptions: { noUnusedLocals: false }, include: ['*.ts'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const { stdout } = spawnSync(join('node_modules', '.bin', 'tsc'), ['-p', folder], { encoding: 'utf8' })
  assert.ok(snippets.length > 80)
  assert.equal(stdout, '')
})

test('every snippet marked "ts run" prints the text that follows it', () => {
  mkdirSync(folder, { recursive: true })
  const snippets = pages.flatMap((page) =>
    snippetsOf(page)
      .filter(({ run }) => run)
      .map((snippet, i) => ({
        ...snippet,
        title: `${page}, snippet ${i + 1}`,
        file: resolve(folder, `run-${i}-${page.replace(/\W/g, '-')}.ts`),
      })),
  )
  for (const { file, code } of snippets) writeFileSync(file, code)
  const workplace = mkdtempSync(join(tmpdir(), 'hookloop-docs-')) // for what they write
  const args = ['--conditions=hookloop-source', resolve('scripts/run-modules.ts'), ...snippets.map(({ file }) => file)]
  const printed = execFileSync(process.execPath, args, { cwd: workplace, encoding: 'utf8' })
  const outputs = (JSON.parse(printed) as ModuleOutput[]).map(({ stdout, ...output }: ModuleOutput) => ({
    ...output,
    stdout: stdout.replace(/docs-\d+\/run-[\w-]+\.ts/g, 'agent.mts'),
  }))
  rmSync(workplace, { recursive: true })
  assert.ok(snippets.length > 10)
  assert.deepEqual(
    Object.fromEntries(snippets.map(({ title }, i) => [title, outputs[i]])),
    Object.fromEntries(snippets.map(({ title, printed }) => [title, { exitCode: 0, stdout: printed, stderr: '' }])),
  )
})

type Snippet = { readonly code: string; readonly run: boolean; readonly printed: string | undefined }

function snippetsOf(page: string): Snippet[] {
  return [...read(page).matchAll(/```ts([^\n]*)\n([^]*?)```(?:\n\n```text\n([^]*?)```)?/g)].map(
    ([, mark, code, printed]) => ({ code: code!, run: /\brun\b/.test(mark!), printed }),
  )
}

/** What snippets take for granted: the library, and a few things that a reader imagines. */
function preamble(code: string): string {
  const names = ['bash', 'model', 'backup', 'agent', 'noPush', 'redact', 'testsRan', 'save', 'load', 'readFile']
  const declared = names.filter((name) => new RegExp(`(?:const |import \\{[^}]*)\\b${name}\\b`).test(code))
  const declarations: Record<string, string> = {
    bash: `const bash = tool({ name: 'bash', description: '', input: z.object({ command: z.string() }), execute: String })`,
    model: 'declare const model: LanguageModel',
    backup: 'declare const backup: LanguageModel',
    agent: 'declare const agent: Agent',
    noPush: `const noPush = guard('beforeToolUse', (ctx) => ctx.block('no'))`,
    redact: 'declare function redact(output: Json): Json',
    testsRan: 'declare function testsRan(state: AgentState): boolean',
    save: 'declare function save(text: string): Promise<void>',
    load: 'declare function load(): Promise<string>',
    readFile: `import { readFile } from 'node:fs/promises'`,
  }
  return [
    `import { ${Object.keys(hookloop).join(', ')} } from 'hookloop'`,
    `import type { Agent, AgentState, Json, LanguageModel, ObserveContext, SavedRun } from 'hookloop'`,
    `import { ${Object.keys(testing).join(', ')} } from 'hookloop/testing'`,
    `import { ${Object.keys(stores).join(', ')} } from 'hookloop/sessions'`,
    `import { ${Object.keys(replaying).join(', ')} } from 'hookloop/replay'`,
    `import * as z from 'zod'`,
    ...names.filter((name) => !declared.includes(name)).map((name) => declarations[name]!),
  ].join('\n')
}

function listed(list: readonly string[] | string): string {
  return typeof list === 'string' ? list : list.join(', ') || '–'
}

function unmentioned(names: readonly string[]): string[] {
  return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(docs))
}

function withoutCode(text: string): string {
  return text.replaceAll(/```[^]*?```|`[^`\n]*`/g, '')
}

/** The anchors of a page's headings, as VitePress and GitHub make them. */
function anchors(file: string): string[] {
  return [
    ...read(file)
      .replaceAll(/```[^]*?```/g, '')
      .matchAll(/^#+ (.+)$/gm),
  ].map(
    ([, heading]) =>
      `#${heading!
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, '')
        .trim()
        .replaceAll(/\s/g, '-')}`,
  )
}
