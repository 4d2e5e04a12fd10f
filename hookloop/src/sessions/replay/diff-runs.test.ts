import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { SavedRun } from '../../core/state/saved-run.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { diffRuns } from './diff-runs.ts'
import { formatDiff } from './format-diff.ts'
import { memoryStore } from '../stores/memory-store.ts'

const shell = tool({
  name: 'shell',
  description: 'Runs.',
  input: { type: 'object' },
  execute: ({ command }) => `ran ${JSON.stringify(command)}`,
})

const call = (command: string, id = 'c'): Script[number] => ({ toolCalls: [{ name: 'shell', args: { command }, id }] })

function run(script: Script, ...use: readonly Use[]) {
  return createAgent({ model: scriptedModel(script), use: [shell, ...use] }).run('go')
}

const noPush = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['command'] === 'push' ? ctx.block('Never.') : ctx), {
  name: 'no-push',
})

test('two runs that differ in ids and times alone are the same', async () => {
  const [a, b] = [await run([call('ls', 'x'), 'Done.']), await run([call('ls', 'y'), 'Done.'])]
  const diff = diffRuns(a, b)
  assert.deepEqual([diff.same, diff.steps, diff.messages], [true, [], { shared: 4, a: 4, b: 4 }])
  assert.equal(formatDiff(diff), 'The runs are the same.')
})

test('two runs part where a guard blocks in one of them', async () => {
  const script = [call('ls'), call('push'), 'Done.']
  const [a, b] = [await run(script), await run(script, noPush)]
  const diff = diffRuns(a, b)
  assert.deepEqual(
    [diff.same, diff.partsAt, diff.messages, diff.hooks, diff.end],
    [false, { step: 1, in: 'results' }, { shared: 4, a: 6, b: 6 }, { a: [], b: ['no-push'] }, undefined],
  )
  assert.deepEqual(
    diff.steps.map(({ a: one, b: other }) => [one?.results[0], other?.results[0]]),
    [
      [
        { status: 'ok', output: 'ran "push"' },
        { status: 'blocked', output: 'Never.', by: 'no-push' },
      ],
    ],
  )
})

test('a run that was stopped earlier lacks the steps after, and ended otherwise', async () => {
  const enough = hook('afterStep', (ctx) => ctx.stop('Enough.'), { name: 'enough' })
  const [a, b] = [await run([call('ls'), 'Done.']), await run([call('ls'), 'Done.'], enough)]
  const { steps, end, usage } = diffRuns(a, b)
  assert.deepEqual(
    steps.map(({ step, differs, b: other }) => [step, differs, other === undefined]),
    [
      [0, ['votes'], false],
      [1, [], true],
    ],
  )
  assert.deepEqual([end?.a.reason, end?.b.reason, end?.b.by], ['completed', 'stopRequested', 'enough'])
  assert.deepEqual([usage?.a.steps, usage?.b.steps], [2, 1])
})

test('metadata and prompts are compared by their places', async () => {
  const write = (value: string) =>
    hook(
      'beforeExecution',
      (ctx) => ctx.withState((state) => state.withMetadata('deep', { value }).withSystemPrompt(value)),
      { name: 'write' },
    )
  const { changes } = diffRuns(await run(['Done.'], write('one')), await run(['Done.'], write('two')))
  assert.deepEqual(changes, [
    { path: 'systemPrompt', before: 'one', after: 'two' },
    { path: 'metadata.deep.value', before: 'one', after: 'two' },
  ])
})

test('live runs, saved runs and sessions can be compared with each other', async () => {
  const store = memoryStore()
  const script = [call('ls'), 'Done.']
  const agent = createAgent({ model: scriptedModel([...script, ...script]), use: [shell], store })
  const live = await agent.run('go')
  await agent.run('go', { session: 's' })
  const stored = (await store.read('s'))!
  const saved = JSON.parse(JSON.stringify(live)) as SavedRun
  for (const [a, b] of [
    [live, saved],
    [saved, stored],
    [stored, stored.lines],
  ] as const) {
    assert.equal(diffRuns(a, b).same, true)
  }
})

test('a diff is formatted as text', async () => {
  const [a, b] = [
    await run([call('ls'), call('push'), 'Done.']),
    await run(
      [call('ls'), call('push')],
      noPush,
      hook('afterStep', (ctx) => (ctx.step.index === 1 ? ctx.stop('Enough.') : ctx), { name: 'enough' }),
    ),
  ]
  assert.equal(
    formatDiff(diffRuns(a, b)),
    `The runs differ from step 2 on, in the results.
  messages     4 shared, then 2 and 1 unshared
  hooks
    - no others
    + no-push, enough
  step 2, the results
    - [{"status":"ok","output":"ran \\"push\\""}]
    + [{"status":"blocked","output":"Never.","by":"no-push"}]
  step 2, the votes
    - []
    + [{"decision":"forbidContinuation","source":"enough","message":"Enough."}]
  - step 3     "Done."
  end
    - completed, completed by completion: The model called no more tools.
    + stopped, stopRequested by enough: Enough.
  spent
    - 3 steps, 2 tool calls, 45 tokens
    + 2 steps, 2 tool calls, 30 tokens`,
  )
})

test('a diff shows long values where they differ', async () => {
  const same = 'the same words again and again, '.repeat(20)
  const [a, b] = [await run([`${same}but left`]), await run([`${same}but right`])]
  const text = formatDiff(diffRuns(a, b))
  assert.match(text, /step 1, the text\n {4}- ….{30}left"\n {4}\+ ….{30}right"/)
})
