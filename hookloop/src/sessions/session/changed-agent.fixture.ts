// An agent of which every part can be changed between a crash and a resume, and a run in which every part matters.
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { JsonObject } from '../../values/json.ts'
import { textOf, type Message } from '../../core/state/message.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import type { SessionStore } from '../stores/store.ts'
import { answerApproval } from './approvals.ts'
import { quietClock } from './eventful-run.fixture.ts'
import { findSession } from './open-session.fixture.ts'

/** What the tools really did, and which tools the guard of `a guard that asks about every call is added` asked about. */
export type World = { readonly note: (what: string) => void; readonly noteAsked?: (tool: string) => void }

/** Everything that makes the agent what it is. */
type Parts = {
  name: string
  modelId: string
  settings: JsonObject
  instructions: string
  output: JsonObject | undefined
  look: string
  described: string
  paySchema: JsonObject
  payAsks: boolean
  sendRepeats: boolean
  digAsks: boolean
  maxConcurrentTools: number
  childInstructions: string
  childModel: string
  childTools: readonly string[]
  tools: string[]
  hooks: string[]
  asks: 'allow' | 'suspend' | 'block'
  /** Options of the summarization, if there is one. */
  summary: { maxTokens: number; model: string; pins: boolean } | undefined
}

const base = (): Parts => ({
  name: 'worker',
  modelId: 'one',
  settings: {},
  instructions: 'Work.',
  output: undefined,
  look: 'look',
  described: 'Pays.',
  paySchema: { type: 'object' },
  payAsks: true,
  sendRepeats: false,
  digAsks: false,
  maxConcurrentTools: 8,
  childInstructions: 'Dig.',
  childModel: 'child',
  childTools: ['dig'],
  tools: ['look', 'send', 'pay', 'ask', 'delegate', 'dig'],
  hooks: ['stamp', 'judge', 'around', 'audit', 'context'],
  asks: 'suspend',
  summary: undefined,
})

/** One change of each part. */
export const changes: { readonly [what: string]: (parts: Parts) => void } = {
  'a tool is added': ({ tools }) => void tools.push('extra'),
  'a tool is removed': (parts) => void (parts.tools = parts.tools.filter((name) => name !== 'send')),
  'a tool is renamed': (parts) => void (parts.look = 'inspect'),
  'a tool has another description': (parts) => void (parts.described = 'Pays an invoice.'),
  'a tool has another schema': (parts) =>
    void (parts.paySchema = { type: 'object', required: ['iban'], properties: { iban: { type: 'string' } } }),
  'a tool no longer asks': (parts) => void (parts.payAsks = false),
  'a tool has become idempotent': (parts) => void (parts.sendRepeats = true),
  'the model is another one': (parts) => void (parts.modelId = 'two'),
  'the settings of the model differ': (parts) => void (parts.settings = { temperature: 1 }),
  'the instructions differ': (parts) => void (parts.instructions = 'Work well.'),
  'the answer is typed': (parts) => void (parts.output = { type: 'object' }),
  'a hook that changes the request is added': ({ hooks }) => void hooks.push('request'),
  'a hook that drops calls from the answer is added': ({ hooks }) => void hooks.push('drops'),
  'a hook that changes arguments is removed': (parts) =>
    void (parts.hooks = parts.hooks.filter((name) => name !== 'stamp')),
  'a hook with an effect is added': ({ hooks }) => void hooks.push('extra effect'),
  'a hook with an effect is removed': (parts) => void (parts.hooks = parts.hooks.filter((name) => name !== 'audit')),
  'a hook around calls is removed': (parts) => void (parts.hooks = parts.hooks.filter((name) => name !== 'around')),
  'another hook around calls is added': ({ hooks }) => void hooks.push('around all'),
  'the hooks are in another order': (parts) => void (parts.hooks = parts.hooks.toReversed()),
  'a guard that blocks every call is added': ({ hooks }) => void hooks.push('block'),
  'a guard that asks about every call is added': ({ hooks }) => void hooks.push('asks'),
  'a guard is removed': (parts) => void (parts.hooks = parts.hooks.filter((name) => name !== 'judge')),
  'the run may take one step only': ({ hooks }) => void hooks.push('one step'),
  'a capability is added': ({ hooks }) => void hooks.push('tolerant'),
  'the approver blocks': (parts) => void (parts.asks = 'block'),
  'tools no longer run at once': (parts) => void (parts.maxConcurrentTools = 1),
  'the subagent has other instructions': (parts) => void (parts.childInstructions = 'Dig deep.'),
  'the subagent has another model': (parts) => void (parts.childModel = 'other child'),
  'the subagent has no tools': (parts) => void (parts.childTools = []),
  'the subagent is removed': (parts) => void (parts.tools = parts.tools.filter((name) => name !== 'delegate')),
  'the agent has another name': (parts) => void (parts.name = 'another'),
  'summarization is added': (parts) => void (parts.summary = { maxTokens: 10, model: 'scribe', pins: false }),
}

/** Questions that the agent may ask besides those about `ask` and `pay`. Its subagent has the same guards. */
export const questions: typeof changes = {
  'before each step': ({ hooks }) => void hooks.push('asks beforeStep'),
  'before each model call': ({ hooks }) => void hooks.push('asks beforeInference'),
  'before it stops': ({ hooks }) => void hooks.push('asks onStop'),
  'about its input': ({ hooks }) => void hooks.push('asks onUserInput'),
  'about a call of its subagent': (parts) => void (parts.digAsks = true),
}

/** Changes of an agent that summarizes. */
export const summaryChanges: typeof changes = {
  'summarization is removed': (parts) => void (parts.summary = undefined),
  'summarization starts later': (parts) => void (parts.summary!.maxTokens = 1_000),
  'summarization starts earlier': (parts) => void (parts.summary!.maxTokens = 1),
  'summarization keeps other messages': (parts) => void (parts.summary!.pins = true),
  'another model writes the summaries': (parts) => void (parts.summary!.model = 'another scribe'),
}

const turns: readonly ScriptedTurn[] = [
  {
    toolCalls: [
      { name: 'look', args: { at: 'a' }, id: 'look-a' },
      { name: 'look', args: { at: 'b' }, id: 'look-b' },
      { name: 'send', args: {}, id: 'send' },
    ],
  },
  {
    toolCalls: [
      { name: 'ask', args: {}, id: 'ask' },
      { name: 'delegate', args: {}, id: 'delegate' },
      { name: 'pay', args: {}, id: 'pay' },
    ],
  },
]

/** What must not be done twice. */
export const effects = ['look a', 'look b', 'send', 'ask', 'dig', 'pay']

export function changedAgent(store: SessionStore, world: World, changed: readonly string[]): Agent<unknown> {
  const parts = base()
  for (const each of changed) (changes[each] ?? summaryChanges[each] ?? questions[each]!)(parts)
  const acting = (name: string, options: object = {}, input: JsonObject = { type: 'object' }) =>
    tool({
      name,
      description: name === 'pay' ? parts.described : name,
      input,
      execute: async (args) => {
        const { at } = args as { at?: string }
        const what = name === parts.look ? `look ${at}` : name
        world.note(what)
        return `did ${what}`
      },
      ...options,
    })
  const child = {
    instructions: parts.childInstructions,
    tools: parts.childTools,
    model: scriptedModel(
      ({ messages }) =>
        messages.length === 1
          ? { toolCalls: [{ name: 'dig', args: {}, id: 'dig' }] }
          : `I saw: ${JSON.stringify(messages.at(-1))}`,
      { modelId: parts.childModel },
    ),
  }
  const tools: { readonly [name: string]: Use } = {
    look: acting(parts.look, { concurrent: true }),
    send: acting('send', { idempotent: parts.sendRepeats }),
    pay: acting('pay', { ask: parts.payAsks }, parts.paySchema),
    ask: acting('ask', { ask: true }),
    dig: acting('dig', { ask: parts.digAsks }),
    extra: acting('extra'),
    delegate: agentTool({
      name: 'delegate',
      description: 'Delegates.',
      input: { type: 'object' },
      to: () => ({ name: 'digger', to: child, input: 'Dig.' }),
    }),
  }
  const gates = (['beforeStep', 'beforeInference', 'onStop', 'onUserInput'] as const).map((trigger) =>
    guard(trigger, (ctx) => ctx.ask(`Continue at ${trigger}?`), { name: `asks ${trigger}` }),
  )
  const hooks: { readonly [name: string]: Use } = {
    ...Object.fromEntries(gates.map((gate) => [gate.name, gate])),
    stamp: hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, stamped: true }), {
      name: 'stamp',
      tool: 'look',
    }),
    judge: guard('beforeToolUse', (ctx) => ctx, { name: 'judge' }),
    around: hook('aroundToolUse', (_ctx, next) => next(), { name: 'around', tool: 'send' }),
    'around all': hook('aroundToolUse', (_ctx, next) => next(), { name: 'around all' }),
    audit: hook('afterToolUse', async (ctx) => ctx, { name: 'audit', effect: true, tool: 'look' }),
    context: hook('beforeStep', async (ctx) => ctx, { name: 'context', effect: true }),
    'extra effect': hook('beforeStep', async (ctx) => ctx, { name: 'extra effect', effect: true }),
    request: hook('beforeInference', (ctx) => ctx.withRequest({ settings: { temperature: 0.5 } }), { name: 'request' }),
    drops: hook('afterInference', (ctx) => ctx.withResponse({ ...ctx.response, content: [] }), { name: 'drops' }),
    block: guard('beforeToolUse', (ctx) => ctx.block('Not any more.'), { name: 'block' }),
    asks: guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'asks' }),
    'one step': guards({ maxSteps: 1 }),
    tolerant: errorPolicy('tolerant'),
  }
  const model = scriptedModel(({ messages }) => turns[answersIn(messages.slice())] ?? '{"done":true}', {
    modelId: parts.modelId,
  })
  return createAgent({
    name: parts.name,
    model,
    instructions: parts.instructions,
    settings: parts.settings,
    store,
    maxConcurrentTools: parts.maxConcurrentTools,
    ...(parts.output !== undefined && { output: parts.output }),
    use: [
      ...parts.tools.map((name) => tools[name]!),
      ...parts.hooks.map((name) => hooks[name]!),
      ...(parts.summary === undefined ? [] : [summarizing(parts.summary)]),
      // One question is answered at once, the others later.
      approval(
        parts.asks === 'block'
          ? 'block'
          : ({ toolCall, asks }) => {
              if (asks.some(({ by }) => by === 'asks'))
                world.noteAsked?.(toolCall.name === parts.look ? 'look' : toolCall.name)
              return toolCall.name === 'ask' ? 'allow' : 'suspend'
            },
      ),
    ],
  })
}

/** Every message counts ten tokens. A summary has the number of answers, and everything that was done. */
function summarizing({ maxTokens, model: modelId, pins }: NonNullable<Parts['summary']>): Use {
  const scribe = scriptedModel(({ messages }) => textOf(messages.at(-1)!.content), { modelId })
  return summarization({
    maxMessageTokens: maxTokens,
    maxBufferTokens: maxTokens,
    countTokens: () => 10,
    ...(pins && { pin: ({ role }) => role === 'user' }),
    summarize: async ({ messages, infer }) => {
      const done = JSON.stringify(messages.slice()).match(/did (look [ab]|\w+)|may have had an effect/g) ?? []
      const prompt = `There were ${answersIn(messages.slice())} answers: ${done.join(', ')}`
      return (await infer({ model: scribe, prompt })).text
    },
  })
}

/** How many times the model has answered, also if a summary replaces its answers. */
function answersIn(messages: readonly Message[]): number {
  const [, summarized = '0'] = /There were (\d+) answers/.exec(JSON.stringify(messages)) ?? []
  return Number(summarized) + messages.filter(({ role }) => role === 'assistant').length
}

/** What a process does until the run is over: it starts or resumes the run, and allows what is asked. */
export async function work(agent: Agent<unknown>, store: SessionStore): Promise<void> {
  for (let turn = 0; turn < 24; turn++) {
    const { open, hasInput, asked } = await findSession(store, 's')
    const how = { effects: liveEffects({ id: 'r', clock: quietClock }) }
    if (!hasInput) {
      await agent.run('Go.', { session: 's', ...how })
      continue
    }
    if (open === undefined) return
    for (const { id } of asked) await answerApproval(store, { session: 's', approval: id, answer: 'allow' })
    await agent.resume('s', { acceptMissing: true, ...how })
  }
  throw new Error('the session does not end')
}
