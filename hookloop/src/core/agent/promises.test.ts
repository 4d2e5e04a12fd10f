import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { approval, type ApprovalOptions } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import type { Message } from '../state/message.ts'
import type { Answer } from '../state/tool-call.ts'
import { guard, hook, observe, type Hook } from '../hooks/hook.ts'
import { isAround, specOf, triggerNames, type GuardTrigger, type PlainTrigger } from '../hooks/triggers.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { recordEvents } from '../../testing/record-events.ts'
import type { Agent } from './agent.ts'
import type { Use } from './capability.ts'
import type { Run } from './run.ts'
import { tool } from './tool.ts'
import { recordedRun } from '../../sessions/replay/replayed-run.fixture.ts'
import { strictReplay } from '../../sessions/replay/strict-replay.fixture.ts'

// A random world: replies of the model, decisions of hooks, and when the run is cancelled.

const inLoop = triggerNames.filter((name) => !/Session|Subagent|Compaction/.test(name))
const plain = inLoop.filter((name): name is PlainTrigger => !isAround(name))
const judging = plain.filter((name): name is GuardTrigger => specOf(name).guard.length > 0)

type Ctx = { readonly [word: string]: (...args: unknown[]) => Ctx }

let stranger: Ctx | undefined
await createAgent({
  model: scriptedModel(['hi']),
  use: [hook('beforeExecution', (ctx) => ((stranger = ctx as unknown as Ctx), ctx))],
}).run('hi')

const never = new Promise<never>(() => undefined)
const boom = (): never => {
  throw new Error('boom')
}

/** Ways of failing to decide. */
const silences = {
  throws: boom,
  'throws nothing': () => {
    throw undefined
  },
  rejects: () => Promise.reject(new Error('boom')),
  'returns nothing': () => undefined,
  'returns nothing later': () => Promise.resolve(),
  'returns null': () => null,
  'returns a text': () => 'allow',
  'returns yes': () => true,
  'returns an object': (ctx: Ctx) => ({ ...ctx }),
  'returns the context of another run': () => stranger,
  'answers never and fails late': () => Promise.race([never, Promise.reject(new Error('boom'))]),
  'never answers': () => never,
} satisfies { readonly [how: string]: (ctx: Ctx) => unknown }

/** Everything a hook can do, if its context allows it; otherwise it does nothing. */
const acts = {
  ...silences,
  'never answers': (ctx: Ctx) => ctx,
  passes: (ctx: Ctx) => ctx,
  'passes later': async (ctx: Ctx) => ctx,
  stops: (ctx: Ctx) => ctx['stop']?.('stop') ?? ctx,
  blocks: (ctx: Ctx) => ctx['block']?.('block') ?? ctx,
  asks: (ctx: Ctx) => ctx['ask']?.('ask') ?? ctx,
  allows: (ctx: Ctx) => ctx['allow']?.('allow') ?? ctx,
  continues: (ctx: Ctx) => ctx['requestContinuation']?.('more') ?? ctx,
  'allows a stop': (ctx: Ctx) => ctx['allowStop']?.('enough') ?? ctx,
  ignores: (ctx: Ctx) => ctx['ignore']?.() ?? ctx,
  retries: (ctx: Ctx) => ((ctx['consecutiveFailures'] as unknown as number) < 3 && ctx['retry']?.()) || ctx,
  'says something': (ctx: Ctx) => ctx['withState']?.((state: Ctx) => state['withMessage']!('a note')) ?? ctx,
} satisfies { readonly [how: string]: (ctx: Ctx) => unknown }

type Act = keyof typeof acts
type Does = {
  readonly on: PlainTrigger
  readonly mode: 'hook' | 'guard' | 'observe'
  readonly act: Act
  readonly priority: number
}

function toHook({ on, mode, act, priority }: Does, index: number): Hook {
  const handle = acts[act] as never
  const options = { name: `${index} ${mode} ${act} at ${on}`, priority }
  if (mode === 'observe') return observe(on, handle, options)
  if (mode === 'guard' && judging.includes(on as GuardTrigger)) return guard(on as GuardTrigger, handle, options)
  return hook(on, handle, options)
}

const someDoes = fc
  .record<Does>({
    on: fc.constantFrom(...plain),
    mode: fc.constantFrom('hook', 'guard', 'observe'),
    act: fc.constantFrom(...(Object.keys(acts) as Act[])),
    priority: fc.integer({ min: -2, max: 2 }),
  })
  .filter(({ on, mode, act }) => !(on === 'onResume' && mode !== 'observe' && act in silences)) // it stays suspended

const someTurn = fc.oneof(
  fc.constantFrom<ScriptedTurn>('said', '', { error: 'boom' }, { text: 'cut', finishReason: 'length' }),
  fc
    .array(fc.constantFrom('work', 'read', 'broken', 'missing'), { minLength: 1, maxLength: 3 })
    .map((names): ScriptedTurn => ({ toolCalls: names.map((name) => ({ name })) })),
)

const someWorld = fc.record({
  turns: fc.array(someTurn, { maxLength: 4 }),
  does: fc.array(someDoes, { maxLength: 5 }),
  answers: fc.array(fc.constantFrom<Answer>('allow', { allow: { edited: true } }, { block: 'no' }), {
    minLength: 1,
    maxLength: 3,
  }),
  cancelAt: fc.option(fc.nat(30), { nil: Infinity }),
})
type World = typeof someWorld extends fc.Arbitrary<infer W> ? W : never

/** Tools that record the calls they were started for, by their idempotency key. */
function toolsOf(started: string[]): readonly Use[] {
  const make = (name: string, how: { readonly concurrent?: boolean }, result: () => unknown) =>
    tool({
      name,
      description: name,
      input: { type: 'object' },
      ...how,
      execute: (_args, run) => (started.push(run.idempotencyKey), result()),
    })
  return [make('work', {}, () => 'worked'), make('read', { concurrent: true }, () => 'text'), make('broken', {}, boom)]
}

function agentOf(
  { turns, does, cancelAt }: World,
  started: string[],
): { agent: Agent; signal: AbortSignal; asked: () => number } {
  const controller = new AbortController()
  let [firings, next] = [0, 0]
  const cancelling = hook(plain, (ctx) => (firings++ === cancelAt && controller.abort(), ctx), { priority: 9 })
  const model = scriptedModel(() => turns[next++] ?? 'done')
  const use = [...toolsOf(started), guards({ maxSteps: 6 }), approval('suspend'), cancelling, ...does.map(toHook)]
  return { agent: createAgent({ model, use }), signal: controller.signal, asked: () => next }
}

/** Resumes until the run has ended, through JSON as another process would. */
async function toTheEnd(agent: Agent, first: Run, { answers }: World, signal: AbortSignal): Promise<Run> {
  let run = first
  for (let i = 0; run.status === 'suspended'; i++) {
    assert.ok(i < 30, 'a suspended run comes to its end')
    const [one] = run.pending // one answer at a time
    const answer = answers[i % answers.length]!
    const isEdit = typeof answer === 'object' && 'allow' in answer
    // Only the question about a tool call has arguments to edit.
    const given = one === undefined ? {} : { [one.id]: isEdit && one.trigger !== undefined ? 'allow' : answer }
    run = await agent.resume(JSON.parse(JSON.stringify(run)) as never, { answers: given, signal })
  }
  return run
}

/** Every call has exactly one result, right after the message that requested it. */
function assertValid(messages: Iterable<Message>): void {
  let open: readonly string[] = []
  for (const { role, content } of messages) {
    const results = content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []))
    assert.deepEqual(results, open, `results of ${role}`)
    open = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
  }
  assert.deepEqual(open, [])
}

test('every run ends with exactly one final record', async () => {
  await fc.assert(
    fc.asyncProperty(someWorld, async (world) => {
      const { agent, signal } = agentOf(world, [])
      const { run, types } = await recordEvents(agent.stream('go', { signal }))
      const last = run.status === 'suspended' ? 'suspended' : 'finished'
      assert.deepEqual(
        [types.at(-1), types.filter((type) => type === 'finished' || type === 'suspended').length],
        [last, 1],
      )
      const ended = await toTheEnd(agent, run, world, signal)
      assert.ok(ended.status !== 'suspended')
      assert.equal(ended.status, ended.final.status)
      if (ended.state.execution !== undefined) {
        assert.deepEqual([ended.state.execution.final, ended.state.execution.status], [ended.final, ended.status])
      }
      assertValid(ended.state.messages)
    }),
    { numRuns: 300 },
  )
})

// ── guards that fail

/** What a block means at each trigger. */
const means: { readonly [T in GuardTrigger]?: (run: Run, seen: { started: string[]; requests: number }) => void } = {
  onUserInput: (run, { requests }) => assert.deepEqual([reasonOf(run), requests], ['stopped inputBlocked', 0]),
  beforeExecution: (run, { requests }) => assert.deepEqual([reasonOf(run), requests], ['stopped errorForbade', 0]),
  beforeStep: (run, { requests }) => assert.deepEqual([reasonOf(run), requests], ['stopped errorForbade', 0]),
  beforeInference: (run, { requests }) => assert.deepEqual([reasonOf(run), requests], ['stopped errorForbade', 0]),
  afterInference: (run, { started }) => {
    assert.deepEqual([started, [...run.state.execution!.steps].flatMap((step) => step.toolCalls)], [[], []])
    assert.doesNotMatch(JSON.stringify(run.state), /secret/)
  },
  beforeToolUse: (run, { started }) => assert.deepEqual([started, statusesOf(run)], [[], ['blocked', 'blocked']]),
  afterToolUse: (run) => {
    assert.deepEqual(statusesOf(run), ['ok', 'ok'])
    assert.doesNotMatch(JSON.stringify(run.state), /worked/)
  },
  afterStep: (run, { requests }) => assert.deepEqual([reasonOf(run), requests], ['stopped errorForbade', 1]),
  onStop: (run) => assert.equal(reasonOf(run), 'stopped errorForbade'),
}

function reasonOf(run: Run): string {
  return run.status === 'suspended' ? run.status : `${run.status} ${run.final.reason}`
}

function statusesOf(run: Run): readonly string[] {
  return [...run.state.execution!.steps].flatMap((step) => step.toolExecutions.map(({ status }) => status))
}

const friendly: readonly Act[] = ['passes', 'allows', 'continues', 'passes later']
const secretTurn: ScriptedTurn = { text: 'secret', toolCalls: [{ name: 'work' }, { name: 'work' }] }

async function runUnder(mute: Hook, others: readonly Does[]): Promise<void> {
  const started: string[] = []
  const model = scriptedModel([secretTurn, ...Array.from({ length: 9 }, () => 'done')])
  const limits = guards({ maxSteps: 5, maxTimeMs: null })
  const agent = createAgent({ model, use: [...toolsOf(started), limits, mute, ...others.map(toHook)] })
  means[mute.triggers[0] as GuardTrigger]!(await agent.run('go'), {
    started,
    requests: model.requests.length,
  })
}

test('guards fail closed', async () => {
  const someOther = fc.record<Does>({
    on: fc.constantFrom(...judging),
    mode: fc.constant('guard'),
    act: fc.constantFrom(...friendly),
    priority: fc.integer({ min: -2, max: 2 }),
  })
  for (const on of judging) {
    for (const how of Object.keys(silences) as (keyof typeof silences)[]) {
      await fc.assert(
        fc.asyncProperty(fc.array(someOther, { maxLength: 4 }), async (others) => {
          const options = { name: `mute: ${how}`, ...(how === 'never answers' && { timeoutMs: 1 }) }
          await runUnder(guard(on, silences[how] as never, options), others)
        }),
        { numRuns: 4 },
      )
    }
    await runUnder(
      guard(on, (ctx) => ctx, { name: 'a predicate that throws', when: boom }),
      [],
    )
  }
})

// ── blocks

const verdicts = {
  block: (ctx: Ctx) => ctx['block']!('no'),
  'block, then allow': (ctx: Ctx) => ctx['block']!('no')['allow']!('yes'),
  'allow, then block': (ctx: Ctx) => ctx['allow']!('yes')['block']!('no'),
  'block, then ask': (ctx: Ctx) => ctx['block']!('no')['ask']!('sure?'),
  'ask, then block': async (ctx: Ctx) => ctx['ask']!('sure?')['block']!('no'),
} satisfies { readonly [how: string]: (ctx: Ctx) => unknown }
type Verdict = keyof typeof verdicts

const someBlocked = fc.record({
  verdict: fc.constantFrom(...(Object.keys(verdicts) as Verdict[])),
  priority: fc.integer({ min: -2, max: 2 }),
  others: fc.array(
    fc
      .record<Does>({
        on: fc.constantFrom(...plain),
        mode: fc.constantFrom('guard', 'hook'),
        act: fc.constantFrom<Act>('allows', 'asks', 'passes', 'passes later', 'continues', 'ignores', 'retries'),
        priority: fc.integer({ min: -3, max: 3 }),
      })
      // A question at another trigger may end the run before the call.
      .filter(({ on, act }) => act !== 'asks' || on === 'beforeToolUse'),
    { maxLength: 6 },
  ),
  how: fc.constantFrom<ApprovalOptions['answer']>(
    'block',
    'suspend',
    () => 'allow',
    async () => ({ allow: { edited: true } }),
  ),
  asks: fc.boolean(),
})

const whitewash: readonly Hook[] = [
  hook('afterToolUse', (ctx) => ctx.withOutput('It went well.'), { name: 'whitewash' }),
  hook('aroundToolUse', (_ctx, next) => next(), { name: 'around' }),
]

test('a block is never overridden', async () => {
  await fc.assert(
    fc.asyncProperty(someBlocked, async ({ verdict, priority, others, how, asks }) => {
      const started: string[] = []
      const blocker = guard('beforeToolUse', verdicts[verdict] as never, { name: 'blocker', priority })
      const person = approval({ answer: how, tools: asks ? ['*'] : [] })
      const model = scriptedModel([secretTurn, ...Array.from({ length: 9 }, () => 'done')])
      const use = [...toolsOf(started), guards({ maxSteps: 5 }), person, blocker, ...whitewash, ...others.map(toHook)]
      const run = await createAgent({ model, use }).run('go')
      const [step] = run.state.execution!.steps
      const blocked = step!.toolExecutions.map(({ status, by }) => ({ status, by }))
      assert.deepEqual(blocked, [
        { status: 'blocked', by: 'blocker' },
        { status: 'blocked', by: 'blocker' },
      ])
      assert.deepEqual([started, run.ledger.some((entry) => entry.trigger === 'aroundToolUse')], [[], false])
    }),
    { numRuns: 200 },
  )

  // Nor by an approver: an answer satisfies asks, never a block.
  for (const answer of ['allow', { allow: { edited: true } }] satisfies Answer[]) {
    const started: string[] = []
    let resumed = false
    const strict = guard('beforeToolUse', (ctx) => (resumed ? ctx.block('changed my mind') : ctx.ask('sure?')), {
      name: 'strict',
    })
    const model = scriptedModel([secretTurn, 'done'])
    const agent = createAgent({ model, use: [...toolsOf(started), approval('suspend'), strict] })
    const run = await agent.run('go')
    assert.ok(run.status === 'suspended')
    resumed = true
    const ended = await agent.resume(run, { answers: Object.fromEntries(run.pending.map(({ id }) => [id, answer])) })
    assert.deepEqual([started, statusesOf(ended), ended.status], [[], ['blocked', 'blocked'], 'completed'])
  }
})

// ── executed effects

test('a recorded effect is never executed again', async () => {
  await fc.assert(
    fc.asyncProperty(someWorld, async (world) => {
      const started: string[] = []
      const { agent, signal } = agentOf(world, started)
      const { run, store } = await recordedRun(agent, 'go', { signal })

      // Not by a replay: it starts no tool and calls no model.
      const repeated: string[] = []
      const again = agentOf(world, repeated)
      if (run.status !== 'suspended') await strictReplay(again.agent, store, 's')
      assert.deepEqual([repeated, again.asked()], [[], 0])

      // Not by a retry, and not by a resume: no call is ever started twice.
      await toTheEnd(agent, run, world, signal)
      assert.equal(new Set(started).size, started.length)
    }),
    { numRuns: 200 },
  )

  // Not by a hook with an effect, when another hook at its trigger fails and the trigger is retried.
  for (const on of plain.filter((name) => !/onPause|onResume|onError|onUserInput|onStop|afterExecution/.test(name))) {
    const sent: Json[] = []
    const started: string[] = []
    let failed = false
    const model = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'done'])
    const send = hook(on, (ctx) => (sent.push(on), ctx), { name: 'send', effect: true, priority: 1 })
    const fail = hook(on, (ctx) => (failed ? ctx : ((failed = true), boom())), { name: 'fail' })
    const retry = hook('onError', (ctx) => ctx.retry())
    const run = await createAgent({ model, use: [...toolsOf(started), send, fail, retry] }).run('go')
    const times = /Step|Inference/.test(on) ? 2 : 1 // once in each of two steps
    assert.deepEqual([run.status, sent.length, started.length, model.requests.length], ['completed', times, 1, 2])
  }
})
