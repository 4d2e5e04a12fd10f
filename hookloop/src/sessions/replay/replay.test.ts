import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook, observe, shadow } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { replay } from './replay.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { judged, listThenPush, noPush, tape } from './taped-run.fixture.ts'

test('a guard that was not there would have blocked the call, and the run would have left the record there', async () => {
  const report = await judged(await tape(listThenPush), { hooks: [noPush] })
  const place = { step: 1, trigger: 'beforeToolUse', call: { id: 'push', name: 'shell' } }
  assert.deepEqual(report, {
    events: 2,
    differences: [
      {
        ...place,
        was: [],
        would: [{ hook: 'no-push', decision: 'block', message: 'Agents never push.' }],
        divergence: 'the call would be blocked',
      },
    ],
    divergesAt: { ...place, why: 'the call would be blocked' },
    unjudged: [],
    record: { status: 'complete' },
  })
})

test('the replay continues with what was recorded: a call that would have been blocked has its result', async () => {
  const seen: unknown[] = []
  const nosy = hook('afterToolUse', (ctx) => (seen.push(ctx.toolExecution.output), ctx))
  await judged(await tape(listThenPush), { hooks: [noPush, nosy] })
  assert.deepEqual(seen, ['ran ls', 'ran git push'])
})

test('a guard that is left out would not have blocked', async () => {
  const taped = await tape(listThenPush, [noPush])
  const { differences, divergesAt } = await judged(taped, { without: ['no-push'] })
  assert.deepEqual(
    differences.map(({ was, would }) => [was[0]?.hook, would]),
    [['no-push', []]],
  )
  assert.equal(divergesAt?.why, 'the call would run')
})

test('a hook of the same name takes the place of the one it is named after', async () => {
  const softer = guard('beforeToolUse', (ctx) => ctx.block('Not today.'), { name: 'no-push', priority: 9 })
  const { differences } = await judged(await tape(listThenPush, [noPush]), { hooks: [softer] })
  assert.deepEqual(
    differences.map(({ step, was, would }) => [step, was[0]?.message, would[0]?.message]),
    [
      [0, undefined, 'Not today.'],
      [1, 'Agents never push.', 'Not today.'],
    ],
  )
})

test('a capability is judged by its hooks', async () => {
  const { differences, divergesAt } = await judged(await tape(listThenPush), { hooks: [guards({ maxSteps: 2 })] })
  assert.deepEqual(
    differences.map(({ step, trigger, would }) => [
      step,
      trigger,
      would.map(({ hook: by, decision }) => [by, decision]),
    ]),
    [[2, 'beforeStep', [['guards.maxSteps', 'forbidContinuation']]]],
  )
  assert.deepEqual([divergesAt?.step, divergesAt?.why], [2, 'the run would stop'])
})

test('a shadow is judged as if it were in force', async () => {
  const taped = await tape(listThenPush, [shadow(noPush)])
  const [own, asked] = [await judged(taped), await judged(taped, { hooks: [shadow(noPush)] })]
  assert.deepEqual([own.differences.length, asked.divergesAt?.why], [0, 'the call would be blocked'])
})

test('what new hooks would have put into the state is there for those after them', async () => {
  const count = hook('afterToolUse', (ctx) =>
    ctx.withState((state) => state.withMetadata('calls', Number(state.metadata['calls'] ?? 0) + 1)),
  )
  const two = guard('beforeStep', (ctx) => (ctx.state.metadata['calls'] === 2 ? ctx.stop('Two are enough.') : ctx), {
    name: 'two',
  })
  const { differences, divergesAt } = await judged(await tape(listThenPush), { hooks: [count, two] })
  assert.deepEqual(
    differences.map(({ step, trigger, would }) => [step, trigger, would[0]?.changes]),
    [
      [0, 'afterToolUse', [{ path: 'state.metadata.calls', after: 1 }]],
      [1, 'afterToolUse', [{ path: 'state.metadata.calls', before: 1, after: 2 }]],
      [2, 'beforeStep', undefined],
    ],
  )
  assert.deepEqual([divergesAt?.step, divergesAt?.why], [2, 'the run would stop'])
})

for (const [what, changing, path, why] of [
  [
    'a request',
    hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Be brief.' })),
    'request.system',
    'the model would get a different request',
  ],
  [
    'arguments',
    hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'ls -a' })),
    'args.command',
    'the call would have different arguments',
  ],
  [
    'arguments that do not fit',
    hook('beforeToolUse', (ctx) => ctx.withArgs({})),
    'args.command',
    'the call would not run',
  ],
  [
    'a result',
    hook('afterToolUse', (ctx) => ctx.withOutput('[redacted]')),
    'output',
    'the model would get a different conversation',
  ],
  [
    'an answer',
    hook('afterInference', (ctx) => ctx.withResponse({ text: 'Hm.' })),
    'response',
    'the model would get a different conversation',
  ],
  [
    'an input',
    hook('onUserInput', (ctx) => ctx.withInput('Please go.')),
    'input',
    'the model would get a different request',
  ],
] as const) {
  test(`${what} that would have been changed is shown, and a live run would leave the record there`, async () => {
    const { differences, divergesAt } = await judged(await tape(listThenPush), { hooks: [changing] })
    assert.deepEqual([differences[0]?.would[0]?.changes?.[0]?.path, divergesAt?.why], [path, why])
  })
}

test('a new ask diverges from the recording, and so does an allow of a call that was asked about', async () => {
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('May I?'), { name: 'asks' })
  const allows = guard('beforeToolUse', (ctx) => ctx.allow(), { name: 'allows' })
  const person = approval({ answer: () => 'allow', tools: ['shell'] })
  const unasked = await judged(await tape(listThenPush, [approval(() => 'allow')]), { hooks: [asks] })
  const asked = await judged(await tape(listThenPush, [person]), { hooks: [allows] })
  assert.deepEqual(
    [unasked.divergesAt?.why, asked.divergesAt?.why],
    ['the call would wait for approval', 'no approver would be asked'],
  )
})

test('a hook that would have failed is reported with its error, and a guard with its block', async () => {
  const broken = hook(
    'beforeStep',
    () => {
      throw new Error('broken')
    },
    { name: 'broken' },
  )
  const mute = guard('afterStep', () => undefined as never, { name: 'mute' })
  const { differences } = await judged(await tape(['Done.']), { hooks: [broken, mute] })
  assert.deepEqual(
    differences.map(({ trigger, would, divergence }) => [trigger, would[0]?.decision ?? would[0]?.error, divergence]),
    [
      ['beforeStep', 'broken', 'the run would stop'],
      ['afterStep', 'forbid', undefined],
    ],
  )
})

test('a hook with an effect is answered from the record, and not done again', async () => {
  const world = { asked: 0 }
  const lookUp = guard(
    'beforeToolUse',
    async (ctx) => {
      world.asked++
      return ctx.toolCall.id === 'push' ? ctx.block('The server says no.') : ctx
    },
    { name: 'look-up', effect: true },
  )
  const taped = await tape(listThenPush, [lookUp])
  const before = world.asked
  const { differences } = await judged(taped, { hooks: [noPush] })
  assert.deepEqual([world.asked - before, differences], [0, []]) // what it blocked is blocked before the other is asked
})

test('where a hook would have had an effect that is not recorded, the record no longer answers', async () => {
  const world = { asked: 0 }
  const lookUp = guard('beforeToolUse', (ctx) => (world.asked++, ctx), { name: 'look-up', effect: true })
  const { divergesAt } = await judged(await tape(listThenPush), { hooks: [lookUp] })
  assert.deepEqual([world.asked, divergesAt?.step, divergesAt?.why], [0, 0, 'the record has no result of "look-up"'])
})

test('around hooks and observers are reported as not judged', async () => {
  const around = hook('aroundToolUse', (_ctx, next) => next(), { name: 'around' })
  const other = hook('aroundInference', (_ctx, next) => next(), { name: 'other' })
  const eye = observe('afterStep', () => assert.fail('seen'), { name: 'eye' })
  const { unjudged, differences } = await judged(await tape(listThenPush, [around]), {
    hooks: [other, eye],
    without: ['around'],
  })
  assert.deepEqual([unjudged.map((each) => each.hook), differences], [['other', 'eye', 'around'], []])
})

for (const [what, description] of [
  ['', 'Runs.'],
  [', also if the tool has changed and the approver is asked again', 'Runs as root.'],
] as const) {
  test(`a run that was resumed is judged as one${what}`, async () => {
    const store = memoryStore()
    const agentWith = (text: string) => {
      const shell = tool({
        name: 'shell',
        description: text,
        input: { type: 'object' },
        ask: true,
        execute: () => 'ok',
      })
      const model = scriptedModel(listThenPush.slice(1))
      return createAgent({ model, store, use: [shell, approval('suspend')] })
    }
    let run = await agentWith('Runs.').run('go', { session: 's' })
    const agent = agentWith(description)
    while (run.status === 'suspended')
      run = await agent.resume('s', { answers: { [run.pending[0]!.id]: 'allow' as const } })
    const edits = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'other' }), { name: 'edits' })
    const stored = (await store.read('s'))!
    const strict = await replay(stored, { agent })
    const [blocked, edited] = [
      await replay(stored, { agent, hooks: [noPush] }),
      await replay(stored, { agent, hooks: [edits] }),
    ]
    assert.deepEqual([run.status, strict.record, strict.differences], ['completed', { status: 'complete' }, []])
    assert.deepEqual(
      [blocked, edited].map(({ divergesAt }) => divergesAt?.why),
      ['the call would be blocked', 'the call would wait for approval'],
    )
  })
}

test('a record of another agent is judged up to where that shows', async () => {
  const { stored, agent } = await tape(listThenPush)
  const other = agent.with(hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'rm -r' }), { name: 'rm' }))
  const { record, events, differences } = await replay(stored, { agent: other, hooks: [noPush] })
  assert.deepEqual([record.status, events, differences], ['diverged', 0, []])
  assert.match(record.message!, /at step 1, beforeToolUse, call "list", other hooks decide: "nothing".*"ls".*"rm -r"/)
})

test('a record that cannot be replayed is rejected with a message', async () => {
  const { agent, stored } = await tape(listThenPush)
  const refused = (changed: object): Promise<void> =>
    assert.rejects(replay(stored, { agent, ...changed }), { code: 'AGENT_INVALID_OPTION' })
  await refused({ run: 1 })
  await refused({ agent: {} })
  await refused({ without: ['nobody'] })
  await assert.rejects(replay([], { agent }), { code: 'AGENT_INVALID_OPTION' })
  await assert.rejects(replay(['{}'], { agent }), { code: 'SESSION_CORRUPT' })
})

test('a guard that times out about a repeated model call times out there in the replay, and not before', async () => {
  const store = memoryStore()
  const make = (isLive: boolean) => {
    let [calls, guarded] = [0, 0]
    const model = scriptedModel(() => {
      if (++calls === 1) throw new Error('down')
      return 'Hi.'
    })
    const slow = guard(
      'beforeInference',
      async (ctx) => (++guarded === 2 && isLive ? new Promise<never>(() => undefined) : ctx),
      { name: 'slow', timeoutMs: 20 },
    )
    const awaited = hook('beforeInference', async (ctx) => ctx, { name: 'awaited' }) // not run again with the call
    return createAgent({ model, store, use: [awaited, slow, hook('onError', (ctx) => ctx.retry())] })
  }
  const run = await make(true).run('Go.', { session: 's' })
  assert.equal(run.final?.by, 'slow')
  const { record } = await replay((await store.read('s'))!, { agent: make(false) })
  assert.deepEqual(record, { status: 'complete' })
})
