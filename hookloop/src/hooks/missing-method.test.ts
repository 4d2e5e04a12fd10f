import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { tool } from '../agent/tool.ts'
import type { Use } from '../agent/capability.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { guard, hook, observe } from './hook.ts'

const run = tool({ name: 'run', description: '', input: { type: 'object' }, execute: () => 'ok' })

/** What hooks failed with in a run with one call. */
async function errorsOf(use: Use): Promise<string> {
  const model = scriptedModel([{ toolCalls: [{ name: 'run', args: { command: 'ls' } }] }, 'done'])
  const { ledger } = await createAgent({ model, use: [run, use] }).run('go')
  return ledger
    .map(({ error }) => error ?? '')
    .join('\n')
    .trim()
}

/** A context as JavaScript sees it. */
type Loose = {
  readonly [name in 'deny' | 'reject' | 'approve' | 'frobnicate' | 'next' | 'stopp']: (why?: string) => never
} & {
  readonly state: { readonly messages: { push(message: string): void }; readonly metadata: { x?: number } }
  readonly toolCall: { readonly args: { x?: number }; readonly input: { readonly command: string } }
  readonly args: { readonly command: string }
}
const as = (handler: (ctx: Loose) => unknown): never => handler as never

const mistakes: { readonly [what: string]: readonly [Use, string] } = {
  'ctx.deny() in a guard': [
    guard(
      'beforeToolUse',
      as((ctx) => ctx.deny('no')),
    ),
    'It called ctx.deny(), which a guard does not have at beforeToolUse. It is called "block" here. Available to it: stop, block, ask, allow, infer, spend.',
  ],
  'ctx.reject() in a guard that cannot block': [
    guard(
      'beforeStep',
      as((c) => c.reject('no')),
    ),
    'It called ctx.reject(), which a guard does not have at beforeStep. It is called "stop" here. Available to it: stop, requestContinuation, allowStop, allowContinuation, ask, infer, spend.',
  ],
  'ctx.approve() in a hook': [
    hook(
      'beforeToolUse',
      as((ctx) => ctx.approve()),
    ),
    `It called ctx.approve(), which a hook does not have at beforeToolUse. A guard can call ctx.allow(): use guard('beforeToolUse', …). Available to it: withState, withArgs, stop, infer, spend.`,
  ],
  'a method with a typing error': [
    guard(
      'beforeToolUse',
      as((ctx) => ctx.stopp('no')),
    ),
    'It called ctx.stopp(), which a guard does not have at beforeToolUse. It is called "stop" here. Available to it: stop, block, ask, allow, infer, spend.',
  ],
  'a method that no context has': [
    observe(
      'beforeToolUse',
      as((ctx) => ctx.frobnicate()),
    ),
    'It called ctx.frobnicate(), which an observer does not have at beforeToolUse. Available to it: no method.',
  ],
  'ctx.next()': [
    hook(
      'aroundToolUse',
      as((ctx) => ctx.next()),
    ),
    'It called ctx.next(), which a hook does not have at aroundToolUse. next is the second parameter: (ctx, next) => next().',
  ],
  'a message that is pushed': [
    hook(
      'beforeStep',
      as((ctx) => (ctx.state.messages.push('x'), ctx)),
    ),
    'Cannot add property 1, object is not extensible. Contexts and their values are immutable: return ctx.withState(…).',
  ],
  'arguments that are written': [
    hook(
      'beforeToolUse',
      as((ctx) => ((ctx.toolCall.args.x = 1), ctx)),
    ),
    'Cannot add property x, object is not extensible. Contexts and their values are immutable: return ctx.withState(…) or ctx.withArgs(…).',
  ],
  'arguments that a guard writes': [
    guard(
      'beforeToolUse',
      as((ctx) => ((ctx.toolCall.args.x = 1), ctx)),
    ),
    'Cannot add property x, object is not extensible. Contexts and their values are immutable: a guard changes nothing here.',
  ],
  'ctx.toolCall.input': [
    guard(
      'beforeToolUse',
      as((ctx) => ctx.toolCall.input.command),
    ),
    `Cannot read properties of undefined (reading 'command'). ctx.toolCall has no "input": the arguments are ctx.toolCall.args.`,
  ],
  'ctx.args': [
    guard(
      'beforeToolUse',
      as(async (ctx) => ctx.args.command),
    ),
    `Cannot read properties of undefined (reading 'command'). ctx has no "args" at beforeToolUse: the arguments are ctx.toolCall.args.`,
  ],
  'a destructured field that does not exist': [
    guard(
      'beforeToolUse',
      as(({ args }) => args.command),
    ),
    `Cannot read properties of undefined (reading 'command'). ctx has no "args" at beforeToolUse: the arguments are ctx.toolCall.args.`,
  ],
  'a field of another trigger': [
    hook(
      'beforeStep',
      as(function named(ctx) {
        return ctx.toolCall.args
      }),
    ),
    `Cannot read properties of undefined (reading 'args'). ctx has no "toolCall" at beforeStep: it has trigger, state, spent, now, signal, ledger.`,
  ],
}

describe('the error of a hook says how to write it', () => {
  for (const [what, [use, error]] of Object.entries(mistakes)) {
    test(`after ${what}`, async () => assert.equal(await errorsOf(use), error))
  }

  test('and is unchanged if the mistake is not about the context', async () => {
    const other = {} as { readonly check: () => never; readonly deep: { readonly x: number } }
    assert.equal(await errorsOf(guard('beforeToolUse', () => other.check())), 'other.check is not a function')
    const reads = guard('beforeToolUse', (ctx) => (other.deep.x === 1 ? ctx.block(ctx.toolCall.name) : ctx))
    assert.equal(await errorsOf(reads), "Cannot read properties of undefined (reading 'x')")
  })
})
