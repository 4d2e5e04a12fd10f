import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  lastAssistantMessageIsCompleteWithApprovalResponses as isAnswered,
  readUIMessageStream,
  safeValidateUIMessages,
  uiMessageChunkSchema,
  type UIMessage,
  type UIMessageChunk,
} from 'ai'
import { z } from 'zod'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { retry } from '../../capabilities/retry.ts'
import { createAgent } from '../../create-agent.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import type { ShownOptions } from '../shown.ts'
import {
  answering,
  clerkOf,
  look,
  noSecrets,
  paying,
  payTool,
  plain,
  play,
  spawn,
  type Played,
} from '../turn.fixture.ts'
import { ChunkMapper } from './to-chunks.ts'
import { toUiMessages } from './ui-message.ts'

const pay = payTool()

function agentWith(turns: readonly ScriptedTurn[] | LanguageModel, use: readonly Use[] = []): Agent {
  const model = Array.isArray(turns) ? scriptedModel(turns as readonly ScriptedTurn[]) : (turns as LanguageModel)
  return createAgent({ model, store: memoryStore(), use: [pay, look, noSecrets, approval('suspend'), ...use] })
}

function chunksOf(events: readonly AgentEvent[], options?: ShownOptions): UIMessageChunk[] {
  const mapper = new ChunkMapper(options)
  return events.flatMap((event): readonly UIMessageChunk[] => mapper.map(event))
}

/** The message that the reader of the AI SDK makes of chunks, each of which must fit its schema. */
async function read(chunks: readonly UIMessageChunk[], message?: UIMessage): Promise<UIMessage> {
  const schema = uiMessageChunkSchema()
  for (const chunk of chunks) assert.ok((await schema.validate!(chunk)).success, JSON.stringify(chunk))
  let last: UIMessage | undefined
  const onError = (error: unknown): never => {
    throw error
  }
  const stream = ReadableStream.from(structuredClone(chunks))
  const given = message === undefined ? {} : { message: structuredClone(message) }
  for await (const each of readUIMessageStream({ stream, onError, terminateOnError: true, ...given })) last = each
  return last!
}

const withoutErrors = (chunks: readonly UIMessageChunk[]): readonly UIMessageChunk[] =>
  chunks.filter(({ type }) => type !== 'error')

const toolParts = ({ parts }: UIMessage): readonly (readonly [string, string, string])[] =>
  parts.flatMap((part) => ('toolCallId' in part ? [[part.type, part.toolCallId, part.state] as const] : []))

/** Without the ids of reasoning, which are numbers of events, the order of calls, and steps in which nothing happened. */
function partsOf(messages: ReturnType<typeof toUiMessages>): unknown {
  const text = (part: object): string => JSON.stringify({ ...part, ...('text' in part && { id: '' }) })
  const said = (parts: (typeof messages)[number]['parts']) => parts.filter(({ type }) => type !== 'step-start')
  return messages.map(({ id, metadata, parts }) => [id, metadata, said(parts).map(text).toSorted()])
}

const allow = answering('allow')
const deny = answering({ block: 'Too expensive.' })

function call(name: string, args: { readonly [name: string]: string }, id?: string) {
  return { name, args, ...(id !== undefined && { id }) }
}

/** An agent that asks, and one of its subagents asks as well. */
function family(): Agent {
  const toolCalls = [paying('ann'), call('look', { at: 'it' }), spawn]
  const clerk = clerkOf(pay, [{ toolCalls: [paying('bob')] }, 'Bob is paid.'])
  return agentWith([{ text: 'Two payments.', toolCalls }, 'All done.'], [clerk])
}

const worlds: { readonly [name: string]: () => Promise<Played> } = {
  'text and reasoning': () => play(agentWith([{ reasoning: 'Hm.', text: 'Hello.' }])),
  'tools that run, fail, and are blocked': () =>
    play(
      agentWith([
        { text: 'I look.', toolCalls: ['it', 'nothing', 'secrets'].map((at) => call('look', { at })) },
        { toolCalls: [call('unknown', {})] },
        'Done.',
      ]),
    ),
  'an answer without deltas': async () => {
    const agent = agentWith([{ text: 'I look.', toolCalls: [call('look', { at: 'it' })] }, 'Done.'])
    const { events, ...rest } = await play(agent)
    const late = events.filter(({ type }) => !['text', 'reasoning', 'toolCallDelta', 'toolProgress'].includes(type))
    return { ...rest, events: late }
  },
  'a call that is allowed': () => play(agentWith([{ toolCalls: [paying('ann')] }, 'Done.']), allow),
  'a call that is denied': () => play(agentWith([{ toolCalls: [paying('ann')] }, 'Done.']), deny),
  'a call that is edited': () =>
    play(agentWith([{ toolCalls: [paying('ann')] }, 'Done.']), answering({ allow: { to: 'eve' } })),
  'questions of an agent and its subagent': () => play(family(), allow),
  'questions that are denied': () => play(family(), deny),
  'a question at a trigger': () => {
    const asks = guard('beforeStep', (ctx) => ctx.ask('Begin?'), { name: 'begin' })
    return play(agentWith(['Done.'], [asks]), allow)
  },
  'a question at a trigger that is denied': () => {
    const asks = guard('beforeStep', (ctx) => ctx.ask('Begin?'), { name: 'begin' })
    return play(agentWith(['Done.'], [asks]), deny)
  },
  'an answer that a hook replaces': () => {
    const polite = hook('afterInference', (ctx) => ctx.withResponse({ text: 'Please.' }), { name: 'polite' })
    return play(agentWith(['Now!'], [polite]))
  },
  'an attempt that fails': () => {
    let attempts = 0
    const model: LanguageModel = {
      provider: 'test',
      modelId: 'flaky',
      infer: async (_request, { onDelta }) => {
        onDelta?.({ type: 'text', delta: 'Hel' })
        if (++attempts === 1) {
          onDelta?.({ type: 'toolCallDelta', callId: 'c', toolName: 'look', delta: '{"at' })
          throw new AgentError('MODEL_OVERLOADED', 'busy')
        }
        onDelta?.({ type: 'text', delta: 'lo.' })
        return { content: [{ type: 'text', text: 'Hello.' }], finishReason: 'stop' }
      },
    }
    return play(agentWith(model, [retry({ backoffMs: 1 })]))
  },
  'a model that uses an id again': () =>
    play(
      agentWith([
        { toolCalls: [call('look', { at: 'one' }, 'c')] },
        { toolCalls: [call('look', { at: 'two' }, 'c')] },
        'Done.',
      ]),
    ),
  'a run that fails': () =>
    play(
      agentWith({
        provider: 'test',
        modelId: 'broken',
        infer: async () => {
          throw new AgentError('MODEL_UNAUTHORIZED', 'key sk-secret in /etc/keys is wrong')
        },
      }),
    ),
  'input that is blocked': () => {
    const no = guard('onUserInput', (ctx) => ctx.block('Not that.'), { name: 'no' })
    return play(agentWith(['Done.'], [no]))
  },
}

suite(
  'the chunks of a run fit the schema, and the reader of the AI SDK makes the same message of them as we do',
  () => {
    for (const [name, world] of Object.entries(worlds))
      test(name, async () => {
        const { events, earlier } = await world()
        const chunks = chunksOf(events)
        const message = await read(withoutErrors(chunks))
        const ours = toUiMessages(events)
        assert.deepEqual(ours[0], { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] })
        assert.deepEqual(plain(ours[1]), plain(message))
        assert.deepEqual(partsOf(toUiMessages(await earlier())), partsOf(ours), 'when the next turn has started')
        const checked = await safeValidateUIMessages({ messages: [message, ...structuredClone(ours)] })
        assert.ok(checked.success, String(checked.success ? '' : checked.error))
        const ids = toolParts(message).map(([, id]) => id)
        assert.deepEqual(ids, [...new Set(ids)])
      })
  },
)

test('what was said and done is in the message', async () => {
  const { events } = await worlds['tools that run, fail, and are blocked']!()
  const message = await read(chunksOf(events))
  const texts = message.parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
  assert.deepEqual(texts, ['I look.', 'Done.'])
  assert.deepEqual(
    message.parts.flatMap((part) => ('toolCallId' in part ? [[part.state, part.output ?? part.errorText]] : [])),
    [
      ['output-available', { seen: 'it' }],
      ['output-error', 'There is nothing.'],
      ['output-denied', undefined],
      ['output-error', message.parts.flatMap((part) => ('errorText' in part ? [part.errorText] : [])).at(-1)],
    ],
  )
  assert.deepEqual([message.id, message.metadata], ['run-1', { status: 'completed', reason: 'completed' }])
  const blocked = message.parts.find((part) => 'state' in part && part.state === 'output-denied')
  const { isAutomatic, approved, reason } = (blocked as { approval: { [field: string]: unknown } }).approval
  assert.deepEqual([isAutomatic, approved, reason], [true, false, 'Not those.'])
})

test('progress of a tool is shown until its result', async () => {
  const { events } = await worlds['tools that run, fail, and are blocked']!()
  const outputs = chunksOf(events).filter((chunk) => chunk.type === 'tool-output-available')
  assert.deepEqual(
    outputs.map(({ output, preliminary }) => [output, preliminary]),
    [
      ['looking at it', true],
      [{ seen: 'it' }, undefined],
      ['looking at nothing', true],
    ],
  )
})

for (const [name, world, count] of [
  ['an agent', () => play(agentWith([{ toolCalls: [paying('ann')] }, 'Done.'])), 1],
  ['a subagent', () => play(family()), 2],
  ['a guard at a trigger', () => play(agentWith(['Hi.'], [guard('beforeStep', (ctx) => ctx.ask('Begin?'))])), 1],
] as const)
  test(`useChat sends the answers to the questions of ${name} when all of them are answered, and not before`, async () => {
    const { events } = await world()
    const message = await read(chunksOf(events))
    const asked = message.parts.filter((part) => 'state' in part && part.state === 'approval-requested')
    assert.equal(asked.length, count)
    for (const [i, part] of asked.entries()) {
      assert.equal(isAnswered({ messages: [message] }), false, `${i} of ${count} are answered`)
      const { approval: question } = part as { approval: { id: string } }
      Object.assign(part, { state: 'approval-responded', approval: { ...question, approved: true } })
    }
    assert.equal(isAnswered({ messages: [message] }), true)
  })

test('a question of a subagent has a step of its own, and a call id with its path', async () => {
  const message = await read(chunksOf((await play(family())).events))
  assert.deepEqual(toolParts(message), [
    ['tool-pay', 'call-1-1', 'input-available'],
    ['tool-look', 'call-1-2', 'output-available'],
    ['tool-spawn_subagent', 'call-1-3', 'input-available'],
    ['tool-pay', 'call-1-3/call-1-1', 'approval-requested'],
    ['tool-pay', 'question/call-1-1', 'approval-requested'],
  ])
  const lastStep = message.parts.slice(message.parts.findLastIndex(({ type }) => type === 'step-start') + 1)
  assert.deepEqual(
    lastStep.map((part) => 'title' in part && part.title),
    ['clerk › pay', undefined],
  )
})

test('chunks after a question continue the message that a page has', async () => {
  for (const world of ['a call that is edited', 'questions of an agent and its subagent', 'a question at a trigger']) {
    const { events } = await worlds[world]!()
    const waits = events.findIndex(({ type }) => type === 'suspended') + 1
    const mapper = new ChunkMapper()
    const [before, after] = [events.slice(0, waits), events.slice(waits)].map((part) =>
      part.flatMap((event) => mapper.map(event)),
    ) as [UIMessageChunk[], UIMessageChunk[]]
    const page = await read(before)
    assert.deepEqual(plain(await read(after, page)), plain(await read([...before, ...after])), world)
  }
})

test('arguments that an approver edited are shown', async () => {
  const message = await read(chunksOf((await worlds['a call that is edited']!()).events))
  const part = message.parts.find((each) => each.type === 'tool-pay')
  assert.deepEqual(part && 'output' in part && [part.input, part.output], [{ to: 'eve' }, 'paid eve'])
})

test('a response that is discarded leaves nothing in the message', async () => {
  for (const [world, text] of [
    ['an answer that a hook replaces', 'Please.'],
    ['an attempt that fails', 'Hello.'],
  ] as const) {
    const { parts } = await read(chunksOf((await worlds[world]!()).events))
    assert.deepEqual(
      parts.flatMap((part) => (part.type === 'step-start' ? [] : [part.type === 'text' ? part.text : part.type])),
      [text],
    )
  }
})

test('the text of an error has neither the message of the provider nor a path', async () => {
  const chunks = chunksOf((await worlds['a run that fails']!()).events)
  const error = chunks.find((chunk) => chunk.type === 'error')
  assert.match(error!.errorText, /^The API key is missing.* \(MODEL_UNAUTHORIZED\)$/)
  assert.doesNotMatch(JSON.stringify(chunks), /sk-secret|\/etc/)
})

test('a run that is cancelled ends with an abort, and its open calls with an error', async () => {
  const stopping = new AbortController()
  const slow = tool({
    name: 'slow',
    description: 'Waits.',
    input: z.object({}),
    execute: (_input, { signal }) => {
      const stopped = new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
      stopping.abort()
      return stopped
    },
  })
  const live = createAgent({ model: scriptedModel([{ toolCalls: [call('slow', {})] }, 'Hi.']), use: [slow] }).stream(
    'Go.',
    { signal: stopping.signal },
  )
  const events: AgentEvent[] = []
  for await (const event of live) events.push(event)
  const chunks = chunksOf(events)
  assert.deepEqual(
    chunks.slice(-2).map(({ type }) => type),
    ['abort', 'finish'],
  )
  const states = toolParts(await read(chunks)).map(([, , state]) => state)
  assert.deepEqual(states, ['output-error'])
})

test('decisions of hooks are sent only if they are asked for, as transient parts without values', async () => {
  const { events } = await worlds['tools that run, fail, and are blocked']!()
  assert.ok(chunksOf(events).every(({ type }) => type !== 'data-hook'))
  const shown = chunksOf(events, { showHooks: true }).filter(({ type }) => type === 'data-hook')
  const blocks = shown.flatMap((chunk) => ('data' in chunk && chunk.transient ? [chunk.data] : []))
  assert.ok(blocks.some((data) => JSON.stringify(data).includes('"no-secrets"')))
  assert.doesNotMatch(JSON.stringify(shown), /definedAt|\.ts:/)
})
