import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { callOnce, connected, hostile, outputOf, runCalls, until } from './mcp.fixture.ts'
import { mcp } from './mcp.ts'

const go = 'mcp__it__go'

/** How a call of a hostile server must fail, long before it times out. */
const failures: { readonly [how: string]: { readonly title: string; readonly says: RegExp } } = {
  'half-a-line': {
    title: 'ends after half a line',
    says: /has disconnected: it ended with exit code 0\. The call may have/,
  },
  'no-line-end': {
    title: 'writes a line without end',
    says: /has disconnected: it sent a message of more than 16777216 bytes/,
  },
  'many-lines': { title: 'writes garbage without end', says: /has disconnected: it sent too many messages/ },
  'many-notifications': { title: 'notifies without end', says: /has disconnected: it sent too many messages/ },
  'many-requests': { title: 'sends requests without end', says: /has disconnected: it sent too many messages/ },
  gigantic: {
    title: 'sends a gigantic result',
    says: /has disconnected: it sent a message of more than 16777216 bytes/,
  },
  'large-error': { title: 'fails with three million letters', says: /^x{8192}$/ },
  'long-refusal': {
    title: 'returns an error of a million words',
    says: /^The MCP server "it" returned an error: (no ){600,700}n?o?… /,
  },
  'content-of-numbers': { title: 'sends 200,000 numbers as content', says: /sent an invalid result: its "content"/ },
  'content-of-lists': { title: 'sends 100,000 lists as content', says: /sent an invalid result: its "content"/ },
  'many-annotations': { title: 'sends 120,000 invalid annotations', says: /its "isError" is not a boolean/ },
  'only-a-task': {
    title: 'starts a task',
    says: /sent an invalid result: it has no "content", but "task"\. The call may/,
  },
  'input-requests': { title: 'wants input instead', says: /it has no "content", but "inputRequests"/ },
  'earlier-protocol': { title: 'answers as in the first version', says: /it has no "content", but "toolResult"/ },
  'wrong-content': { title: 'sends invalid content', says: /sent an invalid result/ },
  'wrong-output': { title: 'breaks its own schema', says: /does not fit the output schema .*Expected "number"/ },
  'asks-in-between': {
    title: 'requests sampling before it answers',
    says: /requested a feature that this client does not have/,
  },
  'no-output': { title: 'does not send its structured output', says: /structured output is missing/ },
}

for (const [how, { title, says }] of Object.entries(failures)) {
  test(`a call to a server that ${title} fails`, async (t) => {
    const servers = await connected(t, hostile(how))
    const { status, output } = await callOnce(servers, go)
    assert.equal(status, 'failed')
    assert.match(output as string, says)
  })
}

test('after a flood the next call starts the server again', async (t) => {
  const servers = await connected(t, hostile('many-lines'))
  await callOnce(servers, go)
  const second = await callOnce(servers, go)
  assert.match(second.output as string, /it sent too many messages/) // it flooded again, so it was started
})

test('garbage, half lines and carriage returns between messages are ignored', async (t) => {
  const servers = await connected(t, hostile('noisy'))
  assert.deepEqual(
    servers.tools!.map(({ name }) => name),
    [go],
  )
})

test('a response without a request is ignored, and the first of two responses counts', async (t) => {
  const servers = await connected(t, hostile('wrong-id'))
  assert.deepEqual(await callOnce(servers, go), { status: 'ok', output: 'first' })
})

test('one answer of a server cannot block the process: 100,000 values are not validated by the SDK', async (t) => {
  const servers = await connected(t, hostile('content-of-objects'), { maxOutputChars: 1_000_000 })
  const { status, output } = await callOnce(servers, go)
  assert.equal(status, 'ok')
  assert.match(output as string, /unknown kind: \]\n\[… 90001 more blocks left out …\]$/)
})

test('a list with 100,000 invalid tools is read up to its limit', async (t) => {
  const servers = await connected(t, hostile('list-of-objects'))
  assert.deepEqual(servers.tools, [])
  assert.match(servers.notes!.at(-1)!, /is too long; 20000 were read/)
})

for (const how of ['many-icons', 'hostile-progress', 'not-quite-base64']) {
  test(`200,000 invalid values outside of a result do not block the process (${how})`, async (t) => {
    const servers = await connected(t, hostile(how))
    assert.equal((await callOnce(servers, go)).status, 'ok')
  })
}

test('a resource or prompt with 100,000 parts is read up to a limit, and one without a list of parts fails', async (t) => {
  const servers = await connected(t, hostile('many-contents'))
  const read = (uri: string) => callOnce(servers, 'mcp_read_resource', { server: 'it', uri })
  const get = (name: string) => callOnce(servers, 'mcp_get_prompt', { server: 'it', name })
  assert.match((await read('many')).output as string, /90001 more contents left out …\]$/)
  assert.match((await get('many')).output as string, /90001 more messages left out …\]$/)
  for (const { status, output } of [await read('none'), await get('none')]) {
    assert.equal(status, 'failed')
    assert.match(
      output as string,
      /^The MCP server "it" sent an invalid result: its "(contents|messages)" is not a list/,
    )
  }
})

test('of endless progress a thousand updates are reported, without control characters', async (t) => {
  const servers = await connected(t, hostile('much-progress'))
  const agent = createAgent({ model: scriptedModel([{ toolCalls: [{ name: go }] }, 'Done.']), use: [servers] })
  const seen: Json[] = []
  for await (const event of agent.stream('Go.')) if (event.type === 'toolProgress') seen.push(event.update)
  const { message } = seen[0] as { message: string }
  assert.deepEqual([seen.length, message.length, message.slice(0, 8)], [1_000, 501, 'x[2Jx[2J'])
})

test('of ten thousand tools maxTools are offered, and a note reports the rest', async (t) => {
  const servers = await connected(t, hostile('many-tools'), { maxTools: 5 })
  const chosen = await connected(t, hostile('many-tools'), { tools: ['tool_9999'] })
  assert.deepEqual([servers.tools!.length, chosen.tools!.map(({ name }) => name)], [5, ['mcp__it__tool_9999']])
  assert.deepEqual(servers.notes, [
    'The MCP server "it" has 9995 more tools than "maxTools" allows. Choose with "tools".',
  ])
})

test('an endless list of tools is read up to a limit', async (t) => {
  const endless = await connected(t, hostile('endless-list'))
  const circular = await connected(t, hostile('circular-list'))
  assert.deepEqual([endless.tools!.length, circular.tools!.length], [64, 1])
  assert.match(endless.notes!.join(), /is too long; 64 were read/)
})

test('tools without a usable schema are left out and reported, and the others are offered', async (t) => {
  const servers = await connected(t, hostile('bad-schemas'))
  assert.deepEqual(
    servers.tools!.map(({ name }) => name),
    ['mcp__it__good'],
  )
  const notes = servers.notes!.join('\n')
  assert.match(notes, /"no_schema": its input schema does not describe an object/)
  assert.match(notes, /"no_type": its schema is invalid at "properties.a.type": .*any of \["object","array","string"/)
  assert.match(notes, /"bad_output": its schema is invalid at "properties": .*Expected "object"/)
  assert.match(notes, /"huge": its input schema is too large/)
  assert.match(notes, /has 4 more tools that cannot be used/)
})

test('invalid names are mapped to unique ones, and every tool is called by its own name', async (t) => {
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

test('descriptions have no invisible characters and a limited length', async (t) => {
  const servers = await connected(t, hostile('hidden'))
  const { description, inputSchema } = servers.tools![0]!
  const { a } = inputSchema['properties'] as { a: { description: string } }
  assert.deepEqual([description.slice(0, 12), description.length], ['Goes.[8m yyy', 4_097])
  assert.equal(a.description, 'Anything.')
})

test('a schema that would take forever to check is left to the server', async (t) => {
  const pattern = await connected(t, hostile('slow-pattern'))
  const unfolding = await connected(t, hostile('unfolding'))
  const value = `${'a'.repeat(60)}!`
  assert.deepEqual(await callOnce(pattern, go, { x: value }), { status: 'ok', output: { x: value } })
  assert.deepEqual(await callOnce(unfolding, go, { x: 1 }), { status: 'ok', output: 'ok' })
  assert.match(await outputOf(pattern, go, { x: 1 }), /Expected "string"/)
})

test('a tool that the server changes or removes after it was offered is not called any more', async (t) => {
  const changed = await connected(t, hostile('changes-its-mind'))
  const taken = await connected(t, hostile('takes-back'))
  const outputs = []
  for (const servers of [changed, taken]) {
    outputs.push((await callOnce(servers, go)).output)
    await new Promise(setImmediate) // the notification comes with the response
    outputs.push((await callOnce(servers, go)).output)
  }
  assert.deepEqual(outputs, [
    'ok',
    'The MCP server "it" has changed this tool since it was offered. The call was not made.',
    'ok',
    'The MCP server "it" no longer has this tool. The call was not made.',
  ])
})

test('a server that never answers fails the connection after its timeout', async () => {
  await assert.rejects(
    mcp({ servers: { it: hostile('never-answers') }, connectTimeoutMs: 100 }),
    /cannot be connected: it did not answer within 100 ms/,
  )
})

test('a server that does not read its input is disconnected before the memory fills up', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-mcp-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const CALL_LOG = join(folder, 'calls')
  const servers = await connected(t, { ...hostile('does-not-read'), env: { CALL_LOG } })
  const first = callOnce(servers, go)
  await until(() => existsSync(CALL_LOG)) // from then on it does not read
  const more = Array.from({ length: 80 }, () => servers.readResource(`memo://${'x'.repeat(1_000_000)}`))
  assert.equal((await Promise.allSettled(more)).filter(({ status }) => status === 'rejected').length, 80)
  assert.match((await first).output as string, /has disconnected: it does not read its input/)
})
