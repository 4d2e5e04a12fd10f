import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, realpathSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  client,
  methods,
  ndJsonStream,
  type ClientConnection,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from '@agentclientprotocol/sdk'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const bin = fileURLToPath(new URL('../../../bin/hookloop.mjs', import.meta.url))

/** The official client in this process, and the command in another one. */
class Editor {
  readonly project: ScriptedProject
  readonly updates: SessionUpdate[] = []
  readonly asked: RequestPermissionRequest[] = []
  readonly folder: string
  answer: (request: RequestPermissionRequest) => Promise<RequestPermissionResponse> | RequestPermissionResponse =
    () => ({ outcome: { outcome: 'selected', optionId: 'allow' } })
  onUpdate: (update: SessionUpdate) => void = () => undefined
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #connection: ClientConnection
  #stderr = ''

  constructor(project = new ScriptedProject()) {
    this.project = project
    this.folder = realpathSync(project.folder)
    const { PATH } = process.env
    this.#child = spawn(process.execPath, ['--conditions=hookloop-source', bin, 'acp', 'agent.ts'], {
      cwd: project.folder,
      env: { PATH, HOME: project.folder, XDG_CONFIG_HOME: project.folder, ...project.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: 180_000,
      killSignal: 'SIGKILL',
    })
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text))
    const input = Writable.toWeb(this.#child.stdin) as WritableStream<Uint8Array>
    const output = Readable.toWeb(this.#child.stdout) as ReadableStream<Uint8Array>
    this.#connection = client({ name: 'editor' })
      .onRequest(methods.client.session.requestPermission, ({ params }) => {
        this.asked.push(params)
        return this.answer(params)
      })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.updates.push(params.update)
        this.onUpdate(params.update)
      })
      .connect(ndJsonStream(input, output))
  }

  get agent(): ClientConnection['agent'] {
    return this.#connection.agent
  }

  get stderr(): string {
    return this.#stderr
  }

  initialize() {
    return this.agent.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} })
  }

  async newSession(cwd = this.folder): Promise<string> {
    return (await this.agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId
  }

  prompt(sessionId: string, text: string) {
    return this.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] })
  }

  /** The text that the agent has written. */
  said(): string {
    return this.updates
      .map((each) =>
        each.sessionUpdate === 'agent_message_chunk' && each.content.type === 'text' ? each.content.text : '',
      )
      .join('')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#child, 'close')
    this.#child.stdin.end()
    const [code] = (await closed) as [number | null]
    assert.equal(code, 0, this.#stderr)
  }
}

test('an editor gets the answer of an agent as it is written, its costs, and why the turn ended', async () => {
  await using editor = new Editor()
  const { agentCapabilities, agentInfo } = await editor.initialize()
  assert.deepEqual([agentInfo?.name, agentCapabilities?.loadSession], ['hookloop', true])
  const session = await editor.newSession()
  assert.deepEqual(await editor.prompt(session, 'hello'), { stopReason: 'end_turn' })
  assert.equal(editor.said(), 'I heard hello')
  const usage = editor.updates.find(({ sessionUpdate }) => sessionUpdate === 'usage_update')
  assert.ok(usage?.sessionUpdate === 'usage_update' && usage.used > 0 && usage.cost?.currency === 'USD')
  await editor.prompt(session, 'again')
  assert.match(editor.said(), /I heard hello, again$/)
})

test('a question of a guard is a request for permission with the exact arguments, and the call runs only if it is allowed', async () => {
  await using editor = new Editor()
  await editor.initialize()
  const session = await editor.newSession()
  await editor.prompt(session, 'deploy staging')
  assert.deepEqual(editor.project.done(), ['deployed to staging'])
  const [asked] = editor.asked
  assert.deepEqual([asked!.sessionId, asked!.toolCall.rawInput], [session, { to: 'staging' }])
  const calls = editor.updates.filter((each) => each.sessionUpdate === 'tool_call')
  assert.deepEqual(
    calls.map(({ toolCallId }) => toolCallId),
    [asked!.toolCall.toolCallId],
  )
  const last = editor.updates.findLast((each) => each.sessionUpdate === 'tool_call_update')
  assert.deepEqual(
    [last!.toolCallId, last!.status, last!.rawOutput],
    [asked!.toolCall.toolCallId, 'completed', 'live on staging'],
  )
  editor.answer = () => ({ outcome: { outcome: 'selected', optionId: 'block' } })
  await editor.prompt(session, 'deploy production')
  assert.deepEqual(editor.project.done(), ['deployed to staging'])
  assert.match(editor.said(), /The user blocked it\./)
})

test('a question that is cancelled does not run the call, and the session takes the next prompt', async () => {
  await using editor = new Editor()
  await editor.initialize()
  const session = await editor.newSession()
  editor.answer = async () => {
    await editor.agent.notify(methods.agent.session.cancel, { sessionId: session })
    return { outcome: { outcome: 'cancelled' } }
  }
  assert.deepEqual(await editor.prompt(session, 'deploy staging'), { stopReason: 'cancelled' })
  assert.deepEqual(await editor.prompt(session, 'hello'), { stopReason: 'end_turn' })
  assert.deepEqual(editor.project.done(), [])
})

test('another process lists the sessions of a folder, and loads one with its conversation', async () => {
  const project = new ScriptedProject()
  let session = ''
  {
    await using editor = new Editor(project)
    await editor.initialize()
    session = await editor.newSession()
    await editor.prompt(session, 'deploy staging')
  }
  await using editor = new Editor(project)
  await editor.initialize()
  const { folder: cwd } = editor
  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd })
  assert.deepEqual(
    sessions.map((each) => [each.sessionId, each.cwd, each.title]),
    [[session, cwd, 'deploy staging']],
  )
  assert.deepEqual((await editor.agent.request(methods.agent.session.list, { cwd: '/elsewhere' })).sessions, [])
  await editor.agent.request(methods.agent.session.load, { sessionId: session, cwd, mcpServers: [] })
  assert.deepEqual(
    editor.updates.map(({ sessionUpdate }) => sessionUpdate),
    ['user_message_chunk', 'tool_call', 'tool_call_update', 'agent_message_chunk'],
  )
  await editor.prompt(session, 'hello')
  assert.match(editor.said(), /I heard deploy staging, hello$/)
})

test('stdout has only the protocol, whatever the agent file and its tools write', async () => {
  const project = new ScriptedProject()
  appendFileSync(project.agent, `console.log('loaded')\nprocess.stdout.write('raw')\nconsole.error('problem')\n`)
  await using editor = new Editor(project)
  await editor.initialize()
  await editor.prompt(await editor.newSession(), 'hello')
  assert.equal(editor.said(), 'I heard hello')
  for (const text of ['loaded', 'raw', 'problem']) assert.ok(editor.stderr.includes(text), editor.stderr)
})

test('a run that does not complete is explained to the editor', async () => {
  await using editor = new Editor()
  await editor.initialize()
  const session = await editor.newSession()
  assert.deepEqual(await editor.prompt(session, 'rude'), { stopReason: 'refusal' })
  assert.match(editor.said(), /Be polite\./)
  await editor.prompt(session, 'fail')
  assert.match(editor.said(), /The run failed: The model is out\./)
})

test('requests for unknown sessions, other folders and a second turn are rejected', async () => {
  await using editor = new Editor()
  await editor.initialize()
  const session = await editor.newSession()
  await assert.rejects(editor.prompt('other', 'hello'))
  await assert.rejects(
    editor.agent.request(methods.agent.session.load, { sessionId: 'other', cwd: editor.folder, mcpServers: [] }),
  )
  await assert.rejects(editor.newSession('/'), /works in/)
  const { promise: started, resolve } = Promise.withResolvers<void>()
  editor.onUpdate = () => resolve()
  const first = editor.prompt(session, 'slow')
  await started
  await assert.rejects(editor.prompt(session, 'hello'), /Cancel it first/)
  await editor.agent.notify(methods.agent.session.cancel, { sessionId: session })
  assert.deepEqual(await first, { stopReason: 'cancelled' })
})
