import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { postgresStore } from '../../sessions/stores/postgres-store.ts'
import { startPostgres, type PostgresServer } from '../../sessions/stores/postgres.fixture.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { freePort } from '../../system/network/free-port.fixture.ts'
import type { Fleet } from '../../workers/fleet.ts'
import { fleet as fleetOnPostgres } from '../../workers/postgres/fleet.ts'
import { fleet as fleetOnRestate } from '../../workers/restate/fleet.ts'
import { noRestate, startRestate } from '../../workers/restate/restate.fixture.ts'
import { hookloop, start, type Ended, type Started } from '../cli.fixture.ts'

// The tool `work` waits for a file, so a test decides when a step ends.
const agentCode = (name: string): string => `import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: async ({ on }) => {
  writeFileSync(on + '.begun', '')
  while (!existsSync(on)) await sleep(5)
  return 'done'
} })
const model = scriptedModel(({ messages }) => {
  const last = messages.at(-1)
  const { text = '' } = last.content[0]
  return last.role === 'user' && text.startsWith('/') ? { toolCalls: [{ name: 'work', args: { on: text } }] } : '${name} is done.'
})
export default ${name === 'coder' ? `createAgent({ name: '${name}', model, use: [work] })` : `{ name: '${name}', model, use: [work] }`}
`

type Line = { readonly [field: string]: unknown }

const folder = mkdtempSync(join(tmpdir(), 'hookloop-worker-'))
for (const name of ['support', 'coder']) writeFileSync(join(folder, `${name}.mjs`), agentCode(name))
const [support, coder] = [join(folder, 'support.mjs'), join(folder, 'coder.mjs')]
let database: PostgresServer
let store: SessionStore
let sessions: Fleet & { close(): Promise<void> }
const workers: Started[] = []

before(async () => {
  database = await startPostgres()
  const { connectionString } = database
  store = postgresStore({ connectionString })
  sessions = await fleetOnPostgres({ connectionString, store })
})
after(async () => {
  for (const each of workers) each.kill('SIGKILL')
  await Promise.all(workers.map(({ ended }) => ended))
  await sessions.close()
  await store.close()
  await database.stop()
  rmSync(folder, { recursive: true })
})

const health = ['--health-port', '0', '--host', '127.0.0.1'] as const

/** Starts a worker on Postgres. Resolves with the port of its health checks when it is ready. */
async function ready(env: NodeJS.ProcessEnv, ...args: readonly string[]): Promise<Started & { readonly port: number }> {
  const worker = start(['worker', ...args, '--postgres', ...health], {
    env: { ...env, DATABASE_URL: database.connectionString },
  })
  workers.push(worker)
  await worker.wrote(/"event":"ready"/)
  const { port } = JSON.parse(await worker.firstLine()) as { readonly port: number }
  return { ...worker, port }
}

const lines = ({ stdout }: Pick<Ended, 'stdout'>): readonly Line[] =>
  stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)

async function get(port: number, path: string): Promise<readonly [status: number, text: string]> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`)
  return [response.status, (await response.text()).trim()]
}

async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await sleep(5)
}

async function drained(worker: Started): Promise<Ended> {
  worker.kill('SIGTERM')
  return worker.ended
}

test('hookloop worker drives turns on Postgres, by the keys of its agents, and logs lines of JSON', async () => {
  const worker = await ready({}, support, '--agent', `code=${coder}`)
  for (const [agent, text] of [
    ['support', 'support is done.'],
    ['code', 'coder is done.'],
  ] as const) {
    const sent = await sessions.send(`to-${agent}`, 'Hi', { agent, turn: 't' })
    assert.equal((await sent.result()).text, text)
  }
  const ended = await drained(worker)
  assert.deepEqual([ended.code, ended.stderr], [0, ''])
  const [, isReady, first, second, ...rest] = lines(ended)
  assert.deepEqual([isReady!['engine'], isReady!['agents']], ['postgres', ['support', 'code']])
  const { time, lagMs, ...started } = first!
  assert.deepEqual(started, { level: 'info', event: 'started', session: 'to-support', turn: 't' })
  assert.ok(!Number.isNaN(Date.parse(String(time))) && Number(lagMs) >= 0)
  const { time: _time, durationMs, ...done } = second!
  assert.deepEqual(done, { level: 'info', event: 'ended', session: 'to-support', turn: 't', status: 'completed' })
  assert.ok(Number(durationMs) >= 0)
  assert.deepEqual(
    rest.map(({ event }) => event),
    ['started', 'ended', 'draining', 'stopped'],
  )
})

test('a worker that drains is not ready, lives until its step has ended, and another worker continues the run', async () => {
  const worker = await ready({}, support)
  assert.deepEqual(await get(worker.port, '/readyz'), [200, 'ready'])
  const barrier = join(folder, 'drains')
  const sent = await sessions.send('drains', barrier)
  await until(() => existsSync(`${barrier}.begun`))
  worker.kill('SIGTERM')
  await worker.wrote(/"event":"draining","running":1/)
  assert.deepEqual(await get(worker.port, '/readyz'), [503, 'draining'])
  assert.deepEqual(await get(worker.port, '/healthz'), [200, 'ok'])
  writeFileSync(barrier, '')
  const ended = await worker.ended
  assert.deepEqual([ended.code, lines(ended).at(-1)!['event']], [0, 'stopped'])
  const other = await ready({}, support)
  assert.equal((await sent.result()).status, 'completed')
  assert.equal((await drained(other)).code, 0)
})

test('a second Ctrl-C ends a worker at once, which says how many runs were interrupted', async () => {
  const worker = await ready({}, support)
  const barrier = join(folder, 'abandoned')
  await sessions.send('abandoned', barrier)
  await until(() => existsSync(`${barrier}.begun`))
  worker.kill('SIGINT')
  let isEnded = false
  void worker.ended.then(() => (isEnded = true))
  await until(() => (worker.kill('SIGINT'), isEnded)) // presses that follow at once count as one
  const ended = await worker.ended
  assert.equal(ended.code, 130)
  const { event, running, level } = lines(ended).at(-1)!
  assert.deepEqual([event, running, level], ['abandoned', 1, 'warn'])
  writeFileSync(barrier, '') // for a worker of another test that takes it over
})

test('a worker is not ready while its database is down, and ready again afterwards', async () => {
  const worker = await ready({}, support)
  await database.down()
  try {
    await until(async () => (await get(worker.port, '/readyz'))[1] === 'unreachable')
    assert.deepEqual(await get(worker.port, '/healthz'), [200, 'ok'])
    await worker.wrote(/"level":"warn","event":"unreachable"/)
  } finally {
    await database.up()
  }
  await until(async () => (await get(worker.port, '/readyz'))[0] === 200)
  assert.equal((await (await sessions.send('after-outage', 'Hi')).result()).status, 'completed')
  await drained(worker)
})

test('hookloop worker reports to the OpenTelemetry provider of its process, also the last turn before it ends', async () => {
  const file = join(folder, 'metrics.jsonl')
  const telemetry = join(folder, 'telemetry.mjs')
  writeFileSync(
    telemetry,
    `import { writeFileSync } from 'node:fs'
    import { metrics } from '${import.meta.resolve('@opentelemetry/api')}'
    import { MeterProvider, PeriodicExportingMetricReader } from '${import.meta.resolve('@opentelemetry/sdk-metrics')}'
    const done = async () => undefined
    const exporter = { forceFlush: done, shutdown: done, export({ scopeMetrics }, result) {
      writeFileSync('${file}', JSON.stringify(scopeMetrics.flatMap((scope) => scope.metrics)))
      result({ code: 0 })
    } }
    const readers = [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 600_000 })]
    metrics.setGlobalMeterProvider(new MeterProvider({ readers }))`,
  )
  const worker = await ready({ NODE_OPTIONS: `--import ${telemetry}` }, support)
  await (await sessions.send('measured', 'Hi')).result()
  await worker.wrote(/"event":"ended"/)
  await drained(worker)
  type Metric = { readonly descriptor: { readonly name: string }; readonly dataPoints: readonly { value: unknown }[] }
  const written = JSON.parse(readFileSync(file, 'utf8')) as readonly Metric[]
  const found = new Map(written.map(({ descriptor, dataPoints }) => [descriptor.name, dataPoints]))
  assert.equal(found.get('hookloop.worker.running')?.[0]?.value, 0)
  assert.ok((found.get('hookloop.worker.turn.duration') ?? []).length >= 1)
  assert.equal(found.get('hookloop.sessions.open')?.length, 3)
})

suite('workers on Restate', { skip: noRestate }, () => {
  test('hookloop worker --restate registers itself, drives turns, reports runs that it takes over, and logs what the SDK says as JSON', async () => {
    const restate = await startRestate()
    const port = await freePort()
    const engine = ['--restate', restate.admin, '--port', String(port), '--address', `http://127.0.0.1:${port}`]
    const begin = async (): Promise<Started> => {
      const worker = start(['worker', support, ...engine, ...health], {
        env: { HOOKLOOP_STORE: database.connectionString },
      })
      workers.push(worker)
      await worker.wrote(/"event":"ready","engine":"restate".*"port"/)
      return worker
    }
    try {
      const killed = await begin()
      const barrier = join(folder, 'killed')
      const left = await fleetOnRestate({ ingress: restate.ingress, store }).send('killed', barrier)
      await until(() => existsSync(`${barrier}.begun`))
      killed.kill('SIGKILL')
      await killed.ended
      const worker = await begin()
      assert.equal((await left.result()).status, 'completed')
      await worker.wrote(/"event":"ended","session":"killed".*"takenOver":true/)
      const at = (JSON.parse(await worker.firstLine()) as { readonly port: number }).port
      assert.deepEqual(await get(at, '/readyz'), [200, 'ready'])
      const sent = await fleetOnRestate({ ingress: restate.ingress, store }).send('on-restate', 'Hi')
      assert.equal((await sent.result()).text, 'support is done.')
      const ended = await drained(worker)
      assert.deepEqual([ended.code, ended.stderr], [0, ''])
      const logged = lines(ended).find(({ event }) => event === 'restate')
      assert.match(String(logged?.['message']), /Accepting requests without validating/)
      assert.equal(logged?.['level'], 'warn')
    } finally {
      await restate.stop()
    }
  })
})

suite('hookloop worker says what is wrong', () => {
  const postgres = 'postgres://app:s3cret-word@127.0.0.1:1/app'
  for (const [title, args, expected, env] of [
    ['no engine', [support], /Name one engine: --postgres/],
    ['two engines', [support, '--postgres', postgres, '--restate', 'http://localhost'], /Name one engine/],
    ['no agent', ['--postgres', postgres], /No agent was named/],
    ['a file that is missing', [join(folder, 'none.ts'), '--postgres', postgres], /none\.ts: file not found/],
    ['an agent without a file', ['--agent', 'support=', '--postgres', postgres], /--agent needs a key and a file/],
    ['two agents with one key', [support, '-a', `support=${coder}`, '--postgres', postgres], /the same key "support"/],
    ['two agents with one name', [support, '-a', `b=${support}`, '--postgres', postgres], /the same name "support"/],
    ['a database without an address', [support, '--postgres'], /needs the address of a database.*DATABASE_URL/],
    ['a database that is none', [support, '--postgres', 'mysql://s3cret-word'], /--postgres must be a URL such as/],
    ['a variable that is no database', [support, '--postgres'], /DATABASE_URL must be a URL/, { DATABASE_URL: 'x' }],
    ['an option of the other engine', [support, '--postgres', postgres, '--port', '1'], /--port, .* are for --rest/],
    ['a limit that Restate has', [support, '--restate', 'http://h', '--max-runs', '1'], /--max-runs is for --postgres/],
    ['Restate without a store', [support, '--restate', 'http://127.0.0.1:1'], /needs a store that all workers share/],
    [
      'an address that is no Restate',
      [support, '--restate', 'http://u:s3cret-word@h'],
      /--restate must be the address/,
    ],
    ['a health port that is none', [support, '--postgres', postgres, '--health-port', 'x'], /must be a whole number/],
  ] as const)
    test(title, async () => {
      const { code, stdout, stderr } = await hookloop(['worker', ...args], { env: env ?? {} })
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, expected)
      assert.doesNotMatch(stderr, /s3cret-word/)
    })

  test('a database or a Restate that cannot be reached is named without its password, and ends with 1', async () => {
    const failed = async (...args: readonly string[]): Promise<Line> => {
      const ended = await hookloop(['worker', support, ...args])
      assert.equal(ended.code, 1)
      assert.doesNotMatch(ended.stdout + ended.stderr, /s3cret-word/)
      return lines(ended).at(-1)!
    }
    const { level, event, error } = await failed('--postgres', postgres)
    assert.deepEqual([level, event], ['error', 'failed'])
    assert.match(
      (error as { message: string }).message,
      /^The database at 127\.0\.0\.1:1\/app cannot be used: .*ECONNREFUSED.*Check the/,
    )
    const own = await failed('--postgres', postgres, '--store', database.connectionString)
    assert.match(JSON.stringify(own), /The queue in the database at 127\.0\.0\.1:1\/app cannot be used: .*ECONNREFUSED/)
    const admin = `http://127.0.0.1:${await freePort()}`
    const args = ['--restate', admin, '--port', '0', '--store', database.connectionString]
    assert.match(JSON.stringify(await failed(...args)), /Restate at 127\S+ cannot be reached: .*ECONNREFUSED/)
  })
})
