import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as z from 'zod'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import { explain } from '../agent/explain/explain.ts'
import type { Run } from '../agent/run.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { LanguageModel } from '../state/inference.ts'
import type { Json, JsonObject } from '../values/json.ts'
import { textOf } from '../state/message.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Schema } from '../values/schema.ts'
import type { AgentError } from '../errors.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../models/scripted.ts'
import { recordEvents } from '../testing/record-events.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { approval } from './approval.ts'
import { guards } from './guards.ts'
import type { OutputOptions } from './output.ts'

type Strategy = NonNullable<OutputOptions['strategy']>
const strategies: readonly Strategy[] = ['native', 'tool', 'text']

const weather = z.object({ city: z.string(), degrees: z.number() })
const oslo = { city: 'Oslo', degrees: -3 }
const bad = { city: 'Oslo', degrees: 'cold' }
const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'snow' })
const looking: ScriptedTurn = { toolCalls: [{ name: 'look' }] }

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

    test('a replay calls no model', async () => {
      const script = [looking, answer(strategy, bad), answer(strategy, oslo)]
      const { agent, store } = agentOn(script, { strategy, use: [look] })
      const live = await agent.run('go', { session: 's' })
      const dead = agentOn([], { strategy, use: [look] })
      await strictReplay(dead.agent, store, 's')
      assert.deepEqual([outputOf(live), dead.model.requests.length], [oslo, 0])
    })

    test('the output is the same streamed and step by step', async () => {
      const script = [looking, answer(strategy, bad), answer(strategy, oslo)]
      const streamed = await recordEvents(agentOn(script, { strategy, use: [look] }).agent.stream('go'))
      const live = agentOn(script, { strategy, use: [look] }).agent.iterate('go')
      let steps = 0
      for await (const state of live) steps = state.stepCount
      assert.deepEqual([outputOf(streamed.run), outputOf(await live.run), steps], [oslo, oslo, 3])
    })

    test('a run that was paused gets its output in another process', async () => {
      const script = [answer(strategy, bad), answer(strategy, oslo)]
      const { agent } = agentOn(script, { strategy })
      const live = agent.iterate('go')
      for await (const state of live) if (state.stepCount > 0) break
      const saved = JSON.parse(JSON.stringify(await live.run)) as SavedRun
      assert.deepEqual(outputOf(await agent.resume(saved)), oslo)
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

test('agent.with() keeps the output, with the strategy for the new tools', async () => {
  const script = scriptedModel([answer('native', oslo), answer('tool', oslo)])
  const agent = createAgent({ model: { ...script, structuredOutput: 'native-alone' }, output: weather })
  const more = agent.with(look)
  assert.deepEqual([outputOf(await agent.run('go')), outputOf(await more.run('go'))], [oslo, oslo])
  assert.deepEqual(
    script.requests.map(({ tools }) => tools.map(({ name }) => name)),
    [[], ['look', 'final_answer']],
  )
})

test('the provider gets the name and the description of the answer', async () => {
  const { agent, model } = agentOn([JSON.stringify(oslo)], { strategy: 'native', name: 'weather', description: 'Now.' })
  await agent.run('go')
  const { schema, ...format } = model.requests[0]!.responseFormat!
  assert.deepEqual(format, { type: 'json', name: 'weather', description: 'Now.' })
  assert.equal((schema as JsonObject)['additionalProperties'], false)
})

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

test('an answer that a guard blocks is not accepted; the next one is', async () => {
  const warm = guard('beforeToolUse', (ctx) => (ctx.toolCall.args['degrees'] === -3 ? ctx.block('Too cold.') : ctx), {
    tool: 'final_answer',
  })
  const rome = { city: 'Rome', degrees: 20 }
  const { agent } = agentOn([answer('tool', oslo), answer('tool', rome)], { use: [warm] })
  assert.deepEqual(outputOf(await agent.run('go')), rome)
  const never = guard('beforeToolUse', (ctx) => ctx.block('No.'))
  const { attempts } = invalidOf(await agentOn(() => answer('tool', oslo), { use: [never] }).agent.run('go')).value
  assert.deepEqual([attempts.length, attempts[2]?.problem], [3, 'the call was blocked or withheld'])
})

test('an answer that a hook changed is the output', async () => {
  const warmer = hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, degrees: 30 }))
  const redact = hook('afterInference', (ctx) =>
    ctx.withResponse({ text: ctx.response.text.replace('Oslo', 'somewhere') }),
  )
  const byTool = await agentOn([answer('tool', oslo)], { use: [warmer] }).agent.run('go')
  const byText = await agentOn([answer('text', oslo)], { strategy: 'text', use: [redact] }).agent.run('go')
  assert.deepEqual(
    [outputOf(byTool), outputOf(byText)],
    [
      { ...oslo, degrees: 30 },
      { ...oslo, city: 'somewhere' },
    ],
  )
})

for (const strategy of strategies) {
  test(`a withheld answer does not count, with ${strategy}`, async () => {
    const hush = guard('afterInference', (ctx) => ctx.block('No.'))
    const run = await agentOn(() => answer(strategy, oslo), { strategy, use: [hush] }).agent.run('go')
    assert.deepEqual([run.status, 'output' in run, run.state.stepCount], ['stopped', false, 1])
    assert.doesNotMatch(JSON.stringify(run.state), /Oslo/)
  })
}

test('a truncated answer is returned to the model, and a run without another fails', async () => {
  const cut: ScriptedTurn = { text: '{"city":"Oslo","degr', finishReason: 'length' }
  const once = agentOn([cut, JSON.stringify(oslo)], { strategy: 'text' })
  assert.deepEqual(outputOf(await once.agent.run('go')), oslo)
  const always = await agentOn(() => cut, { strategy: 'native' }).agent.run('go')
  assert.equal(invalidOf(always).value.attempts.length, 3)
})

test('an answer with another finish reason than stop does not complete a run, even if valid', async () => {
  for (const finishReason of ['length', 'content-filter', 'error', 'other'] as const) {
    const turn = (): ScriptedTurn => ({ text: JSON.stringify(oslo), finishReason })
    const run = await agentOn(turn, { strategy: 'text' }).agent.run('go')
    assert.deepEqual([run.status, 'output' in run], ['stopped', false], finishReason)
  }
})

test('a run with only empty answers fails', async () => {
  const { attempts } = invalidOf(await agentOn(() => '', { strategy: 'text' }).agent.run('go')).value
  assert.deepEqual(
    attempts.map(({ problem }) => problem),
    ['it is empty', 'it is empty', 'it is empty'],
  )
})

test('a limit that is reached first stops the run as usual', async () => {
  const { agent } = agentOn(() => answer('tool', bad), { maxRetries: 8, use: [guards({ maxSteps: 2 })] })
  const run = await agent.run('go')
  assert.deepEqual([run.status, run.status === 'stopped' && run.reason], ['stopped', 'stepsLimit'])
})

test('a run that is suspended for approval gets its output after the resume', async () => {
  const asked = tool({ name: 'ask', description: 'Asks.', input: { type: 'object' }, ask: true, execute: () => 'yes' })
  const script = [{ toolCalls: [{ name: 'ask' }] }, answer('tool', bad), answer('tool', oslo)]
  const { agent } = agentOn(script, { use: [asked, approval('suspend')] })
  const waiting = await agent.run('go')
  assert.ok(waiting.status === 'suspended')
  const saved = JSON.parse(JSON.stringify(waiting)) as SavedRun
  assert.deepEqual(outputOf(await agent.resume(saved, { answers: { [waiting.pending[0]!.id]: 'allow' } })), oslo)
})

test('the answer itself can need approval, and the approver can edit it', async () => {
  const { agent } = agentOn([answer('tool', oslo)], { use: [approval({ answer: 'suspend', tools: ['final_answer'] })] })
  const waiting = await agent.run('go')
  assert.ok(waiting.status === 'suspended')
  const edited = { allow: { city: 'Bergen', degrees: 4 } }
  const run = await agent.resume(waiting, { answers: { [waiting.pending[0]!.id]: edited } })
  assert.deepEqual(outputOf(run), edited.allow)
})

test('a continuation after an accepted answer gives another one', async () => {
  const once = hook('onStop', (ctx) => (ctx.continuations === 0 ? ctx.requestContinuation('Look again.') : ctx))
  const rome = { city: 'Rome', degrees: 20 }
  const { agent } = agentOn([answer('tool', oslo), 'Done.', answer('tool', rome)], { use: [once] })
  assert.deepEqual(outputOf(await agent.run('go')), rome)
})

test('other calls in the step of the answer are executed', async () => {
  const both: ScriptedTurn = { toolCalls: [{ name: 'look' }, { name: 'final_answer', args: oslo }] }
  const run = await agentOn([both], { use: [look] }).agent.run('go')
  assert.deepEqual(outputOf(run), oslo)
  assert.deepEqual(
    run.state.lastStep?.toolExecutions.map(({ output }) => output),
    ['snow', 'Accepted.'],
  )
})

test('concurrent runs have separate outputs', async () => {
  const model = scriptedModel(({ messages }) => answer('tool', { city: textOf(messages.at(0)!.content), degrees: 1 }))
  const agent = createAgent({ model, output: weather })
  const inputs = Array.from({ length: 40 }, (_, i) => `city ${i}`)
  const runs = await Promise.all(inputs.map((input) => agent.run(input)))
  assert.deepEqual(
    runs.map((run) => (outputOf(run) as typeof oslo).city),
    inputs,
  )
})

test('explain says that no answer is valid, and what would help', async () => {
  const text = explain(await agentOn(() => answer('text', bad), { strategy: 'text' }).agent.run('go'))
  assert.match(text, /failed: No answer matches the output schema after 2 retries.*degrees/)
  assert.match(text, /decided by +output[^]*to continue .*outputOptions\.maxRetries/)
})

test('invalid options and schemas are rejected', () => {
  const settings: readonly Setting[] = [
    { maxRetries: -1 },
    { maxRetries: 0.5 },
    { strategy: 'magic' as Strategy },
    { schema: z.date() },
    { schema: 'text' as unknown as JsonObject },
  ]
  for (const setting of settings) assert.throws(() => agentOn([], setting), { code: 'AGENT_INVALID_OPTION' })
  const own = tool({ name: 'final_answer', description: 'Mine.', input: { type: 'object' }, execute: () => 1 })
  assert.throws(() => agentOn([], { use: [own] }), { code: 'TOOL_DUPLICATE' })
})

test('the message about an answer that does not fit ends with one full stop', async () => {
  const schema = z.object({ city: z.string().refine(() => false, 'Name another city.') })
  const run = await agentOn(['{"city":"Oslo"}'], { schema, strategy: 'text', maxRetries: 0 }).agent.run('go')
  assert.ok(run.status === 'failed' || run.status === 'stopped')
  assert.match(run.state.execution!.final!.message, /Name another city\.$/)
  assert.doesNotMatch(run.state.execution!.final!.message, /\.\./)
})
