import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import { firesHere } from '../claude-hooks.ts'
import { block, call, eventTable, message, no, none, own, stop } from './event-table.fixture.ts'
import { claudeEventNames } from './claude-events.ts'
import { HookProject, saidOf, scriptIn, type Said } from '../hook-project.fixture.ts'

test('there are 33 events', () => {
  assert.equal(claudeEventNames.length, 33)
})

test('the documentation lists the events that fire, and their number', () => {
  const text = readFileSync('site/reference/claude-hooks.md', 'utf8')
  const [, count] = /The (\d+) in this table fire/.exec(text) ?? []
  const table = text.slice(text.indexOf('| event | fires at |')).split('\n\n')[0]!
  const named = [...table.matchAll(/^\| (`.+?) \|/gm)].flatMap(([, cell]) => cell!.match(/\w+/g) ?? [])
  assert.deepEqual(named.toSorted(), claudeEventNames.filter(firesHere).toSorted())
  assert.equal(named.length, Number(count))
})

const answers = [
  ['exit 2', no],
  ['decision: "block"', block],
  ['continue: false', stop],
  ['a systemMessage', message],
] as const

for (const event of claudeEventNames) {
  const row = eventTable[event]
  const fired = async (says: Said, matcher = row.matcher): Promise<{ said: JsonObject; problem: string }> => {
    using project = new HookProject()
    project.handlers(event, [{ type: 'command', command: scriptIn(project, says) }], matcher)
    const result = await project.fire(event, row.input)
    return { said: saidOf(result), problem: result.ran[0]?.answer.problem ?? '' }
  }
  describe(event, { concurrency: 4 }, () => {
    const [exit2] = row.effects
    for (const [i, [what, says]] of answers.entries()) {
      test(`${what} has the effect of the table`, async () => {
        const { said, problem } = await fired(says)
        assert.deepEqual(said, row.effects[i])
        if (says === no) assert.equal(problem, row.tells === true ? 'not now' : '')
      })
    }
    for (const [says, gives] of row.specific ?? []) {
      test(`hookSpecificOutput ${JSON.stringify(says)} has the effect of the table`, async () => {
        assert.deepEqual((await fired({ stdout: own(event, says) })).said, gives)
      })
    }
    test(row.matcher === undefined ? 'a matcher is ignored' : 'a matcher that does not match prevents it', async () => {
      const expected = row.matcher === undefined ? exit2 : none
      assert.deepEqual((await fired(no, 'SomethingElse')).said, expected)
    })
  })
}

test('settings of an organisation cannot be blocked', async () => {
  using project = new HookProject()
  project.handlers('ConfigChange', [{ type: 'command', command: 'echo no >&2; exit 2' }])
  const result = await project.fire('ConfigChange', { source: 'policy_settings' })
  assert.deepEqual(saidOf(result), none)
})

test('the path of a worktree is the last line that is not empty, without colours', async () => {
  using project = new HookProject()
  const command = String.raw`printf 'making it\n\033[32m/srv/w t\033[0m\n\n'`
  project.handlers('WorktreeCreate', [{ type: 'command', command }])
  assert.deepEqual(saidOf(await project.fire('WorktreeCreate', { name: 'w' })), {
    decision: 'none',
    other: { worktreePath: '/srv/w t' },
  })
})

for (const command of ['true', 'echo oops >&2; exit 1']) {
  test(`a worktree is not created if the hook prints no path: ${command}`, async () => {
    using project = new HookProject()
    project.handlers('WorktreeCreate', [{ type: 'command', command }])
    const { merged } = await project.fire('WorktreeCreate', { name: 'w' })
    assert.equal(merged.decision, 'block')
  })
}

test('updatedMCPToolOutput replaces the output of an MCP tool, whatever its shape', async () => {
  using project = new HookProject()
  const says = own('PostToolUse', { updatedMCPToolOutput: 'short' })
  project.handlers('PostToolUse', [{ type: 'command', command: scriptIn(project, { stdout: says }) }])
  const input = { ...call, tool_name: 'mcp__github__list', tool_response: [{ type: 'text', text: 'long' }] }
  assert.deepEqual(saidOf(await project.fire('PostToolUse', input)), { decision: 'none', updatedOutput: 'short' })
})

test('a PreModelSwitch hook that times out blocks', async () => {
  using project = new HookProject()
  project.handlers('PreModelSwitch', [{ type: 'command', command: 'sleep 20', timeout: 0.3 }])
  const { merged } = await project.fire('PreModelSwitch', { to_model: 'm' })
  assert.equal(merged.decision, 'deny')
})
