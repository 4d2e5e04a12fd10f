import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import type { Api } from '../../studio/api.types.ts'
import type { Ended, Started } from '../cli.fixture.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

/** Starts the studio of a project, and calls its API. */
async function open(
  project: ScriptedProject,
  ...args: readonly string[]
): Promise<
  AsyncDisposable & {
    readonly started: Started
    call<K extends keyof Api>(name: K, request: Api[K]['request']): Promise<Api[K]['response']>
  }
> {
  const started = project.start(['studio', '--json', ...args])
  const { url } = JSON.parse(await started.firstLine()) as { readonly url: string }
  const { origin, hash } = new URL(url)
  return {
    started,
    async call(name, request) {
      const headers = { authorization: `Bearer ${hash.replace('#token=', '')}`, 'content-type': 'application/json' }
      const response = await fetch(`${origin}/api/${name}`, { method: 'POST', headers, body: JSON.stringify(request) })
      const body: unknown = await response.json()
      if (!response.ok) throw new Error(JSON.stringify(body))
      return body as never
    },
    async [Symbol.asyncDispose]() {
      started.kill('SIGTERM')
      await started.ended
    },
  }
}

suite('hookloop studio', () => {
  test('opens the store that the other commands use, and ends with Ctrl-C', async () => {
    const project = new ScriptedProject()
    const { last } = await project.result(['run', 'Hello.', '--agent', 'agent.ts'])
    const studio = await open(project)
    const { sessions } = await studio.call('sessions', {})
    assert.deepEqual(
      sessions.map(({ id, agent, cwd }) => [id, agent, cwd]),
      [[last.session, 'shipper', project.folder]],
    )
    studio.started.kill('SIGINT')
    assert.equal((await studio.started.ended).code, 0)
  })

  test('judges runs of the agent of --agent with the hooks of --hooks, and says where a hook is defined', async () => {
    const project = new ScriptedProject()
    const { last } = await project.result(['run', 'deploy staging', '--agent', 'agent.ts'])
    writeFileSync(
      project.path('strict.ts'),
      `import { guard } from 'hookloop'\nexport default guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'strict' })\n`,
    )
    await using studio = await open(project, '--agent', 'agent.ts', '--hooks', 'strict.ts')
    const ref = { session: last.session }
    const { agent, hookFiles } = await studio.call('studio', {})
    assert.deepEqual([agent?.name, hookFiles], ['shipper', ['strict.ts']])
    const { whatIf, decided } = await studio.call('run', ref)
    assert.equal(whatIf, true)
    assert.match(decided?.definedAt ?? '', /agent\.ts:\d+$/)
    const report = await studio.call('whatIf', { ...ref, without: [], add: ['strict.ts'] })
    assert.deepEqual([report.differences.length, report.divergesAt?.why], [1, 'the run would not wait for an answer'])
    assert.deepEqual(project.done(), [])
  })

  test('does not load the agent file that a session names, and says how to name it', async () => {
    const project = new ScriptedProject()
    const { last } = await project.result(['run', 'Hello.', '--agent', 'agent.ts'])
    writeFileSync(
      project.agent,
      `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'\nwriteFileSync(new URL('log', import.meta.url), 'loaded\\n')\n`,
    )
    await using studio = await open(project)
    const ref = { session: last.session }
    assert.match(String((await studio.call('run', ref)).whatIf), /studio --agent .*agent\.ts$/)
    await assert.rejects(studio.call('whatIf', { ...ref, without: [], add: [] }), /AGENT_UNKNOWN/)
    await assert.rejects(studio.call('runFork', { ...ref, without: [], add: [] }), /AGENT_UNKNOWN/)
    await studio.call('hooks', {})
    assert.deepEqual(project.done(), [])
  })

  test('lists the hooks of a project that is not trusted, and does not run them', async () => {
    const project = new ScriptedProject()
    mkdirSync(project.path('.hookloop'))
    const hook = { name: 'evil', on: 'beforeToolUse', mode: 'guard', shell: 'echo ran >> log' }
    writeFileSync(project.path('.hookloop/hooks.json'), JSON.stringify({ hooks: [hook] }))
    await project.hookloop(['run', 'Hello.', '--agent', 'agent.ts'])
    await using studio = await open(project)
    const { files } = await studio.call('hooks', {})
    assert.deepEqual(
      files.map((each) => [each.name, each.trust]),
      [['evil', 'untrusted']],
    )
    assert.deepEqual(project.done(), [])
  })

  test('answers a question and resumes the session with the agent of --agent', async () => {
    const project = new ScriptedProject()
    const { last } = await project.result(['run', 'deploy staging', '--agent', 'agent.ts'])
    await using studio = await open(project, '--agent', 'agent.ts')
    const [question] = (await studio.call('inbox', {})).questions
    const { id, hash, session } = question!
    await studio.call('answer', { session, question: id, hash, answer: { type: 'allow' }, resume: true })
    let { status } = await studio.call('run', { session: last.session })
    while (status !== 'completed') ({ status } = await studio.call('run', { session: last.session }))
    assert.deepEqual(project.done(), ['deployed to staging'])
  })

  test('a run is written as one HTML file by explain --html, which overwrites a file only with --force', async () => {
    const project = new ScriptedProject()
    await project.hookloop(['run', 'My password=hunter2hunter2.', '--agent', 'agent.ts'])
    const write = (...more: readonly string[]): Promise<Ended> =>
      project.hookloop(['explain', '--html', 'run.html', ...more])
    assert.deepEqual([(await write()).code, (await write()).code, (await write('--force')).code], [0, 2, 0])
    const html = readFileSync(project.path('run.html'), 'utf8')
    assert.match(html, /^<!doctype html>/)
    assert.ok(!/hunter2|signature:[0-9a-f]/.test(html))
  })
})
