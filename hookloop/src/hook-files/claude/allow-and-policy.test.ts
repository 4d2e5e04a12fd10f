import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, test } from 'node:test'
import { bash } from '../../capabilities/bash/bash.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { call, own } from './agent-in-project.fixture.ts'
import { claudeHooks } from './claude-hooks.ts'
import { HookProject } from './hook-project.fixture.ts'

/** Whether a command runs if a PreToolUse hook decides this, and the policy of `bash` asks. There is no approver. */
async function runs(command: string, permissionDecision: 'allow' | 'ask' | undefined): Promise<boolean> {
  using project = new HookProject()
  const decides = permissionDecision === undefined ? 'true' : own('PreToolUse', { permissionDecision })
  project.handlers('PreToolUse', [{ type: 'command', command: decides }])
  const agent = createAgent({
    model: scriptedModel([call(command), 'Done.']),
    use: [
      bash({ cwd: project.dir, ask: ['touch asked'], deny: ['touch denied'], sandbox: 'off' }),
      claudeHooks({ dir: project.dir, trust: 'all', home: false }),
    ],
  })
  await agent.run('Go.')
  return ['made', 'asked', 'denied'].some((name) => existsSync(project.path(name)))
}

describe('an allow of a PreToolUse hook', { concurrency: 2 }, () => {
  test('answers a question that the policy of bash asks by default', async () => {
    assert.deepEqual(await Promise.all([runs('touch made', 'allow'), runs('touch made', undefined)]), [true, false])
  })

  test('does not answer a question that a rule asks, nor one about a command that is not understood', async () => {
    for (const command of ['touch asked', 'touch made && touch asked', 'touch denied', 'touch made; eval "$X"']) {
      assert.equal(await runs(command, 'allow'), false, command)
    }
  })

  test('does not answer a question of another hook', async () => {
    assert.equal(await runs('touch made', 'ask'), false)
  })
})
