import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { tool } from '../../core/agent/tool.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'

// Known attacks on stored sessions and failures, by their ids in the catalogue of this project.
// The others of its section are beside what they are about: kills, stores, approvals, hostile files.

const anything = { type: 'object' } as const
const folder = mkdtempSync(join(tmpdir(), 'hookloop-security-'))
after(() => rmSync(folder, { recursive: true, force: true }))

suite('D13: a value that is not plain data', () => {
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  const strange: { readonly [what: string]: unknown } = {
    'half a surrogate pair': 'a\ud800b',
    'a long text': 'x'.repeat(3_000_000),
    'no number': Number.NaN,
    'a big number': 2n ** 80n,
    'a date': new Date(0),
    'a map': new Map([['a', 1]]),
    'what holds itself': cyclic,
    'a function': () => 1,
    'a prototype': JSON.parse('{"__proto__":{"polluted":true},"constructor":1}') as unknown,
  }

  test('that a tool returns never prevents a stored session from being resumed', async () => {
    const store = sqliteStore(join(folder, 'strange.db'))
    for (const [what, value] of Object.entries(strange)) {
      const model = scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'user' ? { toolCalls: [{ name: 'read' }] } : 'Done.',
      )
      const read = tool({ name: 'read', description: 'Reads.', input: anything, execute: () => value })
      const agent = createAgent({ model, store, use: [read, guards({ maxTokens: null })] })
      const id = what.replaceAll(' ', '-')
      assert.equal((await agent.run(`Go \ud800.`, { session: id })).status, 'completed', what)
      assert.equal((await agent.run('Again.', { session: id })).status, 'completed', what)
      assert.equal((await agent.session(id).state())?.usage.steps, 4, what)
    }
    assert.equal(({} as { polluted?: boolean }).polluted, undefined)
    await store.close()
  })

  test('is rejected as metadata when it is written, and nothing of it is stored', async () => {
    const session = createAgent({ model: scriptedModel(['Hi.']), store: memoryStore() }).session('s')
    for (const what of ['no number', 'a big number', 'a date', 'a map', 'what holds itself', 'a function']) {
      await assert.rejects(session.writeMetadata('key', strange[what] as never), { code: 'JSON_INVALID' }, what)
    }
    assert.equal(await session.state(), undefined)
  })
})

test('D18: of 200 runs of 20 tenants at once in one agent, none sees anything of another', async () => {
  const [tenants, each] = [20, 10]
  const store = memoryStore()
  const wrong: string[] = []
  const belongs = (what: unknown, tenant: string): void => {
    const text = JSON.stringify(what)
    const others = text.match(/canary-\d+\./g)?.filter((canary) => canary !== `${tenant}.`) ?? []
    if (others.length > 0) wrong.push(`${tenant} saw ${others.join()}`)
  }
  const tenantOf = (state: { readonly metadata: { readonly [key: string]: unknown } }) =>
    String(state.metadata['tenant'])
  const look = tool({
    name: 'look',
    description: 'Looks.',
    input: anything,
    concurrent: true,
    execute: async (args) => {
      await soon()
      return args
    },
  })
  const sees = observe(['beforeInference', 'afterToolUse', 'afterExecution'], (ctx) =>
    belongs([ctx.state.messages.slice(), 'outcome' in ctx && ctx.ledger.slice()], tenantOf(ctx.state)),
  )
  const judges = guard('beforeToolUse', async (ctx) => {
    belongs(ctx.toolCall, tenantOf(ctx.state))
    await soon()
    return ctx
  })
  const model = scriptedModel(async ({ messages }) => {
    await soon()
    const first = messages.at(0)!.content[0]!
    const said = first.type === 'text' ? first.text : ''
    const turns = messages.filter(({ role }) => role === 'assistant').length
    // Every other tenant never comes to an end by itself: its limit is its own.
    if (turns < (said.includes('for ever') ? 99 : 2)) return { toolCalls: [{ name: 'look', args: { said } }] }
    return said
  })
  const agent = createAgent({ model, store, use: [look, sees, judges, guards({ maxSteps: 5, maxTokens: 10_000 })] })
  const runs = await Promise.all(
    Array.from({ length: tenants * each }, async (_, i) => {
      const tenant = `canary-${i % tenants}`
      const input = `${tenant}. ${i % 2 === 0 ? 'for ever' : ''}`
      const run = await agent.run(input, { session: `s-${i}`, metadata: { tenant } })
      belongs(run, tenant)
      return [i % 2 === 0, run.status, run.state.usage.steps] as const
    }),
  )
  assert.deepEqual(wrong, [])
  for (const [isEndless, status, steps] of runs) {
    assert.deepEqual([status, steps], isEndless ? ['stopped', 5] : ['completed', 3])
  }
  for (let i = 0; i < tenants * each; i++) {
    belongs((await store.read(`s-${i}`))!.lines, `canary-${i % tenants}`)
  }
  assert.deepEqual(wrong, [])
})
