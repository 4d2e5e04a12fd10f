// Somebody who did not start a run watches it over HTTP, as server-sent events. The run does not wait for them.
import { createServer, get, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { once } from 'node:events'
import { createAgent, guard, tool } from 'hookloop'
import { broadcasting, type Channel, type Envelope } from 'hookloop/broadcasting'
import { scriptedModel } from 'hookloop/testing'

const watchers = new Set<ServerResponse>()
const server = createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  watchers.add(response)
  response.on('close', () => watchers.delete(response))
}).listen(0, '127.0.0.1')
await once(server, 'listening')

const channel: Channel = {
  publish: (envelope) => {
    for (const watcher of watchers) watcher.write(`event: ${envelope.type}\ndata: ${JSON.stringify(envelope)}\n\n`)
  },
}

const touch = (name: string) => tool({ name, description: name, input: { type: 'object' }, execute: () => 'ok' })
const agent = createAgent({
  model: scriptedModel([{ text: 'Let me see.', toolCalls: [{ name: 'read' }, { name: 'delete' }] }, 'Done.']),
  use: [
    touch('read'),
    touch('delete'),
    guard('beforeToolUse', (ctx) => ctx.block('Nothing is deleted.'), { name: 'keep', tool: 'delete' }),
    broadcasting({ channel, sessionId: 'demo' }),
  ],
})

const watching = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port })
const [response] = (await once(watching, 'response')) as [NodeJS.ReadableStream]
void agent.run('Tidy up.')

for await (const line of createInterface({ input: response })) {
  if (!line.startsWith('data: ')) continue
  const { type, payload } = JSON.parse(line.slice(6)) as Envelope
  const told = ['name', 'status', 'by', 'text'].flatMap((name) => payload[name] ?? [])
  console.log(type.padEnd(20), told.join(' · '))
  if (type === 'execution.finished') for (const watcher of watchers) watcher.end()
}
server.close()
