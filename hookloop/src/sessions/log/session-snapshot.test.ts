import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import * as z from 'zod'
import { createAgent } from '../../create-agent.ts'
import { guards } from '../../capabilities/guards.ts'
import type { Run } from '../../agent/run.ts'
import { tool } from '../../agent/tool.ts'
import { hook } from '../../hooks/hook.ts'
import type { LanguageModel } from '../../state/inference.ts'
import { isJsonObject, type JsonObject } from '../../state/json.ts'
import { drive, eventfulAgent } from '../session/eventful-run.fixture.ts'
import { exportSession, importSession } from '../session/export-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { ReadOptions, SessionStore, StoredSession } from '../stores/store.ts'
import { LineEncoder } from './session-log.ts'
import { readSession } from './read-session.ts'

/** Compares texts that are too long to print. */
function sameText(actual: unknown, expected: unknown): void {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)]
  let at = 0
  while (at < b.length && a[at] === b[at]) at++
  if (a !== b) assert.fail(`…${a.slice(Math.max(0, at - 100), at + 100)}… instead of …${b.slice(at, at + 100)}…`)
}

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

/** The same store, and how many characters were read from and written to it since it was last asked. */
function counted(inner: SessionStore) {
  let [chars, appended] = [0, 0]
  const count = (stored: StoredSession): StoredSession => {
    for (const text of [...stored.lines, ...(stored.pages ?? [])]) chars += text.length
    return stored
  }
  const store: SessionStore = {
    ...inner,
    read: async (id, options) => {
      const stored = await inner.read(id, options)
      return stored && count(stored)
    },
    open: async (id, options) => {
      const writer = await inner.open(id, options)
      return {
        ...writer,
        read: async (part?: ReadOptions) => count(await writer.read(part)),
        append: (lines, what) => {
          for (const text of [...lines, ...(what?.pages?.add ?? [])]) appended += text.length
          return writer.append(lines, what)
        },
      }
    },
  }
  const taken = (): { readonly read: number; readonly written: number } => {
    const now = { read: chars, written: appended }
    chars = appended = 0
    return now
  }
  return { store, taken }
}

const kinds: { readonly [kind: string]: (name: string) => SessionStore } = {
  memory: (() => {
    const stores = new Map<string, SessionStore>()
    return (name: string) => ({ ...(stores.get(name) ?? stores.set(name, memoryStore()).get(name)!) })
  })(),
  SQLite: (name) => sqliteStore(join(folder, `${name}.db`)),
}

for (const [kind, open] of Object.entries(kinds)) {
  suite(`a long session in a store of kind ${kind}`, () => {
    test('a message reads and writes as much after 200 messages as after 100, in the same process', async () => {
      const { store, taken } = counted(open('warm'))
      const agent = createAgent({ model: talker, store })
      const costs: { readonly read: number; readonly written: number }[] = []
      for (let i = 0; i < 200; i++) {
        await agent.run(`Message ${i}.`, { session: 'chat' })
        costs.push(taken())
      }
      const sum = (from: number, of: 'read' | 'written'): number =>
        costs.slice(from, from + 64).reduce((total, cost) => total + cost[of], 0)
      for (const what of ['read', 'written'] as const)
        assert.ok(sum(136, what) < sum(36, what) * 1.1, `${what}: ${sum(36, what)}, then ${sum(136, what)}`)
      assert.equal((await agent.session('chat').state())?.messages.length, 400)
      await store.close()
    })

    test('a new process reads the pages and the lines after the last snapshot, and finds the same session', async () => {
      const first = open('cold')
      const agent = createAgent({ model: talker, store: first })
      for (let i = 0; i < 120; i++) await agent.run(`Message ${i}.`, { session: 'chat' })
      const all = (await first.read('chat'))!.lines.join('').length
      await first.close()
      const { store, taken } = counted(open('cold'))
      const run = await createAgent({ model: talker, store }).run('One more.', { session: 'chat' })
      assert.ok(taken().read < all * 0.9, 'all lines were read')
      assert.equal(run.state.messages.length, 242)
      const history = readSession((await store.read('chat'))!.lines, 'chat')
      sameText(run.state, history.state)
      await store.close()
    })
  })
}

type Stored = { lines: string[]; pages: string[]; head: JsonObject }

async function longSession(): Promise<Stored> {
  const store = memoryStore()
  const agent = createAgent({ model: talker, store })
  for (let i = 0; i < 120; i++) await agent.run(`Message ${i}.`, { session: 'chat' })
  const { lines, pages = [], head } = (await store.read('chat', { pages: true }))!
  assert.ok(pages.length >= 2 && isJsonObject(head['snapshot']), 'no snapshot was taken')
  return { lines: [...lines], pages: [...pages], head }
}

async function storeWith({ lines, pages, head }: Stored): Promise<SessionStore> {
  const store = memoryStore()
  const writer = await store.open('chat', { create: true })
  await writer.append(lines, { head, pages: { keep: 0, add: pages } })
  await writer.release()
  return store
}

suite('a snapshot that does not fit the lines', () => {
  const long = longSession()
  const snapshotIn = ({ lines }: Stored): number => lines.findLastIndex((line) => line.includes('"type":"snapshot"'))
  const changes: { readonly [what: string]: (stored: Stored) => void } = {
    'a page was changed': (s) => void (s.pages[0] = s.pages[0]!.replace('Message 3.', 'Message X.')),
    'a page is missing': (s) => void s.pages.splice(1, 1),
    'pages are in another order': (s) => void (s.pages = s.pages.toReversed()),
    'all pages are missing': (s) => void (s.pages = []),
    'the head names another line': (s) =>
      void (s.head = { ...s.head, snapshot: { ...(s.head['snapshot'] as JsonObject), line: 3 } }),
    'the head names a line that is no number': (s) =>
      void (s.head = { ...s.head, snapshot: { line: 1.5, sum: '0'.repeat(16) } }),
    'the head has another checksum': (s) =>
      void (s.head = { ...s.head, snapshot: { ...(s.head['snapshot'] as JsonObject), sum: 'f'.repeat(16) } }),
    'the head names no line': (s) => void (s.head = { ...s.head, snapshot: null }),
  }
  for (const [what, change] of Object.entries(changes)) {
    test(`is not used: all lines are read if ${what}`, async () => {
      const stored = structuredClone(await long)
      const expected = readSession(stored.lines, 'chat').state
      change(stored)
      const store = await storeWith(stored)
      const agent = createAgent({ model: talker, store })
      sameText(await agent.session('chat').state(), expected)
      assert.equal((await agent.run('One more.', { session: 'chat' })).state.messages.length, 242)
    })
  }

  test('is reported with the number of the line if the lines are damaged too', async () => {
    const stored = structuredClone(await long)
    const at = snapshotIn(stored)
    stored.lines[at] = stored.lines[at]!.replace('"isSuspended":false', '"isSuspended":true')
    const agent = createAgent({ model: talker, store: await storeWith(stored) })
    await assert.rejects(agent.run('One more.', { session: 'chat' }), { code: 'SESSION_CORRUPT', value: at })
  })

  test('is written again, and used from then on', async () => {
    const stored = structuredClone(await long)
    stored.pages = []
    const store = await storeWith(stored)
    const agent = createAgent({ model: talker, store })
    for (let i = 0; i < 80; i++) await agent.run(`More ${i}.`, { session: 'chat' })
    const { pages = [] } = (await store.read('chat', { pages: true }))!
    assert.ok(pages.length >= 5, `${pages.length} pages`)
    const { store: other, taken } = counted({ ...store })
    await createAgent({ model: talker, store: other }).session('chat').state()
    assert.ok(taken().read < stored.lines.join('').length)
  })
})

/** A model that calls a tool in each of its steps. */
function worker(steps: number): LanguageModel {
  return {
    provider: 'test',
    modelId: 'worker',
    infer: async ({ messages }) => {
      const step = (messages.length - 1) / 2
      const usage = { inputTokens: 3, outputTokens: 2 }
      if (step >= steps) return { content: [{ type: 'text', text: 'Done.' }], finishReason: 'stop', usage }
      const call = { type: 'tool-call', toolCallId: `c${step}`, toolName: 'work', input: { step } } as const
      return { content: [call], finishReason: 'tool-calls', usage }
    },
  }
}

function workingAgent(store: SessionStore, work: (step: number) => string) {
  return createAgent({
    model: worker(300),
    store,
    use: [
      tool({
        name: 'work',
        description: 'Works.',
        input: z.object({ step: z.number() }),
        execute: ({ step }) => work(step),
      }),
      hook('afterToolUse', (ctx) => (ctx.toolCall.args['step'] === 7 ? ctx.withOutput('Changed.') : ctx), {
        name: 'change',
      }),
      guards({ maxSteps: 400, maxTokens: 1e9, maxTimeMs: 1e9 }),
    ],
  })
}

test('a long run that was interrupted resumes from its last snapshot, with all its steps and its complete ledger', async () => {
  const store = memoryStore()
  const done: number[] = []
  const result = (step: number): string => `${step} ${'y'.repeat(700)}`
  const crashed = Promise.withResolvers<void>()
  const dying = workingAgent(store, (step) => {
    if (step === 290) crashed.resolve()
    if (step === 290) throw new Error('never stored')
    done.push(step)
    return result(step)
  })
  const copy = memoryStore()
  const running = dying.run('Work.', { session: 'long' })
  await crashed.promise
  const { lines, pages = [], head } = (await store.read('long', { pages: true }))!
  const writer = await copy.open('long', { create: true })
  await writer.append(lines, { head, pages: { keep: 0, add: pages } })
  await writer.release()
  await running
  assert.ok(pages.some((page) => page.startsWith('{"steps"')) && pages.some((page) => page.startsWith('{"ledger"')))
  const { store: next, taken } = counted(copy)
  const again: number[] = []
  const run = await workingAgent(next, (step) => {
    again.push(step)
    return result(step)
  }).resume('long')
  assert.ok(taken().read < lines.join('').length)
  const whole = await workingAgent(memoryStore(), result).run('Work.', { session: 'long' })
  assert.equal(run.status, 'completed')
  assert.deepEqual(again, [291, 292, 293, 294, 295, 296, 297, 298, 299])
  const plain = (steps: typeof run.state.execution): unknown =>
    steps?.steps.slice().filter(({ index }) => index !== 290)
  assert.deepEqual(plain(run.state.execution), plain(whole.state.execution))
  const hooks = ({ ledger }: Run): unknown =>
    ledger.map(({ step, hook: name, trigger, call }) => [step, name, trigger, call])
  const without290 = (entries: unknown): unknown => (entries as [number][]).filter(([step]) => step !== 290)
  assert.deepEqual(without290(hooks(run)), without290(hooks(whole)))
})

test('a conversation that was replaced by a summary is stored as it is, and not with the old pages', async () => {
  const store = memoryStore()
  const summarize = hook(
    'beforeStep',
    (ctx) =>
      ctx.state.messages.length === 151
        ? ctx.withState((state) =>
            state.withMessages(
              ['Summary.', ...state.messages.slice(-3)].map((m) =>
                typeof m === 'string' ? { role: 'user' as const, content: [{ type: 'text' as const, text: m }] } : m,
              ),
            ),
          )
        : ctx,
    { name: 'summarize' },
  )
  const agent = createAgent({ model: talker, store, use: [summarize] })
  for (let i = 0; i < 240; i++) await agent.run(`Message ${i}.`, { session: 'chat' })
  const fresh = await createAgent({ model: talker, store: { ...store } })
    .session('chat')
    .state()
  const { lines } = (await store.read('chat'))!
  sameText(fresh, readSession(lines, 'chat').state)
  assert.ok(fresh!.messages.some(({ content }) => content[0]?.type === 'text' && content[0].text === 'Summary.'))
})

suite('the lines of a session', () => {
  const eventful = (async () => {
    const store = memoryStore()
    await drive(eventfulAgent(store, { note: () => undefined }), store)
    return (await store.read('eventful'))!.lines
  })()

  test('are read like the lines of version 1, which repeat everything', async () => {
    const lines = await eventful
    for (let length = 1; length <= lines.length; length++) {
      const { end: _end, records, ...short } = readSession(lines.slice(0, length))
      const encoder = new LineEncoder()
      const long = records.map(({ seq: _seq, ...record }) =>
        encoder.encode((record.type === 'session' ? { ...record, version: 1 } : record) as unknown as JsonObject),
      )
      const { end, records: again, ...read } = readSession(long)
      const plain = (value: object): unknown =>
        JSON.parse(JSON.stringify(value, (key, each: unknown) => (key === 'seq' ? undefined : each)))
      sameText(plain(read), plain(short))
      assert.equal(end.seq + 1, again.length)
    }
  })

  test('of version 1 are continued by this version', async () => {
    const store = memoryStore()
    const agent = createAgent({ model: talker, store })
    await agent.run('First.', { session: 'old' })
    const encoder = new LineEncoder()
    const { records } = readSession((await store.read('old'))!.lines)
    const old = records.map(({ seq: _seq, ...record }) =>
      encoder.encode((record.type === 'session' ? { ...record, version: 1 } : record) as unknown as JsonObject),
    )
    await store.delete('old')
    const writer = await store.open('old', { create: true })
    await writer.append(old)
    await writer.release()
    const run = await agent.run('Second.', { session: 'old' })
    assert.deepEqual([run.status, run.state.messages.length, run.state.executionCount], ['completed', 4, 2])
    sameText(readSession((await store.read('old'))!.lines).state, run.state)
  })

  test('do not repeat the answer of the model, the arguments of calls and the results of tools', async () => {
    const store = memoryStore()
    await workingAgent(store, (step) => `result ${step} of the tool`).run('Work.', { session: 'once' })
    const text = (await store.read('once'))!.lines.join('\n')
    const snapshots = text.split('\n').filter((line) => line.includes('"type":"snapshot"'))
    const times = (what: string): number => text.split(what).length - snapshots.join('').split(what).length
    assert.deepEqual([times('result 20 of the tool'), times('"toolCallId":"c20"'), times('{"step":20}')], [1, 1, 1])
  })

  test('are exported and imported without snapshots', async () => {
    const { lines, pages, head } = await longSession()
    const store = await storeWith({ lines, pages, head })
    const text = await exportSession(store, 'chat')
    assert.ok(!text.includes('"type":"snapshot"'))
    await importSession(store, text, { as: 'copy' })
    const [one, copy] = await Promise.all(
      ['chat', 'copy'].map((id) => createAgent({ model: talker, store }).session(id).state()),
    )
    sameText(copy, one)
  })
})
