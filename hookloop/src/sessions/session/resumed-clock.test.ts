import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { Execution } from '../../core/state/execution.ts'
import { textOf } from '../../core/state/message.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { findSession } from './open-session.fixture.ts'

type Process = { readonly startAt: number; readonly asks: boolean }

/** An agent that asks before its first step, and whose subagent may ask about its call. */
function processOver(store: SessionStore, { startAt, asks }: Process) {
  const dig = tool({ name: 'dig', description: '', input: { type: 'object' }, ask: asks, execute: () => 'dug' })
  const child = {
    instructions: 'Dig.',
    tools: ['dig'],
    model: scriptedModel(({ messages }) => (messages.length < 7 ? { toolCalls: [{ name: 'dig' }] } : 'I dug.')),
  }
  const delegate = agentTool({
    name: 'delegate',
    description: '',
    input: { type: 'object' },
    to: () => ({ name: 'digger', to: child, input: 'Dig.' }),
  })
  const gate = guard('beforeStep', (ctx) =>
    textOf(ctx.state.messages.at(-1)!.content) === 'Go.' ? ctx.ask('Start?') : ctx,
  )
  const audit = hook('beforeStep', async (ctx) => ctx, { name: 'audit', effect: true })
  const model = scriptedModel(({ messages }) =>
    messages.length === 1 ? { toolCalls: [{ name: 'delegate' }] } : 'Done.',
  )
  const agent = createAgent({
    model,
    store,
    use: [dig, delegate, audit, gate, guards({ maxTimeMs: 1_000 }), approval('suspend')],
  })
  return { agent, effects: liveEffects({ clock: fakeClock({ startAt }) }) }
}

/** Starts or resumes the run until it has ended, and allows what is asked. Returns its execution. */
async function work(store: SessionStore, how: Process): Promise<Execution> {
  for (;;) {
    const { agent, effects } = processOver(store, how)
    const { open, state, asked } = await findSession(store, 's')
    if (open === undefined && state !== undefined) return state.execution!
    const answers = Object.fromEntries(asked.map(({ id }) => [id, 'allow'] as const))
    if (open === undefined) await agent.run('Go.', { session: 's', effects })
    else await agent.resume('s', { effects, answers })
  }
}

for (const [what, startAt] of [
  ['a day later', 86_400_000],
  ['whose clock is behind', 10],
] as const) {
  test(`a run that was interrupted and waits for answers is ended by a process ${what}, and its waiting time is counted once`, async () => {
    for (const asks of [true, false]) {
      for (let [at, isDead] = [1, true]; isDead; at++) {
        const store = memoryStore()
        const dying = dyingStore(store, { at, stored: true })
        const first = work(dying, { startAt: 1_000, asks })
        isDead = await Promise.race([first.then(() => false), dying.died.then(() => true)])
        const { steps, startedAt, waitedMs, final } = await work(store, { startAt, asks })
        assert.equal(steps.at(0)!.toolExecutions[0]!.output, 'I dug.', `killed at write ${at}`)
        // No process worked for longer than some milliseconds, and no time is counted twice.
        if (startAt > 1_000) assert.ok(Math.abs(final!.at - startedAt - waitedMs) < 100, `killed at write ${at}`)
      }
    }
  })
}
