import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guards } from '../../capabilities/guards.ts'
import { hook } from '../../core/hooks/hook.ts'
import { formatReplay } from './format-replay.ts'
import { judged, listThenPush, noPush, tape } from './taped-run.fixture.ts'

test('each step of a long run is judged once', async () => {
  for (const steps of [200, 800]) {
    const script = [
      ...Array.from({ length: steps }, (_, i) => ({
        toolCalls: [{ name: 'shell', args: { command: 'ls' }, id: `c${i}` }],
      })),
      'Done.',
    ]
    const taped = await tape(script, [guards({ maxSteps: 1e6, maxTokens: 1e9 })])
    let calls = 0
    const count = hook('beforeStep', (ctx) => {
      calls += 1
      return ctx.withState((state) => state.withMetadata('steps', ctx.state.stepCount))
    })
    const { differences } = await judged(taped, { hooks: [count] })
    assert.deepEqual([differences.length, calls], [steps + 1, steps + 1])
  }
})

test('a report is formatted as text', async () => {
  const loud = hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'LS' }), {
    name: 'loud',
    when: ({ toolCall }) => toolCall.id === 'list',
  })
  const around = hook('aroundToolUse', (_ctx, next) => next(), { name: 'around' })
  const report = await judged(await tape(listThenPush), { hooks: [noPush, loud, around] })
  assert.equal(
    formatReplay(report),
    `3 decisions judged again: 2 decisions would have differed.
  diverges at  step 1, beforeToolUse, shell: the call would have different arguments
  step 1, beforeToolUse, shell
    was        nothing
    would be   changed by loud
    changed    args.command "ls" → "LS"
    so         the call would have different arguments
  step 2, beforeToolUse, shell
    was        nothing
    would be   block by no-push: Agents never push.
    so         the call would be blocked
  not judged   around: it wraps a call, and a call is recorded together with the hooks around it`,
  )
  assert.equal(
    formatReplay(await judged(await tape(['Done.']))),
    '1 decision judged again: nothing would have differed.',
  )
})
