import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AgentEvent } from '../../../core/state/event.ts'
import type { JsonObject } from '../../../values/json.ts'
import { scriptedModel, type ScriptedTurn } from '../../../models/scripted.ts'
import { agentIn, resultIn } from '../agent-in-project.fixture.ts'
import { HookProject } from '../hook-project.fixture.ts'
import { strictReplay } from '../../../sessions/replay/strict-replay.fixture.ts'

const ask: JsonObject = { type: 'agent', prompt: 'Do the rules allow this? $ARGUMENTS' }
const read: ScriptedTurn = { toolCalls: [{ name: 'read_file', args: { path: 'rules.txt' } }] }
const spent = { inputTokens: 100, outputTokens: 10 }

/** An inspecting agent. Its second request has what it read. */
function inspector(...replies: readonly ScriptedTurn[]) {
  return scriptedModel([...replies])
}

describe('agent handlers', { concurrency: 2 }, () => {
  test('an agent handler reads files of the project, and its decision and cost count', async () => {
    using project = new HookProject()
    project.write('rules.txt', 'Never list anything.')
    project.handlers('PreToolUse', [{ ...ask, model: 'small' }], 'Bash')
    const small = inspector(
      { ...(read as object), usage: spent },
      { text: JSON.stringify({ ok: false, reason: 'The rules forbid it.' }), usage: spent },
    )
    const { agent, ran } = agentIn(project, { options: { models: { small } } })
    const run = await agent.run('Go.')
    assert.deepEqual(ran, [])
    assert.match(JSON.stringify(resultIn(run.state.messages)), /The rules forbid it\./)
    const [first, second] = small.requests.map(({ messages }) => JSON.stringify([...messages]))
    assert.match(first!, /Do the rules allow this\?.*tool_name.*Bash/)
    assert.match(second!, /Never list anything\./)
    assert.deepEqual(small.requests[0]!.tools.map(({ name }) => name).toSorted(), [
      'list_dir',
      'read_file',
      'search_files',
    ])
    assert.ok(run.state.usage.inputTokens >= 200)
  })

  test('a replay does not run an agent handler again', async () => {
    using project = new HookProject()
    project.write('rules.txt', 'Everything goes.')
    project.handlers('PreToolUse', [{ ...ask, model: 'small' }], 'Bash')
    const small = inspector(read, JSON.stringify({ ok: true }))
    const { agent, ran, model, store } = agentIn(project, { options: { models: { small } } })
    await agent.run('Go.', { session: 's' })
    await strictReplay(agent, store, 's')
    assert.deepEqual([ran, small.requests.length, model.requests.length], [['ls'], 2, 2])
  })

  test('calls by the agent of a handler are denied instead of being judged by agent handlers', async () => {
    using project = new HookProject()
    project.write('rules.txt', 'Everything goes.')
    project.handlers('PreToolUse', [{ ...ask, model: 'small' }])
    const small = inspector(read, JSON.stringify({ ok: true }))
    const { agent, ran } = agentIn(project, { options: { models: { small } } })
    await agent.run('Go.')
    const [, second] = small.requests.map(({ messages }) => JSON.stringify([...messages]))
    assert.match(second!, /the call comes from an agent of a hook/)
    assert.doesNotMatch(second!, /Everything goes/)
    assert.deepEqual(ran, ['ls'])
  })

  test('an agent without an answer is a warning, or blocks with onFailure "block"', async () => {
    for (const [onFailure, expected] of [
      ['continue', ['ls']],
      ['block', []],
    ] as const) {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ ...ask, model: 'small', onFailure }], 'Bash')
      const { agent, ran } = agentIn(project, { options: { models: { small: inspector('I do not know.') } } })
      const events: AgentEvent[] = []
      for await (const event of agent.stream('Go.')) events.push(event)
      assert.deepEqual(ran, expected)
      assert.ok(events.some((event) => event.type === 'warning'))
    }
  })

  test('an agent that times out is aborted, and its cost counts', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ ...ask, model: 'small', timeout: 2 }], 'Bash')
    const list: ScriptedTurn = { toolCalls: [{ name: 'list_dir', args: { path: '.' } }], usage: spent }
    const never = new Promise<ScriptedTurn>(() => undefined)
    let asked = 0
    const small = scriptedModel(() => (++asked === 1 ? list : never))
    const { agent, ran } = agentIn(project, { options: { models: { small } } })
    const run = await agent.run('Go.')
    assert.deepEqual([ran, asked], [['ls'], 2])
    assert.ok(run.state.usage.inputTokens >= spent.inputTokens)
  })
})
