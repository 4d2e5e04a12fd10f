import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import type { ReplayReport } from '../../sessions/replay/replay.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const project = new ScriptedProject()

before(async () => {
  const code = `import { guard } from 'hookloop'
    export default [guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'strict' })]`
  writeFileSync(project.path('strict.ts'), code)
  await project.hookloop(['run', 'hello', '--agent', 'agent.ts', '--session', 'talk'])
  const { stderr } = await project.hookloop(['run', 'deploy x', '--session', 'talk'])
  const [, id] = / approve (\w+),/.exec(stderr) ?? []
  await project.hookloop(['approve', id!, '--resume'])
})

describe('hookloop replay', { concurrency: 2 }, () => {
  test('runs the hooks again without calling a model or a tool', async () => {
    const { code, stdout } = await project.hookloop(['replay', 'talk', '--exit-code'])
    assert.equal(code, 0)
    assert.match(stdout, /^\d+ decisions judged again: nothing would have differed\.\n$/)
    assert.deepEqual(project.done(), ['deployed to x'])
  })

  test('prints what other hooks would have decided, and exits with 1 with --exit-code', async () => {
    const replay = ['replay', 'talk', '--hooks', 'strict.ts']
    const [words, data] = await Promise.all([
      project.hookloop([...replay, '--exit-code']),
      project.hookloop([...replay, '--json']),
    ])
    assert.deepEqual([words.code, data.code], [1, 0])
    assert.match(words.stdout, /was .*ask by careful: Deploy to x\?\n +would be +block by strict: Never\.\n/)
    const report = JSON.parse(data.stdout) as ReplayReport & { session: string }
    assert.deepEqual(
      [report.session, report.record.status, report.divergesAt?.trigger],
      ['talk', 'complete', 'beforeToolUse'],
    )
    assert.deepEqual(project.done(), ['deployed to x'])
  })

  test('replays without a hook, and another run than the last', async () => {
    const [without, first] = await Promise.all([
      project.hookloop(['replay', 'talk', '--without', 'careful']),
      project.hookloop(['replay', 'talk', '--without', 'careful', '--run', '1', '--json']),
    ])
    assert.match(without.stdout, /was +ask by careful/)
    assert.deepEqual((JSON.parse(first.stdout) as ReplayReport).differences, [])
  })

  test('replays with the hooks in files that the run had, and exits with 1 if the run is of another agent', async () => {
    const hooked = new ProjectWithHooks()
    hooked.hooks({
      on: 'beforeToolUse',
      mode: 'guard',
      shell: `${hooked.mark('judged')}; echo '{"decision":"block","reason":"Frozen."}'`,
    })
    await hooked.trust('--yes')
    await hooked.run('work x', '--session', 'talk')
    const same = await hooked.hookloop(['replay', 'talk', '--exit-code', '--json'])
    const other = await hooked.hookloop(['replay', 'talk', '--exit-code', '--json', '--no-hooks'])
    const found = [same, other].map(({ code, stdout }) => [code, (JSON.parse(stdout) as ReplayReport).record.status])
    assert.deepEqual(found, [
      [0, 'complete'],
      [1, 'diverged'],
    ])
    assert.deepEqual(hooked.marked(), ['judged'])
  })

  const refusals: readonly (readonly [args: readonly string[], words: RegExp])[] = [
    [['--run', '3'], /--run 3: talk has only 2 runs/],
    [['--without', 'nobody'], /has no hook "nobody" to remove/],
    [['--hooks', 'none.ts'], /--hooks none\.ts: file not found/],
    [['--hooks', 'rules.json'], /--hooks rules\.json must be a module/],
    [['--hooks', 'agent.ts'], /must be a hook, a capability, or a list of them/],
  ]
  for (const [args, words] of refusals) {
    test(`rejects ${args.join(' ')} with 2`, async () => {
      const { code, stdout, stderr } = await project.hookloop(['replay', 'talk', ...args])
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, words)
    })
  }
})
