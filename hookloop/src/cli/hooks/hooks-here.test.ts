import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ProjectWithHooks } from './project-with-hooks.fixture.ts'

const bin = fileURLToPath(new URL('../../../bin/hookloop.mjs', import.meta.url))

test('S17: a hook that runs the command itself is not run by it again', async () => {
  const project = new ProjectWithHooks()
  const said = join(project.place, 'said')
  const command = `'${process.execPath}' --conditions=hookloop-source '${bin}' run again --agent '${project.agent}'`
  const shell = `${project.mark('hooked')}; ${command} --no-store > /dev/null 2> '${said}'; true`
  project.hooks({ name: 'loops', on: 'onUserInput', mode: 'hook', shell })
  await project.trust('--yes')
  const { code } = await project.run('work x', '--no-store')
  assert.deepEqual([code, project.marked()], [0, ['hooked', 'worked x']])
  assert.match(readFileSync(said, 'utf8'), /A hook runs this command, and its hooks would run it again/)
})
