import { textOfJson } from './values/json.ts'
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { Use } from './core/agent/capability.ts'
import type { Run } from './core/agent/run.ts'
import { tool } from './core/agent/tool.ts'
import { approval } from './capabilities/approval.ts'
import { bash } from './capabilities/bash/bash.ts'
import { files } from './capabilities/files/files.ts'
import { getMetadata, metadata } from './capabilities/metadata.ts'
import { skills } from './capabilities/skills/skills.ts'
import { subagents } from './capabilities/subagents/subagents.ts'
import { summarization } from './capabilities/summarization/summarization.ts'
import { getTasks, tasks } from './capabilities/tasks/tasks.ts'
import { createAgent } from './create-agent.ts'
import { scriptedModel, type Script, type ScriptedCall } from './models/scripted.ts'
import { memoryStore } from './sessions/stores/memory-store.ts'
import { textOf } from './core/state/message.ts'

// The behaviours of capabilities and of sessions; behaviours.test.ts has the others.

const different: { readonly [id: string]: string } = {
  B17: 'The `counted` event has the index of the step from 0, like `step.index`: one way to number steps in data.',
  B18: 'An agent cannot be changed; `agent.with()` returns a new one, because one agent serves concurrent runs.',
  B22: 'There is no diagnostic mode: a context only has the methods that its trigger allows.',
  B23: 'There is no strict mode: a change that is not allowed does not compile, and fails the hook at run time.',
  B24: 'A block is `ctx.block(reason)`, not a set of changes that a contract must let pass.',
  B26: 'What a trigger allows always applies. A rule that can be turned off is off where it matters.',
  B29: 'Inference hooks fire for every model: a guard that is silently skipped is worse than none.',
  B32: 'The start time is in the execution, so a time limit needs no hook to start it, and runs do not share it.',
  B44: 'Messages have no tags. A step knows its messages by `messageCount`, a result its call by `toolCallId`.',
  B54: 'A rewind by the model is a recipe in the docs, which runs as a test.',
  B57: 'A planner is a recipe in the docs: a subagent with a list of tools, which runs as a test.',
  B59: 'A history of runs is a recipe in the docs, which runs as a test.',
  X1: 'There is no fake tool: tests use `tool()`, and the model gets the message that the tool threw.',
  X3: 'The CLI shows a run live. There is no separate console formatter.',
  X5: 'There is no message compiler: hooks change the request at `beforeInference`.',
  X6: 'There is no broadcaster: `agent.stream` yields the events that a server sends.',
  X7: 'Events have the ids of their execution, so nothing has to be mapped.',
  X8: 'A wrong name in a list is an error that names it: a typo must not make a list of guards shorter.',
  X9: 'Packages announce nothing. Hooks from files are loaded only after the user has trusted them by hash.',
  X15: 'Evaluations are not part of Hookloop.',
  X16: 'Evaluations are not part of Hookloop. `selfCritique` judges answers, and fails closed.',
  X17: 'Traces have no content by default. There are no digests.',
}

type Asked = readonly (ScriptedCall | string)[]

/** A run in which the model makes these calls, one per step, and then answers. */
async function runWith(use: readonly Use[], ...calls: Asked): Promise<Run> {
  const script: Script = calls.map((call) => (typeof call === 'string' ? call : { toolCalls: [call] }))
  return createAgent({ model: scriptedModel([...script, 'Done.']), use }).run('Go.')
}

function resultsOf(run: Run): readonly string[] {
  const executions = run.state.execution!.steps.slice().flatMap((step) => step.toolExecutions)
  return executions.map(({ status, output }) => `${status}: ${textOfJson(output)}`)
}

function folderFor(t: TestContext, name: string, text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'behaviours-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, name), text)
  return folder
}

test('B50: stored metadata persists after the step; a reserved key and a value that is too large are rejected', async () => {
  const store = (key: string, value: string): ScriptedCall => ({ name: 'store_metadata', args: { key, value } })
  const use = [metadata({ maxValueBytes: 10 })]
  const run = await runWith(use, store('a', 'x'), store('hookloop.x', 'x'), store('b', 'x'.repeat(10)))
  assert.deepEqual({ ...getMetadata(run.state) }, { a: 'x' })
  assert.deepEqual(
    resultsOf(run).map((result) => result.split(':')[0]),
    ['ok', 'failed', 'failed'],
  )
})

test('B51: more than 20 tasks or two in progress are rejected, and valid tasks persist', async () => {
  const write = (...statuses: string[]): ScriptedCall => {
    return { name: 'todo_write', args: { todos: statuses.map((status, i) => ({ content: `Task ${i}`, status })) } }
  }
  const [many, two] = [write(...Array<string>(21).fill('pending')), write('in_progress', 'in_progress')]
  const run = await runWith([tasks()], write('in_progress', 'pending'), many, two)
  assert.deepEqual(
    getTasks(run.state).map(({ status }) => status),
    ['in_progress', 'pending'],
  )
  assert.deepEqual(
    resultsOf(run).map((result) => result.split(':')[0]),
    ['ok', 'failed', 'failed'],
  )
})

test('B52: old messages are replaced by a summary, and the next summary includes the earlier one', async () => {
  const seen: string[] = []
  const summarize = summarization({
    maxMessageTokens: 10,
    maxBufferTokens: 20,
    summarize: ({ messages }) => {
      seen.push(textOf(messages.slice().flatMap(({ content }) => content)))
      return `Summary ${seen.length}.`
    },
  })
  const agent = createAgent({ model: scriptedModel(() => 'x'.repeat(200)), use: [summarize] })
  let run = await agent.run('First question.')
  for (let i = 0; i < 6; i++) run = await agent.run('Next question.', { from: run })
  assert.match(seen[0]!, /First question\./)
  assert.ok(seen.slice(1).every((text, i) => text.includes(`Summary ${i + 1}.`)) && seen.length > 1, seen.join('\n'))
})

test('B55: an unknown or too deeply nested subagent is a failed call, and the parent has no message of a subagent', async () => {
  const spawn = (subagent: string): ScriptedCall => ({ name: 'spawn_subagent', args: { subagent, prompt: 'Look.' } })
  const helper = createAgent({ model: scriptedModel(['A secret detail.', 'A secret detail.']) })
  const run = await runWith([subagents({ agents: { helper } })], spawn('nobody'), spawn('helper'))
  assert.match(resultsOf(run)[0]!, /^failed: /)
  const roles = run.state.messages.slice().map(({ role }) => role)
  assert.deepEqual(roles, ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant'])
  const deep = createAgent({
    model: scriptedModel([{ toolCalls: [spawn('helper')] }, 'Done.']),
    use: [subagents({ agents: { helper }, maxDepth: 1 })],
  })
  const nested = await runWith([subagents({ agents: { deep } })], spawn('deep'))
  assert.ok(nested.ledger.some(({ message }) => /nested at most 1 deep/.test(message ?? '')))
})

test('B58: the allowed tools of a skill block all other tools, but never load_skill', async () => {
  const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'seen' })
  const quiet = { name: 'quiet', description: 'Be quiet.', body: 'Say nothing.', allowedTools: [] }
  const load = { name: 'load_skill', args: { skill_name: 'quiet' } }
  const run = await runWith([skills({ dirs: [], skills: [quiet] }), look], load, { name: 'look' }, load)
  assert.deepEqual(
    resultsOf(run).map((result) => result.split(':')[0]),
    ['ok', 'blocked', 'ok'],
  )
})

test('B62: a session has one writer at a time, and a session that does not exist is an error', async () => {
  const store = memoryStore()
  const agent = createAgent({ model: scriptedModel(['One.']), store })
  await assert.rejects(agent.resume('missing'), { code: 'SESSION_UNKNOWN' })
  await agent.run('Go.', { session: 's' })
  const writer = await store.open('s')
  await assert.rejects(agent.run('Go.', { session: 's' }), { code: 'SESSION_BUSY' })
  await writer.release()
})

test('X11: bash keeps the start and the end of a long output and says what it omits; it reports an exit code', async () => {
  const use = [bash({ sandbox: 'off', headChars: 20, tailChars: 20 }), approval(() => 'allow')]
  const commands = ['seq 1 5000', 'exit 3', 'true'].map((command) => ({ name: 'bash', args: { command } }))
  const [long, failed, silent] = resultsOf(await runWith(use, ...commands))
  assert.match(long!, /^ok: 1\n2\n[^]*\d+[^]*4999\n5000/)
  assert.match(failed!, /3/)
  assert.match(silent!, /no output/i)
})

test('X13: an edit whose text occurs twice changes nothing unless it replaces all', async (t) => {
  const root = folderFor(t, 'a.txt', 'one two one')
  const edit = (more: object): ScriptedCall => {
    return { name: 'edit_file', args: { path: 'a.txt', old_string: 'one', new_string: '1', ...more } }
  }
  const use = [files({ root }), approval(() => 'allow')]
  const read = { name: 'read_file', args: { path: 'a.txt' } }
  assert.match(resultsOf(await runWith(use, read, edit({})))[1]!, /^failed: /)
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), 'one two one')
  await runWith(use, read, edit({ replace_all: true }))
  assert.equal(readFileSync(join(root, 'a.txt'), 'utf8'), '1 two 1')
})

test('every behaviour has a test, or a reason why Hookloop differs', () => {
  const ids =
    'B1 B2 B3 B4 B6 B7 B8 B11 B14 B15 B16 B17 B18 B19 B20 B21 B22 B23 B24 B26 B27 B28 B29 B30 B32 B33 B34 B36 B37 B39 ' +
    'B40 B42 B43 B44 B47 B48 B50 B51 B52 B54 B55 B57 B58 B59 B62 X1 X2 X3 X4 X5 X6 X7 X8 X9 X11 X13 X15 X16 X17'
  const tested = ['behaviours.test.ts', 'behaviours-capabilities.test.ts'].flatMap((file) => {
    const text = readFileSync(join(import.meta.dirname, file), 'utf8')
    return [...text.matchAll(/^test\('([BX]\d+): /gm)].map(([, id]) => id!)
  })
  assert.deepEqual([...tested, ...Object.keys(different)].toSorted(), ids.split(' ').toSorted())
})
