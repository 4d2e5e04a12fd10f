import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'node:test'
import fc from 'fast-check'
import * as z from 'zod'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { AgentState } from '../state/agent-state.ts'
import { textOf } from '../state/message.ts'
import type { ToolCall } from '../state/tool-call.ts'
import { liveEffects } from '../effects/effects.ts'
import { systemClock } from '../effects/run-time.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { guard, hook, observe, type Hook } from './hook.ts'

// The composition rules over random sets of hooks, each in a run of two calls and an answer.

const places = [
  'beforeStep',
  'beforeInference',
  'afterInference',
  'beforeToolUse',
  'afterToolUse',
  'afterStep',
] as const
type Place = (typeof places)[number]
type Act = 'nothing' | 'change' | 'stop' | 'goOn' | 'block' | 'ask' | 'allow' | 'throw' | 'undefined' | 'hang'
type Spec = {
  readonly mode: 'hook' | 'guard' | 'observe'
  readonly at: Place
  readonly act: Act
  readonly priority: number
  readonly onFailure?: 'continue' | 'block' | undefined
  /** Acts at this call only; without it, at both. */
  readonly only?: 1 | 2 | undefined
}

const fails: readonly Act[] = ['throw', 'undefined', 'hang']
const saysNo = ({ act }: Spec): boolean => act === 'block' || fails.includes(act)
const isStep = (at: Place): boolean => at === 'beforeStep' || at === 'afterStep'

function actsOf(mode: Spec['mode'], at: Place): readonly Act[] {
  if (mode === 'observe') return ['nothing', 'throw', 'undefined']
  const votes: readonly Act[] = isStep(at) ? ['nothing', 'stop', 'goOn'] : ['nothing', 'stop']
  if (mode === 'hook') return [...votes, 'change', ...fails]
  if (at === 'beforeToolUse') return [...votes, 'block', 'ask', 'allow', ...fails]
  return at === 'afterInference' || at === 'afterToolUse' ? [...votes, 'block', ...fails] : [...votes, ...fails]
}

/** Most hooks decide nothing, or few runs would reach their calls. */
function specAt(mode: Spec['mode'], at: Place, acts = actsOf(mode, at)): fc.Arbitrary<Spec> {
  const act = fc.oneof(
    { weight: 2, arbitrary: fc.constant<Act>(mode === 'hook' ? 'change' : 'nothing') },
    fc.constantFrom(...acts),
  )
  const policies = mode === 'hook' ? (['continue', 'continue', 'block', undefined] as const) : ([undefined] as const)
  const calls = at.endsWith('ToolUse') ? ([undefined, undefined, 1, 2] as const) : ([undefined] as const)
  return fc.record({
    mode: fc.constant(mode),
    at: fc.constant(at),
    act,
    priority: fc.integer({ min: -2, max: 2 }),
    onFailure: fc.constantFrom(...policies),
    only: fc.constantFrom(...calls),
  })
}

const atAnyPlace = (mode: Spec['mode']): fc.Arbitrary<Spec> =>
  fc.constantFrom(...places).chain((at) => specAt(mode, at))
const aSpec = fc.oneof(
  { weight: 2, arbitrary: atAnyPlace('hook') },
  { weight: 2, arbitrary: atAnyPlace('guard') },
  { weight: 3, arbitrary: specAt('guard', 'beforeToolUse') },
  { weight: 1, arbitrary: atAnyPlace('observe') },
)
const someHooks = fc.array(aSpec, { minLength: 1, maxLength: 6 })
/** How long each decision takes: 0 synchronous, 1 a microtask, otherwise that many milliseconds. */
const someDelays = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 7 })

type AnyContext = {
  readonly state: AgentState
  readonly toolCall?: ToolCall<{ readonly n: number; readonly trail: readonly string[] }>
  withState(change: (state: AgentState) => AgentState): AnyContext
  withArgs(args: object): AnyContext
  stop(message: string): AnyContext
  requestContinuation(message: string): AnyContext
  block(message: string): AnyContext
  ask(message: string): AnyContext
  allow(): AnyContext
}

/** What happened, in order: model calls, tool runs with their arguments, what guards saw, which hook stopped or asked. */
type Happened = {
  readonly what: 'model' | 'tool' | 'guard' | 'stop' | 'asked'
  readonly n?: number
  readonly args?: string
}
type Seen = { readonly run: Run; readonly happened: readonly Happened[] }

function act(spec: Spec, name: string, ctx: AnyContext, happened: Happened[]): unknown {
  switch (spec.act) {
    case 'nothing':
      return ctx
    case 'change': {
      const marked = ctx.withState((state) => state.withMetadata(name, Number(state.metadata[name] ?? 0) + 1))
      const { args } = marked.toolCall ?? {}
      return spec.at === 'beforeToolUse' ? marked.withArgs({ ...args, trail: [...(args?.trail ?? []), name] }) : marked
    }
    case 'stop':
      happened.push({ what: 'stop' })
      return ctx.stop(name)
    case 'goOn':
      return ctx.state.stepCount < 4 ? ctx.requestContinuation(name) : ctx
    case 'block':
      return ctx.block(name)
    case 'ask':
      return ctx.ask(name)
    case 'allow':
      return ctx.allow()
    case 'throw':
      throw new Error(`${name} threw`)
    case 'undefined':
      return undefined
    case 'hang':
      return new Promise(() => undefined)
    default:
      return spec.act satisfies never
  }
}

async function runWith(
  specs: readonly Spec[],
  delays: readonly number[],
  options: { readonly concurrent?: boolean; readonly answer?: 'allow' | 'block' } = {},
): Promise<Seen> {
  const happened: Happened[] = []
  let answers = 0
  const hooks = specs.map((spec, i): Hook => {
    const name = `h${i}`
    const handle = (ctx: AnyContext): unknown => {
      if (spec.mode === 'guard' && ctx.toolCall !== undefined && spec.at === 'beforeToolUse') {
        happened.push({ what: 'guard', n: ctx.toolCall.args.n, args: JSON.stringify(ctx.toolCall.args) })
      }
      if (spec.only !== undefined && spec.only !== ctx.toolCall?.args.n) return ctx
      const wait = delays[answers++ % delays.length]!
      if (wait === 0) return act(spec, name, ctx, happened)
      return (wait === 1 ? Promise.resolve() : delay(wait - 1)).then(() => act(spec, name, ctx, happened))
    }
    const timeoutMs = spec.act === 'hang' ? { timeoutMs: 6 } : {}
    const given = { name, priority: spec.priority, ...timeoutMs }
    if (spec.mode === 'observe') return observe(spec.at, handle as never, given)
    if (spec.mode === 'guard') return guard(spec.at, handle as never, given)
    return hook(spec.at, handle as never, { ...given, ...(spec.onFailure && { onFailure: spec.onFailure }) })
  })
  const input = z.object({ n: z.number(), trail: z.array(z.string()).default([]) })
  const execute = ({ n, trail }: z.output<typeof input>): string => {
    happened.push({ what: 'tool', n, args: JSON.stringify({ n, trail }) })
    return `did ${n}`
  }
  const work = tool({ name: 'work', description: '', input, execute, concurrent: options.concurrent ?? false })
  const model = scriptedModel((request) => {
    happened.push({ what: 'model' })
    if (request.messages.some(({ role }) => role === 'tool')) return 'done'
    return { toolCalls: [1, 2].map((n) => ({ name: 'work', args: { n } })) }
  })
  const ask = approval(({ toolCall }) => {
    happened.push({ what: 'asked', n: Number(toolCall.args['n']) })
    return options.answer === 'block' ? { block: 'blocked' } : 'allow'
  })
  // A fixed id and a fixed clock, so that two runs differ only by their hooks.
  const clock = { ...systemClock, now: () => 0 }
  const agent = createAgent({ model, use: [work, ask, ...hooks] })
  return { run: await agent.run('go', { effects: liveEffects({ id: 'run', clock }) }), happened }
}

/** Everything a run decided: how it ended, its state, and the ledger without durations and observers. */
function decisionOf({ run, happened }: Seen): unknown {
  const { execution, ...state } = JSON.parse(JSON.stringify(run.state)) as { execution: { hooks: unknown } }
  const ledger = run.ledger.filter(({ mode }) => mode !== 'observe').map(({ durationMs: _ms, ...entry }) => entry)
  return { status: run.status, state, execution: { ...execution, hooks: [] }, ledger, happened }
}

const count = (happened: readonly Happened[], what: Happened['what']): number =>
  happened.filter((each) => each.what === what).length

test('the same hooks over the same input give the same decision, whatever they cost', async () => {
  const property = fc.asyncProperty(
    someHooks,
    fc.array(someDelays, { minLength: 2, maxLength: 3 }),
    fc.boolean(),
    async (specs, costs, concurrent) => {
      const [first, ...others] = await Promise.all(
        [[0], ...costs].map((delays) => runWith(specs, delays, { concurrent })),
      )
      for (const other of others) assert.deepEqual(decisionOf(other), decisionOf(first!))
    },
  )
  await fc.assert(property, { numRuns: 60 })
})

const asking = specAt('guard', 'beforeToolUse', ['ask']).filter((spec) => spec.act === 'ask')
const refusing = specAt('guard', 'beforeToolUse', ['block', ...fails]).filter(saysNo)
/** The results of the calls that a hook applies to. */
const about = ({ only }: Spec, happened: readonly Happened[]): readonly Happened[] =>
  happened.filter(({ n }) => only === undefined || n === only)

test('a block is never lost: no call runs that any guard blocked, by decision or by failing', async () => {
  const property = fc.asyncProperty(refusing, someHooks, fc.nat(6), someDelays, async (no, others, at, delays) => {
    const { happened, run } = await runWith(others.toSpliced(at, 0, no), delays)
    const executions = run.state.execution!.steps.at(0)?.toolExecutions ?? []
    const refused = executions.filter((_, i) => no.only === undefined || no.only === i + 1)
    assert.equal(count(about(no, happened), 'tool'), 0)
    assert.ok(refused.every(({ status }) => status === 'blocked' || status === 'failed'))
  })
  await fc.assert(property, { numRuns: 60 })
})

test('an ask never hides a block: no approver is asked about a call that any guard blocked', async () => {
  const sets = fc.tuple(asking, refusing, someHooks)
  const property = fc.asyncProperty(sets, fc.nat(6), someDelays, async ([ask, no, others], at, delays) => {
    const { happened } = await runWith([ask, ...others.toSpliced(at, 0, no)], delays)
    assert.deepEqual([count(about(no, happened), 'asked'), count(about(no, happened), 'tool')], [0, 0])
  })
  await fc.assert(property, { numRuns: 60 })
})

test('an ask is never satisfied by another guard: without an approval no call runs', async () => {
  const property = fc.asyncProperty(asking, someHooks, someDelays, async (ask, others, delays) => {
    const { happened } = await runWith([...others, ask], delays, { answer: 'block' })
    assert.equal(count(about(ask, happened), 'tool'), 0)
  })
  await fc.assert(property, { numRuns: 50 })
})

test('a forbid is never revoked: nothing starts after it, and the run is not completed', async () => {
  const stopping = fc
    .constantFrom(...places)
    .chain((at) =>
      fc
        .constantFrom('hook' as const, 'guard' as const)
        .chain((mode) => specAt(mode, at, ['stop']).filter((spec) => spec.act === 'stop')),
    )
  const property = fc.asyncProperty(
    stopping,
    someHooks,
    fc.nat(6),
    someDelays,
    fc.boolean(),
    async (stop, others, at, delays, concurrent) => {
      const { happened, run } = await runWith(others.toSpliced(at, 0, stop), delays, { concurrent })
      const stopped = happened.findIndex(({ what }) => what === 'stop')
      const after = stopped < 0 ? [] : happened.slice(stopped)
      assert.deepEqual([count(after, 'model'), count(after, 'tool')], [0, 0])
      if (stopped >= 0) assert.ok(run.status === 'stopped' || run.status === 'failed', run.status)
    },
  )
  await fc.assert(property, { numRuns: 120 })
})

test('guards see what the tool gets', async () => {
  const change = specAt('hook', 'beforeToolUse', ['change'])
  const look = specAt('guard', 'beforeToolUse', ['nothing', 'ask', 'allow'])
  const property = fc.asyncProperty(
    fc.array(fc.oneof(change, look), { maxLength: 6 }),
    someDelays,
    fc.boolean(),
    async (specs, delays, concurrent) => {
      const { happened } = await runWith(specs, delays, { concurrent })
      const ran = new Map(happened.filter(({ what }) => what === 'tool').map(({ n, args }) => [n, args]))
      assert.equal(ran.size, 2)
      for (const { what, n, args } of happened) if (what === 'guard') assert.equal(args, ran.get(n))
    },
  )
  await fc.assert(property, { numRuns: 40 })
})

test('observers never change anything: decision and state are the same without them', async () => {
  const property = fc.asyncProperty(
    someHooks,
    fc.array(atAnyPlace('observe'), { minLength: 1, maxLength: 4 }),
    someDelays,
    async (specs, watchers, delays) => {
      const deciding = specs.filter(({ mode }) => mode !== 'observe')
      const [alone, watched] = await Promise.all([runWith(deciding, [0]), runWith([...deciding, ...watchers], delays)])
      assert.deepEqual(decisionOf(watched), decisionOf(alone))
    },
  )
  await fc.assert(property, { numRuns: 40 })
})

test('no hook sees a context of another run, however many share an agent', async () => {
  const mixed: string[] = []
  const check = (where: string, ctx: { readonly state: AgentState }, canary: unknown): void => {
    if (ctx.state.metadata['canary'] !== canary) mixed.push(`${where}: ${String(canary)}`)
  }
  const wait = (): Promise<void> => delay(Math.random() * 3)
  const canaryOf = (messages: Iterable<{ content: Parameters<typeof textOf>[0] }>): string =>
    textOf([...messages][0]!.content)
  const input = z.object({ canary: z.string() })
  const work = tool({ name: 'work', description: '', input, execute: async ({ canary }) => (await wait(), canary) })
  const model = scriptedModel((request) => {
    const canary = canaryOf(request.messages)
    return request.messages.some(({ role }) => role === 'tool')
      ? canary
      : { toolCalls: [{ name: 'work', args: { canary } }] }
  })
  const agent = createAgent({
    model,
    use: [
      work,
      hook('onUserInput', async (ctx) => (await wait(), check('input', ctx, textOf(ctx.input.content)), ctx)),
      hook(
        'beforeInference',
        async (ctx) => (await wait(), check('request', ctx, canaryOf(ctx.request.messages)), ctx),
      ),
      hook(
        'aroundInference',
        async (ctx, next) => (await wait(), check('around', ctx, canaryOf(ctx.request.messages)), next()),
      ),
      hook(
        'beforeToolUse',
        async (ctx) => {
          await wait()
          return ctx.withState((state) => state.withMetadata('seen', ctx.toolCall.args.canary))
        },
        { tool: work },
      ),
      guard('beforeToolUse', async (ctx) => (await wait(), check('call', ctx, ctx.toolCall.args.canary), ctx), {
        tool: work,
      }),
      guard('afterToolUse', async (ctx) => (await wait(), check('result', ctx, ctx.toolExecution.output), ctx)),
      guard('afterStep', async (ctx) => (await wait(), check('step', ctx, canaryOf(ctx.state.messages)), ctx)),
      observe(
        '*',
        async (ctx) => (await wait(), ctx.state.execution && check('observed', ctx, canaryOf(ctx.state.messages))),
      ),
    ],
  })
  const canaries = Array.from({ length: 100 }, (_, i) => `canary ${i}`)
  const ended = await Promise.all(canaries.map((canary) => agent.run(canary, { metadata: { canary } })))
  assert.deepEqual([mixed, ended.map(({ text }) => text)], [[], canaries])
  assert.deepEqual(
    ended.map(({ state }) => state.metadata['seen']),
    canaries,
  )
})
