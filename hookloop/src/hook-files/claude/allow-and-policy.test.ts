import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, test } from 'node:test'
import { bash } from '../../capabilities/bash/bash.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { JsonObject } from '../../values/json.ts'
import { TrustStore } from '../trust/trust-store.ts'
import { call, own } from './agent-in-project.fixture.ts'
import { claudeHooks } from './claude-hooks.ts'
import { HookProject } from './hook-project.fixture.ts'

/** Whether a command runs if PreToolUse hooks answer this, and the policy of `bash` asks. There is no approver. */
async function runs(
  command: string,
  answers: readonly JsonObject[],
  trust: TrustStore | 'all' = 'all',
): Promise<boolean> {
  using project = new HookProject()
  const handlers = answers.map((answer) => ({ type: 'command', command: own('PreToolUse', answer) }))
  project.handlers('PreToolUse', handlers)
  const agent = createAgent({
    model: scriptedModel([call(command), 'Done.']),
    use: [
      bash({ cwd: project.dir, ask: ['touch asked'], block: ['touch denied'], sandbox: 'off' }),
      claudeHooks({ dir: project.dir, trust, home: false }),
    ],
  })
  await agent.run('Go.')
  return ['made', 'asked', 'denied'].some((name) => existsSync(project.path(name)))
}

const allow = { permissionDecision: 'allow' }
const changesTo = (command: string): JsonObject => ({ updatedInput: { command } })

describe('an allow of a PreToolUse hook', { concurrency: 2 }, () => {
  test('answers a question that the policy of bash asks by default', async () => {
    assert.deepEqual(await Promise.all([runs('touch made', [allow]), runs('touch made', [])]), [true, false])
  })

  test('answers the question about the command that the hook, or another one, changed', async () => {
    assert.equal(await runs('touch x', [{ ...allow, ...changesTo('touch made') }]), true)
    assert.equal(await runs('touch x', [allow, changesTo('touch made')]), true)
  })

  test('does not answer a question that a rule asks, nor one about a command that is not understood', async () => {
    for (const command of ['touch asked', 'touch made && touch asked', 'touch denied', 'touch made; eval "$X"']) {
      assert.equal(await runs(command, [allow]), false, command)
    }
  })

  test('does not answer a question that a rule asks about the command that the hook, or another one, changed', async () => {
    for (const command of ['touch asked', 'touch denied']) {
      assert.equal(await runs('touch made', [{ ...allow, ...changesTo(command) }]), false, command)
      assert.equal(await runs('touch made', [allow, changesTo(command)]), false, command)
    }
  })

  test('does not answer a question of another hook, and does not override its denial', async () => {
    for (const permissionDecision of ['ask', 'deny'])
      assert.equal(await runs('touch made', [allow, { permissionDecision }]), false, permissionDecision)
  })

  test('does not count if the hook is not trusted', async () => {
    assert.equal(await runs('touch made', [allow], TrustStore.of([])), false)
  })
})
