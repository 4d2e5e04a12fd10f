import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import * as z from 'zod'
import { approval } from '../../capabilities/approval.ts'
import { files } from '../../capabilities/files/files.ts'
import { guards } from '../../capabilities/guards.ts'
import { subagents } from '../../capabilities/subagents/subagents.ts'
import { summarization } from '../../capabilities/summarization/summarization.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedTurn } from '../../models/scripted.ts'
import type { AgentEvent } from '../state/event.ts'
import { tool } from '../agent/tool.ts'
import { explain } from './explain.ts'

const root = mkdtempSync(join(tmpdir(), 'explain-'))
writeFileSync(join(root, 'a.md'), 'words '.repeat(400))

const read = { toolCalls: [{ name: 'read_file', args: { path: 'a.md' } }] }

/** An agent that reads files, has subagents that read files, and summarizes what it has read. */
function busyAgent() {
  const spawn = { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'scout', prompt: 'Look.' } }] }
  const turns: readonly ScriptedTurn[] = [read, read, spawn, read, spawn, read, read, { text: 'Done.' }]
  let taken = 0
  const model = scriptedModel(({ system, messages }): ScriptedTurn => {
    if (system.includes('scout')) return messages.at(-1)!.role === 'tool' ? 'Seen.' : read
    return Object.assign({ usage: { inputTokens: messages.length * 500 } }, turns[taken++])
  })
  const noSecond = guard('beforeToolUse', (ctx) => (ctx.state.stepCount === 5 ? ctx.block('Enough of that.') : ctx), {
    name: 'enough',
    tool: 'read_file',
  })
  return createAgent({
    model,
    use: [
      files({ root }),
      subagents({ agents: { scout: { description: 'Looks.', instructions: 'You are a scout.' } } }),
      summarization({
        maxMessageTokens: 1_000,
        maxBufferTokens: 500,
        summarize: () => Promise.resolve('A summary.'),
      }),
      guards({ maxTokens: null }),
      noSecond,
    ],
  })
}

test('explain of a run with files, subagents and summaries has no bookkeeping, and verbose has all of it', async () => {
  const run = await busyAgent().run('Go.')
  assert.equal(run.status, 'completed')
  const lines = explain(run).split('\n')
  assert.ok(lines.length <= 12, lines.join('\n'))
  assert.match(lines.join('\n'), /blocked +step 6, read_file, by enough: Enough of that\./)
  assert.match(lines.join('\n'), /subagents +step 3, scout completed/)
  assert.match(lines.join('\n'), /summarized +step \d/)
  assert.doesNotMatch(lines.join('\n'), /files\.remember|summarization\.(count|done)|votes|allowStop/)
  assert.match(explain(run, { verbose: true }), /files\.remember at afterToolUse[^]*files\.remember/)
})

test('a section with many lines is cut, and verbose shows all of them', async () => {
  let number = 0
  const change = hook('beforeStep', (ctx) => ctx.withState((state) => state.withMetadata(`key${number++}`, number)), {
    name: 'writes',
  })
  const script: Script = [...Array.from({ length: 14 }, () => read), 'Done.']
  const run = await createAgent({
    model: scriptedModel(script),
    use: [files({ root }), change, guards({ maxTokens: null })],
  }).run('Go.')
  assert.match(explain(run), /… and 6 more, with verbose/)
  assert.equal(explain(run, { verbose: true }).match(/writes at beforeStep/g)!.length, 15)
})

test('every event has its number, its step, its time and the id of its run', async () => {
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Sure?'), { name: 'asks', tool: 'read_file' })
  const script: Script = [{ ...read, reasoning: 'Hm.', text: 'Wait.' }, 'Done.']
  const agent = createAgent({ model: scriptedModel(script), use: [files({ root }), asks, approval(() => 'allow')] })
  const events: AgentEvent[] = []
  for await (const event of agent.stream('Go.')) events.push(event)
  assert.deepEqual(
    events.map(({ seq }) => seq),
    events.map((_event, index) => index + 1),
  )
  assert.equal(new Set(events.map((event) => event.run)).size, 1)
  assert.deepEqual(
    events.filter(({ at, run }) => !(at > 0) || run === ''),
    [],
  )
  const stepsOf = (type: AgentEvent['type']) => events.flatMap((event) => (event.type === type ? [event.step] : []))
  const types = [
    'reasoning',
    'text',
    'asked',
    'answered',
    'toolStarted',
    'toolFinished',
    'stepFinished',
    'finished',
  ] as const
  assert.deepEqual(
    types.map((type) => stepsOf(type)),
    [[0], [0, 1], [0], [0], [0], [0], [0, 1], [1]],
  )
})

for (const trigger of ['onUserInput', 'beforeStep', 'beforeInference', 'afterStep', 'onStop'] as const) {
  test(`a guard at ${trigger} that fails and ends the run is explained once, and verbose also has the warning`, async () => {
    const broken = guard(trigger, () => assert.fail('The rules are missing.'), { name: 'broken' })
    const run = await createAgent({ model: scriptedModel(['Done.']), use: [broken] }).run('Go.')
    assert.equal(explain(run).split('The rules are missing.').length, 2, explain(run))
    assert.match(explain(run, { verbose: true }), /warnings .*Guard "broken".*: The rules are missing\./)
  })
}

test('explain keeps an earlier failure of the hook that failed and ended the run', async () => {
  let steps = 0
  const twice = hook('afterStep', () => Promise.reject(new Error(steps++ === 0 ? 'first' : 'second')), {
    name: 'twice',
  })
  const ignoreOnce = hook('onError', (ctx) => (ctx.error.message.endsWith('first') ? ctx.ignore() : ctx))
  const nop = tool({ name: 'nop', description: '', input: z.object({}), execute: () => 'ok' })
  const call = { toolCalls: [{ name: 'nop' }] }
  const run = await createAgent({ model: scriptedModel([call, call]), use: [nop, twice, ignoreOnce] }).run('Go.')
  assert.match(explain(run), /^The run failed: Hook "twice" failed at afterStep: second\n/)
  assert.match(explain(run), /warnings +step 1: Hook "twice" failed at afterStep: first\n/)
  assert.equal(explain(run).split('second').length, 2)
})

test('explain shows many subagents with many blocks in ten lines, each with its share, and verbose shows all', async () => {
  const noSecrets = guard('beforeToolUse', (ctx) => ctx.block(`Never ${ctx.state.messages.length}.`), {
    name: 'no-secrets',
    tool: 'read_file',
  })
  const explainRunOf = async (scouts: number, verbose: boolean) => {
    const spawn = (i: number) => ({
      toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'scout', prompt: `Look ${i}.` } }],
    })
    let spawned = 0
    const model = scriptedModel(({ system, messages }): ScriptedTurn => {
      if (system.includes('scout')) return messages.length > 4 + 2 * spawned ? 'Seen.' : read
      return spawned++ < scouts ? spawn(spawned) : 'Done.'
    })
    const agents = { scout: { description: 'Looks.', instructions: 'You are a scout.' } }
    const limits = guards({ maxTokens: null, maxSteps: 50 })
    const run = await createAgent({ model, use: [files({ root }), subagents({ agents }), limits, noSecrets] }).run(
      'Go.',
    )
    const all = explain(run, { verbose }).split('\n')
    return all.slice(all.findIndex((line) => line.startsWith('  subagents')))
  }
  const few = await explainRunOf(3, false)
  assert.equal(few.length, 10, few.join('\n'))
  const each = 'scout completed blocked blocked'
  const kinds = few.map((line) => /scout completed|blocked|more/.exec(line)?.[0]).join(' ')
  assert.equal(kinds, `${each} ${each} ${each} more`)
  const many = await explainRunOf(14, false)
  assert.equal(many.length, 10, many.join('\n'))
  assert.equal(many.filter((line) => line.includes('scout completed')).length, 9)
  assert.match(many.at(-1)!, /… and \d+ more, with verbose/)
  assert.ok((await explainRunOf(14, true)).length > 60)
})
