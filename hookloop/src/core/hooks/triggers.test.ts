import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as z from 'zod'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import { textMessage, textOf } from '../state/message.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { noTokens } from '../state/usage.ts'
import { scriptedModel, type Script, type ScriptedModel } from '../../models/scripted.ts'
import { fire } from '../../testing/fire.ts'
import { guard, hook, observe } from './hook.ts'
import { isAround, triggerNames, type HookTrigger, type PlainTrigger } from './triggers.ts'

const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  execute: ({ text }) => `said ${text}`,
})
const sayHi = { text: 'calling', toolCalls: [{ name: 'echo', args: { text: 'hi' } }] }
const conversation: Script = [sayHi, 'done', 'more', 'and more']
const failOnce: Script = [{ error: 'down' }, 'done']
const me = { name: 'me' }

type Seen = { readonly run: Run; readonly model: ScriptedModel }

async function runWith(use: Use, script = conversation): Promise<Seen> {
  const model = scriptedModel(script)
  return { model, run: await createAgent({ model, use: [echo, use] }).run('go') }
}

/** How the run ended, and how often the model was called. */
function ending({ run, model }: Seen): Json {
  return [run.status === 'stopped' ? `${run.reason} by ${run.by}` : run.status, model.requests.length]
}

function asked({ model }: Seen, at: number): readonly string[] {
  return model.requests[at]!.messages.map((each) => textOf(each.content))
}

function firstCall({ run }: Seen): ToolExecution {
  const { name: _tool, ...execution } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
  return execution
}

/** What may be decided and changed at each trigger, besides the state. */
const table: { readonly [T in HookTrigger]: { readonly [title: string]: () => Promise<void> } } = {
  onSessionStart: {
    'a hook may change the state': async () => {
      const greet = hook('onSessionStart', (ctx) => ctx.withState((state) => state.withMetadata('from', ctx.source)))
      assert.deepEqual(await fire(greet, 'onSessionStart', { source: 'cli' }), { state: { metadata: { from: 'cli' } } })
    },
  },
  onUserInput: {
    'a hook may change the input': async () => {
      const seen = await runWith(hook('onUserInput', (ctx) => ctx.withInput('other')))
      assert.deepEqual(asked(seen, 0), ['other'])
    },
    'a guard may block the input, which is then dropped': async () => {
      const seen = await runWith(guard('onUserInput', (ctx) => ctx.block('no'), me))
      assert.deepEqual([ending(seen), seen.run.state.messages.length], [['inputBlocked by me', 0], 0])
    },
  },
  beforeExecution: {
    'a hook may stop the run': async () => {
      const seen = await runWith(hook('beforeExecution', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 0])
    },
    'a guard may stop the run': async () => {
      const seen = await runWith(guard('beforeExecution', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 0])
    },
  },
  beforeStep: {
    'a hook may stop the run': async () => {
      const seen = await runWith(hook('beforeStep', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 0])
    },
    'a hook may vote to stop': async () => {
      const enough = hook('beforeStep', (ctx) => (ctx.state.stepCount === 1 ? ctx.allowStop('enough') : ctx))
      assert.deepEqual(ending(await runWith(enough)), ['completed', 1])
    },
    'a hook may vote to continue, and the model receives the reason': async () => {
      const seen = await runWith(hook('beforeStep', (ctx) => ctx.requestContinuation('on')))
      assert.deepEqual(asked(seen, 0), ['go', 'on'])
    },
    'a guard may stop the run on a value': async () => {
      const broke = guard('beforeStep', (ctx) => ctx.stop('no', { reason: 'costLimit', value: 7 }), me)
      const seen = await runWith(broke)
      assert.deepEqual([ending(seen), seen.run.final?.value], [['costLimit by me', 0], 7])
    },
    'a guard may vote': async () => {
      const seen = await runWith(guard('beforeStep', (ctx) => ctx.requestContinuation('on')))
      assert.deepEqual(asked(seen, 0), ['go', 'on'])
    },
  },
  beforeInference: {
    'a hook may change the request': async () => {
      const { model } = await runWith(
        hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Shout.', tools: [] })),
      )
      assert.deepEqual([model.requests[0]!.system, model.requests[0]!.tools], ['Shout.', []])
    },
    'a hook may stop the run': async () => {
      const seen = await runWith(hook('beforeInference', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 0])
    },
    'a guard may stop the run': async () => {
      const seen = await runWith(guard('beforeInference', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 0])
    },
  },
  aroundInference: {
    'a hook may wrap the call': async () => {
      const { run, model } = await runWith(
        hook('aroundInference', async (_ctx, next) => {
          const { finishReason } = await next({ system: 'Shout.' })
          return { content: [{ type: 'text', text: finishReason }], text: '', usage: noTokens, finishReason: 'stop' }
        }),
      )
      assert.deepEqual([run.text, model.requests[0]!.system], ['tool-calls', 'Shout.'])
    },
  },
  afterInference: {
    'a hook may change the response': async () => {
      const { run } = await runWith(
        hook('afterInference', (ctx) => ctx.withResponse({ text: `${ctx.response.text}!` })),
      )
      assert.equal(run.text, 'done!')
    },
    'a hook may stop the run, and the calls are not made': async () => {
      const seen = await runWith(hook('afterInference', (ctx) => ctx.stop('no'), me))
      assert.deepEqual([ending(seen), firstCall(seen).status], [['stopRequested by me', 1], 'blocked'])
    },
    'a guard may withhold the response with its calls': async () => {
      const { run } = await runWith(guard('afterInference', (ctx) => ctx.block('secret'), me))
      assert.deepEqual([run.text, run.state.lastStep?.toolCalls], ['[withheld by "me": secret]', []])
    },
    'a guard may stop the run, and the calls are not made': async () => {
      const seen = await runWith(guard('afterInference', (ctx) => ctx.stop('no'), me))
      assert.deepEqual([ending(seen), firstCall(seen).status], [['stopRequested by me', 1], 'blocked'])
    },
  },
  beforeToolUse: {
    'a hook may change the arguments': async () => {
      const seen = await runWith(hook('beforeToolUse', (ctx) => ctx.withArgs({ text: 'bye' })))
      assert.deepEqual(firstCall(seen), { status: 'ok', output: 'said bye' })
    },
    'a hook may stop the run, and the call is not made': async () => {
      const seen = await runWith(hook('beforeToolUse', (ctx) => ctx.stop('no'), me))
      assert.deepEqual([ending(seen), firstCall(seen).status], [['stopRequested by me', 1], 'blocked'])
    },
    'a guard may block the call, and the run continues': async () => {
      const seen = await runWith(guard('beforeToolUse', (ctx) => ctx.block('never'), me))
      const blocked = { status: 'blocked', output: 'never', by: 'me' }
      assert.deepEqual([firstCall(seen), ending(seen)], [blocked, ['completed', 2]])
    },
    'a guard may ask about the call': async () => {
      const hooks = [guard('beforeToolUse', (ctx) => ctx.ask('may it?'), me)]
      const { run } = await runWith({ ...approval('suspend'), hooks })
      assert.deepEqual(run.status === 'suspended' && run.pending.map(({ message, by }) => [message, by]), [
        ['may it?', 'me'],
      ])
    },
    'a guard may allow a call that is asked about by default': async () => {
      const hooks = [guard('beforeToolUse', (ctx) => ctx.allow(), me)]
      const seen = await runWith({ ...approval({ answer: 'block', tools: ['echo'] }), hooks })
      assert.equal(firstCall(seen).status, 'ok')
    },
    'a guard may stop the run, and the call is not made': async () => {
      const seen = await runWith(guard('beforeToolUse', (ctx) => ctx.stop('no'), me))
      assert.deepEqual([ending(seen), firstCall(seen).status], [['stopRequested by me', 1], 'blocked'])
    },
  },
  aroundToolUse: {
    'a hook may wrap the call': async () => {
      const twice = hook('aroundToolUse', async (_ctx, next) => {
        const [first, second] = [await next(), await next()]
        return { status: 'ok', output: [first.output, second.output] }
      })
      assert.deepEqual(firstCall(await runWith(twice)).output, ['said hi', 'said hi'])
    },
  },
  afterToolUse: {
    'a hook may change the output': async () => {
      const seen = await runWith(hook('afterToolUse', (ctx) => ctx.withOutput('[redacted]')))
      assert.deepEqual(firstCall(seen), { status: 'ok', output: '[redacted]' })
    },
    'a hook may stop the run': async () => {
      const seen = await runWith(hook('afterToolUse', (ctx) => ctx.stop('no'), me))
      assert.deepEqual([ending(seen), firstCall(seen).status], [['stopRequested by me', 1], 'ok'])
    },
    'a guard may withhold the output of what ran': async () => {
      const seen = await runWith(guard('afterToolUse', (ctx) => ctx.block('secret'), me))
      const output = '[withheld by "me": secret]'
      assert.deepEqual(firstCall(seen), { status: 'ok', output, by: 'me', withheld: true })
    },
    'a guard may stop the run': async () => {
      const seen = await runWith(guard('afterToolUse', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 1])
    },
  },
  afterStep: {
    'a hook may stop the run': async () => {
      const seen = await runWith(hook('afterStep', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 1])
    },
    'a hook may vote to stop after a call': async () => {
      const seen = await runWith(hook('afterStep', (ctx) => ctx.allowStop('enough'), me))
      assert.deepEqual(ending(seen), ['completed', 1])
    },
    'a guard may vote to continue after an answer': async () => {
      const on = guard('afterStep', (ctx) => (ctx.step.text === 'done' ? ctx.requestContinuation('on') : ctx))
      const seen = await runWith(on)
      assert.deepEqual([seen.run.text, asked(seen, 2).at(-1)], ['more', 'on'])
    },
    'a guard may allow the run to continue, which changes nothing': async () => {
      const seen = await runWith(guard('afterStep', (ctx) => ctx.allowContinuation('fine'), me))
      assert.deepEqual(ending(seen), ['completed', 2])
    },
    'a guard may stop the run': async () => {
      const seen = await runWith(guard('afterStep', (ctx) => ctx.stop('no'), me))
      assert.deepEqual(ending(seen), ['stopRequested by me', 1])
    },
  },
  onStop: {
    'a hook may request continuation': async () => {
      const on = hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('on') : ctx))
      const seen = await runWith(on)
      assert.deepEqual([seen.run.text, asked(seen, 2).at(-1)], ['more', 'on'])
    },
    'a guard may request continuation': async () => {
      const on = guard('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('on') : ctx))
      const seen = await runWith(on)
      assert.deepEqual([seen.run.text, asked(seen, 2).at(-1)], ['more', 'on'])
    },
    'a guard may say that the run is not completed': async () => {
      const seen = await runWith(guard('onStop', (ctx) => ctx.stop('not like that'), me))
      assert.deepEqual([ending(seen), seen.run.text], [['stopRequested by me', 2], 'done'])
    },
  },
  onSubagentStop: {
    'a hook may change the output and request continuation': async () => {
      const shorten = hook('onSubagentStop', (ctx) =>
        ctx.subagent.status === 'completed' ? ctx.withOutput('short').requestContinuation('on') : ctx,
      )
      const { output, votes } = await fire(shorten, 'onSubagentStop', { output: 'long' })
      assert.deepEqual([output, votes?.map((vote) => vote.decision)], ['short', ['requestContinuation']])
    },
    'a guard may block the output and request continuation': async () => {
      const judge = guard('onSubagentStop', (ctx) => ctx.block('secret').requestContinuation('on'))
      const { decision, message, votes } = await fire(judge, 'onSubagentStop', { output: 'long' })
      assert.deepEqual([decision, message, votes?.length], ['block', 'secret', 1])
    },
  },
  onPause: { 'a hook may change the state': () => stateIsKept('onPause') },
  onResume: { 'a hook may change the state': () => stateIsKept('onResume') },
  onError: {
    'a hook may stop the run': async () => {
      const seen = await runWith(
        hook('onError', (ctx) => ctx.stop('no', { reason: 'errorForbade' }), me),
        failOnce,
      )
      assert.deepEqual(ending(seen), ['errorForbade by me', 1])
    },
    'a hook may have it tried again': async () => {
      const seen = await runWith(
        hook('onError', (ctx) => ctx.retry()),
        failOnce,
      )
      assert.deepEqual([ending(seen), seen.run.state.stepCount], [['completed', 2], 1])
    },
    'a hook may ignore it, and the run continues': async () => {
      const seen = await runWith(
        hook('onError', (ctx) => ctx.ignore()),
        failOnce,
      )
      assert.deepEqual([ending(seen), seen.run.state.stepCount], [['completed', 2], 2])
    },
  },
  beforeCompaction: {
    'a hook may change the messages': async () => {
      const keep = hook('beforeCompaction', (ctx) => ctx.withMessages(ctx.messages.slice(0, 1)))
      const messages = [textMessage('user', 'a'), textMessage('user', 'b')]
      assert.deepEqual((await fire(keep, 'beforeCompaction', { messages })).messages, [textMessage('user', 'a')])
    },
    'a guard may block it': async () => {
      const never = guard('beforeCompaction', (ctx) => ctx.block('never'))
      assert.deepEqual(await fire(never, 'beforeCompaction'), { decision: 'block', message: 'never' })
    },
  },
  afterCompaction: {
    'a hook may change the messages': async () => {
      const sign = hook('afterCompaction', (ctx) => ctx.withMessages([textMessage('user', `${ctx.summary}!`)]))
      const outcome = await fire(sign, 'afterCompaction', { summary: 'short' })
      assert.deepEqual(outcome, { messages: [textMessage('user', 'short!')] })
    },
    'a guard may block it': async () => {
      const never = guard('afterCompaction', (ctx) => ctx.block('never'))
      assert.deepEqual(await fire(never, 'afterCompaction'), { decision: 'block', message: 'never' })
    },
  },
  afterExecution: { 'a hook may change the state': () => stateIsKept('afterExecution') },
  onSessionEnd: {
    'a hook may change the state': async () => {
      const leave = hook('onSessionEnd', (ctx) => ctx.withState((state) => state.withMetadata('why', ctx.reason)))
      assert.deepEqual(await fire(leave, 'onSessionEnd', { reason: 'quit' }), { state: { metadata: { why: 'quit' } } })
    },
  },
}

for (const [trigger, rows] of Object.entries(table)) {
  describe(trigger, () => {
    for (const [title, row] of Object.entries(rows)) test(`at ${trigger} ${title}`, row)
  })
}

/** A run that fires every trigger of the loop: the model fails once, then requests a call that is approved. */
async function tour(...use: readonly Use[]): Promise<Run> {
  const model = scriptedModel([{ error: 'down' }, sayHi, 'done'])
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('may it?'), { name: 'asks' })
  const retry = hook('onError', (ctx) => ctx.retry(), { name: 'retries' })
  const agent = createAgent({ model, use: [echo, ask, retry, approval('suspend'), ...use] })
  const run = await agent.run('go')
  assert.equal(run.status, 'suspended')
  return agent.resume(run, { answers: { [run.pending[0]!.id]: 'allow' } })
}

async function stateIsKept(trigger: PlainTrigger): Promise<void> {
  const run = await tour(hook(trigger, (ctx) => ctx.withState((state) => state.withMetadata('mark', trigger))))
  assert.deepEqual([run.status, run.state.metadata['mark']], ['completed', trigger])
}

const firedByTheLoop = triggerNames.filter((name) => !/Session|Subagent|Compaction/.test(name))
const plain = triggerNames.filter((name): name is PlainTrigger => !isAround(name))

for (const trigger of plain.filter((name) => firedByTheLoop.includes(name))) {
  test(`the final state has what a hook wrote into it at ${trigger}`, () => stateIsKept(trigger))
}

test('the triggers fire in the order of the lifecycle', async () => {
  const fired: string[] = []
  await tour(
    observe('*', (ctx) => void fired.push(ctx.trigger)),
    hook('aroundInference', (ctx, next) => (fired.push(ctx.trigger), next())),
    hook('aroundToolUse', (ctx, next) => (fired.push(ctx.trigger), next())),
  )
  const begin = 'onUserInput beforeExecution'
  const failing = 'beforeStep beforeInference aroundInference onError beforeInference aroundInference afterInference'
  const waiting = 'beforeToolUse onPause onResume beforeToolUse aroundToolUse afterToolUse afterStep'
  const answering = 'beforeStep beforeInference aroundInference afterInference afterStep'
  assert.equal(fired.join(' '), `${begin} ${failing} ${waiting} ${answering} onStop afterExecution`)
})
