import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { tool } from '../core/agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import type { Column, Row, RunChange } from './run.types.ts'
import { waiting } from './scenes.fixture.ts'
import { serveStudio } from './server.ts'
import { cleaner, newStore, studioFor } from './studio.fixture.ts'

const ref = { session: 'clean-up' }

/** What a page knows of a run after these lines. */
class Known {
  readonly rows: Row[] = []
  status = ''
  columns: readonly Column[] = []
  readonly runs: number[] = []

  add(line: RunChange): void {
    if (line.type === 'run') {
      this.status = line.run.status
      this.columns = line.run.columns
    }
    if (line.type === 'rows') for (const row of line.rows) this.rows[row.index] = row
    if (line.type === 'newRun') this.runs.push(line.run)
  }
}

suite('the stream of a run', () => {
  test('shows an answer in the studio, and how another process resumes the run with it', async (t) => {
    const { store, path } = await waiting()
    await using studio = await studioFor(store)
    const script = fileURLToPath(new URL('studio-process.fixture.ts', import.meta.url))
    const child = spawn(process.execPath, ['--conditions=hookloop-source', script, path, 'clean-up'], {
      stdio: 'inherit',
    })
    t.after(() => child.kill())
    const ended = once(child, 'exit')
    let [question] = (await studio.call('inbox', {})).questions
    const known = new Known()
    for await (const line of studio.lines('run', { ...ref, from: 0 })) {
      known.add(line)
      if (known.status === 'suspended' && line.type === 'rows' && question !== undefined) {
        const { id, hash } = question
        question = undefined
        await studio.call('answer', { ...ref, question: id, hash, answer: { type: 'allow' } })
      }
      if (known.status === 'completed' && known.rows.at(-1)?.kind === 'end') break
    }
    assert.deepEqual(await ended, [0, null])
    const { rows } = await studio.call('rows', { ...ref, from: 0, count: 100 })
    assert.deepEqual(known.rows, rows)
  })

  test('starts at a row, and names the next run of the session', async (t) => {
    const { store, path } = newStore()
    const other = sqliteStore(path)
    t.after(() => other.close())
    const agent = cleaner(
      other,
      undefined,
      scriptedModel(() => 'Done.'),
    )
    await agent.run('First.', ref)
    await using studio = await studioFor(store)
    const known = new Known()
    let run: Promise<unknown> | undefined
    for await (const line of studio.lines('run', { ...ref, from: 1 })) {
      known.add(line)
      run ??= agent.run('Second.', ref)
      if (known.runs.length > 0) break
    }
    await run
    assert.deepEqual([known.rows[0], known.rows[1]?.kind, known.runs], [undefined, 'model', [1]])
  })

  test('passes on what a tool reports while it runs in another store, and then the row of the call', async (t) => {
    const { store, path } = newStore()
    const other = sqliteStore(path)
    t.after(() => other.close())
    const [watched, reported] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = tool({
      name: 'slow',
      description: 'Works.',
      input: { type: 'object' },
      execute: async (_, { progress }) => {
        await watched.promise
        progress('half')
        await reported.promise
        return 'whole'
      },
    })
    const model = scriptedModel([{ toolCalls: [{ name: 'slow', args: {} }] }, 'Done.'])
    const agent = createAgent({ model, store: other, use: [slow] })
    const { promise: started, resolve } = Promise.withResolvers<void>()
    const run = (async () => {
      for await (const event of agent.stream('Work.', ref)) if (event.type === 'toolStarted') resolve()
    })()
    await started
    await using studio = await studioFor(store)
    const known = new Known()
    for await (const line of studio.lines('run', { ...ref, from: 0 })) {
      known.add(line)
      if (line.type === 'rows') watched.resolve()
      if (line.type === 'event' && line.event.type === 'toolProgress') {
        assert.equal(line.event.update, 'half')
        reported.resolve()
      }
      if (known.status === 'completed' && known.rows.at(-1)?.kind === 'end') break
    }
    await run
    assert.deepEqual(known.rows.find(({ kind }) => kind === 'call')?.status, 'ok')
  })

  test('shows what hooks decide in a step before the step has ended, and each decision once', async (t) => {
    const { store, path } = newStore()
    const other = sqliteStore(path)
    t.after(() => other.close())
    const [started, watched, decided] = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
    const barriers: { readonly [name: string]: Promise<void> } = { first: watched!.promise, second: decided!.promise }
    const work = tool({
      name: 'work',
      description: 'Works.',
      input: { type: 'object', properties: { until: { type: 'string' } } },
      execute: async (args) => {
        const { until } = args as { readonly until: string }
        started!.resolve()
        await barriers[until]
        return until
      },
    })
    const call = (until: string) => ({ name: 'work', args: { until } })
    const model = scriptedModel([
      { toolCalls: [call('first')] },
      { toolCalls: [call('never'), call('second')] },
      'Done.',
    ])
    const never = guard(
      'beforeToolUse',
      (ctx) => ((ctx.toolCall.args as { until?: string }).until === 'never' ? ctx.block('Never.') : ctx),
      { name: 'no-never' },
    )
    const run = createAgent({ model, store: other, use: [work, never] }).run('Work.', ref)
    await using studio = await studioFor(store)
    const known = new Known()
    const isOpen: boolean[] = []
    await started!.promise
    for await (const line of studio.lines('run', { ...ref, from: 0 })) {
      known.add(line)
      if (known.rows.some(({ kind }) => kind === 'call')) watched!.resolve()
      const blocked = known.rows.find(({ text }) => text === 'never')
      if (blocked?.decision === true) {
        isOpen.push(known.rows.some(({ text, status }) => text === 'second' && status === 'running'))
        decided!.resolve()
      }
      if (known.status === 'completed' && known.rows.at(-1)?.kind === 'end') break
    }
    await run
    assert.equal(isOpen[0], true)
    const { columns } = await studio.call('run', ref)
    assert.deepEqual(known.columns, columns)
    assert.deepEqual(known.rows, (await studio.call('rows', { ...ref, from: 0, count: 100 })).rows)
    assert.equal(columns.find(({ hook }) => hook === 'no-never')?.decided, 1)
  })

  test('ends with "deleted" when the session is deleted', async () => {
    const { store } = await waiting()
    await using studio = await studioFor(store)
    let last: RunChange | undefined
    for await (const line of studio.lines('run', { ...ref, from: 0 })) {
      last = line
      if (line.type === 'rows') await store.delete('clean-up')
    }
    assert.deepEqual(last, { type: 'deleted' })
  })

  test('of a session that does not exist is an error with status 404', async () => {
    await using studio = await studioFor(newStore().store)
    const response = await fetch(`${studio.origin}/stream/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${studio.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ session: 'none', from: 0 }),
    })
    assert.equal(response.status, 404)
  })
})

suite('a stream ends', () => {
  const page = async () => ({ script: '', style: '' })
  const call = async () => ({})
  const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }

  test('when its reader leaves before the first line', async () => {
    const [asked, left, ended] = Array.from({ length: 3 }, () => Promise.withResolvers<void>())
    const stream = async function* (): AsyncGenerator<string> {
      asked!.resolve()
      try {
        await left!.promise
        for (;;) yield 'line'
      } finally {
        ended!.resolve()
      }
    }
    const { url, close } = await serveStudio({ call, stream }, { page, token: 'secret' })
    const { host, port } = new URL(url)
    const lines = Object.entries({ host, ...headers, 'content-length': 2 }).map((each) => each.join(': '))
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`POST /stream/any HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n{}`)
    })
    await asked!.promise
    socket.destroy()
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve)) // the server notices it
    left!.resolve()
    await ended!.promise
    await close()
  })

  test('when it fails, with all that it has started', async () => {
    let signal: AbortSignal | undefined
    const stream = async function* (_name: string, _body: object, ends: AbortSignal): AsyncGenerator<string> {
      signal = ends
      yield Promise.reject(new Error('It fails.'))
    }
    const { url, close } = await serveStudio({ call, stream }, { page, token: 'secret' })
    const { status } = await fetch(new URL('/stream/any', url), { method: 'POST', headers, body: '{}' })
    const isAborted = signal?.aborted
    await close()
    assert.deepEqual([status, isAborted], [500, true])
  })
})

suite('the streams of lists', () => {
  test('report new, changed and deleted sessions, and questions', async () => {
    const { store, path } = newStore()
    await using studio = await studioFor(store)
    const sessions = studio.lines('sessions', {})
    const inbox = studio.lines('inbox', {})
    assert.deepEqual((await sessions.next()).value, { type: 'page', sessions: [] })
    assert.deepEqual((await inbox.next()).value, { questions: [] })
    await waiting({ store, path })
    for await (const line of sessions)
      if (line.type === 'changed' && line.sessions[0]?.status === 'suspended' && line.sessions[0].pending === 1) break
    for await (const { questions } of inbox) if (questions[0]?.toolCall.name === 'bash') break
    const again = studio.lines('sessions', {})
    assert.equal((await again.next()).value?.type, 'page')
    await store.delete('clean-up')
    const { value } = await again.next()
    assert.deepEqual(value, { type: 'changed', sessions: [], deleted: ['clean-up'] })
  })
})
