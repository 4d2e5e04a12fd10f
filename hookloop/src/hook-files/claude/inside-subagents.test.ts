import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { calls, familyWorld, look, plan, spawn } from '../../core/subagents/family-world.fixture.ts'
import type { JsonObject } from '../../values/json.ts'
import { claudeHooks } from './claude-hooks.ts'
import { HookProject, prints, quoted } from './hook-project.fixture.ts'

const hooksOf = (project: HookProject) => claudeHooks({ dir: project.dir, trust: 'all', home: false })

function lines(project: HookProject, file: string): readonly JsonObject[] {
  const text = readFileSync(project.path(file), 'utf8').trim()
  return text.split('\n').map((line) => JSON.parse(line) as JsonObject)
}

describe('inside a subagent', { concurrency: 2 }, () => {
  test('hooks of the project judge calls of a subagent, and get its name', async () => {
    using project = new HookProject()
    const command = `${prints('[e.tool_input.at, e.agent_type ?? null, "agent_id" in e]')} | tee -a seen | grep -q inner && exit 2; exit 0`
    project.handlers('PreToolUse', [{ type: 'command', command }], 'look')
    const { agent, looked } = familyWorld({ use: [hooksOf(project)] })
    await agent.run(plan(calls(look('outer')), calls(spawn('s', 'plain', calls(look('inner'), look('other'))))))
    assert.deepEqual(looked, ['outer', 'other'])
    assert.deepEqual(lines(project, 'seen'), [
      ['outer', null, false],
      ['inner', 'plain', true],
      ['other', 'plain', true],
    ])
  })

  test('hooks of the project change calls of a subagent', async () => {
    using project = new HookProject()
    const output = { hookSpecificOutput: { hookEventName: 'PreToolUse', updatedInput: { at: 'elsewhere' } } }
    project.handlers('PreToolUse', [{ type: 'command', command: `echo ${quoted(JSON.stringify(output))}` }], 'look')
    const { agent, looked } = familyWorld({ use: [hooksOf(project)] })
    await agent.run(plan(calls(spawn('s', 'plain', calls(look('inner'))))))
    assert.deepEqual(looked, ['elsewhere'])
  })

  test('the end of a subagent fires SubagentStop once, which can continue it and knows that it has', async () => {
    using project = new HookProject()
    const log = `${prints('[e.hook_event_name, e.agent_type ?? null, e.stop_hook_active, e.last_assistant_message]')} | tee -a seen`
    project.settings({
      hooks: {
        Stop: [{ hooks: [{ type: 'command', command: `${log} > /dev/null` }] }],
        SubagentStop: [
          {
            matcher: 'plain',
            hooks: [{ type: 'command', command: `${log} | grep -q true && exit 0; echo more >&2; exit 2` }],
          },
        ],
      },
    })
    const { agent } = familyWorld({ use: [hooksOf(project)] })
    await agent.run(plan(calls(spawn('s', 'plain', 'First.', 'Second.')), 'End.'))
    assert.deepEqual(lines(project, 'seen'), [
      ['SubagentStop', 'plain', false, 'First.'],
      ['SubagentStop', 'plain', true, 'Second.'],
      ['Stop', null, false, 'End.'],
    ])
  })

  test('front matter hooks of an agent apply only while it runs', async () => {
    using project = new HookProject()
    const head = (command: string): string =>
      `---\nname: plain\ndescription: d\nhooks:\n  PreToolUse:\n    - matcher: look\n      hooks:\n        - type: command\n          command: ${command}\n---\n`
    project.write('.claude/agents/plain.md', head('exit 2'))
    const { agent, looked } = familyWorld({ use: [hooksOf(project)] })
    await agent.run(plan(calls(look('outer')), calls(spawn('s', 'plain', calls(look('inner'))))))
    assert.deepEqual(looked, ['outer'])
  })
})
