import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { tool } from '../core/agent/tool.ts'
import { guards } from '../capabilities/guards.ts'
import { subagents } from '../capabilities/subagents/subagents.ts'
import { createAgent } from '../create-agent.ts'
import { guard, hook } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { matrixOf } from './matrix.ts'
import { RunReader } from './runs.ts'
import { completed } from './scenes.fixture.ts'
import { newStore, reading } from './studio.fixture.ts'

const ref = { session: 'clean-up' }
const unlimited = guards({ maxSteps: null, maxTokens: null })

/** Reads a session as if it had grown line by line, and compares each view with one that is made from the whole run. */
async function growsAsItIs(store: SessionStore): Promise<number> {
  const { lines } = (await store.read(ref.session))!
  let known = lines.findIndex((line) => line.includes('"t":"input"'))
  let settled = 0
  const reader = new RunReader(
    reading(store, async (_, { after = -1 } = {}) => ({ head: {}, lines: lines.slice(0, known).slice(after + 1) })),
  )
  while (known++ < lines.length) {
    const { matrix, whole } = await reader.view(ref)
    const { settled: now, ...expected } = matrixOf(whole())
    settled = Math.max(settled, now.rows.length)
    assert.deepEqual({ ...matrix, settled: undefined }, { ...expected, settled: undefined }, `line ${known}`)
  }
  await store.close()
  return settled
}

suite('a run that grows', () => {
  test('is read by what was appended, and at each of 400 steps an update reads and makes no more than the last two have', async () => {
    const { store } = newStore()
    let lines = 0
    const reader = new RunReader(
      reading(store, async (...given) => {
        const stored = await store.read(...given)
        lines += stored?.lines.length ?? 0
        return stored
      }),
    )
    const costs: { readonly lines: number; readonly rows: number }[] = []
    let known = new Set<object>()
    const bash = tool({
      name: 'bash',
      description: 'Works.',
      input: { type: 'object' },
      execute: async () => {
        lines = 0
        const { rows } = (await reader.view(ref)).matrix
        costs.push({ lines, rows: rows.filter((row) => !known.has(row)).length })
        known = new Set(rows)
        return 'done'
      },
    })
    const model = scriptedModel(() => (costs.length < 400 ? { toolCalls: [{ name: 'bash', args: {} }] } : 'Done.'))
    const watch = guard('beforeToolUse', (ctx) => ctx, { name: 'watch' })
    await createAgent({ model, store, use: [bash, watch, unlimited] }).run('Go.', ref)
    await store.close()
    assert.equal(costs.length, 400)
    assert.deepEqual(
      costs.slice(1).filter(({ lines: read, rows }) => read > 9 || rows > 7),
      [],
    )
  })

  test('has the same rows and columns as one that is read at once, after each of its lines', async () => {
    assert.ok((await growsAsItIs((await completed()).store)) > 0)
  })

  test('has them with subagents, votes, failures and changes of hooks', async () => {
    const { store } = newStore()
    const helper = createAgent({ model: scriptedModel(() => 'Helped.') })
    const fails = tool({
      name: 'fails',
      description: 'Fails.',
      input: { type: 'object' },
      execute: () => {
        throw new Error('It failed.')
      },
    })
    const spawn = { name: 'spawn_subagent', args: { subagent: 'helper', prompt: 'Help.' } }
    let stops = 0
    const model = scriptedModel(({ messages }) =>
      messages.length % 5 === 0 ? 'Done?' : { text: 'On.', toolCalls: [{ name: 'fails', args: {} }, spawn] },
    )
    const agent = createAgent({
      model,
      store,
      use: [
        fails,
        unlimited,
        subagents({ agents: { helper } }),
        hook('onStop', (ctx) => (++stops < 6 ? ctx.requestContinuation('There is more.') : ctx), { name: 'more' }),
        hook('afterToolUse', (ctx) => ctx.withOutput('changed'), { name: 'change' }),
      ],
    })
    await agent.run('Go.', ref)
    assert.ok((await growsAsItIs(store)) > 10)
  })
})
