import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { approval } from '../approval.ts'
import { callOnce, connected, program, real, runCalls } from './mcp.fixture.ts'
import { mcp, type Mcp } from './mcp.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-mcp-'))
const CALL_LOG = join(folder, 'calls')
after(() => rmSync(folder, { recursive: true }))
const logged = (): readonly string[] => readFileSync(CALL_LOG, 'utf8').split('\n').slice(0, -1)

for (const protocol of ['newest', 'legacy']) {
  describe(`a server over stdio, ${protocol} protocol`, () => {
    let servers: Mcp
    before(async () => {
      const it = { ...program('real-server.fixture.ts', protocol), env: { CALL_LOG } }
      servers = await mcp({ servers: { it }, ask: false, roots: [folder] })
    })
    after(() => servers.close())

    test('the application can call a tool, and gets its text', async () => {
      const said = await servers.call('echo', { text: 'hello' })
      const sum = await servers.call('add', { a: 1, b: 2 }, { server: 'it' })
      const failed = await servers.call('fail')
      assert.deepEqual(
        [said, sum, failed],
        [
          { text: 'hello', isError: false },
          { text: '3', isError: false },
          { text: 'The disk is full.', isError: true },
        ],
      )
      await assert.rejects(servers.call('other'), /has no tool "other". It has: add, echo, /)
      await assert.rejects(servers.call('echo', { text: 1 }), /arguments for "echo" are not valid/)
    })

    test('structured content becomes JSON, other content text, and a file its type and size', async () => {
      const sum = await callOnce(servers, 'mcp__it__add', { a: 1, b: 2 })
      const picture = await callOnce(servers, 'mcp__it__picture')
      assert.deepEqual(
        [sum, picture],
        [
          { status: 'ok', output: { sum: 3 } },
          { status: 'ok', output: 'Here it is:\n[image/png, 3 bytes, not shown]\na memo' },
        ],
      )
    })

    test('an error of the server is a failed call with its message', async () => {
      assert.deepEqual(await callOnce(servers, 'mcp__it__fail'), { status: 'failed', output: 'The disk is full.' })
    })

    test('invalid arguments never reach the server', async () => {
      writeFileSync(CALL_LOG, '')
      const { status, output } = await callOnce(servers, 'mcp__it__add', { a: 'one' })
      assert.deepEqual([status, logged()], ['failed', []])
      assert.match(output as string, /required property "b"/)
    })

    test('sampling and elicitation are rejected', async () => {
      const model = await callOnce(servers, 'mcp__it__use_model')
      const person = await callOnce(servers, 'mcp__it__ask_person')
      assert.match(model.output as string, /^Refused: .*(is not supported by this client|not available on protocol)/)
      assert.match(person.output as string, /^Refused: /)
    })

    test('progress of a call is reported as events', async () => {
      const calls = [{ name: 'mcp__it__steps', args: { count: 2 } }]
      const agent = createAgent({ model: scriptedModel([{ toolCalls: calls }, 'Done.']), use: [servers] })
      const seen = []
      for await (const event of agent.stream('Go.')) if (event.type === 'toolProgress') seen.push(event.update)
      assert.deepEqual(seen, [
        { progress: 1, total: 2, message: 'step 1' },
        { progress: 2, total: 2, message: 'step 2' },
      ])
    })

    test('resources and prompts are available as tools and in code', async () => {
      const listed = await callOnce(servers, 'mcp_list_resources', { server: 'it' })
      const read = await callOnce(servers, 'mcp_read_resource', { server: 'it', uri: 'memo://one' })
      const prompts = await callOnce(servers, 'mcp_get_prompt', { server: 'it' })
      const prompt = { server: 'it', name: 'review', arguments: { topic: 'plan' } }
      const filled = await callOnce(servers, 'mcp_get_prompt', prompt)
      assert.deepEqual(
        [listed, read, prompts, filled].map(({ output }) => output),
        [
          'memo://one memo, text/plain, A memo.\nmemo://pixel.png pixel, image/png',
          'Buy milk.',
          'review(topic) Reviews something.',
          'user: Review the plan.',
        ],
      )
      assert.deepEqual(await servers.readResource('memo://pixel.png'), [
        { type: 'file', mediaType: 'image/png', data: 'AAAA', filename: 'pixel.png' },
      ])
      assert.deepEqual(await servers.prompt('review', { topic: 'plan' }), [
        { role: 'user', content: [{ type: 'text', text: 'Review the plan.' }] },
      ])
      assert.deepEqual([(await servers.resources()).length, (await servers.prompts()).length], [2, 1])
    })
  })
}

test('a server of the older protocol can request the roots', async (t) => {
  const servers = await connected(t, { ...program('real-server.fixture.ts', 'legacy'), roots: [folder] })
  const { output } = await callOnce(servers, 'mcp__it__where')
  assert.match(output as string, /^\[\{"uri":"file:\/\/\/.*hookloop-mcp-/)
})

describe('hooks', () => {
  let servers: Mcp
  before(async () => {
    servers = await mcp({ servers: { it: { ...real, env: { CALL_LOG } } }, ask: false })
  })
  after(() => servers.close())

  test('a guard on mcp__* blocks, and the server is not called', async () => {
    writeFileSync(CALL_LOG, '')
    const none = guard('beforeToolUse', (ctx) => ctx.block('Not today.'), { tool: 'mcp__*' })
    const { status, output } = await callOnce([servers, none], 'mcp__it__echo', { text: 'hello' })
    assert.deepEqual({ status, output, calls: logged() }, { status: 'blocked', output: 'Not today.', calls: [] })
  })
})

test('every call needs approval by default, whatever annotations the server has', async (t) => {
  const servers = await mcp({ servers: { it: real } })
  t.after(() => servers.close())
  const asked: string[] = []
  const no = approval(({ toolCall }) => {
    asked.push(toolCall.name)
    return { block: 'No.' }
  })
  await runCalls(
    [servers, no],
    ['mcp__it__add', 'mcp_list_resources'].map((name) => ({ name, args: { a: 1, b: 1, server: 'it' } })),
  )
  const asks = createAgent({ model: scriptedModel([]), use: [servers] }).describe().tools
  assert.deepEqual(
    [asks.filter((each) => !each.asks).map(({ name }) => name), asked.includes('mcp__it__add')],
    [[], true],
  )
})

test('tools, ask and concurrent select tools by their names on the server', async (t) => {
  const servers = await connected(t, {
    ...real,
    tools: ['a*', /^s/, 'nothing_*'],
    ask: ['s*'],
    concurrent: ['add'],
    resources: false,
  })
  assert.deepEqual(
    servers.tools!.map(({ name, ask, concurrent }) => [name, ask, concurrent]),
    [
      ['mcp__it__add', false, true],
      ['mcp__it__slow', true, false],
      ['mcp__it__steps', true, false],
      ['mcp__it__start_child', true, false],
      ['mcp__it__ask_person', false, false],
    ],
  )
  assert.match(servers.notes![0]!, /"nothing_\*" selects no tool of the MCP server "it"/)
})

test('the instructions of a server are a note, and in the prompt only with { instructions: true }', async (t) => {
  const quiet = await connected(t, real)
  const model = scriptedModel(['Hi.', 'Hi.'])
  await createAgent({ model, use: [quiet], instructions: 'Be kind.' }).run('Hi.')
  const instructed = await connected(t, real, { instructions: true })
  await createAgent({ model, use: [instructed], instructions: 'Be kind.' }).run('Hi.')
  assert.deepEqual(
    model.requests.map(({ system }) => system),
    ['Be kind.', 'Be kind.\n\nInstructions of the MCP server for the tools mcp__it__*:\nAdd before you multiply.'],
  )
  assert.deepEqual(
    [quiet.notes, instructed.notes],
    [['The MCP server "it" has instructions that the model does not get: Add before you multiply.'], []],
  )
})
