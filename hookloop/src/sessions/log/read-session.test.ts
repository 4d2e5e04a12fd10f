import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { hashText, type Json, type JsonObject } from '../../values/json.ts'
import { createAgent } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { answerApproval } from '../session/approvals.ts'
import { storeOf } from '../session/dying-store.fixture.ts'
import { drive, eventfulAgent } from '../session/eventful-run.fixture.ts'
import { exportSession } from '../session/export-session.ts'
import { forkSession, listPoints } from '../session/fork-session.ts'
import { historyOf } from './history.fixture.ts'
import { readRuns } from './read-runs.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { NO_SUM } from './session-log.ts'
import { sqliteStore } from '../stores/sqlite-store.ts'
import type { SessionStore } from '../stores/store.ts'

const nowhere = { note: () => undefined }

/** The lines of a session that waits for an approval, and of the same one after it resumed and was interrupted. */
const [waiting, cutOff] = await (async () => {
  const store = memoryStore()
  await drive(eventfulAgent(store, nowhere), store)
  const { lines } = (await store.read('eventful'))!
  const suspended = lines.findIndex((line) => line.includes('"t":"pause"'))
  return [lines.slice(0, suspended + 1), lines.slice(0, suspended + 6)]
})()

type Line = JsonObject & { readonly t: string }

function parsed(lines: readonly string[]): Line[] {
  return lines.map((line) => {
    const { seq: _seq, sum: _sum, ...record } = JSON.parse(line) as Line
    return record
  })
}

/** Lines with valid checksums, whatever they contain, as an attacker could write them. */
function resealed(bodies: readonly (JsonObject | string)[]): readonly string[] {
  let sum = NO_SUM
  return bodies.map((record, seq) => {
    const body = typeof record === 'string' ? `{"seq":${seq},${record}}` : JSON.stringify({ seq, ...record })
    sum = hashText(`${sum}${body}`).slice(0, 16)
    return `${body.slice(0, -1)},"sum":"${sum}"}`
  })
}

/** Everything that takes a session up. */
const uses: { readonly [name: string]: (store: SessionStore) => Promise<unknown> } = {
  resume: (store) => eventfulAgent(store, nowhere).resume('eventful'),
  run: (store) => eventfulAgent(store, nowhere).run('Go.', { session: 'eventful' }),
  state: (store) => eventfulAgent(store, nowhere).session('eventful').state(),
  clear: (store) => eventfulAgent(store, nowhere).session('eventful').clear(),
  answer: (store) => answerApproval(store, { session: 'eventful', approval: 'x', answer: 'allow' }),
  fork: (store) => forkSession(store, 'eventful'),
  points: (store) => listPoints(store, 'eventful'),
  export: (store) => exportSession(store, 'eventful'),
}

async function refusals(lines: readonly string[]): Promise<ReadonlySet<unknown>> {
  const codes = new Set<unknown>()
  for (const use of Object.values(uses)) {
    const store = await storeOf('eventful', lines)
    await use(store).then(
      () => codes.add('none'),
      (error: { code?: string }) => codes.add(error.code ?? error),
    )
    assert.deepEqual((await store.read('eventful'))!.lines, lines)
    assert.equal((await store.list()).length, 1)
    await (await store.open('eventful')).release() // it is not left locked
  }
  return codes
}

/** Hostile lines: what is put in the place of a line of a kind, the last of it if there are several. */
const hostile: { readonly [what: string]: readonly [t: string, change: (line: Line) => JsonObject | string] } = {
  'an id of another session': ['session', (line) => ({ ...line, id: 'other' })],
  'no agent': ['session', ({ agent: _agent, ...line }) => line],
  'a time after all times': ['step', (line) => ({ ...line, at: 1e308 })],
  'no time': ['step', ({ at: _at, ...line }) => line],
  'a kind that is not known': ['begin', (line) => ({ ...line, t: 'begins' })],
  'a second beginning': ['begin', () => ({ t: 'session', version: 4, id: 'eventful', at: 1, agent: 'a' })],
  'no change at all': ['step', (line) => ({ ...line, change: null })],
  'a change that keeps too much': ['step', (line) => ({ ...line, change: { messages: { keep: 2 ** 31, add: [] } } })],
  'a change that adds no messages': ['step', (line) => ({ ...line, change: { messages: { keep: 0, add: [{}] } } })],
  'a change that refers to a line that is not there': ['step', (line) => ({ ...line, change: { $: [99, 'value'] } })],
  'a change that refers to a prototype': ['step', (line) => ({ ...line, change: { $: [1, 'key', 'constructor'] } })],
  'a change with a step that is none': [
    'step',
    (line) => ({ ...line, change: { execution: { steps: { keep: 0, add: [{}] } } } }),
  ],
  'a change that takes the execution apart': [
    'step',
    (line) => ({ ...line, change: { execution: { unset: ['steps', 'id'], steps: { keep: 0, add: [1] } } } }),
  ],
  'a ledger that is none': ['step', (line) => ({ ...line, ledger: 5 })],
  'an input that is none': ['input', (line) => ({ ...line, message: { role: 'root', content: [] } })],
  'metadata that are a list': ['input', (line) => ({ ...line, metadata: ['role', 'admin'] })],
  'a run without a name': ['input', ({ run: _run, ...line }) => line],
  'an end without a result': ['end', ({ value: _value, ...line }) => line],
  'an end with an error that is not known': [
    'end',
    ({ value: _value, ...line }) => ({ ...line, error: { code: 'X', message: '' } }),
  ],
  'a key whose step is no number': ['end', (line) => ({ ...line, key: { step: '0', kind: 'model', n: 1 } })],
  'a key of a kind that is not known': ['end', (line) => ({ ...line, key: { step: 0, kind: 'shell', n: 1 } })],
  'a tool call without a call': ['begin', (line) => ({ ...line, key: { step: 0, kind: 'tool', n: 1 } })],
  'a question that is none': ['begin', (line) => ({ ...line, input: 5 })],
  'a path that is a text': ['begin', (line) => ({ ...line, path: '/0.0' })],
  'a pause that changes the conversation to a number': ['pause', (line) => ({ ...line, change: { messages: 5 } })],
  'a key "__proto__"': [
    'end',
    () => '"t":"end","key":{"step":0,"kind":"model","n":1},"at":1,"value":{"a":[{"__proto__":{"polluted":true}}]}',
  ],
  'a key "__proto__" in disguise': [
    'end',
    () =>
      String.raw`"t":"end","key":{"step":0,"kind":"model","n":1},"at":1,"value":{"a":[{"\u005f_proto__":{"polluted":true}}]}`,
  ],
  'a key "__proto__" with an escaped letter': [
    'end',
    () =>
      String.raw`"t":"end","key":{"step":0,"kind":"model","n":1},"at":1,"value":{"a":[{"__\u0070roto__":{"polluted":true}}]}`,
  ],
  'a value that is too deep': ['end', (line) => ({ ...line, value: deep(600) })],
}

function deep(levels: number): Json {
  let value: Json = 1
  for (let i = 0; i < levels; i++) value = [value]
  return value
}

for (const [what, [t, change]] of Object.entries(hostile)) {
  test(`D09: a session with ${what} is rejected by every use and not changed`, async () => {
    const records = parsed(waiting)
    const at = records.findLastIndex((record) => record.t === t)
    const codes = await refusals(resealed(records.map((record, i) => (i === at ? change(record) : record))))
    assert.deepEqual([...codes], ['SESSION_CORRUPT'])
  })
}

test('D09: a session whose lines refer to each other is rejected when they would multiply', () => {
  const [start, input] = parsed(waiting)
  const end = (n: number): JsonObject => {
    const before = { $: [1, 'value'] }
    return { t: 'end', at: 1, key: { step: 0, kind: 'infer', n }, value: n === 0 ? 'x' : [before, before] }
  }
  const lines = resealed([start!, input!, ...Array.from({ length: 60 }, (_, n) => end(n))])
  assert.equal(historyOf(lines.slice(0, 12)).open?.root.entries.size, 10)
  assert.throws(() => historyOf(lines), { code: 'SESSION_CORRUPT' })
})

test('D12: a session of a newer version is rejected with STATE_VERSION, even if nothing else in it can be read', async () => {
  const [, ...rest] = parsed(waiting)
  const newer = resealed([{ t: 'session', version: 5, made: 'differently' }, ...rest])
  assert.deepEqual([...(await refusals(newer))], ['STATE_VERSION'])
  const sealedOtherwise = newer.with(0, newer[0]!.replace(/"sum":"\w+"/, '"sum":"sha512:…"'))
  assert.deepEqual([...(await refusals(sealedOtherwise))], ['STATE_VERSION'])
})

test('D12: a session with a state of a newer version is rejected with STATE_VERSION', async () => {
  const records = parsed(waiting)
  const newer: JsonObject = { t: 'step', at: 1, change: { version: 99 } }
  assert.deepEqual([...(await refusals(resealed([...records, newer])))], ['STATE_VERSION'])
})

test('D09: keys and values of a session are plain data: nothing is revived, and no prototype is reached', async () => {
  const payload =
    '"constructor":{"prototype":{"polluted":true}},"toJSON":"x","lc":2,"then":"y","text":"__proto__",' +
    '"id":["child_process","execSync"]'
  const records: (JsonObject | string)[] = parsed(waiting)
  const at = records.findIndex((record) => (record as Line).t === 'input')
  const { t: _t, metadata: _metadata, ...input } = records[at] as Line
  records[at] = `"t":"input",${JSON.stringify(input).slice(1, -1)},"metadata":{${payload}}`
  const { state, records: read } = historyOf(resealed(records), 'eventful')
  assert.deepEqual(Object.keys((read[at] as { metadata: JsonObject }).metadata), [
    'constructor',
    'toJSON',
    'lc',
    'then',
    'text',
    'id',
  ])
  assert.equal(state?.execution?.status, 'running')
  assert.deepEqual(['polluted' in {}, Object.getPrototypeOf(state.metadata)], [false, null])
})

test('a session that was interrupted after it resumed is read with the answers it had resumed with', () => {
  const open = historyOf(cutOff).open!
  const answers = [...open.root.entries.values()].flatMap(({ key, end }) => (key.kind === 'ask' ? [end?.value] : []))
  assert.deepEqual([open.pending, answers, open.questions().length], [undefined, ['allow', undefined], 1])
})

test('D09: a session in a database that was changed is rejected, and none of its lines is modified', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-kept-'))
  const store = sqliteStore(join(folder, 'sessions.db'))
  after(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  const lines = resealed([...parsed(waiting).slice(0, -1), { t: 'step', at: 1, change: { messages: 5 } }])
  const writer = await store.open('eventful', { create: true })
  await writer.append(lines)
  await writer.release()
  for (const use of Object.values(uses)) await assert.rejects(use(store), { code: 'SESSION_CORRUPT' })
  assert.deepEqual(await store.read('eventful'), { head: {}, lines })
})

test('a value with the key of references is read as it was stored, wherever it is', async () => {
  const store = memoryStore()
  const values = [{ $: [1, 'value'] }, { a: { $: { b: 1 } } }, { $: 'long enough to be referred to, '.repeat(3) }]
  for (const metadata of values)
    await createAgent({ model: scriptedModel(['Hi.']), store }).run('Hello.', { session: 's', metadata })
  assert.deepEqual(
    (await readRuns(store, 's')).map((run) => run.metadata),
    values,
  )
})
