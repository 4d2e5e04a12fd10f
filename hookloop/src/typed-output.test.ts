import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as z from 'zod'
import type { Agent } from './core/agent/agent.ts'
import type { Use } from './core/agent/capability.ts'
import { explain } from './core/explain/explain.ts'
import type { Run } from './core/agent/run.ts'
import { tool } from './core/agent/tool.ts'
import { createAgent } from './create-agent.ts'
import type { LanguageModel } from './core/state/inference.ts'
import type { Json, JsonObject } from './values/json.ts'
import type { Schema } from './values/schema.ts'
import type { AgentError } from './errors.ts'
import { guard, hook } from './core/hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from './models/scripted.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { approval } from './capabilities/approval.ts'
import type { OutputOptions } from './typed-output.ts'

type Strategy = NonNullable<OutputOptions['strategy']>
const strategies: readonly Strategy[] = ['native', 'tool', 'text']

const weather = z.object({ city: z.string(), degrees: z.number() })
const oslo = { city: 'Oslo', degrees: -3 }
const bad = { city: 'Oslo', degrees: 'cold' }
const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'snow' })

/** An answer in the form of a strategy. */
function answer(strategy: Strategy, value: Json): ScriptedTurn {
  return strategy === 'tool' ? { toolCalls: [{ name: 'final_answer', args: value }] } : JSON.stringify(value)
}

type Setting = OutputOptions & { readonly schema?: Schema | JsonObject; readonly use?: readonly Use[] }

function agentOn(script: Script | (() => ScriptedTurn), { schema = weather, use = [], ...options }: Setting = {}) {
  const model = scriptedModel(script)
  const store = memoryStore()
  const agent: Agent<unknown> = createAgent({ model, store, output: schema, outputOptions: options, use })
  return { model, agent, store }
}

function outputOf(run: Run<unknown>): unknown {
  assert.ok(run.status === 'completed', `the run is ${run.status}: ${explain(run)}`)
  return run.output
}

type Attempts = { readonly attempts: readonly { readonly text: string; readonly problem: string }[] }

function invalidOf(run: Run<unknown>): AgentError & { readonly value: Attempts } {
  assert.ok(run.status === 'failed' && run.error.code === 'OUTPUT_INVALID', explain(run))
  return run.error as AgentError & { readonly value: Attempts }
}

for (const strategy of strategies) {
  suite(`by ${strategy}`, () => {
    test('a valid answer is the output', async () => {
      const { agent, model } = agentOn([answer(strategy, oslo)], { strategy })
      assert.deepEqual([outputOf(await agent.run('go')), model.requests.length], [oslo, 1])
    })

    test('an invalid answer is returned to the model with what is wrong', async () => {
      const { agent, model } = agentOn([answer(strategy, bad), answer(strategy, oslo)], { strategy })
      assert.deepEqual(outputOf(await agent.run('go')), oslo)
      assert.match(JSON.stringify(model.requests[1]!.messages.at(-1)), /degrees/)
    })

    test('a run without a valid answer fails, with every attempt and its problem', async () => {
      const { agent, model } = agentOn(() => answer(strategy, bad), { strategy })
      const run = await agent.run('go')
      const { attempts } = invalidOf(run).value
      assert.deepEqual([attempts.length, model.requests.length, run.state.execution?.status], [3, 3, 'failed'])
      assert.ok(attempts.every(({ text, problem }) => text === JSON.stringify(bad) && /degrees/.test(problem)))
    })

    test('an invalid answer is retried maxRetries times', async () => {
      for (const maxRetries of [0, 4]) {
        const { agent, model } = agentOn(() => answer(strategy, bad), { strategy, maxRetries })
        const { attempts } = invalidOf(await agent.run('go')).value
        assert.deepEqual([attempts.length, model.requests.length], [maxRetries + 1, maxRetries + 1])
      }
    })

    test('a run also fails if another limit stops it before the retries are used up', async () => {
      const { agent } = agentOn(() => answer(strategy, bad), { strategy, maxRetries: 11 })
      assert.match(invalidOf(await agent.run('go')).message, /No answer matches/)
    })

    const wrapped: readonly (readonly [string, Schema | JsonObject, Json])[] = [
      ['list', z.array(z.string()), ['a', 'b']],
      ['text', z.string(), 'plain'],
      ['number', z.number(), 42],
      ['truth', z.boolean(), false],
      ['choice', z.enum(['yes', 'no']), 'no'],
      ['union', z.union([z.object({ a: z.number() }), z.object({ b: z.string() })]), { b: 'x' }],
      ['plain JSON Schema', { type: 'array', items: { type: 'integer' } }, [1, 2]],
      ['list of things with an id', z.array(z.object({ a: z.number() }).meta({ id: `${strategy}Item` })), [{ a: 1 }]],
    ]
    for (const [what, schema, value] of wrapped) {
      test(`a ${what} is sent inside an object, and the output is without it`, async () => {
        const { agent } = agentOn([answer(strategy, { value })], { strategy, schema })
        assert.deepEqual(outputOf(await agent.run('go')), value)
      })
    }

    test('the output is the parsed answer, and refinements of the schema apply', async () => {
      const day = z.iso.datetime().transform((text) => new Date(text))
      const later = async (date: Date): Promise<boolean> => date.getFullYear() > 2000
      const schema = z.object({ at: day.refine(later, 'too long ago') })
      const [old, young] = ['1999-01-01T00:00:00Z', '2024-01-01T00:00:00Z']
      const { agent, model } = agentOn([answer(strategy, { at: old }), answer(strategy, { at: young })], {
        strategy,
        schema,
      })
      assert.deepEqual(outputOf(await agent.run('go')), { at: new Date(young) })
      assert.match(JSON.stringify(model.requests[1]!.messages.at(-1)), /too long ago/)
    })

    test('only answers to the last input of a conversation count', async () => {
      const script = [answer(strategy, oslo), answer(strategy, bad), answer(strategy, bad), answer(strategy, oslo)]
      const { agent, model } = agentOn(script, { strategy, maxRetries: 1 })
      const first = await agent.run('go')
      const second = await agent.run('and now', { from: first })
      assert.equal(invalidOf(second).value.attempts.length, 2)
      const third = await agent.run('again', { from: second })
      assert.deepEqual([outputOf(first), outputOf(third), model.requests.length], [oslo, oslo, 4])
    })

    test('a hook that allows the stop does not make an invalid answer valid', async () => {
      const ends: readonly Use[] = [
        hook('afterStep', (ctx) => ctx.allowStop('Enough.')),
        guard('afterStep', (ctx) => ctx.stop('Enough.', { reason: 'completed' })),
        hook('beforeStep', (ctx) => (ctx.state.stepCount > 0 ? ctx.allowStop('Enough.') : ctx)),
      ]
      for (const end of ends) {
        const { agent, model } = agentOn(() => answer(strategy, bad), { strategy, use: [end] })
        const run = await agent.run('go')
        assert.deepEqual(['output' in run, model.requests.length <= 3], [false, true])
        // A request for another answer overrides allowStop, but never a forbid, which ends the run unapproved.
        if (end === ends[1]) assert.ok(['stopped', 'failed'].includes(run.status), explain(run))
        else assert.equal(run.status === 'failed' && run.error.code, 'OUTPUT_INVALID', explain(run))
      }
    })
  })
}

// ── strategies

const kinds: readonly (readonly [LanguageModel['structuredOutput'], boolean, Strategy])[] = [
  [undefined, false, 'tool'],
  [undefined, true, 'tool'],
  ['native', false, 'native'],
  ['native', true, 'native'],
  ['native-alone', false, 'native'],
  ['native-alone', true, 'tool'],
  ['tool', false, 'tool'],
  ['text', true, 'text'],
]
for (const [structuredOutput, hasTools, strategy] of kinds) {
  const tools = hasTools ? 'with' : 'without'
  test(`a model with "${structuredOutput}" gets the strategy ${strategy} ${tools} tools`, async () => {
    const script = scriptedModel([answer(strategy, oslo)])
    const model = { ...script, ...(structuredOutput !== undefined && { structuredOutput }) }
    const agent = createAgent({ model, instructions: 'Be brief.', output: weather, use: hasTools ? [look] : [] })
    assert.deepEqual(outputOf(await agent.run('go')), oslo)
    const { system, responseFormat, tools } = script.requests[0]!
    const schema = /"degrees"/.test(system) ? 'text' : responseFormat !== undefined ? 'native' : 'tool'
    assert.deepEqual([schema, tools.some(({ name }) => name === 'final_answer')], [strategy, strategy === 'tool'])
    assert.ok(system.startsWith('Be brief.'))
  })
}

test('an answer without the tool is accepted if valid; otherwise the tool is required', async () => {
  const { agent, model } = agentOn(['It is cold.', answer('tool', oslo)], { strategy: 'tool' })
  assert.deepEqual(outputOf(await agent.run('go')), oslo)
  assert.deepEqual(
    model.requests.map(({ toolChoice }) => toolChoice),
    [undefined, { tool: 'final_answer' }],
  )
  assert.deepEqual(outputOf(await agentOn([JSON.stringify(oslo)]).agent.run('go')), oslo)
})

// ── other hooks

test('a truncated answer is returned to the model, and a run without another fails', async () => {
  const cut: ScriptedTurn = { text: '{"city":"Oslo","degr', finishReason: 'length' }
  const once = agentOn([cut, JSON.stringify(oslo)], { strategy: 'text' })
  assert.deepEqual(outputOf(await once.agent.run('go')), oslo)
  const always = await agentOn(() => cut, { strategy: 'native' }).agent.run('go')
  assert.equal(invalidOf(always).value.attempts.length, 3)
})

test('a run with only empty answers fails', async () => {
  const { attempts } = invalidOf(await agentOn(() => '', { strategy: 'text' }).agent.run('go')).value
  assert.deepEqual(
    attempts.map(({ problem }) => problem),
    ['it is empty', 'it is empty', 'it is empty'],
  )
})

test('the answer itself can need approval, and the approver can edit it', async () => {
  const { agent } = agentOn([answer('tool', oslo)], { use: [approval({ answer: 'suspend', tools: ['final_answer'] })] })
  const waiting = await agent.run('go')
  assert.ok(waiting.status === 'suspended')
  const edited = { allow: { city: 'Bergen', degrees: 4 } }
  const run = await agent.resume(waiting, { answers: { [waiting.pending[0]!.id]: edited } })
  assert.deepEqual(outputOf(run), edited.allow)
})
