import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guards } from '../../capabilities/guards.ts'
import { createAgent, type AgentOptions } from '../../create-agent.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { subagents } from '../../capabilities/subagents/subagents.ts'
import type { LanguageModel } from '../state/inference.ts'
import type { Json } from '../../values/json.ts'
import type { Part } from '../state/message.ts'
import type { ToolExecution } from '../state/tool-call.ts'
import { tool } from '../agent/tool.ts'
import { toExecution } from './execute-call.ts'

const anything = { type: 'object' }

/** The result of a tool that returns this value. */
async function resultOf(value: unknown, options: { maxOutputChars?: number } = {}): Promise<ToolExecution> {
  const give = tool({ name: 'give', description: 'Gives.', input: anything, execute: () => value as Json, ...options })
  const model = scriptedModel([{ toolCalls: [{ name: 'give', args: {} }] }, 'Done.'])
  const run = await createAgent({ model, use: [give] }).run('Go.')
  assert.equal(run.status, 'completed')
  const { name: _tool, ...execution } = run.state.execution!.steps.at(0)!.toolExecutions[0]!
  return execution
}

/** A list that consists of holes. */
function withLength(length: number): unknown[] {
  const list: unknown[] = []
  list.length = length
  return list
}

const long: { readonly [what: string]: unknown } = {
  'a million holes': withLength(1_000_000),
  'a million times undefined': Array.from({ length: 1_000_000 }, () => undefined),
  'a million functions': Array.from({ length: 1_000_000 }, () => () => 1),
}

for (const [what, value] of Object.entries(long)) {
  test(`maxOutputChars limits a list with ${what}`, async () => {
    const { output, truncated } = await resultOf(value, { maxOutputChars: 1_000 })
    assert.equal(truncated, true)
    assert.ok((output as string).length < 1_100)
  })
}

test('a list with a length of four billion fails the call, not the process', async () => {
  const { status, output } = await resultOf(withLength(4_294_967_295), { maxOutputChars: 1_000 })
  assert.equal(status, 'failed')
  assert.match(output as string, /The tool ran, but its result cannot be converted to JSON.*larger than 64 Mi/)
})

for (const value of [new Map([[1, 2]]), new Set([1]), new Response('text'), new Uint8Array(1e8)]) {
  const { name } = value.constructor
  test(`a ${name} as output fails the call instead of reaching the model as {}`, async () => {
    const { status, output } = await resultOf(value)
    assert.equal(status, 'failed')
    assert.match(output as string, new RegExp(`The tool ran, but .*${name} is not JSON; convert it`))
  })
}

test('an Error as output is a failed call with its message', async () => {
  assert.deepEqual(await resultOf(new Error('no such user')), { status: 'failed', output: 'no such user' })
})

/** A model whose first answer calls `give` with this input. */
function modelCalling(input: unknown): LanguageModel {
  let isFirst = true
  return {
    provider: 'test',
    modelId: 'test',
    infer: async () => {
      const call = { type: 'tool-call', toolCallId: '1', toolName: 'give', input } as Part
      const content: Part[] = isFirst ? [call] : [{ type: 'text', text: 'Done.' }]
      const finishReason = isFirst ? 'tool-calls' : 'stop'
      isFirst = false
      return { content, finishReason }
    },
  }
}

test('arguments that are nested too deep fail the call, not the run', async () => {
  const give = tool({ name: 'give', description: 'Gives.', input: anything, execute: () => 'ran' })
  for (const levels of [397, 398, 399, 400, 401, 450]) {
    let deep: unknown = 1
    for (let i = 0; i < levels; i++) deep = [deep]
    const run = await createAgent({ model: modelCalling({ deep }), use: [give] }).run('Go.')
    const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
    const failed = { name: 'give', status: 'failed', output: 'The arguments must be a JSON object.', rejected: true }
    assert.deepEqual(
      [run.status, execution],
      ['completed', levels < 399 ? { name: 'give', status: 'ok', output: 'ran' } : failed],
    )
  }
})

test('arguments with a number that is not JSON fail the call, and the tool does not get null', async () => {
  const give = tool({ name: 'give', description: 'Gives.', input: anything, execute: () => 'ran' })
  for (const args of [{ a: Infinity }, { a: [{ b: NaN }] }, { a: -Infinity }] as const) {
    const calls = [
      {
        toolCalls: [
          { name: 'give', args: { a: 1 } },
          { name: 'give', args },
        ],
      },
      'done',
    ]
    for (const model of [modelCalling(args), scriptedModel(calls)]) {
      const run = await createAgent({ model, use: [give] }).run('Go.')
      const execution = run.state.execution!.steps.at(0)!.toolExecutions.at(-1)
      const failed = { name: 'give', status: 'failed', output: 'The arguments must be a JSON object.', rejected: true }
      assert.deepEqual([run.status, execution], ['completed', failed])
    }
  }
})

test('arguments with a number that cannot be represented exactly fail the call, and the model gets the number', async () => {
  const give = tool({ name: 'give', description: 'Gives.', input: anything, execute: () => 'ran' })
  const run = await createAgent({ model: modelCalling('{"id":9007199254740993}'), use: [give] }).run('Go.')
  const [execution] = run.state.execution!.steps.at(0)!.toolExecutions
  assert.equal(execution!.status, 'failed')
  assert.match(execution!.output as string, /cannot be represented exactly: 9007199254740993\. Write it as a string/)
})

test('the model gets at most 40 characters of a number that cannot be represented exactly', async () => {
  const give = tool({ name: 'give', description: 'Gives.', input: anything, execute: () => 'ran' })
  const outputFor = async (chars: number): Promise<unknown> => {
    const number = `1e${'0'.repeat(chars - 5)}999`
    const run = await createAgent({ model: modelCalling(`{"id":${number}}`), use: [give] }).run('Go.')
    return run.state.execution!.steps.at(0)!.toolExecutions[0]!.output
  }
  assert.match((await outputFor(40)) as string, /exactly: 1e0{35}999\. Write/)
  assert.match((await outputFor(41)) as string, /exactly: 1e0{36}99…\. Write/)
})

/** A run whose first answer crosses a limit and calls a tool; returns what the tool did. */
async function crossing(use: AgentOptions['use']) {
  const log: string[] = []
  const give = tool({ name: 'give', description: 'Gives.', input: anything, execute: () => log.push('ran') })
  const usage = { inputTokens: 900, outputTokens: 200, costUsd: 2 }
  const model = scriptedModel([{ toolCalls: [{ name: 'give', args: {} }], usage }, 'Done.'])
  const run = await createAgent({ model, use: [give, ...use!] }).run('Go.')
  return { log, reason: run.status === 'suspended' ? undefined : run.final.reason }
}

test('no tool call of the answer that crosses maxTokens or maxCost starts', async () => {
  assert.deepEqual(await crossing([guards({ maxTokens: 1_000 })]), { log: [], reason: 'tokenLimit' })
  assert.deepEqual(await crossing([guards({ maxCost: 1 })]), { log: [], reason: 'costLimit' })
})

for (const [own, expected] of [
  [300, 1],
  [2, 1 + 4],
] as const) {
  test(`of 50 subagents at most those that run together exceed maxTokens, after a call of ${own} tokens`, async () => {
    const calls = Array.from({ length: 50 }, () => ({
      name: 'spawn_subagent',
      args: { subagent: 'helper', prompt: 'Go.' },
    }))
    let asked = 0
    const model = scriptedModel(() =>
      ++asked === 1
        ? { toolCalls: calls, usage: { inputTokens: own - 1, outputTokens: 1 } }
        : { text: 'Done.', usage: { inputTokens: 90, outputTokens: 10 } },
    )
    const helper = { description: 'Helps.', instructions: 'Help.' }
    const use = [subagents({ agents: { helper } }), guards({ maxTokens: 300 })]
    const run = await createAgent({ model, use, maxConcurrentTools: 4 }).run('Go.')
    assert.equal(run.status === 'suspended' ? undefined : run.final.reason, 'tokenLimit')
    assert.equal(asked, expected)
  })
}

test('a tool that returns a function or a symbol has failed, and the model receives what it returned', () => {
  for (const value of [function later(): void {}, () => 'later', Symbol('later')]) {
    for (const redact of [undefined, (json: Json) => json]) {
      const { status, output } = toExecution(value, { maxChars: 1_000, redact })
      assert.equal(status, 'failed')
      assert.match(output as string, /its result is (the function "\w+"|a function|a symbol), which is not JSON/)
    }
  }
})

test('the message of an error that a tool returns is limited like its output', () => {
  const { status, output } = toExecution(new Error('x'.repeat(5_000)), { maxChars: 1_000, redact: undefined })
  assert.equal(status, 'failed')
  assert.ok((output as string).length < 1_100)
})
