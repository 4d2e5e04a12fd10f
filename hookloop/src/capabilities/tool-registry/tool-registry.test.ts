import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import type { Use } from '../../agent/capability.ts'
import type { Run } from '../../agent/run.ts'
import { tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { ModelRequest } from '../../state/inference.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import { textOf } from '../../state/message.ts'
import type { SavedRun } from '../../state/saved-run.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { scriptedModel, type Script, type ScriptedCall, type ScriptedTurn } from '../../models/scripted.ts'
import { approval } from '../approval.ts'
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
const save = (run: Run): SavedRun => JSON.parse(JSON.stringify(run)) as SavedRun

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

test('an unknown tool name is answered with the offered tools, not with five hundred names', async () => {
  const { agent } = agentOn([call('made_up'), 'Done.'])
  assert.deepEqual(results(await agent.run('Go.')), [['failed', 'There is no tool "made_up". Use one of: tools.']])
})

test('guards, patterns and schemas apply to loaded tools', async () => {
  const typed = tool({ name: 'pay', description: 'Pays.', input: z.object({ cents: z.int() }), execute: () => 'paid' })
  const seen: unknown[] = []
  const { agent } = agentOn(
    [
      call(load('pay', removal, issue)),
      call({ name: 'pay', args: { cents: 'x' } }, { name: 'pay', args: { cents: 7 } }, removal, issue),
      'Done.',
    ],
    { tools: [...many, typed] },
    guard('beforeToolUse', (ctx) => (seen.push(ctx.toolCall.args.cents), ctx), { tool: typed }),
    guard('beforeToolUse', (ctx) => ctx.block('Nothing is removed.'), { tool: '*_delete_*' }),
    approval({ answer: 'deny', tools: [issue] }),
  )
  const run = await agent.run('Go.')
  assert.deepEqual(
    results(run).map(([status]) => status),
    ['ok', 'failed', 'ok', 'blocked', 'blocked'],
  )
  assert.deepEqual(seen, [7])
})

test('a guard can block the loading of tools', async () => {
  const keep = guard(
    'beforeToolUse',
    (ctx) => (/_delete_/.test(JSON.stringify(ctx.toolCall.args['names'])) ? ctx.block('Not those.') : ctx),
    { tool: 'tools' },
  )
  const run = await agentOn([call(load(removal), load(issue)), 'Done.'], {}, keep).agent.run('Go.')
  assert.deepEqual(getLoadedTools(run.state), [issue])
})

test('a tool that another hook removes from a request stays removed, loaded or not', async () => {
  const reduce = hook('beforeInference', (ctx) =>
    ctx.withRequest({ tools: ctx.request.tools.filter((name) => name !== issue) }),
  )
  const { agent, model } = agentOn([call(load(issue, removal)), call(issue), 'Done.'], {}, reduce)
  const run = await agent.run('Go.')
  assert.deepEqual(offered(model.requests[1]!), ['tools', removal])
  assert.equal(results(run)[1]![0], 'failed')
})

test('a typed answer works, and loaded tools follow its tool', async () => {
  const script = [call(load(issue)), call({ name: 'final_answer', args: { text: 'Hi' } })]
  const model = scriptedModel(script)
  const agent = createAgent({ model, output: z.object({ text: z.string() }), use: [toolRegistry({ tools: many })] })
  const run = await agent.run('Go.')
  assert.deepEqual(run.status === 'completed' && run.output, { text: 'Hi' })
  assert.deepEqual(model.requests.map(offered), [
    ['tools', 'final_answer'],
    ['tools', 'final_answer', issue],
  ])
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

test('search returns ten results by default, and says if there are none', async () => {
  const [ten, none] = await answer(ask('search', { query: 'issue' }), ask('search', { query: 'xyzzy' }))
  assert.equal((ten![1] as string).split('\n').length, 10)
  assert.equal(none![1], 'No tool matches. Try other words, or list all names.')
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

test('two loads in one step both count, and a tool that is named twice is loaded once', async () => {
  const run = await agentOn([call(load(issue, issue), load(removal, issue)), 'Done.']).agent.run('Go.')
  assert.deepEqual(getLoadedTools(run.state), [issue, removal])
})

// ── storage

test('loaded tools survive saving, resuming and the next execution', async () => {
  const asks = guard('beforeToolUse', (ctx) => ctx.ask('Create?'), { name: 'asks', tool: issue })
  const script = [call(load(issue)), call(issue), 'Done.', call(issue), 'Done.']
  const { agent, model } = agentOn(script, {}, asks, approval('suspend'))
  const waiting = await agent.run('Go.')
  assert.ok(waiting.status === 'suspended')
  const first = await agent.resume(save(waiting), { answers: { [waiting.pending[0]!.id]: 'allow' } })
  assert.equal(first.status, 'completed')
  const second = await agent.run('Again.', { from: save(first) })
  assert.deepEqual([second.status, offered(model.requests.at(-1)!)], ['suspended', ['tools', issue]])
})

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

test('a thousand concurrent runs of one agent have separate loaded tools', async () => {
  const model = scriptedModel(({ messages, tools }) => {
    const name = textOf(messages.at(0)!.content)
    if (messages.length === 1) return call(load(name))
    return messages.length === 3 ? call(name) : tools.map((each) => each.name).join(' ')
  })
  const agent = createAgent({ model, use: [toolRegistry({ tools: many })] })
  const names = Array.from({ length: 1000 }, (_, i) => many[i % many.length]!.name)
  const runs = await Promise.all(names.map((name) => agent.run(name)))
  assert.deepEqual(
    runs.map(({ text }) => text),
    names.map((name) => `tools ${name}`),
  )
})

test('every step among five hundred tools is sent only the loaded ones', async () => {
  const script: Script = [call(load(issue)), ...Array.from({ length: 50 }, () => call(issue)), 'Done.']
  const { agent, model } = agentOn(script)
  assert.equal((await agent.run('Go.')).state.stepCount, 52)
  assert.deepEqual(
    model.requests.slice(1).map(offered),
    Array.from({ length: 51 }, () => ['tools', issue]),
  )
})

test('invalid options are rejected by name', () => {
  const wrong: readonly object[] = [
    { always: ['nope_*'] },
    { maxLoadedTools: 0 },
    { maxSearchResults: 1.5 },
    { limit: 3 },
  ]
  for (const options of wrong) {
    const make = (): unknown => toolRegistry({ tools: many, ...options })
    assert.throws(make, { code: 'AGENT_INVALID_OPTION', message: /^toolRegistry: / }, JSON.stringify(options))
  }
})

test('createAgent rejects two tools with the same name', () => {
  const ours = tool({ name: 'tools', description: 'Mine.', input: { type: 'object' }, execute: () => 1 })
  for (const extra of [many[0]!, ours]) {
    assert.throws(() => agentOn([], { tools: [...many, extra] }), { code: 'TOOL_DUPLICATE' })
  }
})
