import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { tool } from '../../../core/agent/tool.ts'
import { subagents } from '../../../capabilities/subagents/subagents.ts'
import { createAgent } from '../../../create-agent.ts'
import { isAlive, until } from '../../../system/processes/processes.fixture.ts'
import { scriptedModel } from '../../../models/scripted.ts'
import { agentIn, own } from '../agent-in-project.fixture.ts'
import { claudeHooks } from '../claude-hooks.ts'
import { HookProject } from '../hook-project.fixture.ts'

describe('background handlers', { concurrency: 2 }, () => {
  test('a background handler continues when a subagent ends, also without a session', async () => {
    using project = new HookProject()
    const command = 'until [ -e go ]; do sleep 0.02; done; touch over'
    project.handlers('UserPromptSubmit', [{ type: 'command', command, async: true }])
    const go = tool({
      name: 'go',
      description: 'Lets it go on.',
      input: { type: 'object' },
      execute: () => {
        project.write('go', '')
        return until(() => existsSync(project.path('over')))
      },
    })
    const spawn = { name: 'spawn_subagent', args: { subagent: 'helper', prompt: 'Look.' } }
    const model = scriptedModel([{ toolCalls: [spawn] }, 'Seen.', { toolCalls: [{ name: 'go', args: {} }] }, 'Done.'])
    const helping = subagents({ agents: { helper: { description: 'Helps.', instructions: 'Help.' } } })
    const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false })
    const run = await createAgent({ model, use: [go, helping, hooks] }).run('Go.')
    assert.equal(run.status, 'completed')
    assert.ok(existsSync(project.path('over')))
  })

  for (const kept of [true, false]) {
    test(`a Notification handler ends with ${kept ? 'its session' : 'the run, without a session'}`, async () => {
      using project = new HookProject()
      const asks = own('PreToolUse', { permissionDecision: 'ask' })
      project.settings({
        hooks: {
          PreToolUse: [{ hooks: [{ type: 'command', command: asks }] }],
          Notification: [{ hooks: [{ type: 'command', command: 'echo $$ > begun; mv begun pid; sleep 60' }] }],
        },
      })
      const answer = async () => {
        await until(() => existsSync(project.path('pid')))
        return 'allow' as const
      }
      const { agent, bare, ran } = agentIn(project, { options: { answer } })
      if (kept) {
        const session = agent.session('s')
        await session.send('Go.')
        await session.end()
      } else await createAgent(bare).run('Go.')
      const pid = Number(readFileSync(project.path('pid'), 'utf8'))
      assert.deepEqual(ran, ['ls'])
      assert.ok(await until(() => !isAlive(pid)))
    })
  }
})
