import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toStandardJsonSchema } from '@valibot/to-json-schema'
import { type } from 'arktype'
import * as v from 'valibot'
import { z } from 'zod'
import type { Use } from '../../core/agent/capability.ts'
import type { Run } from '../../core/agent/run.ts'
import { createAgent } from '../../create-agent.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { scriptedModel, type Script, type ScriptedCall, type ScriptedTurn } from '../../models/scripted.ts'
import { guards } from '../guards.ts'
import { getOutputs, structuredOutput, type StructuredOutputOptions } from './structured-output.ts'

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

test('a name used by another schema is not overwritten', async () => {
  const { run, executions } = await fillAll([fill('contact', { name: 'Ann' }, 'x'), fill('invoice', good(), 'x')])
  assert.match(JSON.stringify(executions[1]!.output), /another type.*Choose another name/)
  assert.deepEqual((await getOutputs(run.state, schemas)).contact[0]?.data, { name: 'Ann' })
})

test('the number of outputs is limited, but existing ones can be replaced', async () => {
  const calls = ['a', 'b', 'c', 'a'].map((name) => fill('contact', { name }, name))
  assert.deepEqual((await fillAll(calls, { maxOutputs: 2 })).statuses, ['ok', 'ok', 'failed', 'ok'])
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

// ── storage

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
