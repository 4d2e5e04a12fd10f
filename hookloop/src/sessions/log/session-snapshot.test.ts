import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import type { Run } from '../../core/agent/run.ts'
import { tool } from '../../core/agent/tool.ts'
import { openRecords } from '../../core/effects/save-run.ts'
import { hook } from '../../core/hooks/hook.ts'
import type { LanguageModel } from '../../core/state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import { textMessage } from '../../core/state/message.ts'
import { exportSession, importSession } from '../session/export-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore, StoredSession } from '../stores/store.ts'
import { loadSession, readSession } from './read-session.ts'
import type { SessionReader } from './session-reader.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-snapshots-'))
after(() => rmSync(folder, { recursive: true }))

/** An answer that is long, so that snapshots are taken after a few messages. */
const talker: LanguageModel = {
  provider: 'test',
  modelId: 'talker',
  infer: async ({ messages }) => ({
    content: [{ type: 'text', text: `${messages.length} ${'x'.repeat(2_000)}` }],
    finishReason: 'stop',
    usage: { inputTokens: 1, outputTokens: 1 },
  }),
}

async function talk(store: SessionStore, messages: number): Promise<void> {
  const agent = createAgent({ model: talker, store })
  for (let i = 0; i < messages; i++) await agent.run(`Message ${i}.`, { session: 'chat' })
}

/** The same store for a process that has read nothing yet, and how many lines were read since it was last asked. */
function counted(inner: SessionStore): { readonly store: SessionStore; readonly taken: () => number } {
  let lines = 0
  const count = (stored: StoredSession): StoredSession => {
    lines += stored.lines.length
    return stored
  }
  const store: SessionStore = {
    ...inner,
    read: async (id, options) => {
      const stored = await inner.read(id, options)
      return stored && count(stored)
    },
  }
  const taken = (): number => {
    const now = lines
    lines = 0
    return now
  }
  return { store, taken }
}

type Stored = { readonly lines: readonly string[]; readonly head: JsonObject }

async function storedIn(store: SessionStore, id = 'chat'): Promise<Stored> {
  const { lines, head } = (await store.read(id))!
  return { lines, head }
}

async function storeWith({ lines, head }: Stored, id = 'chat'): Promise<SessionStore> {
  const store = memoryStore()
  const writer = await store.open(id, { create: true })
  await writer.append(lines, { head })
  await writer.release()
  return store
}

function isSnapshot(line: string): boolean {
  return line.includes('"t":"snapshot"')
}

/** The head of a session whose last line is one of these. */
function headFor(lines: readonly string[]): JsonObject {
  const line = lines.findLastIndex(isSnapshot)
  const { sum } = JSON.parse(lines[line - 1]!) as { readonly sum: string }
  return { snapshot: { line, sum } }
}

/** What a session amounts to, as JSON. */
function contentOf({ open, ...session }: SessionReader): unknown {
  const { start, state, isSuspended, runs, turns, run: id, at, end } = session
  const run = open && {
    input: open.input,
    hooks: open.hooks,
    ledger: open.ledger,
    records: openRecords(open),
    pending: open.pending,
    since: open.root.at,
    waited: open.waitedMs(open.root.at),
    ends: open.ends,
  }
  return JSON.parse(
    JSON.stringify({ start, state, isSuspended, runs, turns, id, at, end, run }, (key, value: unknown) =>
      key === 'seq' ? undefined : value,
    ),
  )
}

const stores: { readonly [kind: string]: (name: string) => SessionStore } = {
  memory: () => memoryStore(),
  SQLite: (name) => sqliteStore(join(folder, `${name}.db`)),
}

for (const [kind, open] of Object.entries(stores)) {
  suite(`a long session in a store of kind ${kind}`, () => {
    test('is not read again by the process that has written it, except for its last line', async () => {
      const { store, taken } = counted(open('warm'))
      await talk(store, 100)
      assert.equal(taken(), 99)
      await store.close()
    })

    test('is read by another process from its last snapshot on', async () => {
      const store = open('cold')
      await talk(store, 120)
      const { lines } = await storedIn(store)
      const { store: other, taken } = counted(store)
      const run = await createAgent({ model: talker, store: other }).run('One more.', { session: 'chat' })
      assert.equal(taken(), lines.length - lines.findLastIndex(isSnapshot))
      assert.equal(run.state.messages.length, 242)
      assert.deepEqual(run.state.toJSON(), readSession((await storedIn(store)).lines, 'chat').state!.toJSON())
      await store.close()
    })
  })
}

test('all snapshots but the last one are at most half as long as the other lines, however long a session is', async () => {
  const store = memoryStore()
  await talk(store, 300)
  const { lines } = await storedIn(store)
  const snapshots = lines.filter(isSnapshot)
  const [taken, rest] = [snapshots.slice(0, -1), lines.filter((line) => !isSnapshot(line))].map(
    (each) => each.join('').length,
  )
  assert.ok(
    snapshots.length > 4 && taken! <= rest! / 2,
    `${taken} characters of ${snapshots.length} snapshots, ${rest} others`,
  )
})

const work = (step: number): string => `result ${step} ${'y'.repeat(700)}`

/** An agent that calls a tool in each of its 200 steps. One of the calls needs approval. */
function workingAgent(store: SessionStore, perform: (step: number) => string | Promise<string>) {
  const model: LanguageModel = {
    provider: 'test',
    modelId: 'worker',
    infer: async ({ messages }) => {
      const step = (messages.length - 1) / 2
      const usage = { inputTokens: 3, outputTokens: 2 }
      if (step >= 200) return { content: [{ type: 'text', text: 'Done.' }], finishReason: 'stop', usage }
      const call = {
        type: 'tool-call',
        toolCallId: `c${step}`,
        toolName: step === 150 ? 'pay' : 'work',
        input: { step, why: `the work of step ${step} ${'-'.repeat(50)}` },
      } as const
      return { content: [call], finishReason: 'tool-calls', usage }
    },
  }
  const input = { type: 'object' } as const
  return createAgent({
    model,
    store,
    use: [
      tool({ name: 'work', description: 'Works.', input, execute: ({ step }: JsonObject) => perform(step as number) }),
      tool({ name: 'pay', description: 'Pays.', input, ask: true, execute: () => 'paid' }),
      hook('afterToolUse', (ctx) => (ctx.toolCall.args['step'] === 7 ? ctx.withOutput('Changed.') : ctx), {
        name: 'change',
      }),
      approval('suspend'),
      guards({ maxSteps: 400, maxTokens: 1e9, maxTimeMs: 1e9 }),
    ],
  })
}

async function worked(store: SessionStore, perform: (step: number) => string | Promise<string> = work) {
  const agent = workingAgent(store, perform)
  const run = await agent.run('Work.', { session: 'long', metadata: { user: 'ann' }, turn: 'first' })
  assert.ok(run.status === 'suspended')
  return agent.resume('long', { answers: { [run.pending[0]!.id]: 'allow' } })
}

test('a session is the same from its last snapshot as from all lines, whatever line is the last one', async () => {
  const store = memoryStore()
  await worked(store)
  const { lines } = await storedIn(store, 'long')
  assert.ok(lines.filter(isSnapshot).length >= 2)
  for (let length = lines.findIndex(isSnapshot) + 1; length <= lines.length; length += 7) {
    const some = lines.slice(0, length)
    const { store: other, taken } = counted(await storeWith({ lines: some, head: headFor(some) }, 'long'))
    const whole = readSession(some, 'long')
    assert.deepEqual(contentOf((await loadSession(other, 'long'))!), contentOf(whole), `line ${length}`)
    assert.equal(taken(), length - some.findLastIndex(isSnapshot))
  }
})

suite('a snapshot that does not fit the lines', () => {
  const long = (async () => {
    const store = memoryStore()
    await talk(store, 120)
    return storedIn(store)
  })()
  const changes: { readonly [what: string]: JsonObject | null } = {
    'the head names another line': { line: 3 },
    'the head names a line that is no number': { line: 1.5 },
    'the head has another checksum': { sum: 'f'.repeat(16) },
    'the head names no line': null,
  }
  for (const [what, change] of Object.entries(changes)) {
    test(`is not used: all lines are read if ${what}`, async () => {
      const { lines, head } = await long
      const snapshot = change && { ...(head['snapshot'] as JsonObject), ...change }
      const agent = createAgent({ model: talker, store: await storeWith({ lines, head: { ...head, snapshot } }) })
      assert.deepEqual((await agent.session('chat').state())!.toJSON(), readSession(lines, 'chat').state!.toJSON())
      assert.equal((await agent.run('One more.', { session: 'chat' })).state.messages.length, 242)
    })
  }

  test('is reported with the number of the line if the lines are damaged', async () => {
    const { lines, head } = await long
    const at = lines.findLastIndex(isSnapshot)
    const edited = lines.with(at, lines[at]!.replace('"isSuspended":false', '"isSuspended":true'))
    const agent = createAgent({ model: talker, store: await storeWith({ lines: edited, head }) })
    await assert.rejects(agent.run('One more.', { session: 'chat' }), { code: 'SESSION_CORRUPT', value: at })
  })

  test('a line after it that was edited is reported', async () => {
    const { lines, head } = await long
    const at = lines.findLastIndex((line) => line.includes('"t":"input"'))
    assert.ok(at > lines.findLastIndex(isSnapshot))
    const edited = lines.with(at, lines[at]!.replace('Message', 'message'))
    const agent = createAgent({ model: talker, store: await storeWith({ lines: edited, head }) })
    await assert.rejects(agent.run('One more.', { session: 'chat' }), { code: 'SESSION_CORRUPT', value: at })
  })
})

test('a long run that was interrupted resumes from its last snapshot, with all its steps and its complete ledger', async () => {
  const store = memoryStore()
  const [died, never] = [Promise.withResolvers<void>(), new Promise<never>(() => undefined)]
  void worked(store, (step) => (step === 190 ? (died.resolve(), never) : work(step)))
  await died.promise
  const stored = await storedIn(store, 'long')
  const { store: next, taken } = counted(await storeWith(stored, 'long'))
  const again: number[] = []
  const run = await workingAgent(next, (step) => (again.push(step), work(step))).resume('long')
  assert.equal(taken(), stored.lines.length - stored.lines.findLastIndex(isSnapshot))
  const whole = await worked(memoryStore())
  assert.equal(run.status, 'completed')
  assert.deepEqual(again, [191, 192, 193, 194, 195, 196, 197, 198, 199])
  const plain = ({ state: { execution } }: Run) => execution!.steps.slice().filter(({ index }) => index !== 190)
  assert.deepEqual(plain(run), plain(whole))
  const hooks = ({ ledger }: Run) =>
    ledger.filter(({ step }) => step !== 190).map(({ step, hook: name, trigger, call }) => [step, name, trigger, call])
  assert.deepEqual(hooks(run), hooks(whole))
  assert.ok(run.ledger.some(({ hook: name }) => name === 'change'))
})

test('a conversation that was replaced by a summary is stored as it is', async () => {
  const store = memoryStore()
  const summarize = hook(
    'beforeStep',
    (ctx) =>
      ctx.state.messages.length === 151
        ? ctx.withState((state) => state.withMessages([textMessage('user', 'Summary.'), ...state.messages.slice(-3)]))
        : ctx,
    { name: 'summarize' },
  )
  const agent = createAgent({ model: talker, store, use: [summarize] })
  for (let i = 0; i < 160; i++) await agent.run(`Message ${i}.`, { session: 'chat' })
  const { state } = (await loadSession({ ...store }, 'chat'))!
  assert.deepEqual(state!.toJSON(), readSession((await storedIn(store)).lines, 'chat').state!.toJSON())
  const [first] = state!.messages.slice()
  assert.deepEqual(first, textMessage('user', 'Summary.'))
})

test('lines do not repeat the answer of the model, the arguments of calls and the results of tools', async () => {
  const store = memoryStore()
  await worked(store)
  const text = (await storedIn(store, 'long')).lines.filter((line) => !isSnapshot(line)).join('\n')
  const times = (what: string): number => text.split(what).length - 1
  assert.deepEqual([times('result 20 '), times('the work of step 20 ')], [1, 1])
})

test('a long session is exported and imported without snapshots', async () => {
  const store = memoryStore()
  await talk(store, 60)
  const text = await exportSession(store, 'chat')
  assert.ok((await storedIn(store)).lines.some(isSnapshot) && !text.includes('"t":"snapshot"'))
  await importSession(store, text, { as: 'copy' })
  const [one, copy] = await Promise.all(['chat', 'copy'].map((id) => loadSession(store, id)))
  assert.deepEqual(copy!.state!.toJSON(), one!.state!.toJSON())
})
