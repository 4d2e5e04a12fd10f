import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpAgent, type Message } from '@ag-ui/client'
import { EventSchema } from '@ag-ui/core/schemas'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { approval } from '../../capabilities/approval.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import type { Answer } from '../../core/state/tool-call.ts'
import { answering, clerkOf, look, paying, payTool, plain, play, spawn, type Played } from '../turn.fixture.ts'
import type { AgUiEvent, AgUiMessage } from './event.ts'
import { isCorrection, toAgUiMessages, toSnapshots } from './messages.ts'
import { AgUiMapper } from './to-events.ts'

const pay = payTool()

function agentWith(model: LanguageModel, use: readonly Use[] = []): Agent {
  return createAgent({ model, store: memoryStore(), use: [pay, look, approval('suspend'), ...use] })
}

/** The events of a turn. Each question gets the answer. */
function answered(agent: Agent, answer: Answer = 'allow'): Promise<Played> {
  return play(agent, answering(answer))
}

/** The first response is discarded. The second one uses the id of its call again. */
function flaky(): LanguageModel {
  let attempts = 0
  return {
    provider: 'test',
    modelId: 'flaky',
    infer: async ({ messages }, { onDelta }) => {
      if (messages.at(-1)!.role === 'tool') return { content: [{ type: 'text', text: 'Done.' }], finishReason: 'stop' }
      onDelta?.({ type: 'reasoning', delta: 'Hm.' })
      onDelta?.({ type: 'text', delta: 'Look.' })
      onDelta?.({ type: 'toolCallDelta', callId: 'c', toolName: 'look', delta: '{"at":' })
      if (++attempts === 1) throw new AgentError('MODEL_OVERLOADED', 'busy')
      onDelta?.({ type: 'toolCallDelta', callId: 'c', toolName: 'look', delta: '"it"}' })
      const call = { type: 'tool-call', toolCallId: 'c', toolName: 'look', input: { at: 'it' } } as const
      return {
        content: [{ type: 'reasoning', text: 'Hm.' }, { type: 'text', text: 'Look.' }, call],
        finishReason: 'tool-calls',
      }
    },
  }
}

function family(): Agent {
  const again = { toolCalls: [{ id: 'same', ...paying('bob') }] }
  const model = scriptedModel([{ toolCalls: [paying('ann'), spawn] }, 'All done.'])
  return agentWith(model, [clerkOf(pay, [again, again, 'Paid.'])])
}

const asking = { text: 'I pay.', toolCalls: [{ id: 'c', ...paying('ann') }] }

const worlds: { readonly [name: string]: () => Promise<Played> } = {
  'a call that is edited, and one with the same id in the next step': () =>
    answered(agentWith(scriptedModel([asking, asking, 'Done.'])), { allow: { to: 'eve' } }),
  'a call that is denied': () => answered(agentWith(scriptedModel([asking, 'Done.'])), { block: 'No.' }),
  'questions of an agent and of its subagent, twice about the same id': () => answered(family()),
  'a question at a trigger': () =>
    answered(agentWith(scriptedModel(['Hi.']), [guard('beforeStep', (ctx) => ctx.ask('Begin?'))])),
  'an answer that is replaced after it was streamed': async () => {
    const { events, ...rest } = await answered(agentWith(scriptedModel(['Now!'])))
    const replaced = (event: AgentEvent): readonly AgentEvent[] => {
      if (event.type !== 'responded') return [event]
      const { step, at, run, seq } = event
      return [
        { type: 'retracted', why: 'A hook has replaced it.', step, at, run, seq },
        { ...event, text: 'Please.' },
      ]
    }
    return { ...rest, events: events.flatMap(replaced), earlier: async () => (await rest.earlier()).flatMap(replaced) }
  },
  'a response that is discarded': () => answered(agentWith(flaky(), [retry({ backoffMs: 1 })])),
}

/** A message with its calls in the order of their ids. */
function inAnyOrder(message: AgUiMessage): AgUiMessage {
  if (message.role !== 'assistant' || message.toolCalls === undefined) return message
  return { ...message, toolCalls: message.toolCalls.toSorted((a, b) => a.id.localeCompare(b.id)) }
}

/** What the server sends of a run, with the conversation after each correction. */
function sent(mapper: AgUiMapper, events: readonly AgentEvent[], from: number): readonly AgUiEvent[] {
  return events
    .slice(from)
    .flatMap((event, i) =>
      mapper
        .map(event)
        .flatMap((each) => (isCorrection(each) ? [each, ...toSnapshots(each, events.slice(0, from + i + 1))] : [each])),
    )
}

/** The messages that @ag-ui/client makes of events. */
async function read(events: readonly AgUiEvent[]): Promise<readonly Message[]> {
  const place = { threadId: 't', runId: 'r' }
  const all = [{ type: 'RUN_STARTED', ...place }, ...events, { type: 'RUN_FINISHED', ...place }]
  for (const event of all) assert.deepEqual(EventSchema.parse(event), event)
  const body = all.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
  const headers = { 'content-type': 'text/event-stream' }
  const agent = new HttpAgent({ url: 'http://test', fetch: () => Promise.resolve(new Response(body, { headers })) })
  await agent.runAgent()
  return agent.messages
}

for (const [name, world] of Object.entries(worlds)) {
  test(`${name}: a client that reads from any event has the whole conversation, with nothing twice`, async () => {
    const { events } = await world()
    const whole = plain(toAgUiMessages(events))
    for (let from = 1; from <= events.length; from++) {
      const mapper = new AgUiMapper()
      for (const event of events.slice(0, from)) mapper.map(event)
      const messages = toAgUiMessages(events.slice(0, from))
      const opened = mapper.opened()
      const rest = await read([{ type: 'MESSAGES_SNAPSHOT', messages }, ...opened, ...sent(mapper, events, from)])
      assert.deepEqual(plain(rest), whole, `from event ${from} of ${events.length}`)
    }
  })

  test(`${name}: every message has an id of its own, and every call one result`, async () => {
    const messages = toAgUiMessages((await world()).events)
    const ids = messages.map(({ id }) => id)
    assert.deepEqual(ids, [...new Set(ids)])
    const calls = messages.flatMap((each) => (each.role === 'assistant' ? (each.toolCalls ?? []) : []))
    const results = messages.flatMap((each) => (each.role === 'tool' ? [each.toolCallId] : []))
    assert.deepEqual(results.toSorted(), calls.map(({ id }) => id).toSorted())
  })

  test(`${name}: the conversation is the same, but for the order of calls, when the next turn has started`, async () => {
    const { events, earlier: read } = await world()
    const earlier = await read()
    assert.ok(earlier.length < events.length)
    assert.deepEqual(plain(toAgUiMessages(earlier).map(inAnyOrder)), plain(toAgUiMessages(events).map(inAnyOrder)))
  })
}
