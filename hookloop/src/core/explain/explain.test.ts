import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { guards } from '../../capabilities/guards.ts'
import { retryLimit } from '../../capabilities/retry-limit.ts'
import { createAgent } from '../../create-agent.ts'
import { stopReasons, type StopReason } from '../state/continuation.ts'
import type { JsonObject } from '../../values/json.ts'
import { liveEffects } from '../effects/effects.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { RunOptions } from '../agent/run-options.ts'
import type { Use } from '../agent/capability.ts'
import { explain } from './explain.ts'
import { explanation } from './explanation.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { fullStore, runIn } from '../../sessions/replay/replayed-run.fixture.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'

const echo = tool({ name: 'echo', description: 'Repeats.', input: { type: 'object' }, execute: (args) => args })
const fails = tool({
  name: 'fails',
  description: 'Fails.',
  input: { type: 'object' },
  execute: () => Promise.reject(new Error('no luck')),
})

function call(name: string, args: JsonObject = {}): Script[number] {
  return { toolCalls: [{ name, args }] }
}

function agentWith(script: Script, ...use: readonly Use[]) {
  return createAgent({ model: scriptedModel(script), use: [echo, fails, ...use] })
}

const many = (turn: Script[number]): Script => Array.from({ length: 40 }, () => turn)
const clock = fakeClock()
const slow = hook('afterToolUse', (ctx) => clock.advance(600).then(() => ctx), { name: 'slow' })
const asks = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'asks', tool: 'echo' })
// ── why a run ended: one row for each reason

type Row = {
  readonly script: Script
  readonly use?: readonly Use[]
  readonly options?: RunOptions
  /** The store of its session. */
  readonly store?: SessionStore
  readonly status: Run['status']
  readonly by: string
  readonly value?: unknown
  /** What the text must also say: why the run ended, and what would have let it continue. */
  readonly says: readonly RegExp[]
}

const rows: Readonly<Record<StopReason, Row>> = {
  errorForbade: {
    script: [{ error: 'overloaded' }],
    status: 'failed',
    by: 'error at aroundInference',
    says: [/failed: overloaded/, /to continue +use fallback\(\) to another model$/],
  },
  persistenceFailed: {
    script: ['done'],
    store: fullStore(),
    status: 'failed',
    by: 'store',
    says: [/disk full/, /to continue .*session store that can be written/],
  },
  stopRequested: {
    script: many(call('echo')),
    use: [guard('afterStep', (ctx) => ctx.stop('Enough.', { value: { files: 7 } }), { name: 'enough' })],
    status: 'stopped',
    by: 'enough',
    value: { files: 7 },
    says: [/stopped: Enough\./, /"files":7/, /to continue .*change "enough", which stopped the run/],
  },
  userRequested: {
    script: ['done'],
    options: { signal: AbortSignal.abort() },
    status: 'cancelled',
    by: 'signal',
    says: [/was cancelled/, /to continue .*from: run/],
  },
  inputBlocked: {
    script: ['done'],
    use: [guard('onUserInput', (ctx) => ctx.block('Too rude.'), { name: 'manners' })],
    status: 'stopped',
    by: 'manners',
    says: [/stopped: Too rude\./, /to continue .*"manners"/],
  },
  stepsLimit: {
    script: many(call('echo')),
    use: [guards({ maxSteps: 2 })],
    status: 'stopped',
    by: 'guards.maxSteps',
    value: { value: 2, limit: 2 },
    says: [/Step limit reached: 2\/2/, /to continue .*maxSteps/],
  },
  tokenLimit: {
    script: many(call('echo')),
    use: [guards({ maxTokens: 20 })],
    status: 'stopped',
    by: 'guards.maxTokens',
    value: { value: 30, limit: 20 },
    says: [/30 of 20|30\/20/, /to continue .*maxTokens/],
  },
  timeLimit: {
    script: many(call('echo')),
    use: [slow, guards({ maxTimeMs: 1000 })],
    options: { effects: liveEffects({ clock }) },
    status: 'stopped',
    by: 'guards.maxTimeMs',
    value: { value: 1000, limit: 1000 },
    says: [/1000\/1000 ms/, /to continue .*maxTimeMs/],
  },
  costLimit: {
    script: many({ toolCalls: [{ name: 'echo' }], usage: { costUsd: 0.25 } }),
    use: [guards({ maxCost: 0.5 })],
    status: 'stopped',
    by: 'guards.maxCost',
    value: { value: 0.5, limit: 0.5 },
    says: [/0\.5\/0\.5 USD/, /spent .* 0\.5 USD/, /to continue .*maxCost/],
  },
  toolCallLimit: {
    script: many(call('echo')),
    use: [guards({ maxToolCalls: 1 })],
    status: 'stopped',
    by: 'guards.maxToolCalls',
    value: { value: 2, limit: 1 },
    says: [/Tool call limit reached/, /to continue .*maxToolCalls/],
  },
  retryLimit: {
    script: many(call('fails')),
    use: [retryLimit({ maxRetries: 1 })],
    status: 'stopped',
    by: 'retryLimit',
    value: { value: 1, limit: 1 },
    says: [/same failing call \(fails\)/, /to continue .*maxRetries/],
  },
  continuationLimit: {
    script: many('done'),
    use: [hook('onStop', (ctx) => ctx.requestContinuation('More.'), { name: 'more' })],
    status: 'stopped',
    by: 'hookloop',
    value: { inRow: 8, total: 8 },
    says: [/"more" requested another step/, /to continue .*8 in a row/],
  },
  finishReason: {
    script: [{ text: 'half', finishReason: 'length' }],
    status: 'stopped',
    by: 'completion',
    value: 'length',
    says: [/finish reason "length"/, /to continue .*maxOutputTokens/],
  },
  completed: {
    script: [call('echo'), 'done'],
    status: 'completed',
    by: 'completion',
    says: [/is complete/, /2 steps, 1 tool call, 30 tokens/, /tokens$/],
  },
}

for (const reason of stopReasons) {
  const { script, use = [], options, store, status, by, value, says } = rows[reason]
  test(`${reason}: explain reports why the run ended, which hook decided on what value, and what would have let it continue`, async () => {
    const agent = agentWith(script, ...use)
    const run = store === undefined ? await agent.run('go', options) : await runIn(store, agent, 'go')
    const data = explanation(run)
    const text = explain(run)
    const all = explain(run, { verbose: true })
    assert.deepEqual(
      { status: data.status, reason: data.decided.reason, by: data.decided.by, value: data.decided.value },
      { status, reason, by, value },
    )
    for (const words of says) assert.match(text, words)
    assert.match(all, new RegExp(by.replaceAll('.', '\\.')))
  })
}

// ── suspended runs

test('explain of a suspended run reports what was asked, by which hook, and how to answer', async () => {
  const run = await agentWith([call('echo', { a: 1 })], approval('suspend'), asks).run('go')
  const { status, decided, wayOn } = explanation(run)
  assert.equal(status, 'suspended')
  assert.deepEqual([decided.by, decided.reason], ['asks', 'approval'])
  assert.match(explain(run), /waits for approval: echo: Really\?/)
  assert.match(wayOn ?? '', /agent\.resume\(run, \{ answers/)
})

test('explain of a paused run says that it is paused and how to resume it', async () => {
  const live = agentWith([call('echo'), 'done']).iterate('go')
  const steps = live[Symbol.asyncIterator]()
  await steps.next()
  await steps.return!()
  const run = await live.run
  assert.equal(explanation(run).decided.reason, 'paused')
  assert.match(explain(run), /is paused[^]*to continue +agent\.resume\(run\)/)
})

// ── events during the run

test('explain reports each question and its answer, from a handler or at resume', async () => {
  const script = [call('echo'), 'done']
  const answered = async (...use: readonly Use[]) => {
    const { asked } = explanation(await agentWith(script, asks, ...use).run('go'))
    return asked.map(({ tool, message, answer }) => `${tool}: ${message} ${answer}`)
  }
  assert.deepEqual(await answered(), ['echo: Really? blocked'])
  assert.deepEqual(await answered(approval(() => 'allow')), ['echo: Really? approved'])
  assert.deepEqual(await answered(approval(() => ({ block: 'No.' }))), ['echo: Really? blocked'])
  assert.deepEqual(await answered(approval(() => ({ allow: { b: 2 } }))), [
    'echo: Really? approved with other arguments',
  ])
})

test('explain reports each blocked call with the hook that blocked it and its message', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
  const tidy = hook('afterToolUse', (ctx) => ctx.withOutput('tidied'), { name: 'tidy' })
  const plain = explanation(await agentWith([call('echo'), 'done'], never).run('go')).blocked
  const rewritten = explanation(await agentWith([call('echo'), 'done'], never, tidy).run('go')).blocked
  assert.deepEqual(plain, [{ step: 0, tool: 'echo', by: 'never', message: 'Never.', withheld: false, failed: false }])
  assert.deepEqual(rewritten, plain)
})

test('explain reports a withheld result as withheld: the call ran', async () => {
  const hush = guard('afterToolUse', (ctx) => ctx.block('Too much.'), { name: 'hush' })
  const run = await agentWith([call('echo'), 'done'], hush).run('go')
  const [{ tool, by, withheld, message }] = explanation(run).blocked as [ReturnType<typeof explanation>['blocked'][0]]
  assert.deepEqual({ tool, by, withheld }, { tool: 'echo', by: 'hush', withheld: true })
  assert.match(message, /Too much\./)
})

test('explain names the hook that withheld the answer', async () => {
  const hush = guard('afterInference', (ctx) => ctx.block('No numbers.'), { name: 'hush' })
  const text = explain(await agentWith(['It is 42.'], hush).run('go'))
  assert.match(text, /hush/)
  assert.match(text, /No numbers\./)
})

test('explain reports the steps that a hook requested after an allowed stop, with the hook, and no others', async () => {
  const once = hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Run the test.') : ctx), {
    name: 'tester',
  })
  const run = await agentWith([call('echo'), 'done', 'really done'], once).run('go')
  assert.deepEqual(explanation(run).continued, [{ step: 1, by: 'tester', message: 'Run the test.' }])
  const { script, use = [] } = rows.continuationLimit
  const limited = await agentWith(script, ...use).run('go')
  assert.equal(explanation(limited).continued.length, 8)
})

test('explain reports errors that the run recovered from and hooks that failed', async () => {
  const watcher = observe('afterStep', () => Promise.reject(new Error('lost sight')), { name: 'watcher' })
  const run = await agentWith([{ error: 'hiccup' }, 'done'], errorPolicy('tolerant'), watcher).run('go')
  const { errors, warnings } = explanation(run)
  assert.deepEqual(errors, [{ code: 'MODEL_FAILED', message: 'hiccup', during: 'aroundInference', step: 0 }])
  assert.deepEqual(
    [warnings[0]?.hook, warnings[0]?.message],
    ['watcher', 'Observer "watcher" failed at afterStep: lost sight'],
  )
})

test('explain of an input that was rejected later in a conversation leaves earlier runs out', async () => {
  const manners = guard('onUserInput', (ctx) => (ctx.state.executionCount > 0 ? ctx.block('Rude.') : ctx), {
    name: 'manners',
  })
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
  const agent = agentWith([call('echo'), 'done'], manners, never)
  const { blocked, votes, spent } = explanation(await agent.run('again', { from: await agent.run('go') }))
  const sources = votes.map(({ source }) => source)
  assert.deepEqual({ blocked, sources, steps: spent.steps }, { blocked: [], sources: ['manners'], steps: 0 })
})

// ── the ledger

test('explain reports what a hook changed as a difference, with long values cut', async () => {
  const change = hook(
    'beforeToolUse',
    (ctx) =>
      ctx.withArgs({ ...ctx.toolCall.args, b: 3 }).withState((state) => state.withMetadata('seen', 'x'.repeat(999))),
    { name: 'change' },
  )
  const run = await agentWith([call('echo', { a: 1, b: 2 }), 'done'], change).run('go')
  assert.deepEqual(explanation(run).changed, [
    {
      step: 0,
      hook: 'change',
      trigger: 'beforeToolUse',
      changes: [
        { path: 'args.b', before: 2, after: 3 },
        { path: 'state.metadata.seen', after: `${'x'.repeat(200)}…` },
      ],
      bookkeeping: false,
    },
  ])
  assert.match(explain(run), /change at beforeToolUse: args\.b 2 → 3/)
})

test('a secret that a hook removed is not in the ledger, the explanation or the state', async () => {
  const secret = 'hunter2'
  const leak = tool({ name: 'leak', description: 'Leaks.', input: { type: 'object' }, execute: () => secret })
  const clean = [
    hook('onUserInput', (ctx) => ctx.withInput('My word is [gone].'), { name: 'cleanInput' }),
    hook('afterToolUse', (ctx) => ctx.withOutput('[gone]'), { name: 'cleanOutput' }),
    hook('afterInference', (ctx) => ctx.withResponse({ text: ctx.response.text.replace(secret, '[gone]') }), {
      name: 'cleanAnswer',
    }),
  ]
  const run = await agentWith([call('leak'), `It is ${secret}.`], leak, ...clean).run(`My word is ${secret}.`)
  assert.equal(run.text, 'It is [gone].')
  assert.equal(`${JSON.stringify(run)}${JSON.stringify(explanation(run))}${explain(run)}`.includes(secret), false)
})

test('the ledger has every invocation of a hook: trigger, decision, change, duration, error', async () => {
  const script = [call('echo', { a: 1 }), 'done']
  const run = await agentWith(
    script,
    hook('beforeToolUse', (ctx) => ctx.withArgs({ a: 2 }), { name: 'change' }),
    guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' }),
    guard('beforeToolUse', (ctx) => ctx, { name: 'late', priority: -1 }),
    observe('afterToolUse', () => assert.fail('blind'), { name: 'watcher' }),
  ).run('go')
  assert.ok(run.ledger.every((entry) => entry.durationMs >= 0))
  const own = run.ledger.filter((entry) => ['change', 'never', 'late', 'watcher'].includes(entry.hook))
  const at = { step: 0, trigger: 'beforeToolUse', call: 'call-1-1' }
  assert.deepEqual(
    own.map(({ durationMs: _ms, ...entry }) => entry),
    [
      { ...at, hook: 'change', mode: 'transform', changes: [{ path: 'args.a', before: 1, after: 2 }] },
      { ...at, hook: 'never', mode: 'guard', decision: 'block', message: 'Never.' },
      { ...at, hook: 'late', mode: 'guard', decision: 'skipped', message: 'blocked by "never" before' },
      { ...at, trigger: 'afterToolUse', hook: 'watcher', mode: 'observe', error: 'blind', code: 'HOOK_FAILED' },
    ],
  )
})
