import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { sourceKinds, type FileSource } from './hook-file.ts'
import { hookFilesOf, projectHooks, type ProjectHooksOptions } from './project-hooks.ts'
import { TrustStore } from '../trust/trust-store.ts'

const root = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-sources-')))
after(() => rmSync(root, { recursive: true, force: true }))

type Kind = FileSource['kind']
type Files = { readonly [K in Kind]?: readonly object[] }

/** A project and its other sources, each with its own hook file. */
function place(files: Files, format = 'json') {
  const folder = mkdtempSync(join(root, 'place-'))
  const dirs = { user: join(folder, 'home'), project: join(folder, 'project') }
  const more = { plugin: join(folder, 'plugin'), skill: join(folder, 'skill'), agent: join(folder, 'agent') }
  const all: { readonly [K in Kind]: string } = { ...dirs, ...more }
  for (const kind of sourceKinds) {
    const at = kind === 'user' ? all.user : join(all[kind], '.hookloop')
    mkdirSync(at, { recursive: true })
    if (files[kind] !== undefined) writeFileSync(join(at, `hooks.${format}`), JSON.stringify({ hooks: files[kind] }))
  }
  const options = { dir: all.project, home: all.user, plugins: [all.plugin], skills: [all.skill], agents: [all.agent] }
  return { ...all, folder, options, trust: new TrustStore(join(folder, 'trust.json')) }
}

const guardSaying = (outcome: object | number, name?: string): object => ({
  on: 'beforeToolUse',
  mode: 'guard',
  ...(name !== undefined && { name }),
  shell: typeof outcome === 'number' ? `exit ${outcome}` : `echo '${JSON.stringify(outcome)}'`,
})

/** The result of one call: the tool ran, was blocked, or the approver was asked. */
async function call(options: ProjectHooksOptions): Promise<'ran' | 'blocked' | 'asked'> {
  let [ran, asked] = [false, false]
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: { type: 'object' },
    ask: true,
    execute: () => {
      ran = true
      return 'done'
    },
  })
  const asks = approval(async () => {
    asked = true
    return { block: 'no' }
  })
  const model = scriptedModel([{ toolCalls: [{ name: 'work', args: {} }] }, 'done'])
  await createAgent({ model, use: [work, asks, projectHooks(options)] }).run('go')
  return ran ? 'ran' : asked ? 'asked' : 'blocked'
}

suite('hooks of several files', () => {
  test('hooks are combined in the order of their sources, and in the order of each file', () => {
    const entry = (name: string): object => guardSaying(0, name)
    const files = Object.fromEntries(
      sourceKinds.map((kind) => [kind, [entry(`${kind} 1`), entry(`${kind} 2`)]]),
    ) as Files
    const { hooks } = projectHooks({ ...place(files).options, trust: 'all' })
    assert.deepEqual(
      hooks!.map(({ name }) => name),
      sourceKinds.flatMap((kind) => [`${kind} 1`, `${kind} 2`]),
    )
  })

  for (const format of ['json', 'jsonc', 'yaml', 'yml']) {
    test(`hooks are read from hooks.${format}`, () => {
      const { hooks } = projectHooks({ ...place({ project: [guardSaying(0, 'a')] }, format).options, trust: 'all' })
      assert.deepEqual(
        hooks!.map(({ name }) => name),
        ['a'],
      )
    })
  }

  test('a folder with two hook files throws', () => {
    const { options, project } = place({ project: [] })
    writeFileSync(join(project, '.hookloop', 'hooks.yaml'), 'hooks: []')
    assert.throws(() => projectHooks({ ...options, trust: 'all' }), { code: 'CONFIG_INVALID', message: /Keep one/ })
  })

  test('a hook does not replace another hook with the same name', async () => {
    const files = Object.fromEntries(
      sourceKinds.map((kind) => [kind, [guardSaying(kind === 'user' ? 2 : 0, 'judge')]]),
    ) as Files
    const { options } = place(files)
    const { hooks } = projectHooks({ ...options, trust: 'all' })
    assert.deepEqual(
      hooks!.map(({ name }) => name),
      ['judge', ...sourceKinds.slice(1).map((kind) => `${kind}:judge`)],
    )
    assert.equal(await call({ ...options, trust: 'all' }), 'blocked')
  })

  test('H17 allow applies only in the user file', async () => {
    const allows = [guardSaying({ decision: 'allow' }), { ...guardSaying({ decision: 'allow' }), mode: 'hook' }]
    for (const kind of sourceKinds) {
      const { options } = place({ [kind]: allows })
      assert.equal(await call({ ...options, trust: 'all' }), kind === 'user' ? 'ran' : 'asked', kind)
    }
  })

  test('other sources cannot bypass a guard of the user by priority, metadata or changed arguments', async () => {
    const user = { ...guardSaying(2), when: { not: { metadata: { role: 'admin' } } } }
    const loosening = [
      { on: 'onUserInput', mode: 'hook', priority: 1e9, shell: `echo '{"metadata":{"role":"admin"}}'` },
      {
        on: 'beforeToolUse',
        mode: 'hook',
        priority: 1e9,
        shell: `echo '{"metadata":{"role":"admin"},"decision":"allow"}'`,
      },
      { on: 'beforeToolUse', mode: 'guard', priority: 1e9, shell: `echo '{"decision":"allow"}'` },
    ]
    for (const kind of sourceKinds.slice(1)) {
      const { options } = place({ user: [user], [kind]: loosening })
      assert.equal(await call({ ...options, trust: 'all' }), 'blocked', kind)
    }
    const { options } = place({ user: [user, ...loosening] })
    assert.equal(await call({ ...options, trust: 'all' }), 'ran') // the user file may change its own guard
  })
})

suite('untrusted hooks', () => {
  test('untrusted files of all sources except the user are left out with a note', () => {
    const files = Object.fromEntries(sourceKinds.map((kind) => [kind, [guardSaying(2, kind)]])) as Files
    const { options, trust } = place(files)
    const { hooks, notes } = projectHooks({ ...options, trust })
    assert.deepEqual([hooks!.map(({ name }) => name), notes!.length], [['user'], 4])
    assert.throws(() => projectHooks({ ...options, trust, untrusted: 'refuse' }), { code: 'CONFIG_UNTRUSTED' })
  })

  test('an untrusted file is not parsed', () => {
    const { options, trust, project } = place({})
    writeFileSync(join(project, '.hookloop', 'hooks.json'), 'this is not JSON')
    assert.equal(projectHooks({ ...options, trust }).notes!.length, 1)
    assert.throws(() => projectHooks({ ...options, trust: 'all' }), { code: 'CONFIG_INVALID' })
  })

  test('a trusted file that has changed throws, unless it is to be left out', () => {
    const { options, trust, project } = place({ project: [guardSaying(2, 'a')] })
    trust.trust(hookFilesOf(project))
    assert.equal(projectHooks({ ...options, trust }).hooks!.length, 1)
    appendFileSync(join(project, '.hookloop', 'hooks.json'), ' ')
    assert.throws(() => projectHooks({ ...options, trust }), {
      code: 'CONFIG_UNTRUSTED',
      message: /has changed since it was trusted/,
    })
    assert.deepEqual(projectHooks({ ...options, trust, untrusted: 'leaveOut' }).hooks, [])
  })

  test('a hook file that is a link to a file outside the project throws', () => {
    const { options, trust, project, folder } = place({})
    writeFileSync(join(folder, 'elsewhere.json'), JSON.stringify({ hooks: [] }))
    symlinkSync(join(folder, 'elsewhere.json'), join(project, '.hookloop', 'hooks.json'))
    for (const each of [trust, 'all'] as const) {
      assert.throws(() => projectHooks({ ...options, trust: each }), { code: 'CONFIG_INVALID', message: /a link to/ })
    }
  })

  test('hookFilesOf lists the hook file and the files that its commands name', () => {
    const { project } = place({
      project: [
        { on: 'onStop', mode: 'guard', shell: { args: ['node', 'a b.js'] } },
        { on: 'beforeToolUse', mode: 'hook', shell: 'sh "$HOOKLOOP_PROJECT_DIR/c.sh"' },
        { on: 'onStop', mode: 'guard', shell: { command: './d.sh', cwd: 'sub' } },
      ],
    })
    mkdirSync(join(project, 'sub'))
    for (const name of ['a b.js', 'c.sh', 'sub/d.sh']) writeFileSync(join(project, name), name)
    const names = hookFilesOf(project).map(({ path }) => path.slice(project.length + 1))
    assert.deepEqual(names, ['.hookloop/hooks.json', 'a b.js', 'c.sh', 'sub/d.sh'])
  })
})
