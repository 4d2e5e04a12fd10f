import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../../agent/capability.ts'
import { tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { Message } from '../../state/message.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../../models/scripted.ts'
import { contextConfig } from '../../capabilities/context-config.ts'
import { guards } from '../../capabilities/guards.ts'
import { retrospective, getRewinds, type RetrospectiveOptions } from './retrospective.ts'

const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
const looking: ScriptedTurn = { toolCalls: [{ name: 'look' }] }
const rewind = (checkpoint_id: number, guidance = 'Look elsewhere.'): ScriptedTurn => ({
  toolCalls: [{ name: 'execution_retrospective', args: { checkpoint_id, guidance } }],
})

function agentOn(script: Script, options?: RetrospectiveOptions, ...use: readonly Use[]) {
  const model = scriptedModel(script)
  return {
    model,
    agent: createAgent({ model, instructions: 'Be brief.', use: [look, retrospective(options), ...use] }),
  }
}

/** A conversation as text, with calls and results by name. */
function reported(messages: Iterable<Message>): readonly string[] {
  return [...messages].map(({ role, content }) =>
    [
      role,
      ...content.map((part) => (part.type === 'text' ? part.text : 'toolName' in part ? part.toolName : part.type)),
    ].join(' '),
  )
}

test('a rewind replaces everything after the checkpoint by the guidance', async () => {
  const { agent, model } = agentOn([looking, looking, rewind(1, 'Not there.'), 'Found it.'])
  const run = await agent.run('Find it.')
  assert.deepEqual(reported(model.requests[3]!.messages), [
    'user Find it.',
    'user [CHECKPOINT 0]',
    'assistant look',
    'tool look',
    'user [Rewound to checkpoint 1 (1 of 3). Everything after it was removed.]\nYou left yourself this guidance:\nNot there.',
    'user [CHECKPOINT 3]',
  ])
  assert.deepEqual([run.status, getRewinds(run.state)], ['completed', 1])
})

test('a rewind does not reset steps, tokens or calls', async () => {
  const { agent } = agentOn([looking, rewind(0), 'Done.'])
  const run = await agent.run('Go.')
  const { steps, toolCalls, inputTokens } = run.state.execution!.usage
  assert.deepEqual([steps, toolCalls, inputTokens, run.state.execution!.steps.length], [3, 2, 30, 3])
  const endless = agentOn(
    Array.from({ length: 9 }, () => rewind(0)),
    { maxRewinds: 9 },
    guards({ maxSteps: 4 }),
  )
  assert.equal((await endless.agent.run('Go.')).state.execution!.final!.reason, 'stepsLimit')
})

test('every call in the conversation has its result after a rewind among other calls', async () => {
  const both: ScriptedTurn = {
    toolCalls: [
      { name: 'look' },
      { name: 'execution_retrospective', args: { checkpoint_id: 1, guidance: 'g' } },
      { name: 'execution_retrospective', args: { checkpoint_id: 0, guidance: 'second thoughts' } },
      { name: 'look' },
    ],
  }
  const { agent } = agentOn([looking, both, 'Done.'])
  const run = await agent.run('Go.')
  const ids = (type: string): readonly string[] =>
    run.state.messages
      .slice()
      .flatMap(({ content }) =>
        content.flatMap((part) => (part.type === type && 'toolCallId' in part ? [part.toolCallId] : [])),
      )
  assert.deepEqual([ids('tool-call'), ids('tool-call').length], [ids('tool-result'), 1])
  const statuses = run.state.execution!.steps.at(1)!.toolExecutions.map(({ status }) => status)
  assert.deepEqual(statuses, ['ok', 'ok', 'blocked', 'ok'])
})

test('an execution is rewound at most maxRewinds times', async () => {
  const { agent } = agentOn([rewind(0), rewind(1), rewind(2), 'Done.', rewind(4), 'Again.'], { maxRewinds: 2 })
  const run = await agent.run('Go.')
  const { status, output } = run.state.execution!.steps.at(2)!.toolExecutions[0]!
  assert.deepEqual([status, getRewinds(run.state)], ['blocked', 2])
  assert.match(output as string, /rewound 2 times already/)
  const next = await agent.run('And now?', { from: run })
  assert.equal(getRewinds(next.state), 1)
})

test('an unknown checkpoint is blocked with the list of valid ones', async () => {
  const { agent } = agentOn(['One.', rewind(0), rewind(7), 'Two.'])
  const first = await agent.run('First task.')
  const second = await agent.run('[CHECKPOINT 1]', { from: first })
  const outputs = second.state.execution!.steps.slice(0, 2).map(({ toolExecutions }) => toolExecutions[0]!.output)
  assert.match(outputs[0] as string, /There is no checkpoint 0 in this task\. Checkpoints: .*1/)
  assert.match(outputs[1] as string, /There is no checkpoint 7/)
  assert.ok(reported(second.state.messages).includes('user First task.'))
})

test('a removed checkpoint cannot be used', async () => {
  const { agent } = agentOn([looking, looking, rewind(1), rewind(2), 'Done.'])
  const run = await agent.run('Go.')
  const { status, output } = run.state.execution!.steps.at(3)!.toolExecutions[0]!
  assert.deepEqual([status, /There is no checkpoint 2 .*Checkpoints: 0, 3\./.test(output as string)], ['blocked', true])
})

test('the instructions are in the system prompt once, also after it was replaced', async () => {
  const { agent, model } = agentOn(['One.', 'Two.', 'Three.'], {}, contextConfig({ systemPrompt: 'Be kind.' }))
  const first = await agent.run('Go.')
  await agent.run('Go.', { from: first })
  const plain = agentOn(['One.', 'Two.'])
  await plain.agent.run('Go.', { from: await plain.agent.run('Go.') })
  assert.equal(plain.model.requests[1]!.system, plain.model.requests[0]!.system)
  const counts = model.requests.map(({ system }) => [
    system.startsWith('Be kind.'),
    system.split('[CHECKPOINT 3]').length - 1,
  ])
  assert.deepEqual(counts, [
    [true, 1],
    [true, 1],
  ])
})

test('a rewind is in the ledger with its message', async () => {
  const { agent } = agentOn([rewind(0), 'Done.'])
  const entry = (await agent.run('Go.')).ledger.find(({ hook, message }) => hook === 'retrospective.rewind' && message)
  assert.equal(entry?.message, 'Rewound to checkpoint 0 (1 of 3).')
})

test('a run that is saved between two steps keeps its checkpoints', async () => {
  const { agent } = agentOn([looking, rewind(0), 'Done.'])
  const live = agent.iterate('Go.')
  for await (const state of live) if (state.stepCount === 1) break
  const run = await agent.resume(JSON.parse(JSON.stringify(await live.run)) as never)
  assert.deepEqual([run.status, getRewinds(run.state), reported(run.state.messages).length], ['completed', 1, 4])
})

test('missing or too long guidance is a failed call, and invalid options are rejected by name', async () => {
  const { agent } = agentOn([rewind(0, ''), rewind(0, 'x'.repeat(11)), 'Done.'], { maxGuidanceChars: 10 })
  const run = await agent.run('Go.')
  const statuses = run.state.execution!.steps.slice(0, 2).map(({ toolExecutions }) => toolExecutions[0]!.status)
  assert.deepEqual([statuses, getRewinds(run.state)], [['failed', 'failed'], 0])
  assert.throws(() => retrospective({ max: 1 } as never), /unknown option "max"/)
  assert.throws(() => retrospective({ maxRewinds: -1 }), /"maxRewinds" must be/)
})
