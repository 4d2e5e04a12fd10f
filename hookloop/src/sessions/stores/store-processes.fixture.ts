// What a store must survive when processes die, stall and race. Every store that outlives a process runs these tests.
import assert from 'node:assert/strict'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { after, suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { batchAfter, batchOf, checkPieces, wholeBatches } from './batches.fixture.ts'
import { killPoints, kills } from './kills.fixture.ts'
import type { SessionStore } from './store.ts'

/** Shared by all processes, so that each file is compiled once. */
const NODE_COMPILE_CACHE = mkdtempSync(join(tmpdir(), 'hookloop-compiled-'))
after(() => rmSync(NODE_COMPILE_CACHE, { recursive: true, force: true }))

const SCRIPT = fileURLToPath(new URL('store-process.fixture.ts', import.meta.url))

export type StoreOfProcesses = {
  readonly kind: 'sqlite' | 'postgres'
  /** The argument that processes find the store by. */
  readonly place: string
  /** The same store, in this process. */
  readonly store: SessionStore
  /** Sets the time at which the lock of a session was renewed to the past. */
  readonly expireLock: (id: string) => void | Promise<void>
}

/** How a process can die at an operation: before it, or in the middle of one that has parts. */
const DEATHS: Record<string, readonly string[]> = { query: ['half'] }

export function processContract(name: string, where: () => StoreOfProcesses): void {
  suite(`${name} survives processes that die, stall and race`, () => {
    test('D01: a process that is killed at any operation leaves complete batches and a session that can be locked at once', async () => {
      await where().store.list()
      const [said = ''] = await start(where(), ['tour', 'undisturbed']).said()
      const deaths = said
        .split(' ')
        .flatMap((name, i) => (DEATHS[name] ?? ['before']).map((how) => ({ at: i + 1, how })))
      assert.ok(deaths.length > 12, said)
      await inParallel(killPoints(deaths), async ({ at, how }) => {
        const { store } = where()
        const id = `killed-${at}-${how}`
        await write(store, `${id}-old`, 2)
        const env = { KILL_AT: String(at), KILL_HOW: how }
        const child = start(where(), ['tour', id], env)
        assert.equal(await child.ended, 'SIGKILL', `${id}: ${(await child.said()).join()} ${await child.errors}`)
        const old = await store.read(`${id}-old`)
        assert.ok(old === undefined || wholeBatches(old) === 2)
        const before = wholeBatches((await store.read(id)) ?? { lines: [] })
        assert.ok(before <= 3)
        await write(store, id, 2)
        const after = await store.read(id)
        // A server may execute a statement after the process that sent it has died.
        assert.ok(after !== undefined && wholeBatches(after) >= before + 2)
        await checkPieces(store, id)
        assert.deepEqual((await store.list()).find((each) => each.id === id)?.head, after.head)
      })
    })

    test('D01: a process that is killed at a random time loses nothing that was acknowledged, and a watcher follows the next one without a gap', async () => {
      const { store } = where()
      const watching = follow(store, 'random')
      let stored = 0
      for (let round = 0; round < Math.max(2, Math.ceil(kills / 32)); round++) {
        const child = start(where(), ['write', 'random', '1000000'])
        const said = child.said()
        await child.spoke
        await pause(Math.random() * 30)
        child.process.kill('SIGKILL')
        await child.ended
        const acknowledged = Number((await said).at(-1)) + 1
        const found = wholeBatches((await where().store.read('random'))!)
        assert.ok(found >= acknowledged && acknowledged > stored, `${found} of ${acknowledged} after ${stored}`)
        stored = found
      }
      stored = await checkPieces(store, 'random')
      const { lines } = (await store.read('random'))!
      assert.deepEqual(await watching.upTo(lines.length), lines)
      watching.stop()
    })

    test('D02: two processes that increment a counter 300 times each reach 600', async () => {
      const both = [0, 1].map(() => start(where(), ['count', 'count', '300']).said())
      assert.deepEqual(await Promise.all(both), [['done'], ['done']])
      const { lines } = (await where().store.read('count'))!
      assert.deepEqual([lines.length, lines.at(-1)], [600, '600'])
    })

    test('D16: a process that was stopped cannot write after another process has taken over its lock', async () => {
      const { store } = where()
      const zombie = start(where(), ['hold', 'zombie'], { LEASE_MS: '60000' })
      await zombie.spoke
      zombie.process.kill('SIGSTOP')
      await assert.rejects(store.open('zombie'), { code: 'SESSION_BUSY' })
      await where().expireLock('zombie')
      const successor = await store.open('zombie')
      await successor.append(['next'])
      zombie.process.kill('SIGCONT')
      zombie.process.stdin.end('too late\n')
      assert.deepEqual(await zombie.said(), ['held', 'SESSION_FENCED'])
      await successor.append(['last'])
      await successor.release()
      assert.deepEqual((await store.read('zombie'))?.lines, ['held', 'next', 'last'])
    })

    test('D16: no two processes get the same line acknowledged, whichever is stopped, continued or killed, and a watcher gets each event once', async () => {
      const id = 'numbers'
      const watching = follow(where().store, id)
      const begin = (): Child => start(where(), ['number', id], { LEASE_MS: '50' })
      const all = [begin(), begin(), begin()]
      const alive = all.slice()
      await Promise.all(all.map((child) => child.spoke))
      for (let round = 0; round < 9; round++) {
        const at = Math.floor(Math.random() * alive.length)
        if (round % 4 === 3) {
          alive[at]!.process.kill('SIGKILL')
          all.push((alive[at] = begin()))
        } else {
          alive[at]!.process.kill('SIGSTOP')
          await pause(40 + Math.random() * 60)
          alive[at]!.process.kill('SIGCONT')
        }
        await pause(Math.random() * 10)
      }
      await watching.upTo(11 + all.length) // each kill may leave one that is stored and not said
      for (const child of alive) child.process.kill('SIGKILL')
      const said = (await Promise.all(all.map((child) => child.said()))).flat().map(Number)
      const { lines } = (await where().store.read(id))!
      assert.deepEqual(
        lines,
        lines.map((_, i) => String(i + 1)),
      )
      assert.ok(said.length > 10 && lines.length >= said.length, `${said.length} of ${lines.length}`)
      assert.equal(new Set(said).size, said.length)
      assert.deepEqual(await watching.upTo(lines.length), lines)
      watching.stop()
      assert.ok(
        said.every((number) => number <= lines.length),
        said.filter(Number.isNaN).join(),
      )
    })

    test('D16: the lock of a process that died is taken over at once, that of a living process is not', async () => {
      const { store } = where()
      const owner = start(where(), ['hold', 'dies'])
      await owner.spoke
      await assert.rejects(store.open('dies'), {
        code: 'SESSION_BUSY',
        message: new RegExp(`process ${owner.process.pid} `),
      })
      owner.process.kill('SIGKILL')
      await owner.ended
      const writer = await store.open('dies')
      assert.deepEqual((await store.read('dies'))?.lines, ['held'])
      await writer.release()
    })
  })
}

export type Child = {
  readonly process: ChildProcessByStdio<Writable, Readable, Readable>
  /** Resolves with its first line of output, or when it has ended. */
  readonly spoke: Promise<unknown>
  /** All lines of its output, when it has ended. */
  said(): Promise<readonly string[]>
  /** The signal that ended it, or its exit code. */
  readonly ended: Promise<string | number | null>
  readonly errors: Promise<string>
}

export function start(
  { kind, place }: Pick<StoreOfProcesses, 'kind' | 'place'>,
  args: readonly string[],
  env: Record<string, string> = {},
  shell?: string,
): Child {
  const command = [process.execPath, '--conditions=hookloop-source', SCRIPT, kind, place, ...args]
  const [program, ...rest] = shell === undefined ? command : ['sh', '-c', `${shell}; exec "$@"`, 'sh', ...command]
  const child = spawn(program!, rest, {
    env: { ...process.env, NODE_COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => lines.push(line))
  const spoke = new Promise((resolve) => output.once('line', resolve).once('close', resolve))
  const closed = new Promise((resolve) => output.once('close', resolve))
  let errors = ''
  child.stderr.on('data', (text) => (errors += String(text)))
  const ended = new Promise<string | number | null>((resolve) =>
    child.on('close', (code, signal) => resolve(signal ?? code)),
  )
  return {
    process: child,
    spoke,
    ended,
    errors: ended.then(() => errors),
    async said() {
      await Promise.all([ended, closed])
      return lines
    },
  }
}

/** Follows the lines of a session. */
function follow(store: SessionStore, id: string) {
  const lines: string[] = []
  const onChange = new EventTarget()
  const stop = store.watch(
    id,
    () => onChange.dispatchEvent(new Event('change')),
    () => undefined,
  )
  const changed = (): Promise<unknown> =>
    new Promise((resolve) => onChange.addEventListener('change', resolve, { once: true }))
  return {
    lines,
    /** Resolves with the lines when there are so many. */
    async upTo(count: number): Promise<readonly string[]> {
      for (;;) {
        const next = changed()
        lines.push(...((await store.read(id, { after: lines.length - 1 }))?.lines ?? []))
        if (lines.length >= count) break
        await next
      }
      return lines
    },
    stop,
  }
}

async function write(store: SessionStore, id: string, batches: number): Promise<void> {
  const writer = await store.open(id, { create: true })
  const first = batchAfter((await store.read(id))!.lines)
  for (let i = 0; i < batches; i++) await writer.append(...batchOf(first + i))
  await writer.release()
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  const worker = async (): Promise<void> => {
    for (const item of left) await work(item)
  }
  await Promise.all([worker(), worker(), worker()])
}
