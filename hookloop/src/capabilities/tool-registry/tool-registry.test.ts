import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import type { Run } from '../../core/agent/run.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { ModelRequest } from '../../core/state/inference.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { scriptedModel, type Script, type ScriptedCall, type ScriptedTurn } from '../../models/scripted.ts'
import { guards } from '../guards.ts'
import { manyTools } from './many-tools.fixture.ts'
import { getLoadedTools, toolRegistry, type ToolRegistryOptions } from './tool-registry.ts'

const many = manyTools()
const [issue, removal] = ['github_create_issue', 'github_delete_issue']
const ask = (action: string, args: JsonObject = {}): ScriptedCall => ({ name: 'tools', args: { action, ...args } })
const load = (...names: readonly string[]): ScriptedCall => ask('load', { names })
const call = (...toolCalls: readonly (ScriptedCall | string)[]): ScriptedTurn => ({
  toolCalls: toolCalls.map((each) => (typeof each === 'string' ? { name: each } : each)),
})

function agentOn(script: Script, options: Partial<ToolRegistryOptions> = {}, ...use: readonly Use[]) {
  const model = scriptedModel(script)
  const registry = toolRegistry({ tools: many, ...options })
  return { model, agent: createAgent({ model, use: [registry, guards({ maxSteps: 60 }), ...use] }) }
}

/** The results of the calls of a run, step by step. */
const results = (run: Run): (readonly [string, Json])[] =>
  [...(run.state.execution?.steps ?? [])].flatMap(({ toolExecutions }) =>
    toolExecutions.map(({ status, output }) => [status, output] as const),
  )
const offered = ({ tools }: ModelRequest): string[] => tools.map(({ name }) => name)

test('the model gets one of five hundred tools until it loads others, which it can call in the next step', async () => {
  const { agent, model } = agentOn([call(load(issue)), call(issue), 'Done.'])
  const run = await agent.run('Go.')
  assert.deepEqual(model.requests.map(offered), [['tools'], ['tools', issue], ['tools', issue]])
  assert.deepEqual(results(run), [
    ['ok', `Loaded: ${issue}. You can call them from your next step on.`],
    ['ok', 'github create issue: done'],
  ])
  assert.deepEqual(getLoadedTools(run.state), [issue])
})

test('the description has the number of hidden tools, and the prompt stays small', async () => {
  const { agent, model } = agentOn(['Done.'])
  await agent.run('Go.')
  const text = JSON.stringify(model.requests[0]!.tools)
  assert.match(text, /There are 500 more tools/)
  assert.ok(text.length < 2_000, `${text.length} characters`)
})

test('other tools of the agent, and tools in always, are offered from the start', async () => {
  const own = tool({ name: 'own', description: 'Owns.', input: { type: 'object' }, execute: () => 'owned' })
  const { agent, model } = agentOn([call(issue, 'own'), 'Done.'], { always: [issue, 'jira_list_*'] }, own)
  const run = await agent.run('Go.')
  const lists = many.map(({ name }) => name).filter((name) => name.startsWith('jira_list_'))
  assert.deepEqual(offered(model.requests[0]!), ['tools', issue, ...lists, 'own'])
  assert.deepEqual(
    results(run).map(([status]) => status),
    ['ok', 'ok'],
  )
})

// ── hidden tools

test('a hidden tool that is called is not executed, and the result says how to load it', async () => {
  let ran = 0
  const secret = tool({ name: 'secret', description: 'Tells.', input: { type: 'object' }, execute: () => ++ran })
  const { agent } = agentOn([call('secret'), call(load('secret'), 'secret'), call('secret'), 'Done.'], {
    tools: [...many, secret],
  })
  const run = await agent.run('Go.')
  assert.deepEqual(
    results(run).map(([status]) => status),
    ['failed', 'ok', 'failed', 'ok'],
  )
  assert.match(
    results(run)[0]![1] as string,
    /was not executed.*Load it first: call tools with \{"action":"load","names":\["secret"\]\}/,
  )
  assert.match(results(run)[2]![1] as string, /was not executed.*It is loaded: call it in your next step/)
  assert.equal(ran, 1)
})

// ── search

async function answer(...calls: readonly ScriptedCall[]): Promise<(readonly [string, Json])[]> {
  return results(await agentOn([call(...calls), 'Done.'], { always: [issue] }).agent.run('Go.'))
}

test('search returns one line per tool, best first, and marks loaded ones', async () => {
  const [[status, text]] = (await answer(ask('search', { query: 'create issue github', limit: 2 }))) as [
    [string, string],
  ]
  assert.equal(status, 'ok')
  assert.deepEqual(text.split('\n').length, 2)
  assert.match(text, /^github_create_issue \(loaded\): Creates an issue in the tracker on github\. .*\n\w+: /)
})

test('list returns names and the number of further ones', async () => {
  const [all, few] = await answer(ask('list'), ask('list', { limit: 2 }))
  assert.equal((all![1] as string).split('\n').length, 102)
  assert.equal(
    few![1],
    '500 tools. Loaded: none.\ngithub_create_issue\ngithub_delete_issue\n… and 498 more: search for what you need.',
  )
})

test('describe returns the description and the arguments of a tool', async () => {
  const [described] = await answer(ask('describe', { names: [removal] }))
  assert.deepEqual(described, [
    'ok',
    [
      {
        name: removal,
        description: 'Removes an issue in the tracker on github. Needs the right to do so.',
        arguments: many[1]!.inputSchema,
      },
    ],
  ])
})

for (const [what, asked, words] of [
  ['a search without words', ask('search'), /"query" is missing/],
  ['a load without names', ask('load'), /"names" is missing/],
  [
    'an unknown name',
    load('github_issue_create'),
    /There is no tool "github_issue_create"\. Did you mean: github_create_issue,/,
  ],
  ['a name among others that is unknown', load(removal, 'xyzzy'), /There is no tool "xyzzy"\. Search/],
  ['a name of Object.prototype', load('constructor'), /There is no tool "constructor"/],
  ['an unknown action', ask('unload', { names: [issue] }), /action/],
  ['too many names', load(...many.slice(0, 21).map(({ name }) => name)), /names/],
  ['a limit of none', ask('list', { limit: 0 }), /limit/],
  ['a huge limit', ask('list', { limit: 1e9 }), /limit/],
  ['a very long query', ask('search', { query: 'x'.repeat(401) }), /query/],
  ['a very long name', load('x'.repeat(100_000)), /There is no tool "x{128}"/],
] as const) {
  test(`${what} is a failed call with a message, and nothing is loaded`, async () => {
    const run = await agentOn([call(asked), 'Done.']).agent.run('Go.')
    const [[status, output]] = results(run) as [[string, string]]
    assert.deepEqual([run.status, status, getLoadedTools(run.state)], ['completed', 'failed', []])
    assert.match(output, words)
    assert.ok(output.length < 5_000)
  })
}

// ── limits

test('beyond the limit the least recently used tools are unloaded, and the result says so', async () => {
  const [a, b, c, d] = many.map(({ name }) => name) as [string, string, string, string]
  const script = [call(load(a, b)), call(a), call(load(c)), call(load(d)), 'Done.']
  const { agent, model } = agentOn(script, { maxLoadedTools: 2 })
  const run = await agent.run('Go.')
  assert.deepEqual(model.requests.map(offered).slice(1), [
    ['tools', a, b],
    ['tools', a, b],
    ['tools', a, c],
    ['tools', c, d],
  ])
  assert.match(results(run)[2]![1] as string, new RegExp(`Unloaded: ${b}\\.$`))
})

test('loaded tools keep their order, and new ones are appended', async () => {
  const [a, b, c] = many.map(({ name }) => name) as [string, string, string]
  const script = [call(load(b, a)), call(a), call(b), call(load(a, c)), call(c), call(load(b)), 'Done.']
  const { agent, model } = agentOn(script)
  await agent.run('Go.')
  const texts = model.requests.map(({ tools }) => JSON.stringify(tools).slice(0, -1))
  for (const [i, text] of texts.slice(1).entries()) assert.ok(text.startsWith(texts[i]!), `request ${i + 1}`)
  assert.deepEqual(offered(model.requests.at(-1)!), ['tools', b, a, c])
})

// ── storage

test('a loaded tool that does not exist any more is ignored, and invalid metadata is read as empty', async () => {
  const stored: readonly Json[] = [
    { names: ['gone', issue, issue, 7], byUse: ['gone', 'other', null] },
    { names: issue, byUse: 7 },
    [issue],
    'x',
    { names: { length: 1e9 } },
  ]
  const loaded = []
  for (const each of stored) {
    const { agent, model } = agentOn([call(load(removal)), 'Done.'])
    const run = await agent.run('Go.', { metadata: { 'hookloop.tools': each } })
    loaded.push(offered(model.requests[0]!).slice(1), run.status)
  }
  assert.deepEqual(loaded, [[issue], 'completed', ...Array.from({ length: 4 }, () => [[], 'completed']).flat()])
})
