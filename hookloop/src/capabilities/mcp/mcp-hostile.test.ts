import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../state/json.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { callOnce, connected, hostile, runCalls, wordsOf } from './mcp.fixture.ts'
import { mcp } from './mcp.ts'

const go = 'mcp__it__go'

/** How a call of a hostile server must end: with these words, long before its time is over. */
const failures: { readonly [how: string]: { readonly title: string; readonly says: RegExp } } = {
  'half-a-line': { title: 'ends after half a line', says: /is gone: it ended with exit code 0\. The call may have/ },
  'no-line-end': { title: 'writes a line without end', says: /is gone: it sent a message of more than 16777216 bytes/ },
  'many-lines': {
    title: 'writes garbage without end',
    says: /is gone: it sent too many messages that nobody asked for/,
  },
  'many-notifications': { title: 'notifies without end', says: /is gone: it sent too many messages/ },
  'many-requests': { title: 'asks without end', says: /is gone: it sent too many messages/ },
  gigantic: { title: 'sends a gigantic result', says: /is gone: it sent a message of more than 16777216 bytes/ },
  'large-error': { title: 'fails with three million letters', says: /^x{8192}$/ },
  'long-refusal': { title: 'refuses with a million words', says: /^The MCP server "it" refused: (no ){600,700}n?o?… / },
  'deep-result': { title: 'nests its result without end', says: /cannot be read|cannot be kept|cannot be shown/ },
  'wrong-content': { title: 'sends content that is none', says: /answered with something that cannot be read/ },
  'result-is-null': { title: 'sends no result', says: /did not answer: what it sent is no answer/ },
  'wrong-output': { title: 'breaks its own schema', says: /does not fit the schema .*Expected "number"/ },
  'asks-in-between': { title: 'wants a model before it answers', says: /wants something that it is not given here/ },
  'no-output': { title: 'does not send what its schema promises', says: /promises structured output and sent none/ },
}

for (const [how, { title, says }] of Object.entries(failures)) {
  test(`a server that ${title} is a failed call`, async (t) => {
    const servers = await connected(t, hostile(how))
    const { status, output } = await callOnce(servers, go)
    assert.equal(status, 'failed')
    assert.match(output as string, says)
  })
}

test('after a flood the next call finds the server started again', async (t) => {
  const servers = await connected(t, hostile('many-lines'))
  await callOnce(servers, go)
  const second = await callOnce(servers, go)
  assert.match(second.output as string, /it sent too many messages/) // again, so it was there
})

test('what a server says last before it ends is heard', async (t) => {
  const servers = await connected(t, hostile('last-words'))
  assert.deepEqual(await callOnce(servers, go), { status: 'ok', output: 'x'.repeat(65_000) })
})

test('a server that prints garbage, half lines and carriage returns among its messages is understood', async (t) => {
  const servers = await connected(t, hostile('noisy'))
  assert.deepEqual(
    servers.tools!.map(({ name }) => name),
    [go],
  )
})

test('an answer to nobody is ignored, and the first of two answers counts', async (t) => {
  const servers = await connected(t, hostile('wrong-id'))
  assert.deepEqual(await callOnce(servers, go), { status: 'ok', output: 'first' })
})

test('a result without content is a result', async (t) => {
  const servers = await connected(t, hostile('no-content'))
  assert.deepEqual(await callOnce(servers, go), { status: 'ok', output: '(no output)' })
})

test('a long result keeps its head and its tail', async (t) => {
  const servers = await connected(t, hostile('large'), { maxOutputChars: 100 })
  const { output } = await callOnce(servers, go)
  assert.match(output as string, /^beginx{20}\n\[… 2999908 characters left out …\]\nx{72}end$/)
})

test('of endless progress a thousand steps are passed on, without control characters', async (t) => {
  const servers = await connected(t, hostile('much-progress'))
  const agent = createAgent({ model: scriptedModel([{ toolCalls: [{ name: go }] }, 'Done.']), use: [servers] })
  const seen: Json[] = []
  for await (const event of agent.stream('Go.')) if (event.type === 'toolProgress') seen.push(event.update)
  const { message } = seen[0] as { message: string }
  assert.deepEqual([seen.length, message.length, message.slice(0, 8)], [1_000, 501, 'x[2Jx[2J'])
})

test('of ten thousand tools as many are offered as is allowed, and the rest is told', async (t) => {
  const servers = await connected(t, hostile('many-tools'), { maxTools: 5 })
  const chosen = await connected(t, hostile('many-tools'), { tools: ['tool_9999'] })
  assert.deepEqual([servers.tools!.length, chosen.tools!.map(({ name }) => name)], [5, ['mcp__it__tool_9999']])
  assert.deepEqual(servers.notes, [
    'The MCP server "it" has 9995 more tools than "maxTools" allows. Choose with "tools".',
  ])
})

test('a list of tools without end is read for a while', async (t) => {
  const endless = await connected(t, hostile('endless-list'))
  const circular = await connected(t, hostile('circular-list'))
  assert.deepEqual([endless.tools!.length, circular.tools!.length], [64, 1])
  assert.match(endless.notes!.join(), /has no end; 64 were read/)
})

test('tools without a usable schema are left out with words, and the good one is there', async (t) => {
  const servers = await connected(t, hostile('bad-schemas'))
  assert.deepEqual(
    servers.tools!.map(({ name }) => name),
    ['mcp__it__good'],
  )
  const words = servers.notes!.join('\n')
  assert.match(words, /"no_schema": its input schema does not describe an object/)
  assert.match(words, /"no_type": its "type" is not one of object, array, string/)
  assert.match(words, /"bad_output": its "properties" is not an object/)
  assert.match(words, /"huge": its input schema is too large/)
  assert.match(words, /has 4 more tools that cannot be used/)
})

test('a list of tools that is none fails the connection', async () => {
  await assert.rejects(mcp({ servers: { it: hostile('list-is-no-list') } }), /its list of tools cannot be read/)
})

test('names that cannot be used are mapped, each to its own, and every tool is called by its real one', async (t) => {
  const servers = await connected(t, hostile('names'))
  const names = servers.tools!.map(({ name }) => name)
  const run = await runCalls(
    [servers],
    names.map((name) => ({ name })),
  )
  const called = run.state.execution!.steps.at(0)!.toolExecutions.map(({ output }) => output)
  assert.deepEqual(called, [
    'called a_b',
    'called __proto__',
    'called a_b_00000000',
    'called a b',
    'called ü',
    'called xxxxxxxxxxxxxxxxxxxx',
    'called ../../etc',
  ])
  assert.deepEqual(
    names.filter((name) => !/^mcp__it__[A-Za-z0-9_.:-]+$/.test(name) || name.length > 128),
    [],
  )
})

test('descriptions lose what cannot be seen, and what is too long', async (t) => {
  const servers = await connected(t, hostile('hidden'))
  const { description, inputSchema } = servers.tools![0]!
  const { a } = inputSchema['properties'] as { a: { description: string } }
  assert.deepEqual([description.slice(0, 12), description.length], ['Goes.[8m yyy', 4_097])
  assert.equal(a.description, 'Anything.')
})

test('a schema that would take forever to check is not checked here', async (t) => {
  const pattern = await connected(t, hostile('slow-pattern'))
  const unfolding = await connected(t, hostile('unfolding'))
  const value = `${'a'.repeat(60)}!`
  assert.deepEqual(await callOnce(pattern, go, { x: value }), { status: 'ok', output: { x: value } })
  assert.deepEqual(await callOnce(unfolding, go, { x: 1 }), { status: 'ok', output: 'ok' })
  assert.match(await wordsOf(pattern, go, { x: 1 }), /Expected "string"/)
})

test('a tool that the server changes or takes back after it was offered is not called any more', async (t) => {
  const changed = await connected(t, hostile('changes-its-mind'))
  const taken = await connected(t, hostile('takes-back'))
  const outputs = []
  for (const servers of [changed, taken]) {
    outputs.push((await callOnce(servers, go)).output)
    await sleep(200) // for what it says after the answer
    outputs.push((await callOnce(servers, go)).output)
  }
  assert.deepEqual(outputs, [
    'ok',
    'The MCP server "it" has changed this tool since it was offered. The call was not made.',
    'ok',
    'The MCP server "it" has no such tool any more. The call was not made.',
  ])
})

test('a server that says all the time that its tools have changed can still be called', async (t) => {
  const servers = await connected(t, hostile('says-changed'))
  await sleep(50)
  assert.deepEqual(await callOnce(servers, go), { status: 'ok', output: 'ok' })
})

test('a server that does not answer at all fails the connection in time', async () => {
  const started = performance.now()
  await assert.rejects(
    mcp({ servers: { it: hostile('never-answers') }, connectTimeoutMs: 1_000 }),
    /cannot be connected: it did not answer within 1000 ms/,
  )
  assert.ok(performance.now() - started < 15_000)
})

test('a server that does not read is cut off before what it is sent fills the memory', async (t) => {
  const servers = await connected(t, hostile('does-not-read'))
  const first = callOnce(servers, go)
  await sleep(200) // from then on it does not read
  const more = Array.from({ length: 80 }, () => servers.readResource(`memo://${'x'.repeat(1_000_000)}`))
  assert.equal((await Promise.allSettled(more)).filter(({ status }) => status === 'rejected').length, 80)
  assert.match((await first).output as string, /is gone: it does not read what it is sent/)
})
