import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { Validator } from '@cfworker/json-schema'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import { eventNames, eventSchema } from '../../core/state/event-schema.fixture.ts'
import type { JsonObject } from '../../values/json.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { eventsIn } from './event-log.fixture.ts'
import { drive, eventfulAgent } from './eventful-run.fixture.ts'

const published = JSON.parse(
  readFileSync(new URL('../../../events.schema.json', import.meta.url), 'utf8'),
) as JsonObject
const world = { note: () => undefined }

/** Runs in which everything happens that is an event. Each returns the log of its session. */
const runs: { readonly [what: string]: () => Promise<readonly AgentEvent[]> } = {
  'an eventful run': async () => {
    const store = memoryStore()
    await drive(eventfulAgent(store, world), store)
    return eventsIn(store, 'eventful')
  },
  'a run that is interrupted, with a subagent': async () => {
    const store = memoryStore()
    const dying = dyingStore(store, { at: 15, stored: true })
    await Promise.race([drive(eventfulAgent(dying, world), dying), dying.died])
    await drive(eventfulAgent(store, world), store)
    return eventsIn(store, 'eventful')
  },
  'a streamed conversation that is compacted and rewound': async () => {
    const store = memoryStore()
    const session = talker(store).session('s')
    const streamed: AgentEvent[] = []
    for (const input of ['One.', 'Two.', 'Three.'])
      for await (const event of session.stream(input, { turn: input })) streamed.push(event)
    await session.compact()
    await session.send({ role: 'user', content: [{ type: 'file', mediaType: 'text/plain', data: 'aGk=' }] })
    await session.rewind()
    await session.resume({ deltas: true })
    await session.end()
    return [...streamed, ...(await eventsIn(store, 's'))]
  },
  'a run with an approver, and one whose input is blocked': async () => {
    const store = memoryStore()
    const agent = talker(
      store,
      approval(() => ({ allow: { edited: true } })),
    )
    await agent.run('Pay.', { session: 's' })
    await agent.run('Stop.', { session: 's' })
    return eventsIn(store, 's')
  },
}

function talker(store: SessionStore, ...use: readonly ReturnType<typeof approval>[]) {
  let calls = 0
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1)!
    if (last.role !== 'user') return 'Done.'
    if (++calls === 1) return { chunks: ['Half of', ' it'], error: new Error('cut off') }
    if (calls === 2) return { reasoning: 'Hm.', text: 'Wait.', toolCalls: [{ name: 'work', args: { of: '\ud800' } }] }
    return { toolCalls: [{ name: 'pay' }, { name: 'delegate' }, { name: 'missing' }] }
  })
  const anything = { type: 'object' } as const
  return createAgent({
    model,
    store,
    use: [
      tool({
        name: 'work',
        description: 'Works.',
        input: anything,
        execute: (_args, { progress }) => {
          progress({ done: 0.5 })
          throw new Error('It broke.')
        },
      }),
      tool({ name: 'pay', description: 'Pays.', input: anything, ask: true, execute: () => null }),
      agentTool({
        name: 'delegate',
        description: 'Delegates.',
        input: anything,
        to: () => ({
          name: 'helper',
          to: { instructions: 'Help.', model: scriptedModel(['Helped.']) },
          input: 'Help.',
        }),
      }),
      hook(
        'beforeStep',
        (ctx) => (ctx.state.messages.length > 12 ? ctx.compact({ keep: 2, summarize: () => 'So far.' }) : ctx),
        {
          name: 'compacts',
        },
      ),
      hook(['onSessionStart', 'onSessionEnd'], (ctx) => ctx.withState((state) => state.withMetadata('at', 1)), {
        name: 'notes',
      }),
      guard('onUserInput', (ctx) => (JSON.stringify(ctx.input).includes('Stop.') ? ctx.block('No.') : ctx), {
        name: 'stops',
      }),
      { name: 'files', warnings: ['One file was left out.'] },
      guards({ maxSteps: 20 }),
      errorPolicy('tolerant'),
      ...use,
    ],
  })
}

suite('the schema of events', () => {
  test('is the published one', () => {
    assert.deepEqual(published, JSON.parse(JSON.stringify(eventSchema())))
  })

  test('accepts every event of diverse runs, and each type of event occurs in them', async () => {
    const strict = new Validator(eventSchema({ isStrict: true }), '7', false)
    const open = new Validator(published, '7', false)
    const seen = new Set<string>()
    for (const [what, run] of Object.entries(runs)) {
      for (const event of await run()) {
        seen.add(event.type)
        const { valid, errors } = strict.validate(event)
        assert.ok(valid, `${what}: ${JSON.stringify(event)}\n${JSON.stringify(errors.slice(-3))}`)
        assert.ok(open.validate(event).valid)
      }
    }
    assert.deepEqual([...seen].toSorted(), [...eventNames].toSorted())
  })

  test('rejects an event of an unknown type, without a number, or with a value of another type', () => {
    const validator = new Validator(published, '7', false)
    const event = { seq: 1, run: 'r', step: 0, at: 1, type: 'text', delta: 'x' }
    const wrong = [{ type: 'unknown' }, { seq: 0 }, { seq: undefined }, { run: 1 }, { delta: 1 }, { step: -1 }]
    assert.deepEqual(
      [{}, { session: 's' }, { added: 'later' }, ...wrong].map(
        (change) => validator.validate(JSON.parse(JSON.stringify({ ...event, ...change }))).valid,
      ),
      [true, true, true, ...wrong.map(() => false)],
    )
  })
})
