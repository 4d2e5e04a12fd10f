import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../../agent/capability.ts'
import { agentTool } from '../../agent/subagents/agent-tool.ts'
import { tool } from '../../agent/tool.ts'
import type { Run } from '../../agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { readSession } from '../log/read-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore } from './dying-store.fixture.ts'

// A step that was open when a process died, and that another agent closes.

function agentWith(store: SessionStore, names: readonly string[], fired: string[] = []) {
  const tools = names.map((name) =>
    tool({ name, description: 'Acts.', input: { type: 'object' }, execute: () => 'done' }),
  )
  const notes = (['afterStep', 'onStop', 'afterExecution'] as const).map((trigger) =>
    hook(trigger, (ctx) => {
      fired.push(trigger)
      return ctx
    }),
  )
  const model = scriptedModel(({ messages }) => (messages.length < 2 ? { toolCalls: [{ name: 'act' }] } : 'Done.'))
  return createAgent({ model, store, use: [...tools, ...notes] })
}

/** The rest of a run that dies during the call of its first step, by an agent with one tool more. */
async function resumeWithAnotherTool(fired: string[] = []): Promise<Run> {
  const store = memoryStore()
  const dying = dyingStore(store, { at: 2, stored: true })
  await Promise.race([agentWith(dying, ['act']).run('Go.', { session: 's' }), dying.died])
  return agentWith(store, ['act', 'another'], fired).resume('s')
}

test('a call in a step that is closed because the agent has changed counts toward maxToolCalls', async () => {
  const run = await resumeWithAnotherTool()
  assert.deepEqual([run.warnings.map(({ code }) => code), run.state.usage.toolCalls], [['STEP_CLOSED'], 1])
})

test('hooks run once for a step that is closed because the agent has changed: not when the change is found', async () => {
  const fired: string[] = []
  const run = await resumeWithAnotherTool(fired)
  assert.equal(run.status, 'completed')
  assert.deepEqual(fired, ['afterStep', 'afterStep', 'onStop', 'afterExecution'])
})

type Hooks = { readonly own?: Use; readonly ofChild?: Use }
type Family = Hooks & { readonly another?: boolean }

/** An agent whose subagent digs, and which then acts. One more tool makes it another agent. */
function familyOver(store: SessionStore, { another = false, own, ofChild }: Family) {
  const acting = (name: string, output: string) =>
    tool({ name, description: 'Acts.', input: { type: 'object' }, execute: () => output })
  const child = createAgent({
    instructions: 'Dig.',
    model: scriptedModel(({ messages }) => (messages.length < 2 ? { toolCalls: [{ name: 'dig' }] } : 'I dug.')),
    use: [acting('dig', 'gold at 52.5'), ofChild],
  })
  const delegate = agentTool({
    name: 'delegate',
    description: 'Delegates.',
    input: { type: 'object' },
    to: () => ({ name: 'digger', to: child, input: 'Dig.' }),
  })
  const model = scriptedModel(({ messages }) =>
    messages.length < 2 ? { toolCalls: [{ name: 'delegate' }, { name: 'act' }] } : 'Done.',
  )
  return createAgent({ model, store, use: [acting('act', 'acted'), another && acting('another', ''), delegate, own] })
}

/** The first result of a run that a changed agent has ended, and whether it was stored, for every write at which a process may die. */
async function* afterDeaths(hooks: Hooks = {}) {
  for (let [at, isDead] = [1, true]; isDead; at++) {
    const store = memoryStore()
    const dying = dyingStore(store, { at, stored: true })
    const first = familyOver(dying, hooks).run('Go.', { session: 's' })
    isDead = await Promise.race([first.then(() => false), dying.died.then(() => true)])
    const { open, records } = readSession((await store.read('s'))!.lines, 's')
    if (open === undefined) continue
    const hasEnded = records.some(
      ({ type, key = '' }: { type: string; key?: string }) => type === 'end' && key.endsWith('/subagent'),
    )
    const run = await familyOver(store, { ...hooks, another: true }).resume('s')
    yield { at, hasEnded, run, result: run.state.execution!.steps.at(0)!.toolExecutions[0]! }
  }
}

test('the result of a subagent that has ended is that of its call, if another agent closes the step', async () => {
  let ended = 0
  for await (const { at, hasEnded, run, result } of afterDeaths()) {
    assert.equal(run.status, 'completed')
    if (!hasEnded || run.warnings.length === 0) continue
    ended++
    assert.deepEqual([at, result.status, result.output], [at, 'ok', 'I dug.'])
    assert.equal(run.state.usage.inputTokens, run.state.usage.outputTokens * 2) // each call is counted once
  }
  assert.ok(ended > 0)
})

test('a guard that only a subagent has is missing if it was removed since the subagent was started, until it has ended', async () => {
  const careful = guard('beforeToolUse', (ctx) => ctx, { name: 'careful' })
  const seen = new Set<string>()
  for (let [at, isDead] = [1, true]; isDead; at++) {
    const store = memoryStore()
    const dying = dyingStore(store, { at, stored: true })
    const first = familyOver(dying, { ofChild: careful }).run('Go.', { session: 's' })
    isDead = await Promise.race([first.then(() => false), dying.died.then(() => true)])
    const { open, records } = readSession((await store.read('s'))!.lines, 's')
    if (open === undefined) continue
    const isStored = (what: string): boolean => records.some((each) => each.type === 'end' && each.key.endsWith(what))
    const isRunning = isStored('/guards') && !isStored('/subagent')
    const same = familyOver(store, { ofChild: careful })
    const weaker = familyOver(store, {})
    if (isRunning) {
      const missing = { code: 'RESUME_GUARD_MISSING', value: 'careful' }
      await assert.rejects(weaker.resume('s'), missing)
      await assert.rejects(weaker.resume('s', { onChange: 'reject' }), missing)
    }
    seen.add(String(isRunning))
    const resumed = isRunning && at % 2 === 0 ? same.resume('s') : weaker.resume('s', { acceptMissing: ['careful'] })
    assert.equal((await resumed).status, 'completed')
  }
  assert.deepEqual(seen, new Set(['true', 'false']))
})

const hidden = hook('afterToolUse', (ctx) => ctx.withOutput('hidden'), { tool: 'dig' })
const withheld = guard('afterToolUse', (ctx) => ctx.block('Withheld.'), { name: 'withholds', tool: 'dig' })
const broken = guard(
  'afterToolUse',
  () => {
    throw new Error('broken')
  },
  { name: 'withholds', tool: 'dig' },
)
const hiding: { readonly [who: string]: Hooks } = {
  'a guard of the agent withholds': { own: withheld },
  'a guard of the subagent withholds': { ofChild: withheld },
  'a hook of the subagent changes': { ofChild: hidden },
  'a guard that fails withholds': { own: broken },
}
for (const [who, hooks] of Object.entries(hiding)) {
  test(`a result of a subagent that ${who} is not shown to the model if another agent closes the step`, async () => {
    let closed = 0
    for await (const { at, run, result } of afterDeaths(hooks)) {
      if (JSON.stringify(result).includes('- dig {}: ')) closed++
      assert.ok(
        !JSON.stringify(run.state.messages).includes('gold'),
        `killed at write ${at}: ${JSON.stringify(result)}`,
      )
    }
    assert.ok(closed > 0)
  })
}
