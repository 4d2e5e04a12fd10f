import assert from 'node:assert/strict'
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

const bin = fileURLToPath(new URL('../../../bin/hookloop.mjs', import.meta.url))

test('missing trusted hook files are reported until trust --revoke', async () => {
  const project = new ProjectWithHooks()
  const files = [project.hooks({ name: 'no', on: 'beforeToolUse', mode: 'guard', shell: 'exit 2' })]
  files.push(project.write('.claude/settings.json', { hooks: {} }))
  await project.trust('--yes')
  for (const file of files) rmSync(dirname(file), { recursive: true })
  const words = /Trusted hook files are missing: .*\.hookloop\/hooks\.json.* trust --revoke/
  assert.match((await project.run('work x', '--no-store')).stderr, words)
  assert.doesNotMatch((await project.run('work y', '--no-store', '--no-hooks')).stderr, words)
  await project.trust('--revoke')
  assert.doesNotMatch((await project.run('work z', '--no-store')).stderr, words)
  assert.deepEqual(project.marked(), ['worked x', 'worked y', 'worked z'])
})

test('S17: a hook that runs the command does not run again inside it', async () => {
  const project = new ProjectWithHooks()
  const said = join(project.root, 'said')
  const command = `'${process.execPath}' --conditions=hookloop-source '${bin}' run again --agent '${project.agent}'`
  const shell = `${project.mark('hooked')}; ${command} --no-store > /dev/null 2> '${said}'; true`
  project.hooks({ name: 'loops', on: 'onUserInput', mode: 'hook', shell })
  await project.trust('--yes')
  const { code } = await project.run('work x', '--no-store')
  assert.deepEqual([code, project.marked()], [0, ['hooked', 'worked x']])
  assert.match(readFileSync(said, 'utf8'), /This command was started by a hook, and its own hooks could start it again/)
})

test('hooks of files that do not run are in the warnings of the run and of its explanation, unless they are ignored', async () => {
  const project = new ProjectWithHooks()
  project.hooks({ on: 'beforeToolUse', mode: 'guard', name: 'no-push', shell: 'exit 2' })
  const resultOf = (stdout: string) =>
    JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as { warnings: { code: string }[] }
  const run = await project.run('hello', '--json', '--session', 'one')
  assert.deepEqual(
    resultOf(run.stdout).warnings.map(({ code }) => code),
    ['LEFT_OUT'],
  )
  const explained = await project.hookloop(['explain', 'one'])
  assert.match(explained.stdout, /warnings +step 1: .*hooks\.json is not trusted: its hooks do not run/)
  const shown = await project.run('hello')
  assert.equal(shown.stderr.match(/not trusted/g)?.length, 1)
  const ignored = await project.run('hello', '--json', '--no-hooks')
  assert.deepEqual(resultOf(ignored.stdout).warnings, [])
})
