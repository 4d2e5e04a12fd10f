import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import type { Use } from '../../core/agent/capability.ts'
import type { Session } from '../../core/agent/session.ts'
import { tool } from '../../core/agent/tool.ts'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { MODEL_KEY } from '../../core/state/agent-state.ts'
import { textOf } from '../../core/state/message.ts'
import { AgentError } from '../../errors.ts'
import { hook, observe } from '../../core/hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

/** An agent that counts the messages of the user, and pays on request if that is allowed. */
function clerk(store: SessionStore, use: readonly Use[] = []) {
  const paid: string[] = []
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: { type: 'object' },
    ask: true,
    execute: (_args, { idempotencyKey }) => paid.push(idempotencyKey),
  })
  const model = scriptedModel(({ messages, system }) => {
    const said = messages.filter(({ role }) => role === 'user')
    const last = messages.at(-1)!
    if (last.role === 'user' && textOf(last.content) === 'Pay.') return { toolCalls: [{ name: 'pay' }] }
    return `${system}${said.length}`
  })
  const agent = createAgent({ model, store, instructions: 'I: ', use: [pay, approval('suspend'), ...use] })
  return { agent, paid, model }
}

const texts = async (session: Session): Promise<readonly string[]> =>
  (await session.state())?.messages.map(({ content }) => textOf(content)) ?? []

test('every handle of a session sees its conversation', async () => {
  const store = memoryStore()
  const { id, send } = clerk(store).agent.session()
  assert.equal((await send('One.')).text, 'I: 1')
  const again = clerk(store).agent.session(id)
  assert.equal((await again.send('Two.')).text, 'I: 2')
  assert.deepEqual(await texts(again), ['One.', 'I: 1', 'Two.', 'I: 2'])
})

test('a session that was not said anything in has no state, and is not in the store', async () => {
  const store = memoryStore()
  const session = clerk(store).agent.session('new')
  await session.end()
  assert.deepEqual([await session.state(), await store.list()], [undefined, []])
})

test('D08: the id of a session is checked before it is used', () => {
  const { agent } = clerk(memoryStore())
  for (const id of ['', ' ', 'a\nb', 'x'.repeat(300), '\u001B[2J']) {
    assert.throws(() => agent.session(id), { code: 'SESSION_ID_INVALID' })
  }
})

test('what is said is streamed', async () => {
  const live = clerk(memoryStore()).agent.session().stream('One.')
  const types: string[] = []
  for await (const { type } of live) types.push(type)
  assert.deepEqual([types[0], types.at(-1), (await live.run).text], ['input', 'finished', 'I: 1'])
})

test('a session can be cleared, and keeps its metadata', async () => {
  const session = clerk(memoryStore()).agent.session()
  await session.writeMetadata('user', { name: 'ann' })
  await session.send('One.')
  await session.clear()
  assert.deepEqual([await texts(session), (await session.state())?.metadata['user']], [[], { name: 'ann' }])
  assert.equal((await session.send('Again.')).text, 'I: 1')
})

test('the system prompt, metadata and tasks of a session can be changed, and stay changed', async () => {
  const store = memoryStore()
  const session = clerk(store).agent.session('s')
  await session.changeSystemPrompt('You: ')
  await session.writeMetadata('role', 'reader')
  await session.updateTasks([{ content: 'one', status: 'pending' }])
  assert.equal((await session.send('One.')).text, 'You: 1')
  const { metadata, systemPrompt } = (await clerk(store).agent.session('s').state())!
  assert.deepEqual(
    [metadata['role'], metadata['hookloop.tasks'], systemPrompt],
    ['reader', [{ content: 'one', status: 'pending' }], 'You: '],
  )
})

test('metadata that is not JSON is rejected, and the session is not changed', async () => {
  const session = clerk(memoryStore()).agent.session()
  await session.send('One.')
  const before = JSON.stringify(await session.state())
  await assert.rejects(session.writeMetadata('at', new Date() as never), { code: 'JSON_INVALID' })
  assert.equal(JSON.stringify(await session.state()), before)
})

test('another model is used from the next message on, also after a restart', async () => {
  const server = createServer((_request, response) => {
    const choice = { index: 0, message: { role: 'assistant', content: 'I am another.' }, finish_reason: 'stop' }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: '1', object: 'chat.completion', created: 1, model: 'm', choices: [choice] }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  process.env['OPENAI_COMPATIBLE_BASE_URL'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  try {
    const store = memoryStore()
    const session = clerk(store).agent.session('s')
    await session.send('One.')
    await session.changeModel('openai-compatible/another')
    const after = clerk(store)
    assert.equal((await after.agent.session('s').send('Two.')).text, 'I am another.')
    assert.equal(after.model.requests.length, 0)
  } finally {
    delete process.env['OPENAI_COMPATIBLE_BASE_URL']
    server.close()
    server.closeAllConnections()
  }
})

test('an unknown model is rejected when it is set, not when it is used', async () => {
  const session = clerk(memoryStore()).agent.session()
  await session.send('One.')
  await assert.rejects(session.changeModel('unknown/model'), { code: 'MODEL_UNKNOWN' })
  await assert.rejects(session.writeMetadata(MODEL_KEY, 'unknown/model'), { code: 'MODEL_UNKNOWN' })
  assert.equal((await session.send('Two.')).text, 'I: 2')
})

test('a session that is suspended takes no input until it is resumed, by any process', async () => {
  const store = memoryStore()
  const session = clerk(store).agent.session('s')
  await session.send('One.')
  await session.suspend('lunch')
  await session.suspend('lunch again')
  const other = clerk(store).agent
  const ways = [
    () => other.session('s').send('Two.'),
    () => other.run('Two.', { session: 's' }),
    () => other.resume('s'),
  ]
  for (const refused of ways) {
    await assert.rejects(refused(), { code: 'STATE_SUSPENDED', message: /agent\.session\('s'\)\.resume\(\)/ })
  }
  assert.equal(await other.session('s').resume(), undefined)
  assert.equal((await session.send('Two.')).text, 'I: 2')
})

suite('while a run is open, a session rejects', () => {
  const actions: { readonly [what: string]: (session: Session) => Promise<unknown> } = {
    'to be said anything': (session) => session.send('More.'),
    'to be cleared': (session) => session.clear(),
    'to be compacted': (session) => session.compact(),
    'another model': (session) => session.changeModel('openai-compatible/m'),
    'another system prompt': (session) => session.changeSystemPrompt('You.'),
    'other metadata': (session) => session.writeMetadata('a', 1),
    'other tasks': (session) => session.updateTasks([]),
  }
  for (const [what, act] of Object.entries(actions)) {
    test(what, async () => {
      const store = memoryStore()
      const session = clerk(store).agent.session('s')
      await session.send('Pay.')
      const { lines } = (await store.read('s'))!
      await assert.rejects(act(session), { code: 'STATE_SUSPENDED' })
      assert.deepEqual((await store.read('s'))!.lines, lines)
    })
  }

  test('clear, with what it waits for and how to block it', async () => {
    const store = memoryStore()
    const session = clerk(store).agent.session('s')
    await session.send('Pay.')
    const [waiting] = await listApprovals(store)
    const refused = await session.clear().catch((error: unknown) => error as AgentError)
    assert.ok(refused instanceof AgentError)
    assert.deepEqual(refused.value, [waiting!.id])
    assert.match(
      refused.message,
      /waits for an approval and cannot be changed\. Use agent\.resume\('s', \{ answers \}\) first\. To block it: hookloop block/,
    )
    assert.ok(refused.message.includes(`hookloop block '${waiting!.id}'`), refused.message)
    await answerApproval(store, { session: 's', approval: waiting!.id, answer: { block: 'No.' } })
    await assert.rejects(session.clear(), /has a paused run and cannot be changed.*agent\.resume\('s'\)/)
    await session.resume()
    await session.clear()
    assert.deepEqual(await texts(session), [])
  })

  test('every change, while another process has it locked', async () => {
    const store = memoryStore()
    const session = clerk(store).agent.session('s')
    await session.send('One.')
    const writer = await store.open('s')
    for (const act of Object.values(actions)) await assert.rejects(act(session), { code: 'SESSION_BUSY' })
    await writer.release()
    await session.clear()
  })
})

test('a suspended session is neither cleared nor compacted before it is resumed', async () => {
  const session = clerk(memoryStore()).agent.session('s')
  await session.send('One.')
  await session.suspend('lunch')
  for (const act of [session.clear, session.compact]) {
    await assert.rejects(act(), { code: 'STATE_SUSPENDED', message: /is suspended.*resume\(\)/ })
  }
  await session.writeMetadata('role', 'reader') // what was said stays as it is
  assert.equal((await texts(session)).length, 2)
  await session.resume()
  await session.clear()
  assert.deepEqual(await texts(session), [])
})

test('a title that was given is the one that lists show', async () => {
  const store = memoryStore()
  const { agent } = clerk(store)
  const session = agent.session('s')
  await session.send('Good morning to you.')
  const titles = async (): Promise<unknown[]> => (await store.list()).map(({ head }) => head?.['title'])
  const before = await titles()
  await session.writeMetadata('hookloop.title', '  Monday,\n early ')
  assert.deepEqual([before, await titles()], [['Good morning to you.'], ['Monday, early']])
})

suite('onSessionStart and onSessionEnd', () => {
  function watched(store: SessionStore, use: readonly Use[] = []) {
    const seen: string[] = []
    const starts = hook('onSessionStart', (ctx) => {
      seen.push(`start ${ctx.sessionId} ${ctx.source}`)
      const times = ((ctx.state.metadata['starts'] as number | undefined) ?? 0) + 1
      return ctx.withState((state) => state.withMetadata('starts', times))
    })
    const watches = observe(['onSessionStart', 'onUserInput', 'beforeExecution', 'onSessionEnd'], (ctx) => {
      seen.push(ctx.trigger)
    })
    const ends = hook('onSessionEnd', (ctx) => {
      seen.push(`end ${ctx.sessionId} ${ctx.reason}`)
      return ctx.withState((state) => state.withMetadata('ended', ctx.reason))
    })
    return { seen, ...clerk(store, [starts, watches, ends, ...use]) }
  }

  test('fire once per handle at start and end, and their changes are stored', async () => {
    const store = memoryStore()
    const first = watched(store)
    const session = first.agent.session('s')
    await session.send('One.')
    await session.send('Two.')
    await session.end('closed')
    const rest = ['onUserInput', 'beforeExecution']
    const expected = ['start s startup', 'onSessionStart', ...rest, ...rest, 'end s closed', 'onSessionEnd']
    assert.deepEqual(first.seen, expected)
    const second = watched(store)
    const again = second.agent.session('s')
    await again.send('Three.')
    assert.deepEqual(second.seen, ['start s resume', 'onSessionStart', ...rest])
    const { metadata } = (await again.state())!
    assert.deepEqual([metadata['starts'], metadata['ended']], [2, 'closed'])
  })

  test('a session that was ended can be used again with the same handle', async () => {
    const { seen, agent } = watched(memoryStore())
    const session = agent.session('s')
    await session.send('One.')
    await session.end()
    await session.send('Two.')
    assert.deepEqual(
      seen.filter((each) => each.includes(' ')),
      ['start s startup', 'end s other', 'start s resume'],
    )
  })

  test('a fork starts with the source fork, and a session that is cleared ends and starts again', async () => {
    const store = memoryStore()
    const { seen, agent } = watched(store)
    const session = agent.session('s')
    await session.send('One.')
    const copy = await session.fork({ as: 'copy' })
    await watched(store).agent.session('copy').clear()
    const later = watched(store)
    await later.agent.session(await copy.fork({ as: 'second' }).then(({ id }) => id)).send('Two.')
    await session.clear()
    await session.send('Three.')
    const named = (all: readonly string[]): readonly string[] => all.filter((each) => each.includes(' '))
    assert.deepEqual(named(later.seen), ['start second fork'])
    assert.deepEqual(named(seen), ['start s startup', 'end s clear', 'start s clear'])
    const { messages, metadata } = (await session.state())!
    assert.deepEqual([messages.length, metadata['starts'], metadata['ended']], [2, 2, 'clear'])
  })

  test('a session whose onSessionStart fails rejects every input', async () => {
    const store = memoryStore()
    const fails = hook('onSessionStart', () => {
      throw new Error('not today')
    })
    const { agent, model } = clerk(store, [fails])
    const session = agent.session('s')
    for (let i = 0; i < 3; i++)
      await assert.rejects(session.send('One.'), { code: 'HOOK_FAILED', message: /not today/ })
    assert.equal(model.requests.length, 0)
  })
})

test('a fork of a session goes its own way, and the session does not notice', async () => {
  const store = memoryStore()
  const session = clerk(store).agent.session('s')
  await session.send('One.')
  const before = (await store.read('s'))!.lines
  const fork = await session.fork({ as: 't' })
  assert.equal((await fork.send('Two.')).text, 'I: 2')
  assert.deepEqual([fork.id, await texts(session), (await store.read('s'))!.lines], ['t', ['One.', 'I: 1'], before])
})

test('a fork with another message works on that message when it is resumed', async () => {
  const session = clerk(memoryStore()).agent.session('s')
  await session.send('One.')
  await session.send('Two.')
  const fork = await session.fork({ message: 'Three.' })
  assert.equal((await fork.resume())?.text, 'I: 2')
  assert.deepEqual(await texts(fork), ['One.', 'I: 1', 'Three.', 'I: 2'])
})
