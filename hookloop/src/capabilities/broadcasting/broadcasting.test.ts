import assert from 'node:assert/strict'
import { createServer, get, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { after, test } from 'node:test'
import { tool } from '../../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { guard } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { approval } from '../approval.ts'
import { broadcasting, type BroadcastingOptions, type Channel, type Envelope } from './broadcasting.ts'

const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: () => 'SECRET output' })
const noRm = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'noRm', tool: 'rm' })
const rm = tool({ name: 'rm', description: 'Removes.', input: { type: 'object' }, execute: () => '' })

function agentOn(options: BroadcastingOptions) {
  const model = scriptedModel(({ messages }) =>
    messages.length > 1 ? 'Done.' : { toolCalls: [{ name: 'look', args: { key: 'SECRET arg' } }, { name: 'rm' }] },
  )
  return createAgent({ model, use: [look, rm, noRm, broadcasting(options)] })
}

function memory(): Channel & { readonly got: Envelope[]; readonly until: (type: string) => Promise<void> } {
  const got: Envelope[] = []
  const until = async (type: string): Promise<void> => {
    while (!got.some((envelope) => envelope.type === type)) await delay(5)
  }
  return { got, until, publish: (envelope) => void got.push(envelope) }
}

test('a run is told as it happens, each envelope with where it belongs', async () => {
  const channel = memory()
  const run = await agentOn({ channel, sessionId: 's-1' }).run('Go.')
  await channel.until('execution.finished')
  assert.equal(
    channel.got.map(({ type }) => type).join(' '),
    'execution.started step.started tool.requested tool.finished tool.requested tool.finished ' +
      'step.finished step.started step.finished execution.finished',
  )
  const places = channel.got.map(({ sessionId, executionId, agentId }) => `${sessionId} ${executionId} ${agentId}`)
  assert.deepEqual([...new Set(places)], [`s-1 ${run.state.execution!.id} ${run.state.agentId}`])
  const ends = channel.got.filter(({ type }) => type === 'tool.finished').map(({ payload }) => payload)
  assert.deepEqual([ends[0]!['status'], ends[1]!['status'], ends[1]!['by']], ['ok', 'blocked', 'noRm'])
})

test('presets differ in how much they tell, and only debug tells what went in and out of tools', async () => {
  const [minimal, standard, debug] = [memory(), memory(), memory()]
  await agentOn({ channel: minimal, preset: 'minimal' }).run('Go.')
  await agentOn({ channel: standard }).run('Go.')
  await agentOn({ channel: debug, preset: 'debug' }).run('Go.')
  for (const channel of [minimal, standard, debug]) await channel.until('execution.finished')
  assert.deepEqual(
    minimal.got.map(({ type }) => type),
    ['execution.started', 'execution.finished'],
  )
  const secrets = [minimal, standard, debug].map(({ got }) => /SECRET/.test(JSON.stringify(got)))
  assert.deepEqual(secrets, [false, false, true])
  assert.match(JSON.stringify(debug.got), /"hook":"noRm".*"decision":"block"/)
  assert.ok(debug.got.some(({ type }) => type === 'inference.started'))
})

test('a suspension and what follows it are told, and the end comes once', async () => {
  const channel = memory()
  const ask = guard('beforeToolUse', (ctx) => ctx.ask('May it?'), { tool: 'look' })
  const model = scriptedModel([{ toolCalls: [{ name: 'look' }] }, 'Done.'])
  const use = [look, ask, approval('suspend'), broadcasting({ channel, preset: 'minimal' })]
  const agent = createAgent({ model, use })
  const waiting = await agent.run('Go.')
  if (waiting.status !== 'suspended') assert.fail(waiting.status)
  await agent.resume(waiting, { answers: { [waiting.pending[0]!.id]: 'allow' } })
  await channel.until('execution.finished')
  assert.deepEqual(
    channel.got.map(({ type }) => type),
    ['execution.started', 'execution.suspended', 'execution.resumed', 'execution.finished'],
  )
})

test('a channel that never answers does not hold a run, and what it misses is counted', async () => {
  const got: Envelope[] = []
  let [isStuck, tried] = [true, 0]
  const channel: Channel = {
    publish: async (envelope) => {
      tried++
      if (isStuck) await new Promise(() => undefined)
      got.push(envelope)
    },
  }
  const agent = agentOn({ channel, maxQueue: 3, publishTimeoutMs: 100 })
  const started = performance.now()
  const run = await agent.run('Go.')
  assert.deepEqual([run.status, performance.now() - started < 20_000], ['completed', true])
  for (let before = 0; before !== tried; await delay(500)) before = tried // until it is not tried any more
  isStuck = false
  await agent.run('Go.')
  while (!got.some(({ type }) => type === 'broadcast.dropped')) await delay(5)
  assert.deepEqual(got.find(({ type }) => type === 'broadcast.dropped')!.payload, { count: 10 })
})

test('a channel that throws, and a redaction that does, cost their envelopes and nothing else', async () => {
  const fine = memory()
  const broken: Channel = {
    publish: () => {
      throw new Error('gone')
    },
  }
  const redact = (envelope: Envelope): Envelope | undefined => {
    if (envelope.type === 'step.started') throw new Error('?')
    if (envelope.type === 'step.finished') return undefined
    return { ...envelope, payload: {} }
  }
  const run = await agentOn({ channel: [broken, fine], redact }).run('Go.')
  await fine.until('execution.finished')
  assert.equal(run.status, 'completed')
  const types = fine.got.map(({ type }) => type)
  assert.deepEqual([types.includes('step.started'), types.includes('step.finished')], [false, false])
  assert.ok(fine.got.every(({ payload }) => Object.keys(payload).length === 0))
})

test('what is long is told by its beginning', async () => {
  const channel = memory()
  const long = scriptedModel(['x'.repeat(10_000)])
  await createAgent({ model: long, use: [broadcasting({ channel, maxChars: 100 })] }).run('Go.')
  await channel.until('execution.finished')
  assert.ok(JSON.stringify(channel.got).length < 4_000)
})

test('a browser can watch runs over server-sent events, and one that leaves does no harm', async () => {
  const watchers = new Set<ServerResponse>()
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    watchers.add(response)
    response.on('close', () => watchers.delete(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  const channel: Channel = {
    publish: (envelope) => {
      for (const watcher of watchers) watcher.write(`event: ${envelope.type}\ndata: ${JSON.stringify(envelope)}\n\n`)
    },
  }
  const watch = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' })
  const seen = new Promise<string>((resolve) => {
    watch.on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
        if (/event: execution\.finished\n.*\n\n/.test(text)) resolve(text)
      })
      response.on('error', () => undefined)
    })
  })
  while (watchers.size === 0) await delay(5)
  const agent = agentOn({ channel })
  await agent.run('Go.')
  const events = (await seen).match(/^data: .*$/gm)!.map((line) => JSON.parse(line.slice(6)) as Envelope)
  assert.deepEqual([events[0]!.type, events.at(-1)!.payload['status']], ['execution.started', 'completed'])
  watch.destroy()
  assert.equal((await agent.run('Go.')).status, 'completed')
})

test('a hundred runs at once are told in full, each in its order', async () => {
  const channel = memory()
  const agent = agentOn({ channel, maxQueue: 10_000 })
  const runs = await Promise.all(Array.from({ length: 100 }, () => agent.run('Go.')))
  while (channel.got.length < 1_000) await delay(5)
  const byRun = Map.groupBy(channel.got, ({ executionId }) => executionId)
  assert.equal(byRun.size, runs.length)
  for (const own of byRun.values()) assert.deepEqual([own.length, own.at(-1)!.type], [10, 'execution.finished'])
})

test('what is no channel, and options there are not, are refused', () => {
  assert.throws(() => broadcasting({ channel: {} as never }), /"channel" must have/)
  assert.throws(() => broadcasting({ channel: [] }), /"channel" must have/)
  assert.throws(() => broadcasting({ channel: memory(), preset: 'all' as never }), /"preset" is one of/)
  assert.throws(() => broadcasting({ channels: [] } as never), /there is no option "channels"/)
})
