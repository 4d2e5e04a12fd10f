import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { setImmediate as soon } from 'node:timers/promises'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import type { Message } from '../../core/state/message.ts'
import { guard, observe } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { dyingStore } from './dying-store.fixture.ts'
import { forkSession } from './fork-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { replay } from '../replay/replay.ts'
import { strictReplay } from '../replay/strict-replay.fixture.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'

// Known attacks on stored sessions and failures, by their ids in the catalogue of this project.
// The others of its section are beside what they are about: kills, stores, approvals, hostile files.

const anything = { type: 'object' } as const
const folder = mkdtempSync(join(tmpdir(), 'hookloop-security-'))
after(() => rmSync(folder, { recursive: true, force: true }))

suite('D05: a call without its result', () => {
  /** Calls of a conversation that are not followed at once by a result each. */
  const dangling = (messages: Iterable<Message>): readonly string[] => {
    const all = [...messages]
    return all.flatMap(({ content }, i) => {
      const results = all[i + 1]?.role === 'tool' ? all[i + 1]!.content : []
      const answered = results.map((part) => (part.type === 'tool-result' ? part.toolCallId : ''))
      return content.flatMap((part) =>
        part.type === 'tool-call' && !answered.includes(part.toolCallId) ? [part.toolCallId] : [],
      )
    })
  }
  const script: readonly ScriptedTurn[] = [
    { toolCalls: ['a', 'b'].map((id) => ({ name: 'read', id })) },
    { toolCalls: ['c', 'd'].map((id) => ({ name: 'write', id })) },
    'Done.',
  ]
  const agentOver = (store: SessionStore, answer: 'suspend' | 'block' = 'block') => {
    const model = scriptedModel(
      ({ messages }) => script[messages.filter(({ role }) => role === 'assistant').length] ?? 'Done.',
    )
    const tools = ['read', 'write'].map((name) =>
      tool({
        name,
        description: name,
        input: anything,
        concurrent: name === 'read',
        ask: name === 'write' && answer === 'suspend',
        execute: async () => (await soon(), name),
      }),
    )
    return { model, agent: createAgent({ model, store, use: [...tools, approval(answer)] }) }
  }

  test('is in no request to a model, wherever a process died', async () => {
    for (let at = 1; at <= 12; at++) {
      const store = memoryStore()
      const dying = dyingStore(store, { at, stored: at % 2 === 1 })
      await Promise.race([agentOver(dying).agent.run('Go.', { session: 's' }), dying.died])
      const { agent, model } = agentOver(store)
      const isOpen = (await store.list())[0]?.head['status'] !== 'completed'
      const isThere = ((await store.read('s'))?.lines.length ?? 0) > 0
      if (isOpen) await (isThere ? agent.resume('s') : agent.run('Go.', { session: 's' }))
      const last = await agent.run('And?', { session: 's' })
      for (const { messages } of model.requests) assert.deepEqual(dangling(messages), [], `at ${at}`)
      assert.deepEqual(dangling(last.state.messages), [], `at ${at}`)
    }
  })

  test('is in no conversation whose run was cancelled while a tool was at work', async () => {
    const cancel = new AbortController()
    const never = tool({
      name: 'read',
      description: 'Reads.',
      input: anything,
      execute: (_args, { signal }) => {
        setImmediate(() => cancel.abort())
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('cut off'))))
      },
    })
    const model = scriptedModel([{ toolCalls: ['a', 'b'].map((id) => ({ name: 'read', id })) }, 'Later.'])
    const agent = createAgent({ model, store: memoryStore(), use: [never] })
    assert.equal((await agent.run('Go.', { session: 's', signal: cancel.signal })).status, 'cancelled')
    await agent.run('And?', { session: 's' })
    assert.deepEqual(dangling(model.requests[1]!.messages), [])
  })

  test('of a session that is forked while it waits is not in the fork, which continues from the last checkpoint', async () => {
    const store = memoryStore()
    assert.equal((await agentOver(store, 'suspend').agent.run('Go.', { session: 's' })).status, 'suspended')
    await forkSession(store, 's', { as: 'fork' })
    const { agent, model } = agentOver(store, 'suspend')
    await agent.run('And?', { session: 'fork' })
    const { messages } = model.requests[0]!
    assert.deepEqual(dangling(messages), [])
    assert.deepEqual(
      messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'user'],
    )
  })
})

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

test('D20: fifty runs are replayed to the same state, and another agent diverges from them', async () => {
  for (let seed = 1; seed <= 50; seed++) {
    const store = memoryStore()
    const first = await worldOf(seed, 'live', store).run(`Go ${seed}.`, { session: 's' })
    const { run } = await strictReplay(worldOf(seed, 'replayed'), store, 's')
    assert.equal(JSON.stringify(run.state), JSON.stringify(first.state), `seed ${seed}`)
    const { record } = await replay((await store.read('s'))!, { agent: worldOf(seed, 'other') })
    assert.equal(record.status, 'diverged', `seed ${seed}`)
  }
})

/** An agent that is another one for every seed: how many steps, which calls, what fails and who objects. */
function worldOf(seed: number, how: 'live' | 'replayed' | 'other', store = memoryStore()) {
  const dice = (of: number, sides: number): number => (seed * 7919 + of * 104_729) % sides
  const turns: ScriptedTurn[] = Array.from({ length: dice(1, 4) }, (_, turn) => ({
    text: `turn ${turn}`,
    toolCalls: Array.from({ length: 1 + dice(turn, 3) }, (_call, i) => ({
      name: ['read', 'write', 'fail'][dice(turn + i, 3)]!,
      id: `${turn}-${i}`,
      args: { turn, i },
    })),
  }))
  const live = (name: string) => (): unknown => {
    assert.equal(how, 'live', 'a replay does nothing')
    if (name === 'fail') throw new Error('it failed')
    return name
  }
  const tools = ['read', 'write', 'fail'].map((name) =>
    tool({ name, description: name, input: anything, concurrent: name === 'read', execute: live(name) }),
  )
  const objects = guard('beforeToolUse', (ctx) =>
    dice(ctx.toolCall.id.length + seed, 5) === 0 ? ctx.block('no') : ctx,
  )
  const instructions = how === 'other' ? 'Other.' : 'Work.'
  return createAgent({ model: scriptedModel([...turns, 'Done.']), instructions, store, use: [...tools, objects] })
}
