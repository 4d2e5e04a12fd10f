import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { approval } from '../../capabilities/approval.ts'
import { responseContent } from '../../capabilities/response-content.ts'
import { getCritique, selfCritique } from '../../capabilities/self-critique.ts'
import { createAgent } from '../../create-agent.ts'
import { explain } from '../explain/explain.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { Use } from '../agent/capability.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'

// A run whose end a hook must approve is never completed without that, however it is ended.

const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
const done = { reason: 'completed' } as const

/** Every way to force a stop, with the reason of a completed run. */
const stops: { readonly [way: string]: Use } = {
  'a hook at afterStep': hook('afterStep', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
  'a guard at afterStep': guard('afterStep', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
  'a hook at beforeExecution': hook('beforeExecution', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
  'a hook at beforeStep': hook('beforeStep', (ctx) => (ctx.state.stepCount > 1 ? ctx.stop('enough', done) : ctx), {
    name: 'forces',
  }),
  'a guard at beforeInference': guard(
    'beforeInference',
    (ctx) => (ctx.state.stepCount > 1 ? ctx.stop('enough', done) : ctx),
    { name: 'forces' },
  ),
  'a guard at afterInference': guard('afterInference', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
  'a guard at beforeToolUse': guard('beforeToolUse', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
  'a hook at afterToolUse': hook('afterToolUse', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
  'a guard at onStop': guard('onStop', (ctx) => ctx.stop('enough', done), { name: 'forces' }),
}

const revise = { verdict: 'revise', summary: 'Too short.', weaknesses: [], suggestions: [] }
const critic = () => scriptedModel(() => ({ text: JSON.stringify(revise) }))

/** Every kind of hook that must approve the end, and none of them does. */
const approvers: { readonly [what: string]: () => Use } = {
  selfCritique: () => selfCritique({ model: critic() }),
  'a hook at onStop': () => hook('onStop', (ctx) => ctx.requestContinuation('more'), { name: 'approves' }),
  'a guard at onStop': () => guard('onStop', (ctx) => ctx.requestContinuation('more'), { name: 'approves' }),
  responseContent: () => responseContent(() => ({ continue: 'more' }), { name: 'approves' }),
}

const script: readonly ScriptedTurn[] = [
  { toolCalls: [{ name: 'work' }] },
  'a',
  'b',
  'c',
  'd',
  'e',
  'f',
  'g',
  'h',
  'i',
  'j',
]
const runWith = (...use: readonly Use[]): Promise<Run> =>
  createAgent({ model: scriptedModel(script), use: [work, ...use] }).run('go')

suite('a run that a hook has not approved is not completed', () => {
  for (const [what, approver] of Object.entries(approvers)) {
    for (const [way, stop] of Object.entries(stops)) {
      if (what === 'responseContent' && !/beforeStep|beforeInference|onStop/.test(way)) continue // it judges answers only
      test(`if ${way} ends it before ${what} approves`, async () => {
        const run = await runWith(approver(), stop)
        assert.ok(run.status === 'stopped', run.status)
        if (run.by !== 'forces') return // more urgent: the approver has given up
        const { message, reason } = run.final
        assert.equal(reason, 'stopRequested')
        assert.match(
          message,
          /^enough \("forces" forced the stop; "(selfCritique\.judge|approves)" had not approved it: /,
        )
        assert.ok(explain(run).includes('"forces" forced the stop'))
      })
    }
  }

  test('the critic that had not approved is named with what it said', async () => {
    const run = await runWith(approvers['selfCritique']!(), stops['a hook at afterStep'])
    assert.ok(run.status === 'stopped')
    assert.match(
      run.final.message,
      /"selfCritique\.judge" had not approved it: A reviewer .* wants it revised: Too short\)$/, // no prompt for the model
    )
    assert.equal(getCritique(run.state)?.critique?.verdict, 'revise')
  })

  test('but an approved run that is forced to stop is completed', async () => {
    const approve = { verdict: 'approve', summary: 'Good.', weaknesses: [], suggestions: [] }
    const approves = selfCritique({ model: scriptedModel(() => JSON.stringify(approve)) })
    const run = await runWith(approves, stops['a hook at afterStep'])
    assert.deepEqual([run.status, run.final?.by], ['completed', 'forces'])
  })

  test('a blocked approval does not complete it', async () => {
    const asks = guard('beforeToolUse', (ctx) => ctx.ask('sure?'))
    const run = await runWith(asks, approval({ answer: () => ({ block: 'no' }) }), approvers['a hook at onStop']!())
    assert.deepEqual([run.status, run.final?.reason], ['stopped', 'continuationLimit'])
  })
})
