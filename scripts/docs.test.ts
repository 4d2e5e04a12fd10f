import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { providers } from '../hookloop/src/models/providers.ts'
import * as hookloop from 'hookloop'
import * as replaying from 'hookloop/replay'
import * as stores from 'hookloop/stores'
import * as testing from 'hookloop/testing'

// What the docs say is held to the code.

const pages = ['README.md', ...globSync('site/**/*.md'), 'examples/README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md']
const read = (file: string): string => readFileSync(file, 'utf8')
const docs = pages.map(read).join('\n')

// Inside the repository, so that the snippets find the packages.
const folder = join('.cache', `docs-${process.pid}`)
after(() => rmSync(folder, { recursive: true, force: true }))

test('the table of triggers in the docs is the table in the code', () => {
  const rows = [...read('site/concepts/lifecycle.md').matchAll(/^\| `(\w+)` *\| (.*?) *\| (.*?) *\| (.*?) *\|$/gm)]
  const written = rows.map(([, name, ...cells]) => [name, ...cells])
  const words = (list: readonly string[] | string): string => (typeof list === 'string' ? list : list.join(', ') || '–')
  const declared = Object.entries(hookloop.triggers).map(([name, { carries, hook, guard }]) => [
    name,
    words(carries),
    words(hook),
    words(guard),
  ])
  assert.deepEqual(written.slice(0, declared.length), declared)
})

test('every error code stands in the docs with its words', () => {
  const written = [...read('site/reference/errors.md').matchAll(/^\| `(\w+)` *\| (.*?) *\|$/gm)].map(
    ([, code, text]) => [code, text],
  )
  assert.deepEqual(written, Object.entries(hookloop.errorCodes))
})

test('every public name stands in the docs', () => {
  const names = [...Object.keys(hookloop), ...Object.keys(testing)]
  assert.deepEqual(
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(docs)),
    [],
  )
})

test('every option, event and stop reason stands in the docs', () => {
  const members = (file: string, type: string): string[] => {
    const [, body = ''] =
      new RegExp(`export type ${type}\\b[^]*?\\{([^]*?)\\n\\}`).exec(read(`hookloop/src/${file}`)) ?? []
    return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name!)
  }
  const names = [
    ...members('capabilities/guards.ts', 'Limits'),
    ...members('capabilities/error-policy.ts', 'ErrorPolicy'),
    ...members('capabilities/approval.ts', 'ApprovalOptions'),
    ...members('agent/agent.ts', 'AgentOptions'),
    ...members('agent/agent.ts', 'RunOptions'),
    ...members('agent/agent.ts', 'Agent'),
    ...members('agent/loop/resume.ts', 'ResumeOptions'),
    ...members('hooks/hook.ts', 'HookOptions'),
    ...members('agent/tool.ts', 'ToolRun'),
    ...members('capabilities/retry.ts', 'RetryOptions'),
    ...members('capabilities/cache-responses.ts', 'CacheOptions'),
    ...members('capabilities/output.ts', 'OutputOptions'),
    ...members('create-agent.ts', 'Options'),
    ...members('create-agent.ts', 'TypedOptions'),
    ...members('state/inference.ts', 'ModelSettings'),
    ...members('state/inference.ts', 'LanguageModel'),
    ...members('state/usage.ts', 'TokenUsage'),
    ...members('tracing/tracing.ts', 'TracingOptions'),
    ...providers.flatMap(({ name, package: from, keys }) => [name, from.slice(1), ...keys]),
    ...[...read('hookloop/src/state/event.ts').matchAll(/readonly type: '(\w+)'/g)].map(([, name]) => name!),
    ...hookloop.stopReasons,
  ]
  assert.ok(names.length > 50)
  assert.deepEqual(
    names.filter((name) => !new RegExp(`\\b${name}\\b`).test(docs)),
    [],
  )
})

test('no page is empty', () => {
  assert.deepEqual(
    pages.filter((page) => read(page).length < 200),
    [],
  )
})

test('every link inside the repository leads somewhere', () => {
  const broken = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#)([^)#]+)/g)]
      .map(([, to]) => join(dirname(page), to!))
      .filter((to) => !existsSync(to)),
  )
  assert.deepEqual(broken, [])
})

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
  assert.ok(snippets.length > 10)
  assert.equal(stdout, '')
})

test('the twenty lines in the README work as printed', () => {
  mkdirSync(folder, { recursive: true })
  const [, code = '', printed = ''] = /```ts run\n([^]*?)```\n\n```text\n([^]*?)```/.exec(read('README.md')) ?? []
  writeFileSync(join(folder, 'readme.ts'), code)
  const output = execFileSync(process.execPath, ['--conditions=hookloop-source', join(folder, 'readme.ts')], {
    encoding: 'utf8',
  })
  assert.equal(output, printed)
})

function snippetsOf(page: string): { code: string }[] {
  return [...read(page).matchAll(/```ts[^\n]*\n([^]*?)```/g)].map(([, code]) => ({ code: code! }))
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
    `import { ${Object.keys(stores).join(', ')} } from 'hookloop/stores'`,
    `import { ${Object.keys(replaying).join(', ')} } from 'hookloop/replay'`,
    `import * as z from 'zod'`,
    ...names.filter((name) => !declared.includes(name)).map((name) => declarations[name]!),
  ].join('\n')
}
