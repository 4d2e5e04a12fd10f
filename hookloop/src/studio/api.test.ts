import assert from 'node:assert/strict'
import { agentIn } from '../hook-files/claude/agent-in-project.fixture.ts'
import { HookProject } from '../hook-files/claude/hook-project.fixture.ts'
import { suite, test } from 'node:test'
import { createAgent } from '../create-agent.ts'
import { guard } from '../core/hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { importSession } from '../sessions/session/export-session.ts'
import { memoryStore } from '../sessions/stores/memory-store.ts'
import { sqliteStore } from '../sessions/stores/sqlite-store.ts'
import type { Api } from './api.types.ts'
import { completed, waiting } from './scenes.fixture.ts'
import { cleaner, studioFor, type TestStudio } from './studio.fixture.ts'

const ref = { session: 'clean-up' }

suite('the inbox', () => {
  const allowing = async (studio: TestStudio): Promise<Api['answer']['request']> => {
    const [question] = (await studio.call('inbox', {})).questions
    return { ...ref, question: question!.id, hash: question!.hash, answer: { type: 'allow' } }
  }

  test('has the questions of all sessions with exact arguments and their hash', async () => {
    const { store, path } = await waiting()
    await waiting({ store, path }, 'other')
    await using studio = await studioFor(store)
    const { questions } = await studio.call('inbox', {})
    assert.deepEqual(
      questions.map(({ session, toolCall: { name, args }, message, agent }) => [session, name, args, message, agent]),
      ['clean-up', 'other'].map((session) => [session, 'bash', { command: 'rm b.txt' }, 'Remove it?', 'cleaner']),
    )
    assert.match(questions[0]!.hash, /^[0-9a-f]{32}$/)
  })

  for (const [what, answer, ran] of [
    ['allow', { type: 'allow' }, ['ls', 'rm b.txt']],
    ['edit', { type: 'edit', args: { command: 'rm a.txt' } }, ['ls', 'rm a.txt']],
    ['block', { type: 'block', reason: 'Not today.' }, ['ls']],
  ] as const)
    test(`an answer "${what}" is stored with the name of the user, and the run resumes with it in another process`, async () => {
      const { store, path, done } = await waiting()
      await using studio = await studioFor(store)
      await studio.call('answer', { ...(await allowing(studio)), answer })
      assert.deepEqual((await studio.call('inbox', {})).questions, [])
      await using other = sqliteStoreAt(path)
      const run = await cleaner(other.store, done).resume('clean-up')
      assert.deepEqual([run.status, done.tools], ['completed', ran])
      const { rows } = await studio.call('rows', { ...ref, from: 0, count: 100 })
      assert.match(rows.find(({ name }) => name === 'answered')!.text, /\(ann\)$/)
    })

  test('an answer with another hash than that of the question is rejected with 409, and nothing is stored', async () => {
    await using studio = await studioFor((await waiting()).store)
    const request = await allowing(studio)
    const other = `${request.hash.slice(0, 16)}${'0'.repeat(16)}`
    for (const hash of [other, '0'.repeat(32), '', request.hash.slice(0, 16), request.hash.toUpperCase()])
      assert.deepEqual(await studio.failure('answer', { ...request, hash }), [409, 'HASH_MISMATCH'])
    assert.equal((await studio.call('inbox', {})).questions.length, 1)
  })

  test('a second answer, and an answer to a question that does not exist, is rejected with 409', async () => {
    await using studio = await studioFor((await waiting()).store)
    const request = await allowing(studio)
    const unknown = { ...request, question: `elsewhere#${request.hash.slice(0, 16)}` }
    assert.deepEqual(await studio.failure('answer', unknown), [409, 'ANSWER_UNKNOWN'])
    await studio.call('answer', request)
    assert.deepEqual(await studio.failure('answer', request), [409, 'ANSWER_USED'])
  })

  test('two answers at once: one is stored, the other is rejected', async () => {
    await using studio = await studioFor((await waiting()).store)
    const request = await allowing(studio)
    const results = await Promise.allSettled([studio.call('answer', request), studio.call('answer', request)])
    assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  })

  test('a session that another process has locked is busy: the answer is rejected with 423, and nothing is stored', async () => {
    const { store, path } = await waiting()
    await using studio = await studioFor(store)
    const request = await allowing(studio)
    await using other = sqliteStoreAt(path)
    const writer = await other.store.open('clean-up')
    assert.deepEqual(await studio.failure('answer', request), [423, 'SESSION_BUSY'])
    await writer.release()
    assert.equal((await studio.call('inbox', {})).questions.length, 1)
  })

  test('an answer of another form is rejected, and does not resume without --agent', async () => {
    await using studio = await studioFor((await waiting()).store)
    const request = await allowing(studio)
    for (const answer of ['allow', { type: 'edit' }, { type: 'edit', args: 'x' }, { type: 'block' }, {}, null])
      assert.deepEqual(await studio.failure('answer', { ...request, answer }), [400, 'REQUEST_INVALID'])
    assert.deepEqual(await studio.failure('answer', { ...request, resume: true }), [409, 'AGENT_UNKNOWN'])
    assert.equal((await studio.call('inbox', {})).questions.length, 1)
  })

  test('an answer does not resume a session of another agent than that of --agent, and is not stored then', async () => {
    const { store } = await waiting()
    const agent = createAgent({ name: 'other', model: scriptedModel([]), store })
    await using studio = await studioFor(store, { agent, liveAgent: async () => agent })
    const request = { ...(await allowing(studio)), resume: true }
    assert.deepEqual(await studio.failure('answer', request), [409, 'AGENT_UNKNOWN'])
    assert.equal((await studio.call('inbox', {})).questions.length, 1)
  })
})

suite('what if', () => {
  test('a hook were off: the decisions that change, and where a live run would leave the record, without a model or tool call', async () => {
    const { store, done } = await completed()
    const before = structuredClone(done)
    await using studio = await studioFor(store, { agent: cleaner(store, done) })
    const report = await studio.call('whatIf', { ...ref, without: ['no-push'], add: [] })
    assert.deepEqual(
      report.differences.map(({ row, was, would, divergence }) => [row, was, would, divergence]),
      [
        [4, 'block by no-push: Agents never push.', 'nothing', 'the call would run'],
        [4, 'changed by mark', 'nothing', undefined], // its result is not recorded
      ],
    )
    assert.deepEqual([report.divergesAt?.row, report.divergesAt?.why], [4, 'the call would run'])
    assert.ok(report.events >= 5)
    assert.deepEqual(done, before)
  })

  test('hooks were added: only those of files that the user has named', async () => {
    const { store } = await completed()
    const strict = guard('beforeToolUse', (ctx) => ctx.block('Nothing runs.'), { name: 'strict' })
    const loaded: string[] = []
    await using studio = await studioFor(store, {
      agent: cleaner(store),
      info: { version: '0', store: '', dir: '.', hookFiles: ['strict.ts'], user: 'ann' },
      loadHooks: async (files) => {
        loaded.push(...files)
        return [strict]
      },
    })
    const { differences } = await studio.call('whatIf', { ...ref, without: [], add: ['strict.ts'] })
    assert.deepEqual(
      differences.map(({ row }) => row),
      [2, 6], // not the call that is blocked anyway
    )
    const evil = { ...ref, without: [], add: ['../evil.ts'] }
    assert.deepEqual(await studio.failure('whatIf', evil), [403, 'FILE_NOT_NAMED'])
    assert.deepEqual(loaded, ['strict.ts'])
  })

  test('is not answered if the agent is not known, nor for a hook that it does not have', async () => {
    const { store } = await completed()
    await using unknown = await studioFor(store)
    assert.deepEqual(await unknown.failure('whatIf', { ...ref, without: [], add: [] }), [409, 'AGENT_UNKNOWN'])
    assert.deepEqual(await unknown.failure('runFork', { ...ref, without: [], add: [] }), [409, 'AGENT_UNKNOWN'])
    assert.match(String((await unknown.call('run', ref)).whatIf), /--agent/)
    await using studio = await studioFor(store, { agent: cleaner(store) })
    assert.deepEqual(await studio.failure('whatIf', { ...ref, without: ['none'], add: [] }), [
      400,
      'AGENT_INVALID_OPTION',
    ])
  })

  test('a fork runs live with the other hooks, and the session itself does not change', async () => {
    const { store, done } = await completed()
    const agent = cleaner(store, done)
    await using studio = await studioFor(store, { agent, liveAgent: async () => agent })
    const before = await store.read('clean-up')
    const { session } = await studio.call('runFork', { ...ref, without: ['no-push', 'ask-rm'], add: [] })
    for await (const line of studio.lines('run', { session, from: 0 }))
      if (line.type === 'run' && line.run.status === 'completed') break
    assert.deepEqual(done.tools, ['ls', 'rm b.txt', 'ls', 'git push', 'rm b.txt'])
    assert.deepEqual(await store.read('clean-up'), before)
  })
})

suite('sessions', () => {
  test('are listed in pages, and filtered by agent, status, text and cost', async () => {
    const { store, path } = await completed()
    for (const id of ['a', 'b', 'c']) await waiting({ store, path }, id)
    await using studio = await studioFor(store)
    const ids = async (request: Api['sessions']['request']): Promise<readonly string[]> =>
      (await studio.call('sessions', request)).sessions.map(({ id }) => id)
    const first = await studio.call('sessions', { count: 3 })
    assert.deepEqual(
      first.sessions.map(({ id }) => id),
      ['c', 'b', 'a'],
    )
    assert.deepEqual(await ids({ count: 3, after: first.next! }), ['clean-up'])
    assert.deepEqual(await ids({ status: ['completed'] }), ['clean-up'])
    assert.deepEqual(await ids({ agent: 'other' }), [])
    assert.deepEqual(await ids({ text: 'CLEAN-' }), ['clean-up'])
    assert.deepEqual(await ids({ minCostUsd: 1 }), [])
    assert.deepEqual([(await ids({ cwd: process.cwd() })).length, await ids({ cwd: '/nowhere' })], [4, []])
    assert.deepEqual(await studio.failure('sessions', { count: 0 }), [400, 'REQUEST_INVALID'])
  })

  test('that another process works on are live, and are interrupted when it has died', async () => {
    const { store, path } = await waiting()
    await using studio = await studioFor(store)
    await using other = sqliteStoreAt(path)
    const writer = await other.store.open('clean-up')
    await writer.append([], { head: { ...writer.head, status: 'running' } })
    const [live] = (await studio.call('sessions', {})).sessions
    assert.deepEqual([live?.live, live?.status], [true, 'running'])
    await writer.release()
    const [dead] = (await studio.call('sessions', {})).sessions
    assert.deepEqual([dead?.live, dead?.status], [false, 'interrupted'])
  })

  test('are compared step by step', async () => {
    const { store, path } = await completed()
    await waiting({ store, path }, 'other')
    await using studio = await studioFor(store)
    const { same, partsAt, steps } = await studio.call('compare', { a: ref, b: { session: 'other' } })
    assert.deepEqual([same, partsAt?.step], [false, 2])
    assert.deepEqual(
      steps.map(({ differs, a, b }) => [differs.length > 0, a !== undefined, b !== undefined]),
      [
        [false, true, true],
        [false, true, true],
        [true, true, true],
        [true, true, false],
      ],
    )
  })

  test('are forked up to a row, and exported without secrets', async () => {
    const { store } = await completed()
    await cleaner(store).run('My key is sk-abcdefghijklmnop1234.', { session: 'secret' })
    await using studio = await studioFor(store)
    const { rows } = await studio.call('rows', { ...ref, from: 0, count: 100 })
    const fork = await studio.call('fork', { ...ref, at: rows[1]!.forkAt!, message: 'Again.' })
    assert.equal((await studio.call('session', fork)).from, 'clean-up')
    const { text, name } = await studio.call('export', { session: 'secret', as: 'jsonl' })
    assert.equal(name, 'secret.jsonl')
    assert.ok(!text.includes('sk-abcdefghijklmnop1234'))
    assert.equal(await importSession(memoryStore(), text), 'secret')
  })
})

suite('hooks', () => {
  test('are counted: how often each blocked, asked and changed, and what shadows would have done', async () => {
    const { store } = await completed()
    await using studio = await studioFor(store, { agent: cleaner(store) })
    const { counts, runs, agent } = await studio.call('hooks', {})
    const of = (name: string) => counts.find(({ hook }) => hook === name)!
    assert.equal(runs, 1)
    assert.deepEqual([of('no-push').blocked, of('ask-rm').asked, of('mark').changed], [1, 1, 3])
    assert.deepEqual([of('no-ls').shadow, of('no-ls').blocked], [true, 1])
    assert.deepEqual(of('no-push').latest, [{ ...ref, run: 0, decision: 'block', text: 'Agents never push.' }])
    assert.ok(agent.some(({ name, mode }) => name === 'no-push' && mode === 'guard'))
  })

  test('of Claude Code are shown with every script that decided, in the list and in the matrix', async () => {
    using project = new HookProject()
    const on = (command: string) => [{ hooks: [{ type: 'command', command }] }]
    project.settings({ hooks: { UserPromptSubmit: on('echo On main.'), PreToolUse: on('echo Never. >&2; exit 2') } })
    const store = memoryStore()
    const { bare } = agentIn(project)
    await createAgent({ ...bare, store }).run('Go.', { session: 's' })
    await using studio = await studioFor(store, {})
    const both = /settings\.json: echo On main\.; .*settings\.json: echo Never\. >&2; exit 2$/
    const { counts } = await studio.call('hooks', {})
    assert.match(counts.find(({ hook }) => hook === 'claude')?.definedAt ?? '', both)
    const { columns } = await studio.call('run', { session: 's' })
    assert.match(columns.find(({ hook }) => hook === 'claude')?.definedAt ?? '', both)
  })
})

function sqliteStoreAt(path: string): AsyncDisposable & { readonly store: ReturnType<typeof sqliteStore> } {
  const store = sqliteStore(path)
  return { store, [Symbol.asyncDispose]: () => store.close() }
}
