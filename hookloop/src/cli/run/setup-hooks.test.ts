import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prints } from '../../hook-files/claude/hook-project.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** A project whose Setup hooks, each for one trigger, leave a mark; and which marks how its sessions begin. */
async function withSetup(setup: { readonly [trigger: string]: string }): Promise<ProjectWithHooks> {
  const project = new ProjectWithHooks()
  const mark = `${prints('e.hook_event_name + " " + (e.trigger ?? e.source)')} >> '${project.marks}'`
  const handler = (command: string) => ({ type: 'command', command })
  project.write('.claude/settings.json', {
    hooks: {
      Setup: Object.entries(setup).map(([matcher, command]) => ({ matcher, hooks: [handler(`${mark}; ${command}`)] })),
      SessionStart: [{ hooks: [handler(`${mark}; echo 'export BOTH=start' >> "$CLAUDE_ENV_FILE"`)] }],
    },
  })
  await project.trust('--yes')
  return project
}

const context = { hookSpecificOutput: { hookEventName: 'Setup', additionalContext: 'it is set up' } }

test('Setup hooks run before the session with --init or --maintenance, only those with that trigger', async () => {
  const project = await withSetup({ init: `echo '${JSON.stringify(context)}'`, maintenance: 'echo plain text' })
  assert.equal((await project.run('hello')).code, 0)
  assert.deepEqual(project.marked(), ['SessionStart startup'])
  const init = await project.run('hello', '--init')
  assert.match(init.stdout, /^I heard \[\w+ context from hook "Setup"\]\nit is set up\n\[end \w+\], hello\n$/)
  assert.deepEqual(project.marked().slice(1), ['Setup init', 'SessionStart startup'])
  assert.equal((await project.run('hello', '--maintenance')).stdout, 'I heard hello\n')
  assert.deepEqual(project.marked().slice(3), ['Setup maintenance', 'SessionStart startup'])
})

test('a Setup hook that fails or blocks is reported, and the run continues', async () => {
  const project = await withSetup({ init: 'echo no network >&2; exit 2' })
  const { code, stdout, stderr } = await project.run('hello', '--init')
  assert.deepEqual([code, stdout], [0, 'I heard hello\n'])
  assert.match(stderr, /no network/)
})
