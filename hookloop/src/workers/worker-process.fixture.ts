// A worker as a process, to be killed, paused and started again:
//   <engine> <database> <world> [<port> <admin> <host>]
// Its agents call the tool `work` in each of four steps. Each call is a line in the file of the world. It says `ready`.
// It then prints what it does with each turn, as JSON lines. On SIGUSR2, it says in the same way what it holds.
// The environment: LEASE_MS of the store, TOOL_MS of each call, EXPIRES_MS of each question, VERSION of the agents, CALLS_AT_ONCE for
// how many calls it makes at a time, MAX_RUNS for how many runs on Postgres. With HOLD, the first call ends with SIGURG.
import { EventEmitter, once } from 'node:events'
import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { tool } from '../core/agent/tool.ts'
import { approval } from '../capabilities/approval.ts'
import { createAgent } from '../create-agent.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { postgresStore } from '../sessions/stores/postgres-store.ts'
import { serveSessions as serveOnPostgres } from './postgres/serve-sessions.ts'
import { serveSessions as serveOnRestate } from './restate/serve-sessions.ts'

const [engine, connectionString = '', world = '', port = '0', admin = '', host = ''] = process.argv.slice(2)

const store = postgresStore({ connectionString, leaseMs: Number(process.env['LEASE_MS'] ?? 30_000) })

const maxCalls = Number(process.env['CALLS_AT_ONCE'] ?? Infinity)
const turns = new EventEmitter().setMaxListeners(0)
let calls = 0
const isBusy = (): boolean => calls >= maxCalls
let holds = process.env['HOLD'] !== undefined

const work = tool({
  name: 'work',
  description: 'Works.',
  input: { type: 'object' },
  execute: async (args, { idempotencyKey, signal }) => {
    const { session, step } = args as { readonly session: string; readonly step: number }
    while (isBusy()) await once(turns, 'end')
    calls += 1
    const held = holds && once(process, 'SIGURG')
    holds = false
    appendFileSync(world, `${session} ${step} ${idempotencyKey} ${process.pid}\n`)
    if (held) await held
    else await pause(Number(process.env['TOOL_MS'] ?? 5), undefined, { signal }).catch(() => undefined)
    calls -= 1
    turns.emit('end')
    return 'done'
  },
})

const ask = guard('beforeToolUse', (ctx) => (ctx.state.metadata['asks'] === true ? ctx.ask('Really?') : ctx), {
  name: 'ask',
})

/** What it does depends on the conversation only, so any worker can continue. */
const model = scriptedModel(({ messages }) => {
  const all = messages.slice()
  const input = all.findLastIndex(({ role }) => role === 'user')
  const step = (all.length - 1 - input) / 2
  const session = all[input]!.content.map((part) => ('text' in part ? part.text : '')).join('')
  return step < 4 ? { toolCalls: [{ name: 'work', args: { session, step } }] } : 'Done.'
})

const expiresInMs = Number(process.env['EXPIRES_MS'] ?? 0)
const asked = approval(expiresInMs > 0 ? { answer: 'suspend', expiresInMs } : 'suspend')
const agents = {
  worker: createAgent({
    name: 'worker',
    model,
    store,
    instructions: `Version ${process.env['VERSION'] ?? 1}.`,
    use: [work, ask, asked],
  }),
  greeter: createAgent({ name: 'greeter', model: scriptedModel(() => 'Hello.'), store }),
}
const say = (what: object): boolean => process.stdout.write(`${JSON.stringify(what)}\n`)
const worker =
  engine === 'restate'
    ? await serveOnRestate({
        agents,
        onTurn: say,
        port: Number(port),
        host: '127.0.0.1',
        ...(admin !== '' && { admin, address: `http://${host}` }),
      })
    : await serveOnPostgres({ agents, onTurn: say, connectionString, maxRuns: Number(process.env['MAX_RUNS'] ?? 10) })

process.once('SIGTERM', () => void worker.close().then(() => process.exit(0)))
process.on('SIGUSR2', () => {
  globalThis.gc?.()
  const { heapUsed, rss } = process.memoryUsage()
  say({ type: 'holds', running: worker.running, resources: process.getActiveResourcesInfo(), heapUsed, rss })
})
process.stdout.write('ready\n')
