import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { retry } from '../../capabilities/retry.ts'
import { subagents } from '../../capabilities/subagents/subagents.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import { eventsIn } from '../session/event-log.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

/** An agent whose run has every kind of event that a run without a pause can have. */
function eventful(answer: 'allow' | 'block', store?: SessionStore) {
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: { type: 'object' },
    execute: (_args, { progress }) => {
      progress('half')
      return 'secret seen'
    },
  })
  const pay = tool({ name: 'pay', description: 'Pays.', input: { type: 'object' }, execute: () => 'paid' })
  const turns: readonly ScriptedTurn[] = [
    { error: new AgentError('MODEL_OVERLOADED', 'busy') },
    { text: 'Let me look.', toolCalls: [{ name: 'look', id: 'a' }] },
    {
      toolCalls: [
        { name: 'pay', id: 'p' },
        { name: 'look', id: 'no' },
      ],
    },
    { toolCalls: [{ name: 'spawn_subagent', id: 'h', args: { subagent: 'helper', prompt: 'Help.' } }] },
    { toolCalls: [{ name: 'look', id: 'in' }] },
    'Helped.',
    'Done, a secret.',
    'Done again.',
  ]
  return createAgent({
    model: scriptedModel(turns),
    ...(store !== undefined && { store }),
    use: [
      look,
      pay,
      subagents({ agents: { helper: { description: 'Helps.', instructions: 'You help.', use: [look] } } }),
      approval({ tools: ['pay'], answer: answer === 'block' ? 'block' : () => 'allow' }),
      retry({ maxRetries: 1, backoffMs: 0 }),
      hook('afterToolUse', (ctx) => (ctx.toolCall.id === 'a' ? ctx.withOutput('seen') : ctx)),
      guard('beforeToolUse', (ctx) => (ctx.toolCall.id === 'no' ? ctx.block('not twice') : ctx)),
      guard('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Again.') : ctx)),
    ],
  })
}

/** What an event says, without its place and without times. */
function said(event: AgentEvent): unknown {
  const text = JSON.stringify(event, (name, value: unknown) =>
    [
      'seq',
      'session',
      'run',
      'at',
      'durationMs',
      'executionId',
      'agentId',
      'expiresAt',
      'id',
      'hash',
      'approval',
    ].includes(name)
      ? undefined
      : value,
  )
  return JSON.parse(text)
}

async function collect(events: AsyncIterable<AgentEvent>): Promise<readonly AgentEvent[]> {
  const all: AgentEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

suite('the events of a session', () => {
  for (const answer of ['allow', 'block'] as const) {
    test(`are those of the same run without a session, if an approver would ${answer} it`, async () => {
      const store = memoryStore()
      const plain = await collect(eventful(answer).stream('Go.'))
      const streamed = await collect(eventful(answer, store).stream('Go.', { session: 's' }))
      assert.deepEqual(streamed.map(said), plain.map(said))
      assert.deepEqual((await eventsIn(store, 's')).map(said), plain.map(said))
      const types = new Set(plain.map((event) => event.type))
      for (const type of ['asked', 'answered', 'subagent', 'toolProgress', 'hook', 'inferenceFailed', 'text'])
        assert.ok(types.has(type as AgentEvent['type']), `no event "${type}"`)
    })
  }
})
