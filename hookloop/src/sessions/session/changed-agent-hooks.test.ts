import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../../core/agent/agent.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook, observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { historyOf } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { dyingStore, toolBegin, toolEnd } from './dying-store.fixture.ts'
import { findSession } from './open-session.fixture.ts'

/** An agent with one tool, whose arguments a hook marks. Other hooks note that they run when a run ends. */
function clerk(store: SessionStore, mark: string, seen: string[]) {
  const work = tool({ name: 'work', description: '', input: { type: 'object' }, execute: () => 'done' })
  const marks = hook('beforeToolUse', (ctx) => ctx.withArgs({ mark }))
  const ends = ['onStop', 'afterExecution'] as const
  const hooks = ends.map((trigger) => hook(trigger, (ctx) => (seen.push(`hook ${trigger}`), ctx)))
  const judge = guard('onStop', (ctx) => (seen.push('guard onStop'), ctx))
  const watch = observe(ends, ({ trigger }) => void seen.push(`observer ${trigger}`))
  const model = scriptedModel(({ messages }) => (messages.length < 3 ? { toolCalls: [{ name: 'work' }] } : 'Done.'))
  return createAgent({ model, store, use: [work, marks, ...hooks, judge, watch] })
}

test('the hooks at the end of a run run once in the process that resumes it with a changed agent', async () => {
  for (const at of [toolBegin, toolEnd, /"t":"step"/, /"t":"final"/]) {
    const inner = memoryStore()
    const dying = dyingStore(inner, { at, stored: false })
    await Promise.race([clerk(dying, 'old', []).run('Go.', { session: 's' }), dying.died])
    const seen: string[] = []
    const resumed = await clerk(inner, 'new', seen).resume('s')
    assert.equal(resumed.status, 'completed')
    assert.deepEqual(
      [at, seen.toSorted()],
      [at, ['guard onStop', 'hook afterExecution', 'hook onStop', 'observer afterExecution', 'observer onStop']],
    )
  }
})

type Asking = { readonly at: 'beforeStep' | 'beforeInference'; readonly temperature: number; readonly stops?: boolean }

/** An agent that asks before each of its three model calls. Another temperature makes it another agent. */
function asking(store: SessionStore, { at, temperature, stops = false }: Asking, called: string[]) {
  const work = tool({ name: 'work', description: '', input: { type: 'object' }, execute: () => 'done' })
  const asks = guard(at, (ctx) => ctx.ask('Continue?'), { name: 'asks' })
  const stop = guard('beforeStep', (ctx) => (ctx.state.stepCount === 0 ? ctx.stop('No more.') : ctx), { name: 'stop' })
  const model = scriptedModel(({ messages }) => {
    called.push('model')
    return messages.length < 5 ? { toolCalls: [{ name: 'work' }] } : 'Done.'
  })
  return createAgent({
    model,
    store,
    settings: { temperature },
    use: [work, asks, stops && stop, approval('suspend')],
  })
}

/** Starts or resumes the run until it has ended, and allows what is asked. Returns the questions that were allowed. */
async function allowAll(store: SessionStore, agent: Agent): Promise<ReadonlySet<string>> {
  const allowed = new Set<string>()
  for (;;) {
    const { open, state, asked } = await findSession(store, 's')
    if (open === undefined && state !== undefined) return allowed
    for (const { id } of asked) allowed.add(id)
    const answers = Object.fromEntries(asked.map(({ id }) => [id, 'allow'] as const))
    await (open === undefined ? agent.run('Go.', { session: 's' }) : agent.resume('s', { answers }))
  }
}

/** What a changed agent does after the process of the first one has died, at every write at which it can. */
async function* afterDeaths(at: Asking['at'], changed: Partial<Asking>) {
  for (let [write, isDead] = [1, true]; isDead; write++) {
    const [inner, called, later]: [SessionStore, string[], string[]] = [memoryStore(), [], []]
    const dying = dyingStore(inner, { at: write, stored: true })
    const first = allowAll(dying, asking(dying, { at, temperature: 0 }, called)).then(() => false)
    isDead = await Promise.race([first, dying.died.then(() => true)])
    const { records, state } = historyOf((await inner.read('s'))!.lines, 's')
    const answered = records.flatMap((record) => (record.t === 'answer' ? [record.approval] : []))
    const allowed = await allowAll(inner, asking(inner, { at, temperature: 1, ...changed }, later))
    const steps = state?.stepCount ?? 0
    const all = { calls: called.length + later.length, allowed: new Set([...answered, ...allowed]) }
    yield { write, steps, later: later.length, ...all }
  }
}

for (const at of ['beforeStep', 'beforeInference'] as const) {
  test(`an approval at ${at} is for one model call, also if a changed agent closes the step of that call`, async () => {
    for await (const { write, calls, allowed } of afterDeaths(at, {}))
      assert.ok(calls <= allowed.size, `killed at write ${write}: ${calls} model calls, ${allowed.size} approvals`)
  })
}

test('a guard of a changed agent that stops before a step ends a run that was interrupted after an answer', async () => {
  for await (const { write, steps, later } of afterDeaths('beforeStep', { stops: true }))
    if (steps === 0) assert.equal(later, 0, `killed at write ${write}`)
})
