import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import fc from 'fast-check'
import * as v from 'valibot'
import { z } from 'zod'
import { createAgent } from '../../create-agent.ts'
import { textOfJson, type Json, type JsonObject } from '../../values/json.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import { fromStateJson } from '../state/saved-run.ts'
import type { Schema } from '../../values/schema.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import { hook } from '../hooks/hook.ts'
import { scriptedModel, type ScriptedCall } from '../../models/scripted.ts'
import type { Use } from './capability.ts'
import type { Run } from './run.ts'
import { tool } from './tool.ts'

/** The only call of a run: its message to the model, its execution and its ledger entries. */
type Used = { run: Run; execution: ToolExecution; read: string; entries: readonly TimedLedgerEntry[] }

async function useOnce(call: ScriptedCall, ...use: readonly Use[]): Promise<Used> {
  const model = scriptedModel([{ toolCalls: [call] }, 'Done.'])
  const run = await createAgent({ model, use }).run('Go.')
  const step = run.state.execution!.steps.at(0)
  assert.ok(step, `the run ${run.status} before its first step was closed`)
  const [result] = model.requests[1]?.messages.at(-1)?.content ?? []
  const entries = run.ledger.filter((entry) => entry.hook === 'hookloop' && entry.call === step.toolCalls[0]!.id)
  const output = result?.type === 'tool-result' ? result.output : null
  const read = textOfJson(output)
  return { run, execution: step.toolExecutions[0]!, read, entries }
}

const anything = { type: 'object' }
const returning = (make: () => unknown, options: { maxOutputChars?: number } = {}) =>
  tool({ name: 'make', description: 'Makes something.', input: anything, execute: make, ...options })

const kinds = {
  Zod: z.object({ command: z.string() }),
  ArkType: type({ command: 'string' }),
  'Valibot in its adapter': toStandardJsonSchema(v.object({ command: v.string() })),
  'plain JSON Schema': { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
}

for (const [kind, input] of Object.entries(kinds)) {
  test(`a tool whose input is ${kind} is sent to the model as JSON Schema and gets valid arguments`, async () => {
    const received: unknown[] = []
    const echo = tool({ name: 'echo', description: 'Echoes.', input, execute: (args) => void received.push(args) })
    const { run } = await useOnce({ name: 'echo', args: { command: 'ls' } }, echo)
    assert.equal(run.status, 'completed')
    assert.deepEqual(received, [{ command: 'ls' }])
    assert.equal(echo.inputSchema['type'], 'object')
    assert.deepEqual(Object.keys(echo.inputSchema['properties'] as object), ['command'])
  })

  const misfits: readonly Json[] = [
    null,
    [],
    ['ls'],
    'ls',
    7,
    true,
    {},
    { command: 1 },
    { command: null },
    { comand: 'ls' },
    JSON.parse('{"__proto__":{"command":"ls"}}') as Json,
  ]
  for (const args of misfits) {
    test(`with ${kind}, the arguments ${JSON.stringify(args)} fail the call with a message to the model, and the run continues`, async () => {
      let ran = false
      const echo = tool({ name: 'echo', description: 'Echoes.', input, execute: () => (ran = true) })
      const { run, execution, read, entries } = await useOnce({ name: 'echo', args }, echo)
      assert.deepEqual([run.status, execution.status, ran], ['completed', 'failed', false])
      assert.match(read, /arguments/)
      assert.equal(entries[0]?.decision, 'failed')
    })
  }
}

test('a validation error names the path of the invalid argument', async () => {
  const input = z.object({ files: z.array(z.object({ path: z.string() })) })
  const open = tool({ name: 'open', description: 'Opens.', input, execute: () => null })
  const { read } = await useOnce({ name: 'open', args: { files: [{ path: 'a' }, { path: 2 }] } }, open)
  assert.match(read, /files\.1\.path/)
})

test('plain JSON Schema is validated with all keywords', async () => {
  const input = {
    type: 'object',
    properties: { size: { type: 'integer', minimum: 1, maximum: 9 }, kind: { enum: ['a', 'b'] } },
    required: ['size'],
    additionalProperties: false,
  }
  const pick = tool({ name: 'pick', description: 'Picks.', input, execute: () => 'picked' })
  const statuses = []
  for (const args of [{ size: 3 }, { size: 0 }, { size: 1.5 }, { size: 3, kind: 'c' }, { size: 3, more: 1 }]) {
    const { execution } = await useOnce({ name: 'pick', args }, pick)
    statuses.push(execution.status)
  }
  assert.deepEqual(statuses, ['ok', 'failed', 'failed', 'failed', 'failed'])
})

test('an asynchronous schema is awaited', async () => {
  const free = async (name: string): Promise<boolean> => (await Promise.resolve(name)) !== 'taken'
  const input = z.object({ name: z.string().refine(free, 'is taken') })
  const claim = tool({ name: 'claim', description: 'Claims.', input, execute: ({ name }) => `claimed ${name}` })
  const good = await useOnce({ name: 'claim', args: { name: 'new' } }, claim)
  const bad = await useOnce({ name: 'claim', args: { name: 'taken' } }, claim)
  assert.deepEqual([good.execution.output, bad.execution.status], ['claimed new', 'failed'])
  assert.match(bad.read, /is taken/)
})

for (const when of ['at once', 'later'] as const) {
  const broken = (): never => raise(new Error('the schema is broken'))
  const validate = when === 'later' ? async () => broken() : broken
  const jsonSchema = { input: () => anything, output: () => anything }
  const input: Schema<JsonObject, JsonObject> = {
    '~standard': { version: 1, vendor: 'hookloop-test', validate, jsonSchema },
  }
  const claim = tool({ name: 'claim', description: 'Claims.', input, execute: () => 'claimed' })

  test(`a schema that throws ${when} fails the call with a message to the model, not the run`, async () => {
    const { run, execution, read } = await useOnce({ name: 'claim', args: { name: 'new' } }, claim)
    assert.deepEqual([run.status, execution.status], ['completed', 'failed'])
    assert.match(read, /the schema is broken/)
  })

  test(`a schema that throws ${when} fails the call, also with a hook that is typed by the tool`, async () => {
    const typed = hook('beforeToolUse', (ctx) => ctx, { tool: claim })
    const { run, execution } = await useOnce({ name: 'claim', args: { name: 'new' } }, claim, typed)
    assert.deepEqual([run.status, execution.status], ['completed', 'failed'])
  })
}

test('the tool gets the parsed arguments, and the state has the JSON before parsing', async () => {
  const at = z.iso.datetime().transform((text) => new Date(text))
  const input = z.object({ at, tags: z.string().transform((text) => new Set(text.split(','))) })
  const received: unknown[] = []
  const note = tool({ name: 'note', description: 'Notes.', input, execute: (args) => void received.push(args) })
  const args = { at: '2026-01-02T03:04:05.000Z', tags: 'a,b' }
  const { run } = await useOnce({ name: 'note', args }, note)
  assert.deepEqual(received, [{ at: new Date(args.at), tags: new Set(['a', 'b']) }])
  assert.deepEqual(run.state.execution!.steps.at(0)!.toolCalls[0]!.args, args)
})

const odd = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf']

test('with any tool name and any arguments the run continues, and no prototype is polluted', async () => {
  const before = Reflect.ownKeys(Object.prototype).length
  const names = fc.oneof(fc.string(), fc.constantFrom(...odd, '', 'make'))
  await fc.assert(
    fc.asyncProperty(names, fc.jsonValue(), async (name, args) => {
      const make = returning(() => 'made')
      const { run, execution, entries } = await useOnce({ name, args: args as Json }, make)
      assert.equal(run.status, 'completed')
      assert.equal(execution.status === 'ok' || entries.length === 1, true)
      const saved = JSON.parse(JSON.stringify(run.state)) as JsonObject
      assert.deepEqual(JSON.parse(JSON.stringify(fromStateJson(saved))), saved)
    }),
    { numRuns: 150 },
  )
  assert.equal(Reflect.ownKeys(Object.prototype).length, before)
})

class Hostile extends Error {
  override get message(): string {
    throw new Error('not even this')
  }
}

const failures: readonly [string, unknown, RegExp][] = [
  ['an Error', new Error('disk full'), /^disk full$/],
  ['an Error without words', new TypeError(), /TypeError/],
  ['a string', 'disk full', /^disk full$/],
  ['an empty string', '', /./],
  ['null', null, /null/],
  ['undefined', undefined, /undefined/],
  ['an object', { code: 7 }, /"code":7/],
  ['a symbol', Symbol('odd'), /odd/],
  ['an error that cannot be read', new Hostile(), /./],
]

for (const [what, thrown, words] of failures) {
  for (const [when, execute] of [
    ['throws', () => raise(thrown)],
    ['rejects with', async () => raise(thrown)],
  ] as const) {
    test(`a tool that ${when} ${what} fails, and the model gets the message`, async () => {
      const { run, execution, read } = await useOnce({ name: 'make' }, returning(execute))
      assert.deepEqual([run.status, execution.status], ['completed', 'failed'])
      assert.match(read, words)
    })
  }
}

function raise(thrown: unknown): never {
  throw thrown
}

const circular: { self?: unknown } = {}
circular.self = circular
const unshowable: readonly [string, () => unknown][] = [
  ['is circular', () => circular],
  ['is a bigint', () => 10n],
  ['holds a bigint', () => ({ size: [10n] })],
  ['cannot be read', () => ({ toJSON: () => raise(new Error('no')) })],
  ['throws where it is read', () => Object.defineProperty({}, 'x', { enumerable: true, get: () => raise('no') })],
]

for (const [what, make] of unshowable) {
  test(`output that ${what} fails the call, and the message says that the tool ran`, async () => {
    const { run, execution, read } = await useOnce({ name: 'make' }, returning(make))
    assert.deepEqual([run.status, execution.status], ['completed', 'failed'])
    assert.match(read, /^The tool ran, but/)
  })
}

test('a tool may return nothing, and the model is sent "no output"', async () => {
  const { execution } = await useOnce(
    { name: 'make' },
    returning(() => undefined),
  )
  assert.deepEqual(execution, { name: 'make', status: 'ok', output: '(no output)' })
})

test('long output keeps its beginning and its end and is marked as truncated', async () => {
  const long = `first ${'x'.repeat(200_000)} last`
  const { execution } = await useOnce(
    { name: 'make' },
    returning(() => long, { maxOutputChars: 1000 }),
  )
  const output = execution.output as string
  assert.equal(execution.truncated, true)
  assert.match(output, /^first x+\n.*characters left out.*\nx+ last$/)
  assert.ok(output.length < 1100)
})

const bulky: readonly [string, unknown][] = [
  ['texts', ['y'.repeat(40_000), 'z'.repeat(40_000)]],
  ['empty texts', Array(70_000).fill('')],
  ['nothing', Array(70_000).fill(null)],
  ['yes and no', Array(70_000).fill(true)],
  ['long numbers', Array(15_000).fill(0.123456789012345)],
  ['empty lists', Array.from({ length: 70_000 }, () => [])],
  ['characters that need an escape', ['\u0001'.repeat(60_000)]],
]

for (const [what, value] of bulky) {
  test(`maxOutputChars applies to a list of ${what}`, async () => {
    const { execution } = await useOnce(
      { name: 'make' },
      returning(() => value),
    )
    assert.equal(execution.truncated, true)
    assert.ok(JSON.stringify(execution.output).length < 3 * 65_536)
  })
}

const notable: readonly [string, () => unknown][] = [
  ['a thrown error', () => raise(new Error('disk full'))],
  ['output that cannot be shown', () => circular],
  ['output that was cut', () => 'x'.repeat(100_000)],
  ['no output', () => undefined],
]

for (const [what, make] of notable) {
  test(`${what} is an entry in the ledger`, async () => {
    const { entries } = await useOnce({ name: 'make' }, returning(make))
    assert.equal(entries.length, 1)
  })
}

const unusable: readonly [string, () => unknown, RegExp][] = [
  ['no name', () => tool({ name: '', description: '', input: anything, execute: () => 1 }), /name/],
  ['a name with a space', () => tool({ name: 'a b', description: '', input: anything, execute: () => 1 }), /name/],
  ['no schema', () => tool({ ...made, input: null as unknown as typeof anything }), /schema/],
  ['a schema that has no JSON Schema', () => tool({ ...made, input: v.object({}) as never }), /toStandardJsonSchema/],
]
const made = { name: 'made', description: 'Is made.', input: anything, execute: () => 1 }

for (const [what, declare, words] of unusable) {
  test(`a tool with ${what} is rejected when it is declared`, () => {
    assert.throws(
      declare,
      (error) => error instanceof AgentError && error.code === 'TOOL_INVALID' && words.test(error.message),
    )
  })
}

test('duplicate and empty call ids are replaced, so that each result belongs to one call', async () => {
  const toolCalls = ['same', 'same', '', '', 'same-1'].map((id, n) => ({ name: 'echo', id, args: { n } }))
  const model = scriptedModel([{ toolCalls }, 'Done.'])
  const echo = tool({ name: 'echo', description: 'Echoes.', input: anything, execute: (args) => args })
  const run = await createAgent({ model, use: [echo] }).run('Go.')
  const [asked, answered] = run.state.messages.slice(1, 3).map(({ content }) =>
    content.map((part) => {
      if (part.type === 'tool-call') return [part.toolCallId, part.input]
      return part.type === 'tool-result' ? [part.toolCallId, part.output] : []
    }),
  )
  assert.deepEqual(answered, asked)
  assert.equal(new Set(asked!.map(([id]) => id)).size, 5)
  assert.ok(asked!.every(([id]) => id !== ''))
})

// ── the state

for (const [how, around] of [
  ['alone', []],
  ['with a hook around it', [hook('aroundToolUse', (_ctx, next) => next())]],
] as const) {
  test(`a tool sees the state at the start of its call, with earlier changes by hooks, ${how}`, async () => {
    const seen: Json[] = []
    const count = tool({
      name: 'count',
      description: 'Counts.',
      input: anything,
      execute: (_args, { state }) => void seen.push(state.metadata['n'] ?? 0),
    })
    const add = hook('afterToolUse', (ctx) =>
      ctx.withState((state) => state.withMetadata('n', Number(state.metadata['n'] ?? 0) + 1)),
    )
    const model = scriptedModel([{ toolCalls: [{ name: 'count' }, { name: 'count' }] }, 'Done.'])
    await createAgent({ model, use: [count, add, ...around] }).run('Go.')
    assert.deepEqual(seen, [0, 1])
  })
}
