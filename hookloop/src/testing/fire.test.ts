import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { tool } from '../core/agent/tool.ts'
import { textMessage } from '../core/state/message.ts'
import { guard, hook, observe } from '../core/hooks/hook.ts'
import { hasMetadata } from '../core/hooks/matchers.ts'
import { triggerNames, type PlainTrigger } from '../core/hooks/triggers.ts'
import { fire } from './fire.ts'

const bash = tool({
  name: 'bash',
  description: '',
  input: z.object({ command: z.string(), cwd: z.string().default('.') }),
  execute: ({ command }) => command,
})
const neverPush = guard(
  'beforeToolUse',
  (ctx) => (/git push/.test(ctx.toolCall.args.command) ? ctx.block('Agents never push.') : ctx),
  { tool: bash },
)
const call = (command: string) => ({ toolCall: { name: 'bash', args: { command } } })

test('fire gives what a guard decided', async () => {
  assert.deepEqual(await fire(neverPush, 'beforeToolUse', call('git push')), {
    decision: 'block',
    message: 'Agents never push.',
  })
})

test('fire gives nothing for a guard without opinion', async () => {
  assert.deepEqual(await fire(neverPush, 'beforeToolUse', call('git pull')), {})
})

test('fire gives nothing for a hook about another tool', async () => {
  const outcome = await fire(neverPush, 'beforeToolUse', { toolCall: { name: 'sh', args: { command: 'git push' } } })
  assert.deepEqual(outcome, {})
})

test('fire returns an empty outcome for a hook whose when does not match', async () => {
  const stop = guard('beforeStep', (ctx) => ctx.stop('no'), { when: hasMetadata('role', 'guest') })
  assert.deepEqual(await fire(stop, 'beforeStep', { metadata: { role: 'admin' } }), {})
})

test('fire gives what a hook changed, as JSON', async () => {
  const change = hook('beforeToolUse', (ctx) =>
    ctx.withArgs({ command: 'ls' }).withState((state) => state.withMetadata('seen', 1).withMessage('note')),
  )
  assert.deepEqual(await fire(change, 'beforeToolUse', call('rm')), {
    args: { command: 'ls' },
    state: { metadata: { seen: 1 }, appended: [textMessage('user', 'note')] },
  })
})

test('fire gives the votes that were cast', async () => {
  const vote = guard('afterStep', (ctx) => ctx.stop('late', { reason: 'timeLimit', value: 9 }))
  assert.deepEqual(await fire(vote, 'afterStep'), {
    votes: [{ decision: 'forbidContinuation', reason: 'timeLimit', message: 'late', value: 9 }],
  })
})

test('fire gives the recovery that was chosen', async () => {
  const retry = hook('onError', (ctx) => ctx.retry({ afterMs: ctx.consecutiveFailures * 10 }))
  assert.deepEqual(await fire(retry, 'onError', { consecutiveFailures: 3 }), {
    recovery: { decision: 'retry', afterMs: 30 },
  })
})

test('fire shows the hook the facts it is given, and fills in the rest', async () => {
  const seen: unknown[] = []
  const look = observe('afterToolUse', (ctx) => {
    seen.push(ctx.toolCall, ctx.toolExecution, ctx.spent.costUsd, ctx.spent.steps, ctx.now, ctx.state.metadata['a'])
  })
  const facts = {
    toolCall: { name: 'x' },
    toolExecution: { output: 'out' },
    spent: { costUsd: 2 },
    now: 7,
    metadata: { a: 1 },
  }
  await fire(look, 'afterToolUse', facts)
  const [toolCall, toolExecution] = [
    { id: 'call-1', name: 'x', args: {} },
    { status: 'ok', output: 'out' },
  ]
  assert.deepEqual(seen, [toolCall, toolExecution, 2, 0, 7, 1])
})

test('fire shows the hook the conversation it is given', async () => {
  const count = hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata('n', state.messages.length)))
  const messages = [textMessage('user', 'a'), textMessage('assistant', 'b')]
  assert.deepEqual(await fire(count, 'beforeStep', { messages }), { state: { metadata: { n: 2 } } })
})

for (const trigger of triggerNames.filter((name): name is PlainTrigger => !name.startsWith('around'))) {
  test(`fire needs no facts to fire ${trigger}`, async () => {
    const facts = observe('*', (ctx) => assert.equal(ctx.trigger, trigger))
    const pass = hook(trigger, (ctx) => ctx)
    assert.deepEqual([await fire(facts, trigger), await fire(pass, trigger)], [{}, {}])
  })
}

test('a guard that throws gives its no', async () => {
  const broken = guard(
    'beforeToolUse',
    () => {
      throw new Error('oops')
    },
    { name: 'broken' },
  )
  assert.deepEqual(await fire(broken, 'beforeToolUse'), {
    decision: 'block',
    message: 'Guard "broken" failed at beforeToolUse: oops',
  })
})

test('a guard that does not answer in time gives its no', async () => {
  const slow = guard('beforeStep', () => new Promise<never>(() => undefined), { timeoutMs: 5 })
  assert.equal((await fire(slow, 'beforeStep')).votes?.[0]?.reason, 'errorForbade')
})

test('a hook that throws rejects with the names of the hook and the trigger', async () => {
  const broken = hook(
    'beforeStep',
    () => {
      throw new Error('oops')
    },
    { name: 'broken' },
  )
  await assert.rejects(fire(broken, 'beforeStep'), {
    code: 'HOOK_FAILED',
    message: 'Hook "broken" failed at beforeStep: oops',
  })
})

test('a hook that returns nothing rejects', async () => {
  const forgetful = hook('beforeStep', (() => undefined) as never)
  await assert.rejects(fire(forgetful, 'beforeStep'), { code: 'HOOK_NO_RETURN' })
})

test('an observer that throws changes nothing', async () => {
  const broken = observe('beforeStep', () => {
    throw new Error('oops')
  })
  assert.deepEqual(await fire(broken, 'beforeStep'), {})
})

test('a hook that performs an effect gives its outcome too', async () => {
  const remote = guard('beforeToolUse', async (ctx) => ctx.ask('may it?'), { name: 'remote', effect: true })
  assert.deepEqual(await fire(remote, 'beforeToolUse'), { decision: 'ask', message: 'may it?' })
})

test('an output that is taken away is seen in the outcome', async () => {
  const clear = hook('afterToolUse', (ctx) => ctx.withOutput(null))
  assert.deepEqual(await fire(clear, 'afterToolUse', { toolExecution: { output: 'secret' } }), { output: null })
})

test('a guard that was given the tool itself sees what its schema makes of the arguments, as in a run', async () => {
  const elsewhere = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.cwd === '.' ? ctx : ctx.block('no')), {
    tool: bash,
  })
  assert.deepEqual(await fire(elsewhere, 'beforeToolUse', call('ls')), {})
})

test('a hook that was given the tool itself is not shown arguments that do not fit, as in a run', async () => {
  const trim = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: ctx.toolCall.args.command.trim() }), {
    tool: bash,
  })
  assert.deepEqual(await fire(trim, 'beforeToolUse', { toolCall: { name: 'bash', args: { command: 7 } } }), {})
})

test('fire rejects an around hook and says how to test it', async () => {
  const wrap = hook('aroundInference', (_ctx, next) => next())
  await assert.rejects(fire(wrap as never, 'aroundInference' as never), {
    code: 'HOOK_INVALID_OPTION',
    message: /agent\.run/,
  })
})

test('arguments that are not JSON are rejected', async () => {
  const facts = { toolCall: { args: { at: new Date() } } }
  await assert.rejects(fire(neverPush, 'beforeToolUse', facts as never), { code: 'JSON_INVALID' })
})

test('a hook that changes the system prompt of a request leaves its messages alone', async () => {
  const brief = hook('beforeInference', (ctx) => ctx.withRequest({ system: 'Be brief.' }))
  const request = { messages: [textMessage('user', 'Hello.')] }
  assert.deepEqual(await fire(brief, 'beforeInference', { request }), { request: { system: 'Be brief.' } })
})
