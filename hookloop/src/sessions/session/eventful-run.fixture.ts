// A run in which everything happens that a session must remember: steps with calls side by side, a question to a
// person, tools that are tried again, hooks with effects, a model that fails, a hook that does, a typed answer.
import { setImmediate as soon, setTimeout as delay } from 'node:timers/promises'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { type Run } from '../../core/agent/run.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { errorPolicy } from '../../capabilities/error-policy.ts'
import { fallback } from '../../capabilities/fallback.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { ModelRequest } from '../../core/state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { systemClock, type Clock } from '../../core/effects/run-time.ts'
import { AgentError } from '../../errors.ts'
import { guard, hook, observe } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { answerApproval } from './approvals.ts'
import type { SessionStore } from '../stores/store.ts'
import { findSession } from './open-session.fixture.ts'

/** What is outside of the run: everything that is really done is noted there, in order. */
export type World = { readonly note: (what: string, key: string) => void }

/** A schema of arguments that are texts. A library for schemas would be most of what a process has to load. */
function texts(...names: readonly string[]): JsonObject {
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: names,
  }
}

const turns: readonly ScriptedTurn[] = [
  { toolCalls: ['a', 'b', 'c'].map((what) => ({ name: 'look', args: { what }, id: `look-${what}` })) },
  {
    text: 'Now the rest.',
    toolCalls: [
      { name: 'flaky', id: 'flaky' },
      { name: 'sync', id: 'sync' },
      { name: 'count', id: 'count' },
    ],
  },
  {
    toolCalls: [
      { name: 'look', args: { what: 'd' }, id: 'look-d' },
      { name: 'wire', id: 'wire' },
      { name: 'pay', args: { to: 'ann' }, id: 'pay-ann' },
      { name: 'pay', args: { to: 'bob' }, id: 'pay-bob' },
    ],
  },
  { toolCalls: [{ name: 'look', args: { what: 'e' }, id: 'look-e' }] },
  '{"answer":1}',
  '{"answer":42}',
]

/** The tools of the run that must not be done twice, and how often each may be called. */
export const onlyOnce = ['look-a', 'look-b', 'look-c', 'look-d', 'look-e', 'flaky', 'pay-ann']

/** The call that is asked about if its outcome is unknown: the approver checks whether it was done, so it is done once. */
export const alwaysOnce = 'wire'

export function eventfulAgent(
  store: SessionStore,
  world: World,
  { use = [], instructions = 'Work.' }: { readonly use?: readonly Use[]; readonly instructions?: string } = {},
): Agent<unknown> {
  const tries = new Map<string, number>()
  /** Fails the first time it is tried for a call. */
  const passes = (key: string): void => {
    tries.set(key, (tries.get(key) ?? 0) + 1)
    if (tries.get(key) === 1) throw new Error('busy')
  }
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: texts('what'),
    concurrent: true,
    execute: async (args, { idempotencyKey }) => {
      const { what } = args as { what: string }
      await soon()
      world.note(`look-${what}`, idempotencyKey)
      await soon()
      return `saw ${what}`
    },
  })
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: texts('to'),
    ask: true,
    execute: (args, { idempotencyKey }) => {
      const { to } = args as { to: string }
      world.note(`pay-${to}`, idempotencyKey)
      return { paid: to }
    },
  })
  const wire = tool({
    name: 'wire',
    description: 'Sends money.',
    input: texts(),
    onUnknownOutcome: 'ask',
    execute: async (_args, { idempotencyKey }) => {
      await soon()
      world.note('wire', idempotencyKey)
      await soon()
      return 'wired'
    },
  })
  const flaky = tool({
    name: 'flaky',
    description: 'Fails at first.',
    input: texts(),
    execute: async (_args, { idempotencyKey }) => {
      await soon()
      passes(idempotencyKey)
      world.note('flaky', idempotencyKey)
      return 'at last'
    },
  })
  const sync = tool({
    name: 'sync',
    description: 'May be done again.',
    input: texts(),
    idempotent: true,
    execute: async (_args, { idempotencyKey }) => {
      await soon()
      world.note('sync', idempotencyKey)
      return 'in sync'
    },
  })
  const count = tool({
    name: 'count',
    description: 'Costs something.',
    input: texts(),
    idempotent: true,
    execute: (_args, { idempotencyKey, spend }) => {
      world.note('count', idempotencyKey)
      spend({ inputTokens: 7, costUsd: 0.5 })
      return 3
    },
  })
  const wrapped = ['flaky', 'sync', 'count'].map((name) =>
    hook(
      'aroundToolUse',
      async (_ctx, next) => {
        const first = await next()
        return first.status === 'failed' ? next() : first
      },
      { name: `again ${name}`, tool: name },
    ),
  )
  const audits = (
    ['beforeExecution', 'beforeStep', 'afterStep', 'onPause', 'onResume', 'onStop', 'afterExecution'] as const
  ).map((trigger) =>
    hook(
      trigger,
      async (ctx) => {
        world.note(`hook ${trigger}`, `${ctx.state.stepCount}`)
        await soon()
        return ctx.withState((state) => state.withMetadata(trigger, state.stepCount))
      },
      {
        name: `audit ${trigger}`,
        effect: true,
        when: ({ state }) => !trigger.endsWith('Step') || state.stepCount === 1,
      },
    ),
  )
  const auditInput = hook(
    'onUserInput',
    (ctx) => {
      world.note('hook onUserInput', '0')
      return ctx.withState((state) => state.withMetadata('asked', true))
    },
    { name: 'audit input', effect: true },
  )
  const auditTool = hook(
    'afterToolUse',
    (ctx) => {
      world.note('hook afterToolUse', ctx.toolCall.id)
      return ctx.withState((state) => state.withMetadata(`used ${ctx.toolCall.id}`, true))
    },
    { name: 'audit tool', effect: true, when: ({ toolCall }) => ['look', 'pay'].includes(toolCall.name) },
  )
  const judged = guard(
    'beforeToolUse',
    (ctx) => {
      world.note('guard', ctx.toolCall.id)
      return ctx
    },
    { name: 'judged', effect: true, tool: 'pay' },
  )
  const breaks = hook(
    'afterStep',
    (ctx) => {
      if (ctx.step.index === 1) throw new Error('a hook that fails')
      return ctx
    },
    { name: 'breaks' },
  )
  const onceMore = hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Check it.') : ctx), {
    name: 'once more',
  })
  const model = scriptedModel(({ messages }) => {
    const turn = messages.filter(({ role }) => role === 'assistant').length
    if (turn === 3) throw new AgentError('MODEL_OVERLOADED', 'Too much to do.')
    return turnOf(messages)
  })
  const other = scriptedModel(({ messages }) => turnOf(messages), { modelId: 'other' })
  const tools = [look, pay, wire, flaky, sync, count]
  const hooks = [auditInput, auditTool, judged, breaks, onceMore, observe('*', () => soon(), { name: 'watches' })]
  const limits = guards({ maxTimeMs: 60_000 })
  const capabilities = [fallback([other]), errorPolicy('tolerant'), approval('suspend'), limits]
  return createAgent({
    name: 'eventful',
    model,
    instructions,
    store,
    output: { type: 'object', properties: { answer: { type: 'number' } }, required: ['answer'] },
    use: [...tools, ...wrapped, ...audits, ...hooks, ...capabilities, ...use],
  })
}

function turnOf(messages: ModelRequest['messages']): ScriptedTurn {
  return turns[messages.filter(({ role }) => role === 'assistant').length] ?? 'There is no more to say.'
}

/** A clock whose sleeps do not keep the process alive. */
export const quietClock: Clock = {
  now: () => systemClock.now(),
  sleep: (ms, signal) =>
    delay(Math.min(ms, 1e9), undefined, { ref: false, ...(signal && { signal }) }).catch(() => undefined),
}

/** What a process does until the run is over: it starts or resumes the run and answers approvals. */
export async function drive(
  agent: Agent<unknown>,
  store: SessionStore,
  { id = 'eventful', isDone = () => false }: { readonly id?: string; readonly isDone?: (what: string) => boolean } = {},
): Promise<Run<unknown> | undefined> {
  for (;;) {
    const {
      open,
      hasInput,
      asked: [asked],
    } = await findSession(store, id)
    const effects = liveEffects({ id: 'r', clock: quietClock })
    let run: Run<unknown>
    if (!hasInput) {
      run = await agent.run('Go.', { session: id, effects, metadata: { user: 'ann' } })
    } else if (open === undefined) {
      return undefined
    } else {
      if (asked !== undefined) {
        const isNo = asked.toolCall.id === 'pay-bob' || (asked.interruptions !== undefined && isDone(asked.toolCall.id))
        const answer = isNo ? { block: 'not him' } : 'allow'
        await answerApproval(store, { session: id, approval: asked.id, answer, by: 'eve' }) // the others wait
      }
      run = await agent.resume(id, { effects })
    }
    if (run.status !== 'suspended') return run
  }
}
