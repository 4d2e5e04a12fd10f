import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { createAgent } from '../../create-agent.ts'
import type { SavedRun } from '../../core/state/saved-run.ts'
import { approval } from '../approval.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { callOnce, connected, hostile, isAlive, real, runCalls, until } from './mcp.fixture.ts'
import { mcp } from './mcp.ts'

const folder = mkdtempSync(join(tmpdir(), 'hookloop-mcp-'))
after(() => rmSync(folder, { recursive: true }))
const logFile = (name: string): string => {
  writeFileSync(join(folder, name), '')
  return join(folder, name)
}
const read = (file: string): string => readFileSync(file, 'utf8')

test('a server gets the declared variables and none of our API keys', async (t) => {
  process.env['HOOKLOOP_TEST_API_KEY'] = 'sk-do-not-pass-on'
  t.after(() => delete process.env['HOOKLOOP_TEST_API_KEY'])
  const servers = await connected(t, { ...real, env: { TOKEN: 'its own' } })
  const { output } = await callOnce(servers, 'mcp__it__environment')
  const { TOKEN, PATH } = JSON.parse(output as string) as { TOKEN?: string; PATH?: string }
  assert.deepEqual([TOKEN, PATH !== undefined, /sk-do-not-pass-on/.test(output as string)], ['its own', true, false])
})

test('a call fails if the server is killed, and is not repeated', async (t) => {
  const CALL_LOG = logFile('killed')
  const servers = await connected(t, { ...real, env: { CALL_LOG } })
  const died = await callOnce(servers, 'mcp__it__die')
  const again = await callOnce(servers, 'mcp__it__echo', { text: 'still there?' })
  assert.deepEqual(died, {
    status: 'failed',
    output:
      'The MCP server "it" has disconnected: it was ended by SIGKILL. The call may have had an effect: check before you repeat it.',
  })
  assert.deepEqual([again.output, read(CALL_LOG)], ['still there?', 'die\necho still there?\n'])
})

test('a server is connected again at most maxReconnects times', async (t) => {
  const servers = await connected(t, real, { maxReconnects: 1 })
  const results = await runCalls(
    [servers],
    [0, 1, 2].map(() => ({ name: 'mcp__it__die' })),
  )
  const outputs = results.state.execution!.steps.at(0)!.toolExecutions.map(({ output }) => output as string)
  assert.match(outputs[1]!, /may have had an effect/)
  assert.match(outputs[2]!, /It is not connected again \(maxReconnects\)\. The call was not made/)
})

test('a restarted server with a changed tool is not called', async (t) => {
  const CALL_LOG = logFile('another')
  const servers = await connected(t, { ...hostile('another-after-death'), env: { CALL_LOG } })
  const died = await callOnce(servers, 'mcp__it__go')
  const second = await callOnce(servers, 'mcp__it__go')
  assert.match(died.output as string, /ended with exit code 1/)
  assert.match(second.output as string, /has changed this tool since it was offered\. The call was not made\./)
  assert.equal(read(CALL_LOG), 'called\n')
})

test('an approval is not used for a tool that the server of another process describes otherwise, and the approver is asked again', async (t) => {
  const CALL_LOG = logFile('approved')
  const agentWith = async () => {
    const servers = await connected(t, { ...hostile('another-after-death'), env: { CALL_LOG } }, { ask: true })
    const model = scriptedModel([{ toolCalls: [{ name: 'mcp__it__go' }] }, 'Done.'])
    return createAgent({ model, use: [servers, approval('suspend')] })
  }
  const shown = await (await agentWith()).run('Go.')
  assert.ok(shown.status === 'suspended')
  writeFileSync(CALL_LOG, 'called\n') // the next server describes its tool otherwise
  const saved = JSON.parse(JSON.stringify(shown)) as SavedRun
  const again = await (await agentWith()).resume(saved, { answers: { [shown.pending[0]!.id]: 'allow' } })
  assert.ok(again.status === 'suspended')
  assert.notEqual(again.pending[0]!.id, shown.pending[0]!.id)
  assert.equal(read(CALL_LOG), 'called\n')
})

test('a cancelled run cancels the request, with an unknown outcome', async (t) => {
  for (const how of ['real', 'hostile']) {
    const CALL_LOG = logFile(`cancelled-${how}`)
    const server = how === 'real' ? real : hostile('hangs-in-a-call')
    const servers = await connected(t, { ...server, env: { CALL_LOG } })
    const cancel = new AbortController()
    const name = how === 'real' ? 'mcp__it__slow' : 'mcp__it__go'
    const running = runCalls([servers], [{ name, args: { ms: 60_000 } }], cancel.signal)
    await until(() => /slow starts|called/.test(read(CALL_LOG)))
    cancel.abort()
    const run = await running
    await until(() => /cancelled/.test(read(CALL_LOG)))
    assert.deepEqual(
      [run.status, run.state.execution!.steps.at(0)!.toolExecutions[0]!.status],
      ['cancelled', 'outcomeUnknown'],
    )
  }
})

test('a call that times out is cancelled on the server, and the next one works', async (t) => {
  const CALL_LOG = logFile('late')
  const servers = await connected(t, { ...real, env: { CALL_LOG }, callTimeoutMs: 3_000 })
  const { status, output } = await callOnce(servers, 'mcp__it__slow', { ms: 60_000 })
  await until(() => /slow was cancelled/.test(read(CALL_LOG)))
  assert.equal(status, 'failed')
  assert.match(output as string, /did not end within 3000 ms/)
  assert.equal((await callOnce(servers, 'mcp__it__echo', { text: 'hi' })).output, 'hi')
})

test('close ends the server and its processes, also those that ignore signals', async (t) => {
  const servers = await connected(t, real)
  const child = Number((await callOnce(servers, 'mcp__it__start_child')).output)
  const stubborn = await connected(t, hostile('will-not-end'))
  const pid = Number((await callOnce(stubborn, 'mcp__it__go')).output)
  assert.deepEqual([isAlive(child), isAlive(pid)], [true, true])
  await Promise.all([servers.close(), stubborn.close(), servers.close()])
  assert.deepEqual([isAlive(child), isAlive(pid)], [false, false])
})

test('calls after close fail, and so does a running call', async (t) => {
  const CALL_LOG = logFile('closed')
  const servers = await connected(t, { ...real, env: { CALL_LOG } })
  const slow = callOnce(servers, 'mcp__it__slow', { ms: 60_000 })
  await until(() => /slow starts/.test(read(CALL_LOG)))
  await servers.close()
  assert.match((await slow).output as string, /^The MCP server "it" has disconnected/)
  assert.deepEqual(await callOnce(servers, 'mcp__it__echo', { text: 'hi' }), {
    status: 'failed',
    output: 'The MCP server "it" was closed. The call was not made.',
  })
})

/** Runs a program that connects to a server which ignores signals, and returns the pid of the server. */
async function start(
  ending: string,
): Promise<{ pid: number; child: ReturnType<typeof spawn>; exited: Promise<unknown> }> {
  const { command, args } = hostile('will-not-end')
  const main = join(folder, `main-${ending.length}.ts`)
  const at = (file: string): string => JSON.stringify(join(import.meta.dirname, file))
  writeFileSync(
    main,
    `import { mcp } from ${at('mcp.ts')}
     import { callOnce } from ${at('mcp.fixture.ts')}
     const servers = await mcp({ servers: { it: ${JSON.stringify({ command, args })} }, ask: false })
     console.log((await callOnce(servers, 'mcp__it__go')).output)
     ${ending}`,
  )
  const child = spawn(process.execPath, ['--conditions=hookloop-source', '--no-warnings', main], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => (output += String(chunk)))
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)))
  await until(() => output.includes('\n'))
  return { pid: Number(output), child, exited }
}

test('a program that does not close its servers still ends, and they end with it', async () => {
  const { pid, exited } = await start('')
  assert.equal(await exited, 0)
  await until(() => !isAlive(pid), 3_000) // by its own exit, before another process kills orphans
})

test('a program that is terminated ends its servers', async () => {
  const { pid, child, exited } = await start('setInterval(() => undefined, 1_000)')
  child.kill('SIGTERM')
  assert.equal(await exited, 'SIGTERM')
  await until(() => !isAlive(pid), 3_000) // by its own exit, before another process kills orphans
})

test('mcp rejects if a required server cannot be started, and ends the others', async (t) => {
  const CALL_LOG = logFile('required')
  const good = { ...hostile('will-not-end'), env: { CALL_LOG } }
  const bad = { command: 'no-such-program', env: { KEY: 'x' } }
  await assert.rejects(mcp({ servers: { good, bad } }), {
    code: 'AGENT_INVALID_OPTION',
    message: /^mcp: The MCP server "bad" cannot be connected: "no-such-program" was not found .*required: false/,
  })
  assert.deepEqual([read(CALL_LOG) !== '', isAlive(Number(read(CALL_LOG)))], [true, false])
  const servers = await mcp({ servers: { good: real, bad: { ...bad, required: false } } })
  t.after(() => servers.close())
  assert.match(servers.notes!.join('\n'), /The MCP server "bad" cannot be connected: .* It is left out\./)
  assert.equal(servers.tools!.filter(({ name }) => name.startsWith('mcp__bad')).length, 0)
})

test('the stderr of a server that failed to start is reported, without its secrets', async () => {
  const server = { ...hostile('dies-at-once'), env: { SERVICE_KEY: 'sk-secret-enough' } }
  await assert.rejects(mcp({ servers: { it: server } }), {
    message: /it ended with exit code 3\. It wrote: \[31mno configuration, key is \[secret\]/,
  })
})

test('servers of the older protocol are connected, whether they ignore the newer one or exit because of it', async (t) => {
  const [silent, mortal] = await Promise.all([
    connected(t, hostile('ignores-the-unknown'), { connectTimeoutMs: 12_000 }),
    connected(t, hostile('dies-of-the-unknown')),
  ])
  assert.deepEqual([silent.tools!.length, mortal.tools!.length], [1, 1])
})
