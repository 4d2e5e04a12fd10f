import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { scriptedModel } from '../models/scripted.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { strictReplay } from '../sessions/replay/strict-replay.fixture.ts'
import { cancellation, cancellationFile, cancellationSource } from './cancellation.ts'

const looking = { toolCalls: [{ name: 'look' }] }

/** An agent that calls a tool twice; `onLook` is called each time. */
function looker(onLook: () => void, ...use: readonly Use[]) {
  const look = tool({ name: 'look', description: 'Looks.', input: { type: 'object' }, execute: onLook })
  const model = scriptedModel([looking, { toolCalls: [{ name: 'look' }, { name: 'look' }] }, 'Done.'])
  const store = memoryStore()
  return { model, store, agent: createAgent({ model, store, use: [look, ...use] }) }
}

test('a cancellation during a tool call stops the run before its next step', async () => {
  const source = cancellationSource()
  const { agent, model } = looker(() => source.cancel('Maintenance.'), cancellation(source))
  const run = await agent.run('Go.')
  const { status, reason, by, message } = run.state.execution!.final!
  assert.deepEqual([status, reason, by, message], ['stopped', 'userRequested', 'cancellation.check', 'Maintenance.'])
  assert.deepEqual([model.requests.length, run.state.lastStep!.toolExecutions[0]!.status], [1, 'ok'])
})

test('the source is checked before the execution, each step, each model call and each tool call', async () => {
  let asked = 0
  const { agent } = looker(
    () => undefined,
    cancellation(() => ++asked < 0),
  )
  const run = await agent.run('Go.')
  assert.deepEqual([run.status, asked], ['completed', 1 + 3 + 3 + 3])
})

test('calls of a step that have not started are not executed', async () => {
  let looked = 0
  const source = cancellationSource()
  const { agent } = looker(() => void (++looked === 2 && source.cancel()), cancellation(source))
  const run = await agent.run('Go.')
  assert.deepEqual([run.state.execution!.final!.reason, looked], ['userRequested', 2])
  assert.deepEqual(
    run.state.lastStep!.toolExecutions.map(({ status }) => status),
    ['ok', 'blocked'],
  )
})

test('runs continue after the source is reset', async () => {
  const source = cancellationSource()
  source.cancel()
  const { agent } = looker(() => undefined, cancellation(source))
  assert.equal((await agent.run('Go.')).status, 'stopped')
  source.reset()
  assert.equal((await agent.run('Go.')).status, 'completed')
})

test('a file is a source that another process can set', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cancel-'))
  after(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'stop')
  let looked = 0
  const { agent } = looker(() => void (++looked === 1 && writeFileSync(path, '')), cancellation(cancellationFile(path)))
  const run = await agent.run('Go.')
  assert.deepEqual([run.state.execution!.final!.reason, run.state.stepCount], ['userRequested', 1])
  rmSync(path)
  assert.equal((await agent.run('Go.')).status, 'completed')
})

test('a source that throws, hangs or returns an invalid value stops the run, unless onFailure is continue', async () => {
  const sources: readonly (() => never)[] = [
    () => Promise.reject(new Error('no database')) as never,
    () => new Promise(() => undefined) as never,
    () => 1 as never,
    () => {
      throw new Error('broken')
    },
  ]
  for (const source of sources) {
    const strict = looker(() => undefined, cancellation(source, { timeoutMs: 50 }))
    const run = await strict.agent.run('Go.')
    assert.deepEqual(
      [run.status, run.state.execution!.final!.reason, strict.model.requests.length],
      ['stopped', 'errorForbade', 0],
    )
    const lax = looker(() => undefined, cancellation(source, { timeoutMs: 20, onFailure: 'continue' }))
    assert.equal((await lax.agent.run('Go.')).status, 'completed')
  }
})

test('the source gets the state, so that one source can distinguish runs', async () => {
  const { agent } = looker(
    () => undefined,
    cancellation(({ metadata }) => metadata['job'] === 'b'),
  )
  const [a, b] = [
    await agent.run('Go.', { metadata: { job: 'a' } }),
    await agent.run('Go.', { metadata: { job: 'b' } }),
  ]
  assert.deepEqual([a.status, b.status], ['completed', 'stopped'])
})

test('a replay stops where the run did, whatever the source returns now', async () => {
  const source = cancellationSource()
  const { agent, store } = looker(() => source.cancel(), cancellation(source))
  const live = await agent.run('Go.', { session: 's' })
  source.reset()
  await strictReplay(agent, store, 's')
  assert.equal(live.status, 'stopped')
})

test('invalid sources and options are rejected', () => {
  assert.throws(() => cancellation({} as never), /the source must be a function/)
  assert.throws(() => cancellation(() => false, { every: 1 } as never), /unknown option "every"/)
  assert.throws(() => cancellation(() => false, { onFailure: 'ignore' as never }), /"onFailure" must be/)
})

test('the message about a source that fails ends with one full stop', async () => {
  const fails = cancellation(() => Promise.reject(new Error('The file is gone.')))
  const { final } = (await looker(() => undefined, fails).agent.run('Go.')).state.execution!
  assert.match(final!.message, /source failed: The file is gone\.$/)
})
