import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { run } from './commands/run.ts'
import { ProjectWithHooks } from './project-with-hooks.fixture.ts'
import { Terminal } from './terminal/terminal.fixture.ts'

// Models, tools, servers, hooks, sessions and files write to the terminal. None of them may give it commands, or show a text
// that looks like another one.

/** One of each: cursor, title, link, clipboard, device control, C1 controls, overwriting, direction, letters without a shape. */
const attacks: Readonly<Record<string, string>> = {
  'clear screen': '\u001B[2J\u001B[H',
  title: '\u001B]0;owned\u0007',
  link: '\u001B]8;;https://evil.example\u001B\\click\u001B]8;;\u001B\\',
  clipboard: '\u001B]52;c;ZXZpbA==\u0007',
  'device control': '\u001BP$q"p\u001B\\',
  'C1 control sequence': '\u009B2J',
  'C1 operating system command': '\u009D0;owned\u009C',
  'hidden colour': '\u001B[8mhidden\u001B[0m',
  'carriage return': 'harmless\rrm -rf /',
  backspace: 'no\b\bok',
  bell: '\u0007',
  delete: '\u007F',
  'next line': '\u0085',
  'override of direction': '\u202Egnp.exe\u202C',
  'isolate of direction': '\u2066abc\u2069',
  'Hangul filler': '\u3164',
  'Hangul choseong filler': '\u115F',
  'halfwidth filler': '\uFFA0',
  'tag letters': '\u{E0041}\u{E0042}',
}
const attack = `<${Object.values(attacks).join('|')}>`

/** Whatever a terminal obeys, or a reader does not see as it is. */
const forbidden =
  // oxlint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u202A-\u202E\u2066-\u2069\u115F\u1160\u3164\uFFA0]|[\u{E0000}-\u{E0FFF}]/u

function assertClean(text: string, what: string): void {
  const found = forbidden.exec(text)
  assert.ok(
    found === null,
    `${what}: ${JSON.stringify(text.slice(Math.max(0, (found?.index ?? 0) - 60)).slice(0, 160))}`,
  )
}

const agentCode = `
import { guard, hook, observe, tool } from 'hookloop'
import { subagents } from 'hookloop/subagents'
import { scriptedModel } from 'hookloop/testing'
const x = ${JSON.stringify(attack)}
const input = { type: 'object' }
const echo = tool({ name: 'echo', description: x, input, execute: (args, { progress }) => { progress?.(x); return x + JSON.stringify(args) } })
const fails = tool({ name: 'fails', description: x, input, execute: () => { throw new Error(x) } })
const asked = tool({ name: 'asked', description: x, input, execute: () => x })
const one = (name, args = { [x]: x }) => ({ reasoning: x, text: x, toolCalls: [{ name, args }] })
const turns = [one('echo'), one('fails'), one('missing' + x), one('blocked'), one('spawn_subagent', { subagent: 'scout', prompt: x }), one('echo'), x, one('asked'), x, x]
const blocked = tool({ name: 'blocked', description: x, input, execute: () => x })
const model = scriptedModel(({ messages }) => turns[Math.min(messages.filter(({ role }) => role === 'assistant').length, turns.length - 1)])
export default {
  name: 'agent' + x, model, instructions: x,
  use: [echo, fails, asked, blocked, { name: 'files', warnings: [x] },
    subagents({ agents: { scout: { description: x, instructions: x } } }),
    hook('beforeToolUse', (ctx) => ctx.withArgs({ ...ctx.toolCall.args, more: x }), { name: 'changes' + x, tool: 'echo' }),
    hook('beforeStep', (ctx) => ctx.state.stepCount === 0 ? ctx.withState((state) => state.withMessage({ role: 'user', content: [{ type: 'text', text: x }] })) : ctx, { name: 'injects' + x }),
    hook('afterStep', () => { throw new Error(x) }, { name: 'breaks' + x, onFailure: 'continue' }),
    observe('afterStep', () => { throw new Error(x) }, { name: 'watches' + x }),
    guard('beforeToolUse', (ctx) => ctx.block(x), { name: 'blocks' + x, tool: 'blocked' }),
    guard('beforeToolUse', (ctx) => ctx.ask(x), { name: 'asks' + x, tool: 'asked' }),
    guard('onUserInput', (ctx) => JSON.stringify(ctx.input).includes('rude') ? ctx.block(x) : ctx, { name: 'polite' + x }),
  ],
}
`

/** An MCP server whose texts all attack the terminal. */
const serverCode = `
import { createInterface } from 'node:readline'
const x = ${JSON.stringify(attack)}
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
const inputSchema = { type: 'object', title: x, properties: { [x]: { type: 'string', description: x } } }
const tools = ['say', 'fail', 'refuse', 'odd' + x].map((name) => ({ name, title: x, description: x, inputSchema, annotations: { title: x } }))
process.stderr.write(x + '\\n')
if (process.env.MCP_FAILS) process.exit(1)
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  const answer = (result) => send({ id, result })
  const refuse = (message) => send({ id, error: { code: -32_000, message } })
  if (method === 'initialize') return answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {}, logging: {} }, serverInfo: { name: x, title: x, version: x }, instructions: x })
  if (method === 'tools/list') return answer({ tools })
  if (id === undefined) return
  if (method !== 'tools/call') return refuse(x)
  send({ method: 'notifications/message', params: { level: 'error', logger: x, data: x } })
  send({ method: 'notifications/progress', params: { progressToken: params._meta?.progressToken, progress: 1, message: x } })
  if (params.name === 'refuse') return refuse(x)
  answer({ content: [{ type: 'text', text: x }], isError: params.name === 'fail' })
})
`

const mcpAgentCode = (server: string): string => `
import { approval } from 'hookloop'
import { mcp } from 'hookloop/mcp'
import { scriptedModel } from 'hookloop/testing'
const x = ${JSON.stringify(attack)}
const calls = ['say', 'fail', 'refuse', 'odd'].map((name) => ({ toolCalls: [{ name: 'mcp__it__' + name, args: { [x]: x } }] }))
const env = process.env.MCP_FAILS ? { MCP_FAILS: '1' } : {}
export default {
  model: scriptedModel([...calls, x]),
  use: [await mcp({ servers: { it: { command: process.execPath, args: [${JSON.stringify(server)}], env } } }), approval(process.env.MCP_ASKS ? 'suspend' : () => 'allow')],
}
`

/** A project whose texts all attack the terminal. */
function hostileProject(): ProjectWithHooks {
  const project = new ProjectWithHooks()
  writeFileSync(project.agent, agentCode)
  project.write('.claude/settings.json', {
    hooks: {
      PreToolUse: [
        { matcher: '*', hooks: [{ type: 'command', command: `printf '%s' ${quoted(attack)} >&2; exit 1` }] },
      ],
      UserPromptSubmit: [{ hooks: [{ type: 'command', command: `printf '%s' ${quoted(attack)}` }] }],
      [`Odd${attack}`]: [{ hooks: [{ type: 'command', command: attack }] }],
    },
  })
  project.hooks({ on: 'beforeToolUse', mode: 'observe', name: `file${attack}`, shell: `echo ${quoted(attack)}` })
  return project
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

describe('no text of a model, tool, server, hook, session or file gives the terminal a command', () => {
  const project = hostileProject()
  const agent = ['--agent', project.agent]

  test('trust and hooks commands', async () => {
    for (const args of [
      ['trust', '--yes'],
      ['hooks', 'list'],
      ['hooks', 'list', '--json'],
      ['hooks', 'list', '--check'],
    ]) {
      const { stdout, stderr } = await project.hookloop(args)
      assertClean(stdout + stderr, args.join(' '))
    }
    const input = JSON.stringify({ tool_name: `Bash${attack}`, tool_input: { command: attack } })
    for (const args of [
      ['hooks', 'test', 'PreToolUse'],
      ['hooks', 'test', 'PreToolUse', '--json'],
      ['hooks', 'test', 'UserPromptSubmit'],
    ]) {
      const { stdout, stderr } = await project.hookloop(args, { input })
      assertClean(stdout + stderr, args.join(' '))
    }
  })

  test('a run, its session, and every command about it', async () => {
    const first = await project.hookloop(['run', attack, ...agent, '--session', 'one', '--explain', '--verbose'])
    assert.match(first.stderr, /blocked by/)
    assertClean(first.stdout + first.stderr, 'run')
    const commands = [
      ['explain', 'one'],
      ['explain', 'one', '--verbose'],
      ['explain', 'one', '--json'],
      ['sessions'],
      ['sessions', '--json'],
      ['steps', 'one'],
      ['steps', 'one', '--json'],
      ['run', 'rude', ...agent, '--session', 'two'],
      ['explain', 'two'],
      ['diff', 'one', 'two'],
      ['diff', 'one', 'two', '--json'],
      ['replay', 'one', '--without', `blocks${attack}`],
      ['replay', 'one', '--without', `blocks${attack}`, '--json'],
      ['run', 'more', ...agent, '--session', 'one'],
      ['approvals'],
      ['approvals', '--json'],
      ['resume', 'one'],
      ['fork', 'one'],
    ]
    for (const args of commands) {
      const { stdout, stderr } = await project.hookloop(args)
      assertClean(stdout + stderr, args.join(' '))
    }
    const listed = await project.hookloop(['approvals'])
    const [, id] = /^(\w{8}) /.exec(listed.stdout) ?? []
    assert.ok(id !== undefined, listed.stdout)
    const approved = await project.hookloop(['approve', id, '--by', attack, '--resume'])
    assertClean(approved.stdout + approved.stderr, 'approve --resume')
    const chatted = await project.hookloop(['chat', ...agent], { input: `${attack.replaceAll(/[\r\n\u0085]/g, '')}\n` })
    assertClean(chatted.stdout + chatted.stderr, 'chat')
    const json = await project.hookloop(['run', attack, ...agent, '--json'])
    assertClean(json.stdout + json.stderr, 'run --json')
    for (const args of [
      ['export', 'one'],
      ['export', 'one', '--no-redact'],
      ['rewind', 'one', '--to', '1'],
      ['sessions', 'delete', 'one', 'two'],
      ['sessions', 'prune', '--older-than', '0s'],
    ]) {
      const { stdout, stderr } = await project.hookloop(args)
      assert.notEqual(stdout + stderr, '', args.join(' '))
      assertClean(stdout + stderr, args.join(' '))
    }
  })

  test('errors about what was typed', async () => {
    const odd = `x${attack}`
    for (const args of [
      [odd],
      ['hooks', odd],
      ['run', '--agent', odd, 'hello'],
      ['run', '--model', odd, 'hello'],
      ['run', 'hello', `--${odd}`],
      ['explain', odd],
      ['explain', '--store', odd],
      ['approve', odd],
      ['fork', 'one', '--as', odd],
      ['hooks', 'test', odd],
      ['hooks', 'test', 'PreToolUse', '--dir', odd],
      ['import', odd],
      ['export', odd],
      ['export', 'one', '--redact', `/${odd}(/`],
      ['sessions', 'delete', odd],
      ['rewind', odd],
      ['models', odd],
      ['policy', 'bash', odd],
    ]) {
      const { stdout, stderr } = await project.hookloop(args)
      assertClean(stdout + stderr, args.join(' '))
    }
  })

  test('the names of models on a server, and its address', async (t) => {
    const models = [{ name: `a${attack}` }, { name: 'good:latest' }]
    const server = createServer((_request, response) => response.end(JSON.stringify({ models }))).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const OLLAMA_BASE_URL of [address, `${address}/${attack}`]) {
      for (const args of [['models'], ['models', '--json']]) {
        const { stdout, stderr } = await project.hookloop(args, { env: { OLLAMA_BASE_URL } })
        assertClean(stdout + stderr, args.join(' '))
        if (OLLAMA_BASE_URL === address) assert.match(stdout, /ollama\/good:latest/)
      }
    }
  })

  test('an MCP server: its name, tools, progress, results, errors, instructions and what it logs', async () => {
    const server = project.write('server.mjs', serverCode)
    const own = join(project.root, 'mcp-agent.mjs')
    writeFileSync(own, mcpAgentCode(server))
    for (const [args, env = {}] of [
      [['run', 'hello', '--agent', own, '--session', 'mcp', '--explain', '--verbose']],
      [['run', 'hello', '--agent', own, '--json']],
      [['explain', 'mcp', '--verbose']],
      [['steps', 'mcp']],
      [['run', 'hello', '--agent', own, '--session', 'asks'], { MCP_ASKS: '1' }],
      [['approvals']],
      [['approvals', '--json']],
    ] as const) {
      const { stdout, stderr } = await project.hookloop(args, { env })
      assert.match(stdout + stderr, /mcp__/, args.join(' '))
      assertClean(stdout + stderr, args.join(' '))
    }
    const fails = await project.hookloop(['run', 'hello', '--agent', own], { env: { MCP_FAILS: '1' } })
    assert.match(fails.stderr, /cannot be connected/)
    assertClean(fails.stdout + fails.stderr, 'a server that fails')
  })

  test('the names of files', async () => {
    const folder = `${project.dir}/folder${attack.replaceAll(/[/\0]/g, '')}`
    mkdirSync(`${folder}/.claude`, { recursive: true })
    writeFileSync(
      `${folder}/.claude/settings.json`,
      JSON.stringify({ hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: 'true' }] }] } }),
    )
    for (const args of [['hooks', 'list'], ['hooks', 'list', '--check'], ['trust'], ['run', 'hello', ...agent]]) {
      const { stdout, stderr } = await project.hookloop(args, { cwd: folder })
      assertClean(stdout + stderr, args.join(' '))
    }
  })
})

test('at a terminal, the live view and the question to the approver show every control character harmlessly', async () => {
  const project = hostileProject()
  const screen = new Terminal()
  const ask = agentCode.replace(/const turns = .*/, `const turns = [one('echo'), one('blocked'), one('asked'), x]`)
  writeFileSync(project.agent, ask)
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  const running = run([attack], { agent: project.agent, stream: true, store: false }, screen.cli(process.env))
  await screen.after('Allow this call?', 'y\n')
  assert.equal(await running, 0)
  const shown = screen.written.replaceAll('\r\n', '\n')
  assertClean(shown, 'the live view')
  // The approver sees what the call contains.
  assert.ok(shown.includes('\\u{202e}') && shown.includes('\\u{3164}'), shown)
})
