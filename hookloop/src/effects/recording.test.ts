import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { z } from 'zod'
import { tool } from '../agent/tool.ts'
import type { Run } from '../agent/run.ts'
import { approval } from '../capabilities/approval.ts'
import { errorPolicy } from '../capabilities/error-policy.ts'
import { createAgent } from '../create-agent.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { recordEffects } from './record-effects.ts'
import {
  fileRecording,
  formatRecording,
  memoryRecording,
  parseRecording,
  type RecordEntry,
  type Recording,
} from './recording.ts'
import { replayEffects } from './replay-effects.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-recording-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0
const newFile = (): string => join(folder, `${++files}.jsonl`)

const start = '{"type":"run","version":1,"id":"r","at":1}\n'
const begin = '{"type":"begin","key":"k","kind":"tool","input":{"a":1}}\n'
const end = '{"type":"end","key":"k","at":2,"value":"ünï"}\n'

test('a recording in a file is the same as one in memory: one line of JSON for each thing that happened', async () => {
  const path = newFile()
  const [file, memory] = [fileRecording(path), memoryRecording()]
  const both: Recording = {
    entries: () => memory.entries(),
    append(entry) {
      file.append(entry)
      memory.append(entry)
    },
  }
  await sender().agent.run('x', { effects: recordEffects(both) })
  file.close()
  assert.equal(readFileSync(path, 'utf8'), formatRecording(memory))
  assert.deepEqual(parseRecording(readFileSync(path, 'utf8')), JSON.parse(JSON.stringify(memory.entries())))
})

test('a recording in memory holds what was written then, whatever becomes of it later', async () => {
  const written: string[] = []
  const memory = memoryRecording()
  const recording: Recording = {
    entries: () => memory.entries(),
    append(entry) {
      written.push(JSON.stringify(entry))
      memory.append(entry)
    },
  }
  let asked = 0
  const agent = createAgent({
    model: scriptedModel(() => ({ text: 'done', delayMs: asked++ === 0 ? 20 : 0 })),
    use: [
      hook('aroundInference', (_ctx, next) => Promise.race([next(), next()])),
      hook('aroundInference', (_ctx, next) => next()),
      hook('onStop', async (ctx) => (await delay(40), ctx)), // the loser of the race ends meanwhile
    ],
  })
  await agent.run('x', { effects: recordEffects(recording) })
  assert.deepEqual(
    memory.entries().map((entry) => JSON.stringify(entry)),
    written,
  )
})

test('the beginning of an effect is on disk before it is done, its end before anybody sees it', async () => {
  const path = newFile()
  const seen: string[] = []
  const lines = (): string =>
    parseRecording(readFileSync(path, 'utf8'))
      .map((entry) => entry.type)
      .join(' ')
  const agent = createAgent({
    model: scriptedModel(() => {
      seen.push(`model: ${lines()}`)
      return 'done'
    }),
    use: [hook('afterInference', (ctx) => (seen.push(`hook: ${lines()}`), ctx))],
  })
  await agent.run('x', { effects: recordEffects(fileRecording(path)) })
  assert.deepEqual(seen, ['model: run begin', 'hook: run begin end'])
})

test('a recording is readable by its owner alone', () => {
  const path = newFile()
  fileRecording(path).append(JSON.parse(start) as RecordEntry)
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('a recording that cannot be opened or read fails with its path', () => {
  for (const path of [folder, join(folder, 'missing', 'x.jsonl')]) {
    assert.throws(() => fileRecording(path), {
      code: 'RECORDING_FAILED',
      value: path,
      message: /^The recording \S+ cannot be used: E\w+: .*\. It must be a file in a folder that exists\.$/,
    })
  }
  const path = newFile()
  const recording = fileRecording(path)
  rmSync(path)
  assert.throws(() => recording.entries(), { code: 'RECORDING_FAILED', value: path })
})

test('a closed recording rejects entries', () => {
  const recording = fileRecording(newFile())
  recording.append(JSON.parse(start) as RecordEntry)
  recording.close()
  recording.close()
  assert.throws(() => recording.append(JSON.parse(begin) as RecordEntry), {
    code: 'RECORDING_FAILED',
    message: /closed/,
  })
  assert.equal(recording.entries().length, 1)
})

test('a run that is rejected before it starts leaves no trace', async () => {
  const path = newFile()
  const recording = fileRecording(path)
  const { agent } = sender()
  await assert.rejects(agent.run(5 as unknown as string, { effects: recordEffects(recording) }), {
    code: 'INPUT_INVALID',
  })
  assert.equal(readFileSync(path, 'utf8'), '')
})

test('a last line that was torn is dropped, wherever it was torn; the lines before it stay', () => {
  const path = newFile()
  const bytes = Buffer.from(start + begin + end)
  for (let length = 0; length <= bytes.length; length++) {
    writeFileSync(path, bytes.subarray(0, length))
    const whole = bytes.subarray(0, length).filter((byte) => byte === 10).length
    assert.equal(fileRecording(path).entries().length, whole, `cut after ${length} bytes`)
  }
})

test('a run that was cut off within a line is replayed up to there', async () => {
  const path = newFile()
  const { agent } = sender()
  await agent.run('x', { effects: recordEffects(fileRecording(path)) })
  appendFileSync(path, '{"type":"beg')
  const run = await sender().agent.run('x', { effects: replayEffects(fileRecording(path)) })
  assert.equal(run.status, 'completed')
})

const malformed: readonly (readonly [what: string, line: string, why: RegExp])[] = [
  ['that is not JSON', '{"type":"end",', /JSON/],
  ['that is empty', '', /JSON/],
  ['that is a list', '[]', /not an object/],
  ['of an unknown type', '{"type":"lunch"}', /"lunch"; it must be one of run, begin, end, timeout, abort, cancel/],
  ['without a type', '{"key":"k"}', /"type" is missing/],
  ['that begins a second run', start.trim(), /must be of type "run"/],
  ['with a beginning without a key', '{"type":"begin","kind":"tool","input":1}', /"key" must be a string/],
  ['with a beginning without a kind', '{"type":"begin","key":"k","input":1}', /"kind" must be a string/],
  ['with a beginning without an input', '{"type":"begin","key":"k","kind":"tool"}', /"input" is missing/],
  ['with an end without a time', '{"type":"end","key":"k","value":1}', /"at" must be a number/],
  [
    'with an end without an outcome',
    '{"type":"end","key":"k","at":1}',
    /"error" needs a known code and a message if there is no "value"/,
  ],
  [
    'with an error of no known code',
    '{"type":"end","key":"k","at":1,"error":{"code":"toString","message":""}}',
    /known code/,
  ],
  [
    'with an error without words',
    '{"type":"end","key":"k","at":1,"error":{"code":"HOOK_FAILED"}}',
    /known code and a message/,
  ],
  ['with a timeout without a time', '{"type":"timeout","key":"k"}', /"at" must be a number/],
  ['with a cancel without its place', '{"type":"cancel"}', /"check" must be a number/],
]

for (const [what, line, why] of malformed) {
  test(`a recording with a line ${what} is rejected with the number of the line`, () => {
    const text = `${start}${begin}${line}\n${end}`
    assert.throws(() => parseRecording(text), { code: 'RECORDING_INVALID', value: 3, message: /^Line 3 / })
    assert.throws(() => parseRecording(text), { message: why })
  })
}

test('a recording that does not start with its run is rejected', () => {
  assert.throws(() => parseRecording(begin), { code: 'RECORDING_INVALID', value: 1 })
})

test('a recording of a newer version is rejected with STATE_VERSION', () => {
  assert.throws(() => parseRecording(start.replace('"version":1', '"version":2') + begin), {
    code: 'STATE_VERSION',
    message: /recording has version 2; this Hookloop reads up to 1/,
  })
})

test('a malformed recording is rejected before anything runs', async () => {
  const { agent, done } = sender()
  const recording = memoryRecording([{ type: 'begin', key: 'k', kind: 'tool', input: 1 }])
  await assert.rejects(async () => agent.run('x', { effects: replayEffects(recording) }), { code: 'RECORDING_INVALID' })
  await assert.rejects(async () => agent.run('x', { effects: replayEffects(memoryRecording()) }), {
    code: 'RECORDING_INVALID',
  })
  assert.deepEqual(done, [])
})

test('what was read can be written again without a difference', () => {
  const key = fc.string()
  const at = fc.nat()
  const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as never)
  const entry: fc.Arbitrary<RecordEntry> = fc.oneof(
    fc.record({ type: fc.constant('begin' as const), key, kind: key, input: json }),
    fc.record({ type: fc.constant('end' as const), key, at, value: json }),
    fc.record({
      type: fc.constant('end' as const),
      key,
      at,
      error: fc.record({ code: fc.constant('HOOK_FAILED' as const), message: key }),
    }),
    fc.record({ type: fc.constant('timeout' as const), key, at, ms: fc.nat() }),
    fc.record({ type: fc.constant('cancel' as const), check: at }),
  )
  fc.assert(
    fc.property(fc.array(entry), (entries) => {
      const text = formatRecording(memoryRecording([{ type: 'run', version: 1, id: 'r', at: 1 }, ...entries]))
      fc.pre(!text.includes('"__proto__"'))
      assert.equal(formatRecording(memoryRecording(parseRecording(text))), text)
    }),
  )
})

// ── recordings that cannot be written

/** A run with every kind of effect, and a list of everything it really did. */
function sender(): { agent: ReturnType<typeof createAgent>; done: string[] } {
  const done: string[] = []
  const send = tool({
    name: 'send',
    description: 'sends',
    input: z.object({ n: z.number() }),
    execute: ({ n }) => (done.push(`send ${n}`), 'sent'),
    ask: true,
  })
  const find = tool({
    name: 'find',
    description: 'finds',
    input: z.object({ n: z.number() }),
    execute: async ({ n }) => (done.push(`find ${n}`), 'found'),
    concurrent: true,
  })
  let failed = false
  const model = scriptedModel(({ messages }) => {
    done.push('model')
    if (!failed) {
      failed = true
      return { error: 'busy' }
    }
    const turns = messages.filter((message) => message.role === 'assistant').length
    if (turns === 0)
      return {
        toolCalls: [
          { name: 'find', args: { n: 1 } },
          { name: 'find', args: { n: 2 } },
        ],
      }
    return turns === 1 ? { toolCalls: [{ name: 'send', args: { n: 3 } }] } : 'done'
  })
  const agent = createAgent({
    model,
    use: [
      send,
      find,
      approval(() => (done.push('approval'), 'allow')),
      errorPolicy({ backoffMs: 1 }),
      hook('onUserInput', (ctx) => (done.push('input'), ctx), { name: 'input', effect: true }),
      hook('aroundInference', (_ctx, next) => next()),
      hook('aroundToolUse', (_ctx, next) => next(), { tool: 'send' }),
      hook('beforeStep', (ctx) => (done.push('lookup'), ctx), { name: 'lookup', effect: true }),
      guard('afterToolUse', async (ctx) => (done.push('judge'), ctx), { name: 'judge', effect: true }),
    ],
  })
  return { agent, done }
}

/** Refuses to write from one entry on, or only that one. */
function failing(at: number, howOften: 'once' | 'always'): Recording & { readonly begun: () => number } {
  const kept = memoryRecording()
  let count = 0
  return {
    entries: () => kept.entries(),
    begun: () => kept.entries().filter((entry) => entry.type === 'begin').length,
    append(entry) {
      count++
      if (count === at || (howOften === 'always' && count > at)) throw new Error('disk full')
      kept.append(entry)
    },
  }
}

async function runFailing(
  at: number,
  howOften: 'once' | 'always',
): Promise<{ run: Run; done: string[]; begun: number }> {
  const { agent, done } = sender()
  const recording = failing(at, howOften)
  const run = await agent.run('x', { effects: recordEffects(recording) })
  return { run, done, begun: recording.begun() }
}

for (const howOften of ['always', 'once'] as const) {
  test(`a recording that cannot be written (${howOften}) stops the run with persistenceFailed, wherever that happens`, async () => {
    const recording = memoryRecording()
    await sender().agent.run('x', { effects: recordEffects(recording) })
    const wrong: string[] = []
    for (let at = 1; at <= recording.entries().length; at++) {
      const { run } = await runFailing(at, howOften)
      const final = run.status === 'suspended' ? undefined : run.final
      const what = recording.entries()[at - 1]!
      if (final?.reason !== 'persistenceFailed') {
        wrong.push(
          `${at} (${what.type} ${'key' in what ? what.key.replace(/^[^/]*\//, '') : ''}): ${final?.status} ${final?.reason}`,
        )
      }
    }
    assert.deepEqual(wrong, [])
  })

  test(`nothing is done that was not written down first, when a recording cannot be written (${howOften})`, async () => {
    const recording = memoryRecording()
    const whole = sender()
    await whole.agent.run('x', { effects: recordEffects(recording) })
    const wrong: string[] = []
    for (let at = 1; at <= recording.entries().length; at++) {
      const { done } = await runFailing(at, howOften)
      const begun = recording
        .entries()
        .slice(0, at - 1)
        .filter((entry) => entry.type === 'begin')
      // Attempts of a call start within it, and a sleep does nothing.
      const real = begun.filter((entry) => entry.type === 'begin' && entry.kind !== 'sleep' && !wraps(entry.key))
      if (done.length > real.length) wrong.push(`${at}: did ${done.slice(real.length).join(', ')} after it`)
    }
    assert.deepEqual(wrong, [])
  })
}

/** Calls with around hooks are recorded twice: the call, and each attempt. */
function wraps(key: string): boolean {
  return /\/inference(\.\d+)?$/.test(key) || key.endsWith('/1/0/tool')
}

test('a guard on the input whose decision cannot be recorded blocks', async () => {
  const model = scriptedModel(['never'])
  const agent = createAgent({ model, use: [guard('onUserInput', (ctx) => ctx, { name: 'judge', effect: true })] })
  const run = await agent.run('x', { effects: recordEffects(failing(1, 'once')) })
  assert.equal(model.requests.length, 0)
  assert.notEqual(run.status, 'completed')
})

test('a cancel that cannot be written down ends the run with persistenceFailed, and onStop still fires', async () => {
  const controller = new AbortController()
  const fired: string[] = []
  const model = scriptedModel(() => (controller.abort(), 'late'))
  const agent = createAgent({ model, use: [hook('onStop', (ctx) => (fired.push('onStop'), ctx))] })
  const recording: Recording = {
    entries: () => [],
    append(entry) {
      if (entry.type === 'cancel') throw new Error('disk full')
    },
  }
  const run = await agent.run('x', { effects: recordEffects(recording), signal: controller.signal })
  assert.deepEqual([run.state.execution?.final?.reason, fired], ['persistenceFailed', ['onStop']])
})

test('a run whose recording failed reports it', async () => {
  const { run } = await runFailing(5, 'always')
  assert.equal(run.status, 'failed')
  assert.equal(run.error.code, 'RECORDING_FAILED')
  assert.match(run.error.message, /disk full/)
})
