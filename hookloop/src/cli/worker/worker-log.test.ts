import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Readable, type Writable } from 'node:stream'
import type { CliContext } from '../cli-context.ts'
import { pipes, terminal } from '../cli.fixture.ts'
import { passwordsIn, workerLog, type WorkerEvent } from './worker-log.ts'

const contextOf = (streams: { readonly out: unknown; readonly err: unknown }, env: CliContext['env']): CliContext => ({
  stdin: Readable.from([]),
  out: streams.out as Writable,
  err: streams.err as Writable,
  env,
  command: 'hookloop',
})

const events: readonly WorkerEvent[] = [
  { event: 'ready', engine: 'postgres', agents: ['support'] },
  { event: 'started', session: 'build', turn: 't', lagMs: 12 },
  { event: 'retried', session: 'build', turn: 't', durationMs: 1_500, error: { message: 'down\u001B[2J' } },
  { event: 'ended', session: 'build', turn: 't', durationMs: 20, status: 'completed' },
]

test('on a terminal a worker logs lines of text without control characters', () => {
  const screen = terminal()
  const log = workerLog({ json: undefined, secrets: [] }, contextOf(screen, { NO_COLOR: '1' }))
  for (const event of events) log(event)
  const lines = screen.written().replaceAll(/^\d\d:\d\d:\d\d /gm, '')
  assert.equal(
    lines,
    'ready on postgres: support. Ctrl-C drains it.\n' +
      'started build (12 ms after it was sent)\n' +
      'retried build after 1.5 s: down\n' +
      'ended build completed in 20 ms\n',
  )
})

test('a worker logs JSON to a pipe, and to a terminal with --json', () => {
  const [pipe, screen] = [pipes(), terminal()]
  workerLog({ json: undefined, secrets: [] }, contextOf(pipe, {}))(events[1]!)
  workerLog({ json: true, secrets: [] }, contextOf(screen, {}))(events[2]!)
  assert.equal((JSON.parse(pipe.stdout()) as { lagMs: number }).lagMs, 12)
  assert.equal((JSON.parse(screen.written()) as { level: string }).level, 'warn')
})

test('passwords of URLs, keys and secrets of the environment are in no line of a worker', () => {
  const urls = ['postgres://app:p%40ss-word@db/app', 'postgres://db/app?password=in-the-query', undefined, 'no url']
  const pipe = pipes()
  const env = { OPENAI_API_KEY: 'a-long-key-of-the-environment' }
  const log = workerLog({ json: undefined, secrets: passwordsIn(urls) }, contextOf(pipe, env))
  const message = [
    'p@ss-word p%40ss-word in-the-query a-long-key-of-the-environment',
    'http://u:other-word@h sk-ant-0123456789abcdef0123',
  ].join(' ')
  log({ event: 'failed', error: { message } })
  const { error } = JSON.parse(pipe.stdout()) as { readonly error: { readonly message: string } }
  assert.doesNotMatch(error.message, /ss-word|query|environment|other-word|0123/)
})
