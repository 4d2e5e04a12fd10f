import assert from 'node:assert/strict'
import { existsSync, symlinkSync } from 'node:fs'
import { test } from 'node:test'
import { subagents } from '../../capabilities/subagents/subagents.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'
import { own, said } from './agent-in-project.fixture.ts'
import { claudeHooks } from './claude-hooks.ts'
import { claudeCommands } from './claude-commands.ts'
import { HookProject } from './hook-project.fixture.ts'

function usedIn({ dir }: HookProject) {
  return [claudeCommands({ dir, home: false }), claudeHooks({ dir, home: false, trust: 'all' })]
}

test('a replay uses the recorded text of a command, and runs no hook again', async () => {
  using project = new HookProject()
  const context = own('UserPromptExpansion', { additionalContext: 'be brief' })
  project.handlers('UserPromptExpansion', [{ type: 'command', command: `echo x >> fired; ${context}` }])
  const store = memoryStore()
  const make = () => createAgent({ model: scriptedModel(['Hello.']), store, use: usedIn(project) })
  project.write('.claude/commands/greet.md', 'Greet $1.')
  const first = await make().run('/greet you', { session: 's' })
  assert.deepEqual(said(first.state.messages).slice(1), ['user: Greet you.', 'assistant: Hello.'])
  project.write('.claude/commands/greet.md', 'Greet no one.')
  project.handlers('UserPromptExpansion', [{ type: 'command', command: 'touch again' }])
  await strictReplay(make(), store, 's')
  assert.ok(!existsSync(project.path('again')))
})

test('a prompt handler can judge a command', async () => {
  using project = new HookProject()
  project.write('.claude/commands/ship.md', 'Ship it.')
  project.handlers('UserPromptExpansion', [{ type: 'prompt', prompt: 'Is it Friday? $ARGUMENTS' }])
  const model = scriptedModel(['{"ok":false,"reason":"it is Friday"}', 'never said'])
  const run = await createAgent({ model, use: usedIn(project) }).run('/ship now')
  assert.deepEqual([run.status, run.text], ['stopped', ''])
  assert.match(JSON.stringify('final' in run && run.final), /it is Friday/)
})

test('the input of a subagent is not a command', async () => {
  using project = new HookProject()
  project.write('.claude/commands/greet.md', 'Greet.')
  project.handlers('UserPromptExpansion', [{ type: 'command', command: 'touch fired; exit 2' }])
  const spawn = { name: 'spawn_subagent', args: { subagent: 'helper', prompt: '/greet' } }
  const model = scriptedModel([{ toolCalls: [spawn] }, 'Hello.', 'Done.'])
  const helping = subagents({ agents: { helper: { description: 'Helps.', instructions: 'Help.' } } })
  const run = await createAgent({ model, use: [helping, ...usedIn(project)] }).run('Go.')
  assert.equal(run.status, 'completed')
  assert.ok(!existsSync(project.path('fired')))
})

test('agent.describe() says which command files are not used, and why', () => {
  using project = new HookProject()
  project.write('.claude/commands/a b.md', 'x')
  project.write('.claude/commands/empty.md', '---\ndescription: d\n---\n')
  project.write('.claude/commands/huge.md', 'x'.repeat(65_537))
  project.write('.claude/commands/head.md', '---\na: *b\n---\nx')
  project.write('.claude/commands/same.md', 'x')
  project.write('.claude/commands/deep/same.md', 'x')
  project.write('outside.md', 'x')
  symlinkSync('../../outside.md', project.path('.claude/commands/link.md'))
  symlinkSync('.', project.path('.claude/commands/circle'))
  const { notes = [], slashCommands = [] } = claudeCommands({ dir: project.dir, home: false })
  assert.deepEqual(slashCommands, [{ name: 'same', description: '', source: 'project' }])
  const expected = [
    ['a b.md', /its name must have/],
    ['empty.md', /it is empty/],
    ['head.md', /aliases are not supported/],
    ['huge.md', /larger than 65536 bytes/],
    ['link.md', /outside the commands folder/],
    ['deep/same.md', /a project command with that name/],
  ] as const
  assert.equal(notes.length, expected.length)
  for (const [i, [file, why]] of expected.entries()) {
    assert.ok(notes[i]!.startsWith(`The command "${file}" is not used: `), notes[i])
    assert.match(notes[i]!, why)
  }
})

test('invalid options throw', () => {
  assert.throws(() => claudeCommands({ dir: '.', folder: 'x' } as never), { code: 'AGENT_INVALID_OPTION' })
})
