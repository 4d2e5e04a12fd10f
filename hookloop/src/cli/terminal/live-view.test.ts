import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { createAgent } from '../../create-agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { noTokens } from '../../core/state/usage.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { pipes, terminal } from '../cli.fixture.ts'
import { LiveView } from './live-view.ts'
import { Screen } from './screen.ts'

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object' },
  execute: (args) => `saw \u001B[31m${JSON.stringify(args)}\u001B[0m\nand more`,
})

/** A run as it looks in a pipe: what went to stdout, and the lines of stderr without times. */
async function seen(script: Script, ...use: readonly Use[]) {
  const { out, err, stdout, stderr } = pipes()
  const view = new LiveView(new Screen({ out, err, env: {} }))
  for await (const event of createAgent({ model: scriptedModel(script), use }).stream('Go.')) view.show(event)
  return {
    stdout: stdout(),
    lines: stderr()
      .replace(/\d+ ms|\d\.\d s/g, 'N ms')
      .trimEnd()
      .split('\n'),
  }
}

const calling = (...calls: readonly { name: string; args?: { readonly [key: string]: string } }[]): Script => [
  { text: 'Wait.', toolCalls: calls },
  'Done.',
]

test('answers go to stdout on their own lines, reasoning and calls to stderr', async () => {
  const script: Script = [
    { reasoning: 'Hm.', text: 'Wait.', toolCalls: [{ name: 'look', args: { at: 'it' } }] },
    'Done.',
  ]
  const { stdout, lines } = await seen(script, look)
  assert.equal(stdout, 'Wait.\nDone.\n')
  assert.deepEqual(lines, ['thinking: Hm.', '▸ look at: "it"', '✓ look N ms saw {"at":"it"} and more'])
})

test('a blocked call is shown once, with who blocked it and why', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('Never look.'), { name: 'never' })
  const { lines } = await seen(calling({ name: 'look', args: { at: 'it' } }), look, never)
  assert.deepEqual(lines, ['⊘ look at: "it" blocked by never: Never look.'])
})

test('hooks that change, stop, continue and fail are shown; those that decide nothing are not', async () => {
  let goesOn = true
  const { lines } = await seen(
    calling({ name: 'look', args: { at: 'a' } }),
    look,
    hook('beforeToolUse', (ctx) => ctx.withArgs({ at: 'b' }), { name: 'elsewhere' }),
    hook(
      'afterToolUse',
      () => {
        throw new Error('oh')
      },
      { name: 'clumsy', onFailure: 'continue' },
    ),
    guard('onStop', (ctx) => (goesOn ? ((goesOn = false), ctx.requestContinuation('Once more.')) : ctx), {
      name: 'keen',
    }),
    guard('beforeStep', (ctx) => (ctx.state.stepCount === 2 ? ctx.stop('Enough.') : ctx), { name: 'tired' }),
    guard('beforeStep', (ctx) => ctx, { name: 'silent' }),
  )
  assert.deepEqual(lines, [
    '✎ elsewhere changed args.at "a" → "b"',
    '▸ look at: "b"',
    '! Hook "clumsy" failed at afterToolUse, and the run continued without it: oh',
    '✓ look N ms saw {"at":"b"} and more',
    '↻ keen requested another step: Once more.',
    '■ tired stopped the run: Enough.',
  ])
})

test('bookkeeping of capabilities is shown only with verbose, and its failures always', async () => {
  const keeps = hook('afterToolUse', (ctx) => ctx.withOutput('kept'), { name: 'keeps', bookkeeping: true })
  const { lines } = await seen(calling({ name: 'look' }), look, keeps)
  assert.deepEqual(lines, ['▸ look', '✓ look N ms kept'])
  const fails = hook('afterToolUse', () => assert.fail('broken'), {
    name: 'fails',
    bookkeeping: true,
    onFailure: 'continue',
  })
  assert.match((await seen(calling({ name: 'look' }), look, fails)).lines.join('\n'), /! Hook "fails" failed at/)
  const { out, err, stderr } = pipes()
  const view = new LiveView(new Screen({ out, err, env: {} }), { verbose: true })
  const agent = createAgent({ model: scriptedModel(calling({ name: 'look' })), use: [look, keeps] })
  for await (const event of agent.stream('Go.')) view.show(event)
  assert.match(stderr(), /✎ keeps changed output = "kept"/)
})

test('a retracted answer is marked as discarded, and the next one starts on a new line', async () => {
  const again = errorPolicy({ backoffMs: 0 })
  const { stdout, lines } = await seen([{ chunks: ['Half an ans'], error: 'cut off' }, 'A whole answer.'], again)
  assert.equal(stdout, 'Half an ans\nA whole answer.\n')
  assert.deepEqual(lines, [
    '! MODEL_FAILED: scripted/script: cut off',
    '! A model call was started and did not complete. Its usage is estimated.',
    '↶ discarded the answer above: the model call failed',
    '↻ errorPolicy.onError retries',
  ])
})

test('a question is asked once everything before it is on the screen', async () => {
  const { out, err, written } = terminal()
  const view = new LiveView(new Screen({ out, err, env: {} }), { asksHere: true })
  let before = ''
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Really?'), { name: 'careful' })
  const person = approval(async (question) => {
    await view.reached(question)
    before = stripVTControlCharacters(written())
    return 'allow' as const
  })
  const model = scriptedModel(calling({ name: 'look' }))
  const agent = createAgent({ model, use: [look, asks, person] })
  for await (const event of agent.stream('Go.')) view.show(event)
  assert.equal(before, 'Wait.\n')
})

test('in a pipe no answer is shown while it arrives, and none is marked as discarded', async () => {
  const { out, err, stdout, stderr } = pipes()
  const view = new LiveView(new Screen({ out, err, env: {} }), { showsAnswers: false })
  view.show({ type: 'text', step: 0, at: 1, delta: 'Half' })
  view.show({ type: 'retracted', step: 0, at: 1, why: 'the model call failed' })
  view.show({ type: 'responded', step: 0, at: 1, text: 'Whole.', usage: noTokens })
  assert.deepEqual([stdout(), stderr()], ['', ''])
})
