import { errorPolicy, guard, hook, observe, shadow, type Hook, type Message, type Use } from '../index.ts'
import { scriptedModel } from '../testing/index.ts'
import { canonical, hang, LIMIT_MS, type Judged, type Process } from './world.fixture.ts'

// The hooks of the small world, by name. A hook that changes something leaves a trace in the state; a guard that decides
// about calls tells the world what it has decided.

const traced = [
  'onUserInput',
  'beforeExecution',
  'beforeStep',
  'beforeInference',
  'afterInference',
  'beforeToolUse',
  'afterToolUse',
  'afterStep',
  'onStop',
  'onSubagentStop',
  'onError',
  'afterExecution',
] as const

type Seen = { readonly call: Judged; readonly used: number; readonly infer: (prompt: string) => Promise<string> }
type Decision = 'block' | 'ask' | undefined

const judgeModel = scriptedModel(() => ({ text: 'yes', usage: { inputTokens: 1, outputTokens: 1, costUsd: 1 } }), {
  modelId: 'judge',
})

/** A guard at `beforeToolUse` whose verdicts the world knows. */
function judge(
  process: Process,
  name: string,
  decide: (seen: Seen) => Decision | Promise<Decision>,
  options: { readonly timeoutMs?: number } = {},
): Hook {
  return guard(
    'beforeToolUse',
    async (ctx) => {
      const call = { name: ctx.toolCall.name, args: ctx.toolCall.args }
      const judged = process.isDead() ? undefined : process.world.judging(process, name, call, ctx.state.agentId)
      const infer = async (prompt: string): Promise<string> => (await ctx.infer({ model: judgeModel, prompt })).text
      const decision = await decide({ call, used: usedIn(ctx.state.metadata), infer })
      if (!process.isDead()) judged?.(decision ?? 'pass')
      if (decision === 'block') return ctx.block(`${name} says no.`)
      return decision === 'ask' ? ctx.ask(`${name} asks.`) : ctx
    },
    { name, ...options },
  )
}

const usedIn = (metadata: { readonly [key: string]: unknown }): number => (metadata['used'] as number | undefined) ?? 0

const about = (name: string, decision: Decision) => (seen: Seen) => (seen.call.name === name ? decision : undefined)

type Make = (process: Process) => Use

const countFor = (name: string): Hook =>
  hook(
    'afterToolUse',
    (ctx) =>
      ctx.toolExecution.status === 'ok'
        ? ctx.withState((state) => state.withMetadata('used', usedIn(state.metadata) + 1))
        : ctx,
    { name: `count for ${name}` },
  )

/** Guards that decide about calls. */
const judges: { readonly [name: string]: Make } = {
  'block-A': (process) => judge(process, 'block-A', about('A', 'block')),
  'block-sub': (process) => judge(process, 'block-sub', about('sub', 'block')),
  'ask-A': (process) => judge(process, 'ask-A', about('A', 'ask')),
  'ask-all': (process) => judge(process, 'ask-all', () => 'ask'),
  'throw-A': (process) =>
    judge(process, 'throw-A', ({ call }) => {
      if (call.name === 'A') throw new Error('the guard is broken')
      return undefined
    }),
  infer: (process) =>
    judge(process, 'infer', async ({ call, infer }) => ((await infer(canonical(call))) === 'no' ? 'block' : undefined)),
  // At most one call that ended, by the state.
  budget: (process) => [countFor('budget'), judge(process, 'budget', ({ used }) => (used >= 1 ? 'block' : undefined))],
  // Asks about what it has not asked about before others ended.
  'ask-second': (process) => [
    countFor('ask-second'),
    judge(process, 'ask-second', ({ used }) => (used >= 1 ? 'ask' : undefined)),
  ],
  'slow-guard': (process) =>
    judge(process, 'slow-guard', ({ call }) => (call.name === 'A' ? hang(process, LIMIT_MS) : undefined), {
      timeoutMs: LIMIT_MS,
    }),
}

const others: { readonly [name: string]: Make } = {
  trace: (process) =>
    hook(
      traced,
      (ctx) => {
        if (ctx.trigger === 'afterToolUse') process.world.concluding(process, ctx.state.stepCount, ctx.toolCall.id)
        const call = 'toolCall' in ctx ? ctx.toolCall.id : 'subagent' in ctx ? ctx.subagent.call : ''
        return ctx.withState((state) => {
          const before = (state.metadata['trace'] as readonly string[] | undefined) ?? []
          return state.withMetadata('trace', [...before, `${ctx.trigger} ${call}`.trim()])
        })
      },
      { name: 'trace', priority: 5 },
    ),
  'pause-trace': (process) => [
    hook(
      ['onPause', 'onResume'],
      (ctx) => {
        const { stepCount, metadata, execution } = ctx.state
        if (ctx.trigger === 'onPause') process.world.pausing(`${execution?.id}/${stepCount}`, metadata['paused'])
        return ctx.withState((state) => state.withMetadata('paused', 1))
      },
      { name: 'pause-trace' },
    ),
    hook(
      ['beforeInference', 'beforeToolUse', 'afterToolUse', 'afterStep'],
      (ctx) => {
        const { stepCount, metadata, execution } = ctx.state
        const index = ctx.trigger === 'afterStep' ? stepCount - 1 : stepCount
        process.world.seesPause(process, `${execution?.id}/${index}`, metadata['paused'])
        return ctx
      },
      { name: 'pause-seen' },
    ),
  ],
  args: () => hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, added: 1 }), { name: 'args' }),
  'args-changed': () =>
    hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, added: 2 }), {
      name: 'args-changed',
      priority: -1,
    }),
  output: () => hook('afterToolUse', (ctx) => ctx.withOutput({ seen: ctx.toolExecution.output }), { name: 'output' }),
  effect: () =>
    hook('beforeToolUse', async (ctx) => ctx.withState((state) => state.withMetadata('effect', 1)), {
      name: 'effect',
      effect: true,
    }),
  'slow-effect': (process) =>
    hook('beforeToolUse', () => hang(process, LIMIT_MS), {
      name: 'slow-effect',
      effect: true,
      timeoutMs: LIMIT_MS,
      onFailure: 'continue',
    }),
  'slow-hook': (process) =>
    hook('beforeStep', () => hang(process, LIMIT_MS), {
      name: 'slow-hook',
      timeoutMs: LIMIT_MS,
      onFailure: 'continue',
    }),
  'slow-step': (process) =>
    guard('beforeStep', (ctx) => (ctx.state.stepCount === 0 ? ctx : hang(process, LIMIT_MS)), {
      name: 'slow-step',
      timeoutMs: LIMIT_MS,
    }),
  'slow-input': (process) =>
    guard('onUserInput', () => hang(process, LIMIT_MS), { name: 'slow-input', timeoutMs: LIMIT_MS }),
  'once-more': () =>
    hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Once more.') : ctx), {
      name: 'once-more',
    }),
  'child-once-more': () =>
    hook(
      'onSubagentStop',
      (ctx) =>
        ctx.state.metadata['again'] === undefined
          ? ctx.withState((state) => state.withMetadata('again', 1)).requestContinuation('Again.')
          : ctx,
      { name: 'child-once-more' },
    ),
  'ask-input': () => guard('onUserInput', (ctx) => ctx.ask('Take it?'), { name: 'ask-input' }),
  'ask-step': () => guard('beforeStep', (ctx) => ctx.ask('Step?'), { name: 'ask-step' }),
  'ask-model': () => guard('beforeInference', (ctx) => ctx.ask('Call it?'), { name: 'ask-model' }),
  'ask-stop': () => guard('onStop', (ctx) => ctx.ask('Stop?'), { name: 'ask-stop' }),
  compact: () => compacting('compact'),
  pin: () => compacting('pin', (message) => JSON.stringify(message).includes('"c0A0"')),
  hold: () => guard('afterInference', (ctx) => ctx, { name: 'hold', stream: 'hold' }),
  window: () => guard('afterInference', (ctx) => ctx, { name: 'window', stream: 'window' }),
  'block-input': () => guard('onUserInput', (ctx) => ctx.block('Not this.'), { name: 'block-input' }),
  'stop-step': () => guard('beforeStep', (ctx) => ctx.stop('No more steps.'), { name: 'stop-step' }),
  'hook-stops': () => hook('beforeStep', (ctx) => ctx.stop('No more steps.'), { name: 'hook-stops' }),
  'stop-model': () => guard('beforeInference', (ctx) => ctx.stop('No more models.'), { name: 'stop-model' }),
  'stop-tool': () => guard('beforeToolUse', (ctx) => ctx.stop('No more tools.'), { name: 'stop-tool' }),
  say: () =>
    hook(
      ['beforeToolUse', 'afterToolUse', 'afterInference'],
      (ctx) => ctx.withState((state) => state.withMessage(`note ${ctx.trigger}`)),
      { name: 'say' },
    ),
  strip: () =>
    hook('afterInference', (ctx) => ctx.withResponse({ content: [{ type: 'text', text: 'stripped' }] }), {
      name: 'strip',
    }),
  withhold: () => guard('afterInference', (ctx) => ctx.block('A secret.'), { name: 'withhold' }),
  'hook-throws': (process) =>
    hook(
      'beforeToolUse',
      () => {
        process.world.failing(process)
        throw new Error('the hook is broken')
      },
      { name: 'hook-throws' },
    ),
  'input-throws': () =>
    hook(
      'onUserInput',
      () => {
        throw new Error('the hook is broken')
      },
      { name: 'input-throws' },
    ),
  'stop-run': () => hook('beforeExecution', (ctx) => ctx.stop('No run.'), { name: 'stop-run' }),
  observe: (process) =>
    observe(
      observed,
      (ctx) => {
        const { trigger, state } = ctx
        const { inputs } = process.world
        const call = 'toolCall' in ctx ? ctx.toolCall.id : ''
        const step = 'step' in ctx ? ctx.step.index : state.stepCount
        process.world.observing(process, observedName(inputs, { trigger, agent: state.agentId, step, call }))
      },
      { name: 'observe' },
    ),
  late: () => [
    hook(
      'aroundToolUse',
      async (_ctx, next) => {
        await turns(20)
        return next()
      },
      { name: 'late-A', tool: 'A' },
    ),
    hook('afterToolUse', (ctx) => turns(5).then(() => ctx), { name: 'late-result' }),
    observe('afterExecution', () => turns(40), { name: 'late-end' }),
  ],
  shadow: () =>
    ['block', 'args', 'stop'].map((what) =>
      shadow(
        what === 'args'
          ? hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, shadowed: 1 }), { name: 'shadow-args' })
          : guard('beforeToolUse', (ctx) => (what === 'block' ? ctx.block('No.') : ctx.stop('No.')), {
              name: `shadow-${what}`,
            }),
      ),
    ),
  around: () =>
    hook(
      'aroundToolUse',
      async (_ctx, next) => {
        const done = await next()
        return { ...done, output: { around: done.output } }
      },
      { name: 'around' },
    ),
  'around-again': () =>
    hook(
      'aroundToolUse',
      async (_ctx, next) => {
        const first = await next()
        return first.status === 'failed' ? next() : first
      },
      { name: 'around-again' },
    ),
  'around-model': () =>
    hook(
      'aroundInference',
      async (_ctx, next) => {
        try {
          return await next()
        } catch {
          return next()
        }
      },
      { name: 'around-model' },
    ),
  retry: () => errorPolicy({ maxRetries: 3, backoffMs: 0 }),
  'retry-later': () => errorPolicy({ maxRetries: 3, backoffMs: 5 }),
}

function compacting(name: string, pin?: (message: Message) => boolean): Hook {
  return hook(
    'beforeStep',
    (ctx) =>
      ctx.state.messages.length > 2
        ? ctx.compact({
            keep: 2,
            ...(pin !== undefined && { pin }),
            summarize: async ({ infer, messages }) => {
              await infer({ model: judgeModel, prompt: `Summarize ${messages.length} messages.` })
              return `There were ${answersIn(messages)} answers.`
            },
          })
        : ctx,
    { name },
  )
}

/** Waits for some turns of the event loop. */
async function turns(count: number): Promise<undefined> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
  return undefined
}

const observed = ['onUserInput', 'afterInference', 'afterToolUse', 'afterStep', 'onStop', 'afterExecution'] as const

type Observed = { readonly trigger: string; readonly agent: string; readonly step?: number; readonly call?: string }

/** What an observer sees, in the run of one message. */
export function observedName(input: number, { trigger, agent, step = 0, call = '' }: Observed): string {
  return `${input} ${agent} ${trigger} ${step} ${call}`.trim()
}

/** How many times a model has answered, also if a summary has replaced its answers. */
export function answersIn(messages: Iterable<{ readonly role: string }>): number {
  const all = [...messages]
  const [, summarized = '0'] = /There were (\d+) answers/.exec(JSON.stringify(all)) ?? []
  return Number(summarized) + all.filter(({ role }) => role === 'assistant').length
}

/** The hooks with these names. `judges`: the guards among them that decide about calls. */
export function hooksOf(
  process: Process,
  names: readonly string[],
): { readonly use: readonly Use[]; readonly judges: readonly string[] } {
  const makers = names.map((name) => judges[name] ?? others[name])
  const unknown = names.find((_name, i) => makers[i] === undefined)
  if (unknown !== undefined) throw new Error(`There is no hook "${unknown}".`)
  return {
    use: makers.map((make) => make!(process)),
    judges: names.filter((name) => Object.hasOwn(judges, name)),
  }
}
