// A process that works on a store, to be killed, stopped, limited or raced:
//   write <id> <batches>   adds batches and says the number of each when it is stored
//   tour <id>              opens, adds, releases, opens again, adds, releases, deletes <id>-old, and says what that took
//   count <id> <times>     opens, adds one to the last number, releases
//   number <id>            opens, adds the next number a few times and says each that is stored, releases, for ever
//   hold <id>              opens, prints so, and adds a line for each line of input
// With KILL_AT it kills itself before that many operations that change something, or, with KILL_HOW=half, in the middle
// of it.
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { batchAfter, batchOf } from './batches.fixture.ts'
import { postgresStore } from './postgres-store.ts'
import { sqliteStore } from './sqlite-store.ts'
import type { SessionStore, SessionWriter } from './store.ts'

const [kind = '', place = '', mode = '', id = '', count = '0'] = process.argv.slice(2)
const leaseMs = Number(process.env['LEASE_MS'] ?? 30_000)
const killAt = Number(process.env['KILL_AT'] ?? Infinity)
const half = process.env['KILL_HOW'] === 'half'
const say = (text: unknown): void => void writeSync(1, `${String(text)}\n`)
const operations: string[] = []

if (mode === 'tour') await watch()
const store: SessionStore =
  kind === 'sqlite' ? sqliteStore(place, { leaseMs }) : postgresStore({ connectionString: place, leaseMs })

try {
  if (mode === 'write') await write(Number(count))
  else if (mode === 'tour') await tour()
  else if (mode === 'count') await add(Number(count))
  else if (mode === 'number') await number()
  else await hold()
} catch (error) {
  say((error as { code?: string }).code ?? error)
}
await store.close().catch(() => undefined)

async function write(batches: number): Promise<void> {
  const writer = await store.open(id, { create: true })
  let next = batchAfter((await store.read(id))!.lines)
  for (let left = batches; left > 0; left--) {
    await writer.append(...batchOf(next))
    say(next++)
  }
  await writer.release()
}

async function tour(): Promise<void> {
  for (const batches of [2, 1]) {
    const writer = await store.open(id, { create: true })
    let next = batchAfter((await store.read(id))!.lines)
    for (let left = batches; left > 0; left--) await writer.append(...batchOf(next++))
    await writer.release()
  }
  await store.delete(`${id}-old`)
  say(operations.join(' '))
}

async function add(times: number): Promise<void> {
  for (let done = 0; done < times;) {
    const writer = await openSoon()
    await writer.append([String(Number((await store.read(id))!.lines.at(-1) ?? 0) + 1)])
    await writer.release()
    done++
  }
  say('done')
}

async function number(): Promise<void> {
  for (;;) {
    const writer = await openSoon()
    try {
      let last = Number((await store.read(id))!.lines.at(-1) ?? 0)
      for (let left = 4; left > 0; left--) {
        await writer.append([String(++last)], { pieces: [{ seq: last, text: String(last) }] })
        say(last)
      }
    } catch (error) {
      if ((error as { code?: string }).code !== 'SESSION_FENCED') throw error
    }
    await writer.release()
  }
}

async function openSoon(): Promise<SessionWriter> {
  for (;;) {
    try {
      return await store.open(id, { create: true })
    } catch (error) {
      if ((error as { code?: string }).code !== 'SESSION_BUSY') throw error
      await new Promise((resolve) => setTimeout(resolve, Math.random() * (kind === 'postgres' ? 6 : 2)))
    }
  }
}

async function hold(): Promise<void> {
  const writer = await store.open(id, { create: true })
  await writer.append(['held'])
  say('held')
  for await (const line of createInterface({ input: process.stdin })) await writer.append([line])
}

/** Counts what changes something, wherever the store does it, and dies when the time has come. */
async function watch(): Promise<void> {
  if (kind === 'sqlite') {
    const { DatabaseSync, StatementSync } = process.getBuiltinModule('node:sqlite')
    interrupt(DatabaseSync.prototype, 'exec')
    interrupt(StatementSync.prototype, 'run')
    interrupt(StatementSync.prototype, 'all')
  } else {
    const { default: pg } = await import('pg')
    interrupt(pg.Client.prototype, 'query', (args, query) => query(...args)) // sent, and its answer never heard
  }
}

type Method = (...args: unknown[]) => unknown

function interrupt(on: object, name: string, halfway?: (args: unknown[], real: Method) => unknown): void {
  const methods = on as Record<string, Method>
  const real = methods[name]!
  methods[name] = function (this: unknown, ...args) {
    if (operations.push(name) === killAt) {
      if (half) halfway?.(args, (...same) => real.apply(this, same))
      process.kill(process.pid, 'SIGKILL')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) // it is on its way
    }
    return real.apply(this, args)
  }
}
