import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook, observe, shadow } from '../../hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { replay } from './replay.ts'
import { recordEffects } from '../../effects/record-effects.ts'
import { memoryRecording } from '../../effects/recording.ts'
import { judged, listThenPush, noPush, tape } from '../../effects/taped-run.fixture.ts'

test('a guard that was not there would have blocked the call, and the run would have left the record there', async () => {
  const report = await judged(await tape(listThenPush), { hooks: [noPush] })
  const place = { step: 1, trigger: 'beforeToolUse', call: { id: 'push', name: 'shell' } }
  assert.deepEqual(report, {
    events: 20,
    differences: [
      {
        ...place,
        was: {},
        would: { verdict: { decision: 'block', by: 'no-push', message: 'Agents never push.' } },
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
    differences.map(({ was, would }) => [was.verdict?.by, would.verdict]),
    [['no-push', undefined]],
  )
  assert.equal(divergesAt?.why, 'the call would run')
})

test('a hook of the same name takes the place of the one it is named after', async () => {
  const softer = guard('beforeToolUse', (ctx) => ctx.block('Not today.'), { name: 'no-push', priority: 9 })
  const { differences } = await judged(await tape(listThenPush, [noPush]), { hooks: [softer] })
  assert.deepEqual(
    differences.map(({ step, was, would }) => [step, was.verdict?.message, would.verdict?.message]),
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
      would.votes?.map(({ source, reason }) => [source, reason]),
    ]),
    [[2, 'beforeStep', [['guards.maxSteps', 'stepsLimit']]]],
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
    differences.map(({ step, trigger, changes }) => [step, trigger, changes]),
    [
      [0, 'afterToolUse', [{ path: 'state.metadata.calls', after: 1 }]],
      [1, 'afterToolUse', [{ path: 'state.metadata.calls', after: 2 }]],
      [2, 'beforeStep', undefined],
    ],
  )
  assert.deepEqual([divergesAt?.step, divergesAt?.why], [2, 'the run would stop'])
})

test('what the old hooks have put into the state is not there without them', async () => {
  const write = hook('beforeExecution', (ctx) => ctx.withState((state) => state.withMetadata('role', 'admin')), {
    name: 'write',
  })
  const read = guard('beforeToolUse', (ctx) => (ctx.state.metadata['role'] === 'admin' ? ctx : ctx.block('Who?')), {
    name: 'read',
  })
  const { differences } = await judged(await tape(listThenPush, [write, read]), { without: ['write'] })
  assert.deepEqual(
    differences.map(({ trigger, would, changes }) => [trigger, would.verdict?.message, changes?.[0]?.path]),
    [
      ['beforeExecution', undefined, 'state.metadata.role'],
      ['beforeToolUse', 'Who?', undefined],
      ['beforeToolUse', 'Who?', undefined],
    ],
  )
})

test('a message that would have been added diverges only at the next model call', async () => {
  const remind = hook('afterStep', (ctx) =>
    ctx.step.index === 0 ? ctx.withState((state) => state.withMessage('Mind the gap.')) : ctx,
  )
  const { differences, divergesAt } = await judged(await tape(listThenPush), { hooks: [remind] })
  assert.deepEqual(
    differences.map(({ step, trigger, divergence }) => [step, trigger, divergence]),
    [
      [0, 'afterStep', undefined],
      [1, 'beforeInference', 'the model would get a different request'],
      [2, 'beforeInference', 'the model would get a different request'],
    ],
  )
  assert.deepEqual([divergesAt?.step, divergesAt?.trigger], [1, 'beforeInference'])
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
    'the call would not fit the tool',
  ],
  [
    'a result',
    hook('afterToolUse', (ctx) => ctx.withOutput('[redacted]')),
    'output',
    'the model would get a different result',
  ],
  [
    'an answer',
    hook('afterInference', (ctx) => ctx.withResponse({ text: 'Hm.' })),
    'response',
    'a different response would be used',
  ],
  ['an input', hook('onUserInput', (ctx) => ctx.withInput('Please go.')), 'input', 'a different input would be used'],
] as const) {
  test(`${what} that would have been changed is shown, and a live run would leave the record there`, async () => {
    const { differences, divergesAt } = await judged(await tape(listThenPush), { hooks: [changing] })
    assert.deepEqual([differences[0]?.changes?.[0]?.path, divergesAt?.why], [path, why])
  })
}

test('the same change made in another way is not a difference', async () => {
  const first = hook(
    'beforeInference',
    (ctx) => ctx.withRequest({ system: 'A', messages: [...ctx.request.messages] }),
    { name: 'prompt' },
  )
  const second = hook(
    'beforeInference',
    (ctx) => ctx.withRequest({ messages: [...ctx.request.messages], system: 'A' }),
    { name: 'prompt' },
  )
  const { differences } = await judged(await tape(listThenPush, [first]), { hooks: [second] })
  assert.deepEqual(differences, [])
})

test('a new ask diverges from the recording, and so does an allow of a call that was asked about', async () => {
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('May I?'), { name: 'asks' })
  const allows = guard('beforeToolUse', (ctx) => ctx.allow(), { name: 'allows' })
  const person = approval({ answer: () => 'allow', tools: ['shell'] })
  const unasked = await judged(await tape(listThenPush, [approval(() => 'allow')]), { hooks: [asks] })
  const asked = await judged(await tape(listThenPush, [person]), { hooks: [allows] })
  assert.deepEqual(
    [unasked.divergesAt?.why, asked.divergesAt?.why],
    ['the call would wait for approval', 'the call would run'],
  )
})

test('allowing a call that needs no approval is a difference but no divergence', async () => {
  const allows = guard('beforeToolUse', (ctx) => ctx.allow('Fine.'), { name: 'allows' })
  const { differences, divergesAt } = await judged(await tape(listThenPush), { hooks: [allows] })
  assert.deepEqual([differences.length, differences[0]?.would.verdict?.decision, divergesAt], [2, 'allow', undefined])
})

test('a continuation that would be requested, or not, diverges', async () => {
  const more = hook('onStop', (ctx) => (ctx.continuations < 1 ? ctx.requestContinuation('Check it.') : ctx), {
    name: 'more',
  })
  const [added, removed] = [
    await judged(await tape(listThenPush), { hooks: [more] }),
    await judged(await tape([...listThenPush, 'Checked.'], [more]), { without: ['more'] }),
  ]
  assert.deepEqual([added.divergesAt?.why, removed.divergesAt?.why], ['the run would continue', 'the run would stop'])
})

test('an error would have been dealt with otherwise', async () => {
  const failing: Script = [{ error: 'busy' }, 'Done.']
  const retry = hook('onError', (ctx) => ctx.retry(), { name: 'retry' })
  const ignore = hook('onError', (ctx) => ctx.ignore(), { name: 'retry' })
  const { differences, divergesAt } = await judged(await tape(failing, [retry]), { hooks: [ignore] })
  assert.deepEqual(
    [differences[0]?.was.recovery?.decision, differences[0]?.would.recovery?.decision, divergesAt?.why],
    ['retry', 'ignore', 'the error would be handled differently'],
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
    differences.map(({ trigger, would, divergence }) => [
      trigger,
      would.error ?? would.votes?.find(({ source }) => source === 'mute')?.decision,
      divergence,
    ]),
    [
      ['beforeStep', 'Hook "broken" failed at beforeStep: broken', 'a hook would fail'],
      ['afterStep', 'forbidContinuation', 'the run would stop for a different reason'],
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
  assert.deepEqual([world.asked, divergesAt?.step, divergesAt?.why], [0, 0, 'the recording has no result of "look-up"'])
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

test('a run that was resumed is replayed from the run it was resumed from', async () => {
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('Push?'), { name: 'ask' })
  const shell = tool({ name: 'shell', description: 'Runs.', input: { type: 'object' }, execute: () => 'ok' })
  const agent = createAgent({ model: scriptedModel(listThenPush.slice(1)), use: [shell, ask, approval('suspend')] })
  const from = await agent.run('go')
  const answers = from.status === 'suspended' ? { [from.pending[0]!.id]: 'allow' as const } : {}
  const recording = memoryRecording()
  await agent.resume(from, { answers, effects: recordEffects(recording) })
  const { record, divergesAt } = await replay(recording, { agent, from, answers, hooks: [noPush] })
  assert.deepEqual([record.status, divergesAt?.why], ['complete', 'the call would be blocked'])
})

for (const [what, description] of [
  ['', 'Runs.'],
  [', also if the tool has changed and the approver is asked again', 'Runs as root.'],
] as const) {
  test(`a hook that changes arguments is not judged at a call that was approved${what}`, async () => {
    const agentWith = (text: string) => {
      const shell = tool({
        name: 'shell',
        description: text,
        input: { type: 'object' },
        ask: true,
        execute: () => 'ok',
      })
      const model = scriptedModel(({ messages }) =>
        messages.length === 1 ? { toolCalls: [{ name: 'shell', args: { command: 'push' } }] } : 'Done.',
      )
      return createAgent({ model, use: [shell, approval('suspend')] })
    }
    const edits = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'other' }), { name: 'edits' })
    const from = await agentWith('Runs.').run('go')
    const answers = from.status === 'suspended' ? { [from.pending[0]!.id]: 'allow' as const } : {}
    const recording = memoryRecording()
    const agent = agentWith(description)
    const resumed = await agent.resume(from, { answers, effects: recordEffects(recording) })
    assert.equal(resumed.status, description === 'Runs.' ? 'completed' : 'suspended')
    const { record, differences } = await replay(recording, { agent, from, answers, hooks: [edits] })
    assert.deepEqual([record.status, differences], ['complete', []])
  })
}

test('a record of another agent is judged up to where that shows', async () => {
  const { recording, agent } = await tape(listThenPush)
  const other = agent.with(hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'rm -r' }), { name: 'rm' }))
  const { record, events, differences } = await replay(recording, { agent: other, input: 'go' })
  assert.deepEqual([record.status, events, differences], ['diverged', 6, []])
  assert.match(record.message!, /"[^"]+\/0\/0\/tool" has a different input than recorded: .*"ls".*"rm -r"/)
})

test('a record that cannot be replayed is rejected with a message', async () => {
  const { agent, recording } = await tape(listThenPush)
  const refused = (changed: object): Promise<void> =>
    assert.rejects(replay(recording, { agent, input: 'go', ...changed }), {
      code: 'AGENT_INVALID_OPTION',
    })
  await refused({ input: undefined })
  await refused({ agent: {} })
  await refused({ without: ['nobody'] })
  await refused({ hooks: [{ name: 'nothing' }] })
  await refused({ hooks: [{ ...noPush }] })
  await assert.rejects(replay(memoryRecording(), { agent, input: 'go' }), { code: 'RECORDING_INVALID' })
  await assert.rejects(replay(['{}'], { agent }), { code: 'SESSION_CORRUPT' })
})
