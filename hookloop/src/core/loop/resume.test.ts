import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { exactJson } from '../../values/json.ts'
import { fromSavedRun, type SavedRun } from '../state/saved-run.ts'
import type { Answer, Answers } from '../state/tool-call.ts'
import { liveEffects } from '../effects/effects.ts'
import { guard, hook, observe } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import { explanation } from '../explain/explanation.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'

type Suspended = Extract<Run, { status: 'suspended' }>

/** Guards that ask about paths with a question mark. Writes and triggers are recorded. */
function scene(paths: readonly string[], { use = [], script }: { use?: readonly Use[]; script?: Script } = {}) {
  const [written, fired, parsed]: [string[], string[], string[]] = [[], [], []]
  const input = z.object({ path: z.string().transform((path) => (parsed.push(path), path)) })
  const write = tool({ name: 'write', description: 'Writes.', input, execute: ({ path }) => written.push(path) })
  const asks = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.path.includes('?') ? ctx.ask('Write?') : ctx), {
    name: 'asks',
    tool: write,
  })
  const watch = observe('*', (ctx) => void fired.push(ctx.trigger), { name: 'watch' })
  const toolCalls = paths.map((path) => ({ name: 'write', args: { path } }))
  const model = scriptedModel(script ?? [{ toolCalls }, 'Done.'])
  const agent = createAgent({ model, use: [write, asks, watch, approval('suspend'), ...use] })
  return { agent, written, fired, parsed, model, write, asks }
}

async function suspend(agent: Agent, options?: Parameters<Agent['run']>[1]): Promise<Suspended> {
  const run = await agent.run('Go.', options)
  assert.ok(run.status === 'suspended', `it is ${run.status}`)
  return run
}

/** The same answer to every approval. */
function toAll(run: Run, answer: Answer): Answers {
  assert.ok(run.status === 'suspended', `it is ${run.status}`)
  return Object.fromEntries(run.pending.map(({ id }) => [id, answer]))
}

const save = (run: Run): SavedRun => JSON.parse(JSON.stringify(run)) as SavedRun
const executions = (run: Run) => run.state.execution!.steps.at(0)!.toolExecutions
const statuses = (run: Run): readonly string[] => executions(run).map(({ status }) => status)

test('a suspended run has not ended: onPause fires with the approvals, onStop and afterExecution do not', async () => {
  const shown: unknown[] = []
  const pausing = hook('onPause', (ctx) => {
    shown.push(ctx.pending.map(({ message }) => message))
    return ctx.withState((state) => state.withMetadata('paused', true))
  })
  const { agent, fired } = scene(['?a', '?b'], { use: [pausing] })
  const run = await suspend(agent)
  assert.deepEqual(shown, [['Write?', 'Write?']])
  assert.deepEqual([run.state.metadata['paused'], fired.at(-1)], [undefined, 'onPause'])
  assert.deepEqual([fired.includes('onStop'), fired.includes('afterStep'), 'final' in run], [false, false, false])
  const resumed = await agent.resume(save(run), { answers: toAll(run, 'allow') })
  assert.equal(resumed.state.metadata['paused'], true) // since the open step is closed
})

test('a suspended run is plain JSON, and reading it gives the same run', async () => {
  const { agent } = scene(['a', '?b'])
  const run = await suspend(agent)
  const saved = save(run)
  assert.deepEqual(exactJson(run.toJSON(), 'run'), saved)
  assert.deepEqual(JSON.parse(JSON.stringify(fromSavedRun(saved).state)), saved.state)
})

// ── answers are validated before anything runs, and an invalid one consumes no other

type Mistake = readonly [what: string, wrong: (id: string) => object, code: string]
const forms = [true, null, 'yes', 'suspend', 7, {}, [], { allow: true }, { allow: [] }, { block: 1 }]
const mistakes: readonly Mistake[] = [
  ['to an unknown approval', () => ({ unknown: 'allow' }), 'ANSWER_UNKNOWN'],
  ['called __proto__', () => JSON.parse('{"__proto__":"allow"}') as object, 'ANSWER_UNKNOWN'],
  ['with arguments that do not fit', (id) => ({ [id]: { allow: { path: 7 } } }), 'ANSWER_INVALID'],
  ['with arguments that are not JSON', (id) => ({ [id]: { allow: { path: 'b', size: 1n } } }), 'ANSWER_INVALID'],
  ...forms.map((form): Mistake => [`of the form ${JSON.stringify(form)}`, (id) => ({ [id]: form }), 'ANSWER_INVALID']),
]

for (const [what, wrong, code] of mistakes) {
  test(`an answer ${what} is rejected before anything runs, and consumes no other answer`, async () => {
    const { agent, written, fired } = scene(['?a', '?b'])
    const run = await suspend(agent)
    const [a, b] = run.pending.map(({ id }) => id) as [string, string]
    const before = [...fired]
    await assert.rejects(agent.resume(run, { answers: { [a]: 'allow', ...wrong(b) } }), { code })
    assert.deepEqual([written, fired], [[], before])
    const resumed = await agent.resume(run, { answers: toAll(run, 'allow') })
    assert.deepEqual([resumed.status, written], ['completed', ['?a', '?b']])
  })
}

test('an answer that was used is rejected, and the others stay pending', async () => {
  const { agent, written } = scene(['?a', '?b'])
  const run = await suspend(agent)
  const [first, second] = run.pending.map(({ id }) => id) as [string, string]
  const partly = await agent.resume(run, { answers: { [first]: 'allow' } })
  const again = agent.resume(partly, { answers: { [first]: 'allow', [second]: 'allow' } })
  await assert.rejects(again, { code: 'ANSWER_USED', value: first })
  assert.deepEqual(written, ['?a'])
})

type Loose = { [key: string]: Loose } & Loose[]

const recordOf = (saved: Loose, t: string, kind: string): Loose =>
  saved['run']!['records']!.find((record) => String(record['t']) === t && String(record['key']!['kind']) === kind)!

const tampering: readonly [string, (saved: Loose) => unknown][] = [
  ['the arguments that were shown', (saved) => Object.assign(question(saved)['toolCall']!, { args: { path: 'b' } })],
  ['the tool that was shown', (saved) => Object.assign(question(saved)['toolCall']!, { name: 'read' })],
  ['the place of the question', (saved) => Object.assign(question(saved), { id: 'another' })],
  ['the arguments that the model wrote', (saved) => Object.assign(callIn(saved), { input: { path: 'evil' } })],
  ['the tool that the model called', (saved) => Object.assign(callIn(saved), { toolName: 'erase' })],
  ['the input', (saved) => Object.assign(saved['run']!['input']!, { message: { role: 'user', content: [] } })],
  ['the list of hooks', (saved) => Object.assign(saved['run']!, { hooks: [] })],
  ['the state', (saved) => Object.assign(saved['state']!, { systemPrompt: 'Obey.' })],
  ['the checksum', (saved) => Object.assign(saved, { sum: 'another' })],
  ['nothing but the checksum, which is missing,', (saved) => Reflect.deleteProperty(saved, 'sum')],
]
const question = (saved: Loose): Loose => recordOf(saved, 'begin', 'ask')['input']!
const callIn = (saved: Loose): Loose => recordOf(saved, 'end', 'model')['value']!['content']![0]!

for (const [what, tamper] of tampering) {
  test(`a saved run in which ${what} was changed is rejected`, async () => {
    const { agent, written } = scene(['?a'])
    const run = await suspend(agent)
    const saved = structuredClone(save(run))
    tamper(saved as unknown as Loose)
    await assert.rejects(agent.resume(saved, { answers: toAll(run, 'allow') }), { code: 'STATE_INVALID' })
    assert.deepEqual(written, [])
  })
}

test('an answer that was written into the saved run executes nothing', async () => {
  const { agent, written } = scene(['?a'])
  const saved = structuredClone(save(await suspend(agent))) as unknown as Loose
  const { key, at } = recordOf(saved, 'begin', 'ask')
  saved['run']!['records']!.push({ t: 'end', key, at, value: 'allow' } as never)
  await assert.rejects(agent.resume(saved as unknown as SavedRun), { code: 'STATE_INVALID' })
  assert.deepEqual(written, [])
})

test('a run that is not suspended cannot be resumed', async () => {
  const { agent } = scene(['a'])
  await assert.rejects(agent.resume(await agent.run('Go.')), { code: 'RESUME_NOT_SUSPENDED' })
})

// ── resuming

test('onResume fires once with the answers and may change the state; nothing of the step is observed again', async () => {
  const given: Answers[] = []
  const resuming = hook('onResume', (ctx) => {
    given.push(ctx.answers)
    return ctx.withState((state) => state.withMessage('The person said yes.'))
  })
  const { agent, fired } = scene(['?a'], { use: [resuming] })
  const run = await suspend(agent)
  fired.length = 0
  const answers = toAll(run, 'allow')
  const resumed = await agent.resume(save(run), { answers })
  assert.deepEqual(given, [answers])
  assert.deepEqual(fired.slice(0, 5), ['onResume', 'beforeToolUse', 'afterToolUse', 'afterStep', 'beforeStep'])
  assert.deepEqual(fired.slice(-2), ['onStop', 'afterExecution'])
  assert.deepEqual(
    [...resumed.state.messages].map(({ role }) => role),
    ['user', 'assistant', 'tool', 'user', 'assistant'],
  )
})

test('at resume all hooks of the step run again, and guards once more before an approved call runs', async () => {
  let judged = 0
  const longer = hook('beforeToolUse', (ctx) => ctx.withArgs({ path: `${ctx.toolCall.args['path'] as string}+` }))
  const judge = guard('beforeToolUse', (ctx) => (judged++, ctx))
  const { agent, written, parsed } = scene(['?a'], { use: [longer, judge] })
  const run = await suspend(agent)
  await agent.resume(save(run), { answers: toAll(run, 'allow') })
  assert.deepEqual([written, parsed, judged], [['?a+'], ['?a+', '?a+', '?a+'], 3])
})

test('an answer satisfies the asks about a call, never a block', async () => {
  let closed = false
  const fence = guard('beforeToolUse', (ctx) => (closed ? ctx.block('Closed.') : ctx), { name: 'fence', priority: -5 })
  const { agent, written } = scene(['?a'], { use: [fence] })
  const run = await suspend(agent)
  closed = true
  const resumed = await agent.resume(run, { answers: toAll(run, 'allow') })
  const execution = { name: 'write', status: 'blocked', output: 'Closed.', by: 'fence' }
  assert.deepEqual([written, executions(resumed)[0]], [[], execution])
})

test('a call that the approver blocks has the message of the answer', async () => {
  const { agent, written } = scene(['?a'])
  const run = await suspend(agent)
  const resumed = await agent.resume(run, { answers: toAll(run, { block: 'Not this one.' }) })
  assert.deepEqual(written, [])
  assert.deepEqual(executions(resumed), [{ name: 'write', status: 'blocked', output: 'Not this one.', by: 'approval' }])
})

test('edited arguments are the ones that are judged, executed and recorded', async () => {
  const seen: unknown[] = []
  const judge = guard('beforeToolUse', (ctx) => (seen.push(ctx.toolCall.args), ctx))
  const { agent, written } = scene(['?a'], { use: [judge] })
  const run = await suspend(agent)
  const resumed = await agent.resume(save(run), { answers: toAll(run, { allow: { path: '?b' } }) })
  assert.deepEqual([written, seen], [['?b'], [{ path: '?a' }, { path: '?a' }, { path: '?b' }]])
  assert.deepEqual(resumed.state.execution!.steps.at(0)!.toolCalls[0]!.args, { path: '?b' })
})

test('partial answers leave the others pending under the same ids, and no call runs twice', async () => {
  const { agent, written, fired } = scene(['?a', '?b', '?c'])
  const run = await suspend(agent)
  const [a, b, c] = run.pending.map(({ id }) => id) as [string, string, string]
  const partly = await agent.resume(save(run), { answers: { [b]: 'allow' } })
  assert.deepEqual(partly.status === 'suspended' && partly.pending.map(({ id }) => id), [a, c])
  const waiting = await agent.resume(save(partly))
  assert.deepEqual(waiting.status === 'suspended' && waiting.pending.map(({ id }) => id), [a, c])
  const ended = await agent.resume(save(waiting), { answers: { [a]: 'allow', [c]: { block: 'No.' } } })
  assert.deepEqual([ended.status, written], ['completed', ['?b', '?a']])
  assert.deepEqual(statuses(ended), ['ok', 'ok', 'blocked'])
  assert.equal(fired.filter((trigger) => trigger === 'onPause').length, 3)
})

test('answers passed to resume are in the ledger, where explain finds them', async () => {
  const { agent } = scene(['?a', '?b', '?c'])
  const run = await suspend(agent)
  const [a, b, c] = run.pending.map(({ id }) => id) as [string, string, string]
  const answers: Answers = { [a]: 'allow', [b]: { allow: { path: 'b' } }, [c]: { block: 'No.' } }
  const resumed = await agent.resume(save(run), { answers })
  assert.deepEqual(
    explanation(resumed).asked.map(({ answer }) => answer),
    ['approved', 'approved with other arguments', 'blocked'],
  )
})

// ── resuming with a different agent

test('resume is rejected when a guard is missing, unless acceptMissing names it', async () => {
  const { agent, write, written } = scene(['?a'])
  const run = await suspend(agent)
  const answers = toAll(run, 'allow')
  const bare = createAgent({ model: scriptedModel(['Done.']), use: [write, approval('suspend')] })
  await assert.rejects(bare.resume(save(run), { answers }), { code: 'RESUME_GUARD_MISSING', value: 'asks' })
  await assert.rejects(bare.resume(save(run), { answers, acceptMissing: ['other'] }), { code: 'RESUME_GUARD_MISSING' })
  assert.deepEqual(written, [])
  const resumed = await bare.resume(save(run), { answers, acceptMissing: ['asks'] })
  assert.deepEqual([resumed.status, written], ['completed', ['?a']])
})

test('all guards that are missing are named at once, with the call that accepts it', async () => {
  const others = ['one', 'two'].map((name) => guard('beforeStep', (ctx) => ctx, { name }))
  const run = await suspend(scene(['?a']).agent.with(...others))
  const bare = createAgent({ model: scriptedModel(['Done.']), use: [approval('suspend')] })
  await assert.rejects(bare.resume(save(run), { acceptMissing: ['one'] }), {
    message: /the guards "asks", "two", which .* resume\(…, \{ acceptMissing: \['one', 'asks', 'two'\] \}\)\.$/,
  })
})

test('a pending call whose tool is missing is not run, whatever the answer', async () => {
  const { agent, asks } = scene(['?a'])
  const run = await suspend(agent)
  for (const answer of ['allow', { block: 'No.' }] as const) {
    const bare = createAgent({ model: scriptedModel(['Done.']), use: [asks] })
    const resumed = await bare.resume(save(run), { answers: toAll(run, answer) })
    const output = 'There is no tool "write". Use one of: none, there are no tools.'
    const execution = { name: 'write', status: 'failed', output, rejected: true }
    assert.deepEqual([resumed.status, executions(resumed)], ['completed', [execution]])
  }
})

test('a suspended run takes no new input, in any form', async () => {
  const toolCalls = (path: string) => [{ name: 'write', args: { path } }]
  const { agent } = scene([], { script: [{ toolCalls: toolCalls('a') }, { toolCalls: toolCalls('?b') }] })
  const run = await suspend(agent)
  for (const from of [run, save(run), run.state]) {
    await assert.rejects(agent.run('And now?', { from }), { code: 'STATE_SUSPENDED' })
    await assert.rejects(agent.stream('And now?', { from }).run, { code: 'STATE_SUSPENDED' })
    await assert.rejects(agent.iterate('And now?', { from }).run, { code: 'STATE_SUSPENDED' })
  }
})

// ── usage, and how a resumed run ends

test('time spent waiting for an approver does not count against maxTimeMs', async () => {
  const clock = fakeClock()
  const effects = liveEffects({ clock })
  const { agent } = scene(['?a'], { use: [guards({ maxTimeMs: 1000 })] })
  const run = await suspend(agent, { effects })
  await clock.advance(10_000_000)
  const resumed = await agent.resume(save(run), { answers: toAll(run, 'allow'), effects })
  assert.deepEqual([resumed.status, resumed.state.execution!.waitedMs], ['completed', 10_000_000])
})

test('a cancelled resume executes nothing: pending calls are blocked, and the run has one final record', async () => {
  const { agent, written, fired } = scene(['?a', '?b'])
  const run = await suspend(agent)
  const answers = { [run.pending[0]!.id]: 'allow' } as const
  const cancelled = await agent.resume(save(run), { answers, signal: AbortSignal.abort() })
  assert.deepEqual([cancelled.status, written, statuses(cancelled)], ['cancelled', [], ['blocked', 'blocked']])
  assert.equal(fired.filter((trigger) => trigger === 'afterExecution').length, 1)
})

test('observers see the end of a step once, although the run was suspended by a question about its end', async () => {
  const seen: string[] = []
  const store = memoryStore()
  const use = [
    guard('onStop', (ctx) => ctx.ask('End?'), { name: 'ends' }),
    observe(['afterStep', 'afterExecution'], ({ trigger }) => void seen.push(trigger)),
    approval('suspend'),
  ]
  const make = () => createAgent({ store, model: scriptedModel(['Done.']), use })
  const run = await make().run('Go.', { session: 's' })
  assert.ok(run.status === 'suspended')
  const resumed = await make().resume('s', { answers: { [run.pending[0]!.id]: 'allow' } })
  assert.deepEqual([resumed.status, seen], ['completed', ['afterStep', 'afterExecution']])
})
