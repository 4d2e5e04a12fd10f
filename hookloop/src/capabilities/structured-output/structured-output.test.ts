import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import type { Use } from '../../agent/capability.ts'
import type { Run } from '../../agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { textOf } from '../../state/message.ts'
import type { SavedRun } from '../../state/saved-run.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedCall, type ScriptedTurn } from '../../models/scripted.ts'
import { approval } from '../approval.ts'
import { guards } from '../guards.ts'
import { getOutputs, structuredOutput, type StructuredOutputOptions } from './structured-output.ts'
import type { Schemas } from './form.ts'

const Invoice = z.object({ number: z.string(), cents: z.int().positive(), currency: z.string().default('EUR') })
const Contact = z.object({ name: z.string() })
const schemas = { invoice: Invoice, contact: { schema: Contact, description: 'A person.' } }

const fill = (schema: string, data: Json, store_as?: Json): ScriptedCall => ({
  name: `structured_output_${schema}`,
  args: { data, ...(store_as !== undefined && { store_as }) },
})
const good = (number = 'A-1'): Json => ({ number, cents: 100 })
const bad: Json = { number: 'A-1', cents: 1.5 }

function agentOn(script: Script, options: Partial<StructuredOutputOptions> = {}, ...use: readonly Use[]) {
  const model = scriptedModel(script)
  const agent = createAgent({
    model,
    use: [structuredOutput({ schemas, ...options }), guards({ maxSteps: 50 }), ...use],
  })
  return { model, agent }
}

async function fillAll(
  calls: readonly ScriptedCall[],
  options?: Partial<StructuredOutputOptions>,
  ...use: readonly Use[]
) {
  const run = await agentOn([{ toolCalls: calls }, 'Done.'], options, ...use).agent.run('Go.')
  const executions = run.state.execution!.steps.at(0)!.toolExecutions
  return { run, executions, statuses: executions.map(({ status }) => status) }
}

const save = (run: Run): SavedRun => JSON.parse(JSON.stringify(run)) as SavedRun

test('valid data is stored in the state and read as the schema parses it', async () => {
  const { run, executions } = await fillAll([fill('invoice', good()), fill('contact', { name: 'Ann' })])
  assert.deepEqual(await getOutputs(run.state, schemas), {
    invoice: [{ name: 'invoice', data: { number: 'A-1', cents: 100, currency: 'EUR' } }],
    contact: [{ name: 'contact', data: { name: 'Ann' } }],
  })
  assert.equal(executions[0]!.output, 'Saved as "invoice".')
})

test('several outputs of one schema are stored by name, and one with the same name is replaced', async () => {
  const calls = [fill('invoice', good('1'), 'march'), fill('invoice', good('2')), fill('invoice', good('3'), 'march')]
  const { run } = await fillAll(calls)
  assert.deepEqual(
    (await getOutputs(run.state, schemas)).invoice.map(({ name, data }) => [name, data.number]),
    [
      ['march', '3'],
      ['invoice', '2'],
    ],
  )
})

test('a state without outputs has an empty list for every schema', async () => {
  const { run } = await fillAll([])
  assert.deepEqual(await getOutputs(run.state, schemas), { invoice: [], contact: [] })
})

const kinds = {
  Zod: z.object({ name: z.string() }),
  ArkType: type({ name: 'string' }),
  Valibot: toStandardJsonSchema(v.object({ name: v.string() })),
  'plain JSON Schema': { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
}
for (const [kind, schema] of Object.entries(kinds)) {
  test(`a schema of ${kind} is sent to the model under "data", and data is validated by it`, async () => {
    const { agent, model } = agentOn([{ toolCalls: [fill('it', { name: 'Ann' }), fill('it', { name: 7 })] }, 'Done.'], {
      schemas: { it: schema },
    })
    const run = await agent.run('Go.')
    const shown = model.requests[0]!.tools[0]!.inputSchema as { properties: { data: { properties: JsonObject } } }
    assert.deepEqual(Object.keys(shown.properties), ['data', 'store_as'])
    assert.deepEqual(Object.keys(shown.properties.data.properties), ['name'])
    assert.deepEqual(
      run.state.execution!.steps.at(0)!.toolExecutions.map(({ status }) => status),
      ['ok', 'failed'],
    )
    assert.deepEqual(await getOutputs(run.state, { it: schema }), { it: [{ name: 'it', data: { name: 'Ann' } }] })
  })
}

test('a schema need not be an object', async () => {
  const lists = { tags: z.array(z.string()), mood: z.enum(['good', 'bad']) }
  const { run } = await fillAll([fill('tags', ['a', 'b']), fill('mood', 'good'), fill('mood', 'odd', 'x')], {
    schemas: lists,
  })
  const { tags, mood } = await getOutputs(run.state, lists)
  assert.deepEqual([tags[0]?.data, mood.map(({ data }) => data)], [['a', 'b'], ['good']])
})

test('a recursive schema works under "data"', async () => {
  const Tree: z.ZodType = z.object({
    name: z.string(),
    get children() {
      return z.array(Tree)
    },
  })
  const leaf = { $ref: '#/$defs/leaf' }
  const listed = { type: 'array', items: leaf, $defs: { leaf: { type: 'integer' } } }
  const { agent, model } = agentOn([{ toolCalls: [fill('tree', { name: 'a', children: [] })] }, 'Done.'], {
    schemas: { tree: Tree, listed },
  })
  const run = await agent.run('Go.')
  const [tree, list] = model.requests[0]!.tools.map(({ inputSchema }) => JSON.stringify(inputSchema)) as [
    string,
    string,
  ]
  assert.match(tree, /"\$ref":"#\/properties\/data"/)
  assert.match(
    list,
    /^\{"type":"object",.*"items":\{"\$ref":"#\/\$defs\/leaf"\}.*,"\$defs":\{"leaf":\{"type":"integer"\}\}\}$/,
  )
  assert.equal(run.state.execution!.steps.at(0)!.toolExecutions[0]!.status, 'ok')
})

test('the tool description has the description and the examples of the schema', () => {
  const example = { name: 'Ann' }
  const entry = { schema: Contact, description: 'A person.', examples: [example] }
  const [only] = structuredOutput({ schemas: { contact: entry } }).tools!
  assert.match(only!.description, /type "contact".*\nA person\.\n[^]*Example: \{"name":"Ann"\}$/)
  const described = structuredOutput({ schemas: { contact: Contact.describe('Who it is.') } }).tools![0]!
  assert.match(described.description, /\nWho it is\.\n/)
})

test('an asynchronous schema is awaited by the tool and by getOutputs', async () => {
  const known = { known: z.string().refine((name) => Promise.resolve(name === 'Ann')) }
  const { run, statuses } = await fillAll([fill('known', 'Ann'), fill('known', 'Bob', 'b')], { schemas: known })
  assert.deepEqual(statuses, ['ok', 'failed'])
  assert.deepEqual(await getOutputs(run.state, known), { known: [{ name: 'known', data: 'Ann' }] })
})

test('guards see the parsed data', async () => {
  const seen: unknown[] = []
  const watch = guard('beforeToolUse', (ctx) => (seen.push(ctx.toolCall.args), ctx), { tool: 'structured_output_*' })
  await fillAll([fill('invoice', good()), fill('invoice', bad)], {}, watch)
  assert.deepEqual(seen, [{ data: { number: 'A-1', cents: 100, currency: 'EUR' } }])
})

// ── rejected calls

for (const [what, call, words] of [
  ['invalid data', fill('invoice', bad), /data: cents: .*\nYou may try 3 more times\./],
  ['data without its wrapper', { name: 'structured_output_invoice', args: good() }, /put the data there/],
  [
    'a foreign argument',
    { name: 'structured_output_invoice', args: { data: good(), x: 1 } },
    /everything under "data"/,
  ],
  ['a name that is not a string', fill('invoice', good(), 7), /"store_as" must be a string/],
  ['a name with invalid characters', fill('invoice', good(), '__proto__'), /start with a letter/],
  ['a name that is too long', fill('invoice', good(), 'n'.repeat(65)), /at most 64/],
  ['the name of another schema', fill('invoice', good(), 'contact'), /reserved/],
  ['a reserved name', fill('invoice', good(), 'hookloop.x'), /reserved/],
  ['data that is too large', fill('contact', { name: 'x'.repeat(70_000) }), /70011 bytes; the maximum is 65536/],
] as const) {
  test(`${what} is a failed call with a helpful message, and nothing is stored`, async () => {
    const { run, executions, statuses } = await fillAll([call])
    assert.deepEqual([run.status, statuses], ['completed', ['failed']])
    assert.match(JSON.stringify(executions[0]!.output).replaceAll('\\n', '\n').replaceAll('\\"', '"'), words)
    assert.deepEqual(await getOutputs(run.state, schemas), { invoice: [], contact: [] })
  })
}

test('data with the maximum depth of JSON is rejected without a crash', async () => {
  const nested = (levels: number): Json => (levels === 1 ? [] : [nested(levels - 1)])
  const anything = { anything: {} }
  const { run, statuses } = await fillAll([fill('anything', nested(395)), fill('anything', nested(100))], {
    schemas: anything,
  })
  assert.deepEqual([run.status, statuses], ['completed', ['failed', 'ok']])
})

test('a name used by another schema is not overwritten', async () => {
  const { run, executions } = await fillAll([fill('contact', { name: 'Ann' }, 'x'), fill('invoice', good(), 'x')])
  assert.match(JSON.stringify(executions[1]!.output), /another type.*Choose another name/)
  assert.deepEqual((await getOutputs(run.state, schemas)).contact[0]?.data, { name: 'Ann' })
})

test('the number of outputs is limited, but existing ones can be replaced', async () => {
  const calls = ['a', 'b', 'c', 'a'].map((name) => fill('contact', { name }, name))
  assert.deepEqual((await fillAll(calls, { maxOutputs: 2 })).statuses, ['ok', 'ok', 'failed', 'ok'])
})

test('data that a guard blocks is not stored and does not count as a failure', async () => {
  const never = guard('beforeToolUse', (ctx) => ctx.block('No.'), { tool: 'structured_output_contact' })
  const { run } = await fillAll([fill('contact', { name: 'Ann' })], {}, never)
  assert.equal(run.state.metadata['hookloop.structuredOutput'], undefined)
})

test('data that a hook changed is stored as changed', async () => {
  const rename = hook('beforeToolUse', (ctx) => ctx.withArgs({ data: { name: 'Bob' } }), {
    tool: 'structured_output_*',
  })
  const { run } = await fillAll([fill('contact', { name: 'Ann' })], {}, rename)
  assert.deepEqual((await getOutputs(run.state, schemas)).contact[0]?.data, { name: 'Bob' })
})

// ── retries

const outputs = (run: Run): string[] =>
  [...(run.state.execution?.steps ?? [])].flatMap(({ toolExecutions }) =>
    toolExecutions.map(({ status, output }) => `${status}: ${(output as string).split('\n').at(-1)}`),
  )

test('data that is corrected in time is stored, and the retries start again', async () => {
  const tries = [bad, bad, bad, good(), bad]
  const script: ScriptedTurn[] = [...tries.map((data) => ({ toolCalls: [fill('invoice', data)] })), 'Done.']
  const run = await agentOn(script).agent.run('Go.')
  assert.deepEqual(outputs(run), [
    'failed: You may try 3 more times.',
    'failed: You may try 2 more times.',
    'failed: You may try 1 more time.',
    'ok: Saved as "invoice".',
    'failed: You may try 3 more times.',
  ])
})

const noMore = 'No more data of this type is accepted now. Continue without it, and say what is missing.'

for (const [how, turns] of [
  ['in separate steps', [[bad], [bad], [bad], [bad], [bad], [good()]]],
  ['in one step', [[bad, bad, bad, bad, bad, good()]]],
] as const) {
  test(`after three retries no more data is accepted, valid or not, ${how}`, async () => {
    const script: ScriptedTurn[] = turns.map((tries) => ({ toolCalls: tries.map((data) => fill('invoice', data)) }))
    const run = await agentOn([...script, { toolCalls: [fill('contact', { name: 'Ann' })] }, 'Done.']).agent.run('Go.')
    assert.deepEqual(outputs(run).slice(3), [
      `failed: ${noMore}`,
      `failed: ${noMore}`,
      `blocked: ${noMore}`,
      'ok: Saved as "contact".',
    ])
    assert.deepEqual((await getOutputs(run.state, schemas)).invoice, [])
  })
}

test('with maxRetries 0 the first failure is the last', async () => {
  const { executions } = await fillAll([fill('invoice', bad), fill('invoice', good())], { maxRetries: 0 })
  assert.match(executions[0]!.output as string, /cents: [^]*No more data/)
  assert.deepEqual([executions[1]!.status, executions[1]!.by], ['blocked', 'structuredOutput.retries'])
})

test('retries are counted per execution', async () => {
  const script = [{ toolCalls: [fill('invoice', bad)] }, 'No.', { toolCalls: [fill('invoice', good())] }, 'Done.']
  const { agent } = agentOn(script, { maxRetries: 0 })
  const run = await agent.run('Again.', { from: save(await agent.run('Go.')) })
  assert.equal((await getOutputs(run.state, schemas)).invoice.length, 1)
})

// ── storage

test('outputs and retry counts survive saving and resuming', async () => {
  const asks = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['store_as'] === 'b' ? ctx.ask('B?') : ctx), {
    name: 'asks',
    tool: 'structured_output_invoice',
  })
  const calls = [fill('invoice', good('1'), 'a'), fill('invoice', bad), fill('invoice', good('2'), 'b')]
  const script = [{ toolCalls: calls }, { toolCalls: [fill('invoice', bad)] }, 'Done.']
  const { agent } = agentOn(script, { maxRetries: 1 }, asks, approval('suspend'))
  const waiting = await agent.run('Go.')
  assert.ok(waiting.status === 'suspended')
  const run = await agent.resume(save(waiting), { answers: { [waiting.pending[0]!.id]: { block: 'No.' } } })
  assert.deepEqual(
    (await getOutputs(run.state, schemas)).invoice.map(({ name }) => name),
    ['a'],
  )
  assert.equal(outputs(run).at(-1), `failed: ${noMore}`)
})

test('stored data that does not match its schema any more is rejected when read', async () => {
  const { run } = await fillAll([fill('contact', { name: 'Ann' })])
  const stricter = { contact: z.object({ name: z.string(), age: z.number() }) }
  await assert.rejects(getOutputs(run.state, stricter), { code: 'STATE_INVALID', message: /"contact".*age/ })
  assert.deepEqual(await getOutputs(run.state, { other: Contact }), { other: [] })
})

test('invalid metadata is read as empty, and the next output is stored', async () => {
  for (const stored of ['x', 7, [], { outputs: 'x', missed: 7 }, { outputs: { a: 1 }, missed: { contact: 'x' } }]) {
    const { agent } = agentOn([{ toolCalls: [fill('contact', { name: 'Ann' })] }, 'Done.'])
    const run = await agent.run('Go.', { metadata: { 'hookloop.structuredOutput': stored } })
    assert.equal((await getOutputs(run.state, schemas)).contact.length, 1)
  }
})

test('a thousand runs of one agent at once keep their outputs and retries apart', async () => {
  const model = scriptedModel(({ messages }) => {
    const name = textOf(messages.at(0)!.content)
    return messages.length === 1 ? { toolCalls: [fill('contact', 7), fill('contact', { name })] } : 'Done.'
  })
  const agent = createAgent({ model, use: [structuredOutput({ schemas, maxRetries: 1 })] })
  const runs = await Promise.all(Array.from({ length: 1000 }, (_, i) => agent.run(`n${i}`)))
  const names = await Promise.all(
    runs.map(async ({ state }) => (await getOutputs(state, schemas)).contact[0]?.data.name),
  )
  assert.deepEqual(
    names,
    runs.map((_, i) => `n${i}`),
  )
})

test('invalid options and schemas are rejected by name', () => {
  const wrong: readonly (Partial<StructuredOutputOptions> | object)[] = [
    { schemas: { 'in voice': Invoice } },
    { schemas: { [`a${'b'.repeat(40)}`]: Invoice } },
    { schemas: { at: z.date() } },
    { schemas: { at: 'text' } as unknown as Schemas },
    { schemas: { contact: { schema: Contact, examples: [{ name: 7 }] } } },
    { maxRetries: -1 },
    { maxOutputs: 0 },
    { retries: 3 },
  ]
  for (const options of wrong) {
    const make = (): unknown => structuredOutput({ schemas, ...options })
    assert.throws(make, { code: 'AGENT_INVALID_OPTION', message: /^structuredOutput: / }, JSON.stringify(options))
  }
})
