import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import { agentTool } from '../../core/agent/agent-tool.ts'
import { tool } from '../../core/agent/tool.ts'
import type { Run } from '../../core/agent/run.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { historyOf } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolBegin, type Death } from './dying-store.fixture.ts'

// A step that was open when a process died, and that a changed agent continues.

const blocks = guard('beforeToolUse', (ctx) => ctx.block('Not any more.'), { name: 'blocks' })

function actor(store: SessionStore, done: string[], use: readonly Use[] = []) {
  const act = tool({
    name: 'act',
    description: '',
    input: { type: 'object' },
    execute: () => (done.push('act'), 'done'),
  })
  const model = scriptedModel(({ messages }) => (messages.length < 2 ? { toolCalls: [{ name: 'act' }] } : 'Done.'))
  return createAgent({ model, store, use: [act, ...use] })
}

/** The rest of a run whose process died, with other hooks. */
async function continued(death: Death, use: readonly Use[]): Promise<{ readonly run: Run; readonly done: string[] }> {
  const store = memoryStore()
  const dying = dyingStore(store, death)
  await Promise.race([actor(dying, []).run('Go.', { session: 's' }), dying.died])
  const done: string[] = []
  return { run: await actor(store, done, use).resume('s'), done }
}

suite('a changed agent that continues a step', () => {
  test('runs the calls that have not begun, and they count', async () => {
    const judged: string[] = []
    const judges = guard('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.name), ctx), { name: 'judges' })
    const { run, done } = await continued({ at: toolBegin, stored: false }, [judges])
    assert.deepEqual([run.status, done, judged, run.state.usage.toolCalls], ['completed', ['act'], ['act'], 1])
  })

  for (const [what, death, status] of [
    ['has ended keeps its result', { at: /"t":"step"/, stored: false }, 'ok'],
    ['has begun does not run again', { at: toolBegin, stored: true }, 'outcomeUnknown'],
  ] as const) {
    test(`finds that a call that ${what}, whatever it decides, and the ledger says so`, async () => {
      const { run, done } = await continued(death, [blocks])
      const [result] = run.state.execution!.steps.at(0)!.toolExecutions
      const overridden = run.ledger.filter(({ decision }) => decision === 'overridden')
      assert.deepEqual([done, result!.status, overridden.length], [[], status, 1])
      assert.match(overridden[0]!.message!, /^"blocks" decided "blocked", but this had begun before$/)
    })
  }
})

type Hooks = { readonly own?: Use; readonly ofChild?: Use }
type Family = Hooks & { readonly isRemoved?: boolean }

/** An agent whose subagent digs, and which then acts. */
function familyOver(store: SessionStore, { isRemoved = false, own, ofChild }: Family) {
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
  return createAgent({ model, store, use: [acting('act', 'acted'), !isRemoved && delegate, own] })
}

/** Where the process of the family dies: before its subagent begins, while it works, and when it has ended. */
const deaths: readonly Death[] = [
  { at: /"t":"begin".*"kind":"child"/, stored: false },
  { at: /"t":"begin".*"kind":"child"/, stored: true },
  { at: toolBegin, stored: true },
  { at: /"t":"step".*"path"/, stored: false },
  { at: /"t":"end".*"kind":"child"/, stored: false },
  { at: /"t":"begin".*"name":"act"/, stored: false },
  { at: /"t":"begin".*"name":"act"/, stored: true },
]

type After = {
  readonly store: SessionStore
  readonly where: string
  readonly isRunning: boolean
  /** Whether a call of it has no result. */
  readonly isCalling: boolean
  readonly hasEnded: boolean
}

/** Sessions of a family whose process died, and what had become of its subagent. */
async function* afterDeaths(hooks: Hooks = {}): AsyncGenerator<After> {
  for (const death of deaths) {
    const store = memoryStore()
    const dying = dyingStore(store, death)
    await Promise.race([familyOver(dying, hooks).run('Go.', { session: 's' }), dying.died])
    const { open, records } = historyOf((await store.read('s'))!.lines, 's')
    assert.notEqual(open, undefined, String(death.at))
    const has = (t: string, kind: string): boolean =>
      records.some((each) => each.t === t && 'key' in each && each.key.kind === kind)
    const hasEnded = has('end', 'child')
    const isRunning = has('begin', 'child') && !hasEnded
    const isCalling = isRunning && has('begin', 'tool') && !has('end', 'tool')
    yield { store, where: `${death.at} ${death.stored}`, isRunning, isCalling, hasEnded }
  }
}

test('the result of a subagent that has ended stays, and one that was running is cut off, if the agent has it no more', async () => {
  const seen = new Set<string>()
  for await (const { store, where, isCalling, hasEnded } of afterDeaths()) {
    const run = await familyOver(store, { isRemoved: true }).resume('s')
    const { status, output } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
    assert.equal(run.status, 'completed')
    seen.add(status)
    if (hasEnded) assert.deepEqual([status, output], ['ok', 'I dug.'], where)
    else assert.equal(status, isCalling ? 'outcomeUnknown' : 'failed', where)
    assert.equal(run.state.usage.inputTokens, run.state.usage.outputTokens * 2, where) // each call is counted once
  }
  assert.deepEqual(seen, new Set(['failed', 'outcomeUnknown', 'ok']))
})

test('a guard that only a subagent has is missing if it was removed while the subagent is running', async () => {
  const careful = guard('beforeToolUse', (ctx) => ctx, { name: 'careful' })
  const seen = new Set<boolean>()
  for await (const { store, isRunning, where } of afterDeaths({ ofChild: careful })) {
    const weaker = familyOver(store, {})
    if (isRunning) await assert.rejects(weaker.resume('s'), { code: 'RESUME_GUARD_MISSING', value: 'careful' }, where)
    seen.add(isRunning)
    const resumed = await weaker.resume('s', isRunning ? { acceptMissing: ['careful'] } : {})
    assert.equal(resumed.status, 'completed')
  }
  assert.deepEqual(seen, new Set([true, false]))
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
  test(`a result of a subagent that ${who} is not shown to the model if the subagent is cut off`, async () => {
    let cut = 0
    for await (const { store, where } of afterDeaths(hooks)) {
      const run = await familyOver(store, { ...hooks, isRemoved: true }).resume('s', { acceptMissing: true })
      const said = JSON.stringify(run.state.messages)
      if (said.includes('- dig {}: ')) cut++
      assert.ok(!said.includes('gold'), `${where}: ${said}`)
    }
    assert.ok(cut > 0)
  })
}

test('an interrupted call is judged by the guards as they are when its turn has come, not as they were before', async () => {
  const store = memoryStore()
  const paid: string[] = []
  const make = (over: SessionStore, ...use: readonly Use[]) => {
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: { type: 'object' },
      ask: true,
      idempotent: true,
      execute: () => `paid ${paid.push('pay')}`,
    })
    const find = tool({ name: 'find', description: 'Finds.', input: { type: 'object' }, execute: () => 'found' })
    const notes = hook('afterToolUse', (ctx) => ctx.withState((state) => state.withMetadata(ctx.toolCall.name, true)))
    const model = scriptedModel(({ messages }) =>
      messages.length < 2 ? { toolCalls: [{ name: 'pay' }, { name: 'find' }] } : 'Done.',
    )
    return createAgent({ model, store: over, use: [pay, find, notes, approval(() => 'allow'), ...use] })
  }
  const dying = dyingStore(store, { at: /"t":"begin".*"name":"pay".*"idempotent"/, stored: true })
  await Promise.race([make(dying).run('Go.', { session: 's' }), dying.died])
  const findsFirst = guard(
    'beforeToolUse',
    (ctx) => (ctx.toolCall.name === 'pay' && ctx.state.metadata['find'] !== true ? ctx.block('Find first.') : ctx),
    { name: 'finds first' },
  )
  const run = await make(store, findsFirst).resume('s')
  const results = run.state.execution!.steps.at(0)!.toolExecutions.map(({ status }) => status)
  assert.deepEqual([paid, results], [['pay'], ['ok', 'ok']])
})
