import { z } from 'zod'
import { approval, type ApprovalHandler } from '../../capabilities/approval.ts'
import { createAgent, type AgentOptions } from '../../create-agent.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { AgentEvent } from '../state/event.ts'
import type { ModelRequest } from '../state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import type { SavedRun } from '../state/saved-run.ts'
import { liveEffects, type EffectsOptions } from '../effects/effects.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import type { RunStream } from '../agent/run-stream.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'

// Deterministic runs that cover every path of a run: what a shadow hook must see, and must not change.

/** Everything that is visible of a world from outside. */
export type Played = {
  readonly runs: readonly Run[]
  readonly events: readonly AgentEvent[]
}

type Play = (make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions) => Promise<Played>

type Create = (options: AgentOptions<never>) => Agent
type World = (extra: readonly Use[], create?: Create) => Promise<Played>

/** Each takes more hooks, and runs the same as long as they change nothing. */
export const shadowWorlds: { readonly [name: string]: World } = Object.fromEntries(
  Object.entries({
    plain,
    streamed,
    asked,
    resumed,
    attempts,
    errors,
    brokenHooks,
    stopped,
    refused,
    broken,
    cancelled,
  })
    .concat(Object.entries({ paused, unusable }))
    .map(([name, play]) => [name, (extra, create) => played(play, extra, create)]),
)

async function played(play: Play, extra: readonly Use[], create: Create = createAgent): Promise<Played> {
  let runs = 0
  const clock = fakeClock({ auto: true, startAt: 1_000 })
  return play(
    (...use) => create({ model: scriptedModel(speak), use: [work, look, ...use, ...extra] }),
    () => liveEffects({ clock, id: `run-${++runs}` }),
  )
}

/** Replies with the turns of the input: `work 1 2; look 1; done`. */
function speak({ messages }: ModelRequest): ScriptedTurn {
  const [first] = messages
  const script = first?.content[0]?.type === 'text' ? first.content[0].text.split('; ') : []
  const turn = script[messages.filter(({ role }) => role === 'assistant').length] ?? 'done'
  const [name = '', ...numbers] = turn.split(' ')
  if (numbers.length === 0) return { text: turn, chunks: [turn.slice(0, 2), turn.slice(2)] }
  return { toolCalls: numbers.map((n, i) => ({ id: `${name}-${n}-${i}`, name, args: { n: toNumber(n) } })) }
}

function toNumber(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text
}

const input = z.object({ n: z.number() })
export const work = tool({ name: 'work', description: 'Works.', input, execute: ({ n }) => `worked on ${n}` })
export const look = tool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ n: z.number(), at: z.string().optional() }).transform(async (args) => args),
  concurrent: true,
  execute: async ({ n }) => ({ n, seen: true }),
})

const remember = hook('afterToolUse', (ctx) =>
  ctx.withState((state) => state.withMetadata(ctx.toolCall.id, ctx.toolExecution.status)),
)
const add = hook('beforeToolUse', (ctx) => ctx.withArgs({ n: ctx.toolCall.args.n + 1 }), { tool: work, priority: 10 })
const repair = hook('beforeToolUse', async (ctx) => ctx.withArgs({ n: Number(ctx.toolCall.args['n']) || 0 }), {
  tool: 'look',
  priority: 20,
})

async function plain(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const brief = hook('beforeInference', (ctx) => ctx.withRequest({ system: `Step ${ctx.state.stepCount}` }))
  const first = await make(remember, add, repair, brief).run('work 1 2; look 1 2 3; done', { effects: effects() })
  const second = await make(remember, add).run('more', { effects: effects(), from: first, metadata: { again: true } })
  return { runs: [first, second], events: [] }
}

async function streamed(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const soft = hook('afterInference', (ctx) => ctx.withResponse({ text: ctx.response.text.toUpperCase() }), {
    when: (ctx) => ctx.response.text === 'loud',
    stream: 'window',
  })
  return listen(make(remember, soft).stream('work 1; loud; work 2; quiet', { effects: effects() }))
}

const careful = guard(
  'beforeToolUse',
  (ctx) => {
    const { n } = ctx.toolCall.args
    if (n === 1) return ctx.block('Not one.')
    return n > 2 ? ctx.ask(`Work on ${n}?`) : ctx.allow()
  },
  { tool: work, name: 'careful', priority: -1 },
)

async function asked(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const person: ApprovalHandler = ({ toolCall }) => {
    if (toolCall.args['n'] === 3) return 'allow'
    return toolCall.args['n'] === 4 ? { block: 'No.' } : { allow: { n: 1 } }
  }
  return listen(
    make(careful, approval({ answer: person, tools: ['look'] }), remember).stream('work 1 2 3 4 5; look 1 2; done', {
      effects: effects(),
    }),
  )
}

async function resumed(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const agent = make(careful, approval('suspend'), remember)
  const waiting = await agent.run('work 2 3 4 1 5; done', { effects: effects() })
  const [three, four, five] = waiting.status === 'suspended' ? waiting.pending.map(({ id }) => id) : []
  const partly = await agent.resume(waiting, {
    answers: { [three!]: 'allow', [four!]: { block: 'No.' } },
    effects: effects(),
  })
  const saved = JSON.parse(JSON.stringify(partly)) as SavedRun
  const rest = await listen(
    agent.resumeStream(saved, { answers: { [five!]: { allow: { n: 1 } } }, effects: effects() }),
  )
  return { runs: [waiting, partly, ...rest.runs], events: rest.events }
}

/** A model that fails once in every step. */
function unsteady(failures: number): Use {
  let calls = 0
  return hook(
    'aroundInference',
    (_ctx, next) => (calls++ % (failures + 1) < failures ? Promise.reject(new Error('busy')) : next()),
    {
      name: 'unsteady',
      priority: -10,
    },
  )
}

async function attempts(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const again = hook('aroundInference', async (_ctx, next) => {
    try {
      return await next()
    } catch {
      return next({ system: 'Again.' })
    }
  })
  const fussy = guard('beforeInference', async (ctx) => (ctx.request.system === 'Never.' ? ctx.stop('no') : ctx), {
    name: 'fussy',
  })
  let calls = 0
  const model = scriptedModel((request) => (calls++ % 2 === 0 ? { error: 'busy' } : speak(request)))
  const other = hook('beforeInference', (ctx) => ctx.withRequest({ model }))
  return listen(make(again, fussy, other, remember).stream('work 1; done', { effects: effects() }))
}

async function errors(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const retry = hook('onError', (ctx) => ctx.retry({ afterMs: 10 }))
  return listen(make(unsteady(2), retry, remember).stream('work 1; done', { effects: effects() }))
}

async function brokenHooks(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const failures = (state: AgentState, at: string): number => Number(state.metadata[`failed at ${at}`] ?? 0)
  const breaking = hook(['beforeStep', 'beforeToolUse', 'afterToolUse', 'afterInference'], async (ctx) => {
    if (failures(ctx.state, ctx.trigger) < 2) throw new Error(`broken at ${ctx.trigger}`)
    return ctx
  })
  const closed = hook('beforeToolUse', (ctx) => odd(ctx) as never, { onFailure: 'block', tool: 'look', priority: 30 })
  const open = hook('beforeToolUse', (ctx) => odd(ctx) as never, { onFailure: 'continue', tool: 'work' })
  const no = guard('afterToolUse', (ctx) => odd(ctx) as never, { tool: 'look' })
  const recover = hook('onError', (ctx) => {
    const { during } = ctx.error
    const told = ctx.withState((state) => state.withMetadata(`failed at ${during}`, failures(state, during) + 1))
    return during.endsWith('ToolUse') ? told.ignore() : told.retry()
  })
  return listen(
    make(breaking, closed, open, no, recover, remember).stream('work 1 2; work 1 2; look 1 2; done', {
      effects: effects(),
    }),
  )
}

/** Fails if the number is odd. */
function odd<C extends { readonly toolCall: { readonly args: JsonObject } }>(ctx: C): C {
  if (Number(ctx.toolCall.args['n']) % 2 === 1) throw new Error('odd')
  return ctx
}

async function stopped(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const notYet = hook('onStop', (ctx) => (ctx.continuations < 2 ? ctx.requestContinuation('Go on.') : ctx))
  const enough = guard('afterToolUse', (ctx) => (ctx.state.stepCount > 1 ? ctx.stop('Enough.').block('Secret.') : ctx))
  const first = await listen(make(notYet).stream('done; done; done', { effects: effects() }))
  const second = await listen(make(enough, remember).stream('work 1; work 2; work 3; done', { effects: effects() }))
  return { runs: [...first.runs, ...second.runs], events: [...first.events, ...second.events] }
}

async function refused(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const polite = guard('onUserInput', (ctx) => (ctx.input.content.length > 0 ? ctx.block('Rude.') : ctx))
  return listen(make(polite).stream('done', { effects: effects() }))
}

async function broken(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const failing = hook('onUserInput', () => Promise.reject(new Error('broken')))
  return listen(make(failing).stream('done', { effects: effects() }))
}

async function cancelled(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const cancel = new AbortController()
  const giveUp = hook('afterToolUse', (ctx) => {
    if (ctx.toolCall.args['n'] === 2) cancel.abort()
    return ctx
  })
  return listen(make(giveUp, remember).stream('work 1; work 2 3; done', { effects: effects(), signal: cancel.signal }))
}

async function paused(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  const agent = make(remember, add)
  const live = agent.iterate('work 1; work 2; done', { effects: effects() })
  for await (const state of live) if (state.stepCount === 1) break
  const left = await live.run
  return { runs: [left, await agent.resume(left, { effects: effects() })], events: [] }
}

async function unusable(make: (...use: readonly Use[]) => Agent, effects: () => EffectsOptions): Promise<Played> {
  return listen(
    make(add, careful, remember).stream('work none 1; missing 1; look none 2; done', { effects: effects() }),
  )
}

async function listen(live: RunStream<AgentEvent>): Promise<Played> {
  const events: AgentEvent[] = []
  for await (const event of live) events.push(event)
  return { runs: [await live.run], events }
}
