import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentTool } from '../../core/agent/agent-tool.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { readRuns } from '../log/read-runs.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolBegin, toolEnd, type Death } from './dying-store.fixture.ts'

// What was once paid twice, lost or not noticed. The small world looks for more of the kind.

type Paying = {
  readonly idempotent?: boolean
  readonly onUnknownOutcome?: 'ask'
  readonly use?: readonly Use[]
  /** How many agents are between this one and the one that pays. */
  readonly depth?: number
}

/** An agent that pays once, or has a subagent pay. */
function payer(store: SessionStore, paid: string[], paying: Paying = {}) {
  const { use = [], depth = 0, ...options } = paying
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    ...options,
    execute: () => `paid ${paid.push('pay')}`,
  })
  let inner = { name: 'pay', does: pay as Use }
  for (let level = 0; level < depth; level++) {
    const child = createAgent({ model: calls(inner.name), use: [inner.does] })
    const to = () => ({ name: `agent-${level}`, to: child, input: 'Pay.' })
    const delegate = agentTool({ name: `to_${level}`, description: 'Delegates.', input: { type: 'object' }, to })
    inner = { name: `to_${level}`, does: delegate }
  }
  return createAgent({ model: calls(inner.name), store, use: [inner.does, ...use] })
}

const calls = (name: string) =>
  scriptedModel(({ messages }) => (messages.some(({ role }) => role === 'tool') ? 'Done.' : { toolCalls: [{ name }] }))

/** The agent works in a process that dies. */
async function dies(store: SessionStore, paid: string[], { death, ...paying }: Paying & { readonly death: Death }) {
  const dying = dyingStore(store, death)
  const agent = payer(dying, paid, paying)
  const isOpen = (await store.read('s')) !== undefined
  const work = isOpen ? agent.resume('s', { acceptMissing: true }) : agent.run('Pay.', { session: 's' })
  await Promise.race([work, dying.died])
}

const beforeTheStepEnds: Death = { at: /"t":"step"/, stored: false }
const blocks = guard('beforeToolUse', (ctx) => ctx.block('No.'), { name: 'blocks' })

test('a payment that is recorded is never made again, although the process dies, the agent changes, it dies again and the agent changes back', async () => {
  for (const at of [/"t":"step"/, /"t":"final"/]) {
    const [store, paid]: [SessionStore, string[]] = [memoryStore(), []]
    await dies(store, paid, { death: beforeTheStepEnds })
    await dies(store, paid, { death: { at, stored: false }, use: [blocks] })
    const run = await payer(store, paid).resume('s', { acceptMissing: true })
    const results = run.state.execution!.steps.slice().flatMap((step) => step.toolExecutions)
    assert.deepEqual([run.status, paid.length, results.map(({ output }) => output)], ['completed', 1, ['paid 1']])
  }
})

test('a payment in a subagent of a subagent stays, although a new guard blocks what led to it', async () => {
  const [store, paid]: [SessionStore, string[]] = [memoryStore(), []]
  await dies(store, paid, { depth: 2, death: { at: /"t":"step".*"path"/, stored: false } })
  assert.equal(paid.length, 1)
  const run = await payer(store, paid, { depth: 2, use: [blocks] }).resume('s')
  const [recorded] = await readRuns(store, 's', { run: -1 })
  const made = recorded!.calls.filter(({ input }) => (input as { readonly name?: string }).name === 'pay')
  assert.deepEqual([run.status, paid.length, made.length], ['completed', 1, 1])
})

test('a call of a subagent that a crash interrupted is in the conversation when new input ends the run', async () => {
  const [store, paid]: [SessionStore, string[]] = [memoryStore(), []]
  const paying = { depth: 1, onUnknownOutcome: 'ask', use: [approval('suspend')] } as const
  await dies(store, paid, { ...paying, death: { at: toolEnd, stored: false } })
  const agent = payer(store, paid, paying)
  assert.equal((await agent.resume('s')).status, 'suspended')
  const run = await agent.run('Never mind.', { session: 's', onNewInput: 'block' })
  const results = JSON.stringify(run.state.messages.slice().filter(({ role }) => role === 'tool'))
  assert.equal(paid.length, 1)
  assert.match(results, /outcome of these calls of it is unknown:\\n- pay/)
})

test('a run is not resumed if an unnamed guard was removed and another one added', async () => {
  const [store, paid]: [SessionStore, string[]] = [memoryStore(), []]
  const before = guard('beforeToolUse', (ctx) => (paid.length > 0 ? ctx.block('Once.') : ctx))
  await dies(store, paid, { death: { at: toolBegin, stored: false }, use: [before] })
  const after = guard('beforeToolUse', (ctx) => ctx)
  await assert.rejects(payer(store, paid, { use: [after] }).resume('s'), { code: 'RESUME_GUARD_MISSING' })
  assert.deepEqual(paid, [])
  assert.equal((await payer(store, paid, { use: [before] }).resume('s')).status, 'completed')
})

test('an idempotent call that a crash interrupted is repeated by an agent that has only one tool more', async () => {
  const [store, paid]: [SessionStore, string[]] = [memoryStore(), []]
  await dies(store, paid, { idempotent: true, death: { at: toolEnd, stored: false } })
  const extra = tool({ name: 'extra', description: 'Another.', input: { type: 'object' }, execute: () => 'done' })
  const run = await payer(store, paid, { idempotent: true, use: [extra] }).resume('s')
  assert.deepEqual([run.status, paid.length], ['completed', 2])
  assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.status, 'ok')
})
