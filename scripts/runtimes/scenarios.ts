// What users do with Hookloop, each thing once. The same scenarios run on every runtime, against the built package, and
// from bundles in a folder without node_modules. So this file uses only what they all have, and starts itself again where
// it needs another process: `restart` has the command.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  AgentError,
  approval,
  createAgent,
  explain,
  fallback,
  guard,
  guards,
  hook,
  observe,
  redactSecrets,
  retry,
  tool,
  type SavedRun,
} from 'hookloop'
import { bash } from 'hookloop/bash'
import { files } from 'hookloop/files'
import { claudeHooks, hookFilesOf, projectHooks, TrustStore } from 'hookloop/hook-files'
import { mcp } from 'hookloop/mcp'
import { replay } from 'hookloop/replay'
import { serve, toNodeListener } from 'hookloop/serve'
import { memoryStore, sqliteStore } from 'hookloop/sessions'
import { getOutputs, structuredOutput } from 'hookloop/structured-output'
import { readAgents, subagents } from 'hookloop/subagents'
import { scriptedModel } from 'hookloop/testing'
import { tracing } from 'hookloop/tracing'
import {
  agentCalling,
  answerMcp,
  anything,
  calling,
  callMcp,
  ended,
  listening,
  noSpan,
  oneText,
  outputs,
  script,
  served,
  shippingAgent,
  shout,
  statuses,
  talk,
} from './scenario-work.ts'

export type Scenario = (place: Place) => Promise<void>

type Place = {
  /** An empty folder. */
  readonly folder: string
  /** Starts this program again, with arguments. */
  readonly restart: readonly string[]
}

export const scenarios: { readonly [title: string]: Scenario } = {
  'a tool runs, and arguments that do not fit its JSON Schema are rejected': async () => {
    const run = await calling(
      [shout],
      [
        { name: 'shout', args: { text: 'hello' } },
        { name: 'shout', args: { text: 'No!' } },
      ],
    )
    assert.equal(run.status, 'completed')
    assert.deepEqual(statuses(run), ['ok', 'failed'])
    assert.equal(outputs(run)[0], 'HELLO')
    assert.match(String(outputs(run)[1]), /do not fit/)
  },

  'a guard with a pattern blocks a call, and the run explains it': async () => {
    const no = guard('beforeToolUse', (ctx) => ctx.block('Be quiet.'), { name: 'quiet', tool: /^sho+ut$/ })
    const run = await calling([shout, no], [{ name: 'shout', args: { text: 'hello' } }])
    assert.deepEqual(statuses(run), ['blocked'])
    assert.match(explain(run), /quiet.*Be quiet\./)
  },

  'a run suspends for an approval and resumes from JSON': async () => {
    const agent = agentCalling(
      [shout, guard('beforeToolUse', (ctx) => ctx.ask('Really?')), approval('suspend')],
      [{ name: 'shout', args: { text: 'hello' } }],
    )
    const run = await agent.run('go')
    assert.equal(run.status, 'suspended')
    const saved = JSON.parse(JSON.stringify(run)) as SavedRun
    const answers = Object.fromEntries(run.status === 'suspended' ? run.pending.map(({ id }) => [id, 'allow']) : [])
    const resumed = await agent.resume(saved, { answers: answers as Record<string, 'allow'> })
    assert.deepEqual([resumed.status, ...outputs(resumed)], ['completed', 'HELLO'])
  },

  'a session in SQLite continues, and its approvals can be answered': async ({ folder }) => {
    await talk(sqliteStore(join(folder, 'sessions.db')))
  },

  'a recorded run is replayed, also with other hooks': async () => {
    let executed = 0
    const count = tool({ name: 'count', description: 'Counts.', input: anything, execute: () => ++executed })
    const store = memoryStore()
    const agent = agentCalling([count], [{ name: 'count', args: {} }], store)
    const live = await agent.run('go', { session: 's' })
    const stored = (await store.read('s'))!
    const again = await replay(stored, { agent })
    assert.deepEqual([again.record.status, JSON.stringify(again.run.state)], ['complete', JSON.stringify(live.state)])
    const blocked = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'never' })
    const report = await replay(stored, { agent, hooks: [blocked] })
    assert.match(JSON.stringify(report.differences), /never/)
    assert.equal(executed, 1)
  },

  'a stream has events, text and the run': async () => {
    const live = agentCalling([shout], [{ name: 'shout', args: { text: 'hello' } }]).stream('go')
    const types = new Set<string>()
    let text = ''
    for await (const event of live) {
      types.add(event.type)
      if (event.type === 'text') text += event.delta
    }
    assert.ok(types.has('toolStarted') && types.has('toolFinished'))
    assert.deepEqual([text, (await live.run).status], ['done', 'completed'])
  },

  'a run is cancelled by a signal, and its tool is aborted': async () => {
    const cancel = new AbortController()
    let aborted = false
    const hang = tool({
      name: 'hang',
      description: 'Waits.',
      input: anything,
      execute: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            aborted = true
            reject(new Error('aborted'))
          })
          cancel.abort()
        }),
    })
    const run = await agentCalling([hang], [{ name: 'hang', args: {} }]).run('go', {
      signal: cancel.signal,
    })
    assert.deepEqual([run.status, aborted], ['cancelled', true])
  },

  'a tool that exceeds its time limit fails, and the run continues': async () => {
    const hang = tool({
      name: 'hang',
      description: 'Waits.',
      input: anything,
      timeoutMs: 20,
      execute: (_, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
    })
    const run = await calling([hang], [{ name: 'hang', args: {} }])
    assert.deepEqual([run.status, ...statuses(run)], ['completed', 'failed'])
  },

  'a subagent from a file runs, and its parent gets the answer': async ({ folder }) => {
    const text = '---\nname: poet\ndescription: Writes poems.\ntools: shout\n---\nYou write poems.\n'
    writeFileSync(join(folder, 'poet.md'), text)
    const model = scriptedModel(({ system, messages }) => {
      if (system.startsWith('You write poems')) return 'Roses are red.'
      if (messages.length > 1) return 'done'
      return { toolCalls: [{ name: 'spawn_subagent', args: { subagent: 'poet', prompt: 'A poem.' } }] }
    })
    const { agents } = readAgents(folder)
    const run = await createAgent({ model, use: [shout, subagents({ agents })] }).run('go')
    assert.equal(run.status, 'completed')
    assert.match(JSON.stringify(outputs(run)), /Roses are red/)
  },

  'an answer is read as structured output': async () => {
    const schemas = { greeting: oneText }
    const turns = [
      { name: 'structured_output_greeting', args: { data: { text: 'HI' } } },
      { name: 'structured_output_greeting', args: { data: { text: 'hi' } } },
    ]
    const run = await calling([structuredOutput({ schemas })], turns)
    assert.deepEqual(statuses(run), ['failed', 'ok'])
    const { greeting } = await getOutputs(run.state, schemas)
    assert.deepEqual(
      greeting.map(({ data }) => data),
      [{ text: 'hi' }],
    )
  },

  'files are searched, read and edited, and stay inside of their folder': async ({ folder }) => {
    writeFileSync(join(folder, 'sum.ts'), 'export const sum = (a, b) => a - b\n')
    const run = await calling(
      [files({ root: folder, hide: ['*.secret'] })],
      [
        { name: 'search_files', args: { pattern: 'a [-+] b', glob: '**/*.{ts,js}' } },
        { name: 'read_file', args: { path: 'sum.ts' } },
        { name: 'edit_file', args: { path: 'sum.ts', old_string: 'a - b', new_string: 'a + b' } },
        { name: 'read_file', args: { path: '../../etc/passwd' } },
      ],
    )
    assert.deepEqual(statuses(run).slice(0, 3), ['ok', 'ok', 'ok'])
    assert.notEqual(statuses(run)[3], 'ok')
    assert.match(String(outputs(run)[2]), /\+export const sum = \(a, b\) => a \+ b/)
    assert.equal(readFileSync(join(folder, 'sum.ts'), 'utf8'), 'export const sum = (a, b) => a + b\n')
  },

  'commands run, their output and exit codes are seen, and what is blocked does not run': async ({ folder }) => {
    const run = await calling(
      [bash({ cwd: folder, allow: ['echo', 'cat', 'sleep', 'ls'], block: ['rm'], sandbox: 'off' })],
      [
        { name: 'bash', args: { command: 'echo one; echo two >&2' } },
        { name: 'bash', args: { command: 'ls does-not-exist' } },
        { name: 'bash', args: { command: 'sleep 30', timeout_ms: 300 } },
        { name: 'bash', args: { command: 'rm -rf .' } },
      ],
    )
    const [both, missing, late] = outputs(run).map(String)
    assert.match(both!, /one/)
    assert.match(both!, /two/)
    assert.match(missing!, /does-not-exist/)
    assert.match(late!, /300 ms/)
    assert.equal(statuses(run)[3], 'blocked')
  },

  'hooks in a YAML file run when they are trusted': async ({ folder }) => {
    const dir = join(folder, 'project')
    mkdirSync(join(dir, '.hookloop'), { recursive: true })
    script(join(dir, 'no.sh'), 'if grep -q hello; then echo "Not in this project." >&2; exit 2; fi')
    const yaml = 'hooks:\n  - name: polite\n    on: beforeToolUse\n    mode: guard\n    shell: ./no.sh\n'
    writeFileSync(join(dir, '.hookloop/hooks.yaml'), yaml)
    const trust = new TrustStore(join(folder, 'trust.json'))
    trust.trust(hookFilesOf(dir))
    const run = await calling(
      [shout, projectHooks({ dir, home: false, trust })],
      [
        { name: 'shout', args: { text: 'hello' } },
        { name: 'shout', args: { text: 'bye' } },
      ],
    )
    assert.deepEqual(statuses(run), ['blocked', 'ok'])
    assert.match(String(outputs(run)[0]), /Not in this project/)
  },

  'hooks of Claude Code run': async ({ folder }) => {
    mkdirSync(join(folder, '.claude'))
    script(join(folder, 'block.sh'), 'if grep -q hello; then echo "Blocked by a script." >&2; exit 2; fi')
    const hooks = [{ type: 'command', command: '"$CLAUDE_PROJECT_DIR"/block.sh' }]
    const settings = { hooks: { PreToolUse: [{ matcher: 'shout', hooks }] } }
    writeFileSync(join(folder, '.claude/settings.json'), JSON.stringify(settings))
    const run = await calling(
      [shout, claudeHooks({ dir: folder, home: false, trust: 'all' })],
      [
        { name: 'shout', args: { text: 'hello' } },
        { name: 'shout', args: { text: 'bye' } },
      ],
    )
    assert.deepEqual(statuses(run), ['blocked', 'ok'])
    assert.match(String(outputs(run)[0]), /Blocked by a script/)
  },

  'tools of an MCP server that is a process are called': async ({ restart: [command, ...args] }) => {
    const servers = await mcp({ servers: { it: { command: command!, args: [...args, 'mcp-server'] } } })
    try {
      await callMcp(servers)
    } finally {
      await servers.close()
    }
  },

  'tools of an MCP server are called over HTTP': async () => {
    await served(answerMcp, async (url) => {
      const servers = await mcp({ servers: { it: { url } } })
      try {
        await callMcp(servers)
      } finally {
        await servers.close()
      }
    })
  },

  'a model is used by its name': async () => {
    const message = { role: 'assistant', content: 'Hello from a server.' }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const answer = { id: '1', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }], usage }
    await served(
      () => JSON.stringify(answer),
      async (url) => {
        process.env['OPENAI_COMPATIBLE_BASE_URL'] = url
        const run = await createAgent({ model: 'openai-compatible/m' }).run('go')
        assert.deepEqual([run.status, run.text], ['completed', 'Hello from a server.'])
      },
    )
  },

  'a failed model call is retried, then another model answers': async () => {
    const overloaded = { error: new AgentError('MODEL_OVERLOADED', '529') }
    const turns = [overloaded, 'At the second attempt.', overloaded, overloaded]
    const best = scriptedModel(() => turns.shift()!) // a list would start again with each run
    const backup = scriptedModel(['From the backup.'])
    const agent = createAgent({ model: best, use: [retry({ maxRetries: 1, backoffMs: 1 }), fallback([backup])] })
    assert.equal((await agent.run('one')).text, 'At the second attempt.')
    assert.equal((await agent.run('two')).text, 'From the backup.')
  },

  'hooks, tools and model calls are traced': async () => {
    const names: string[] = []
    const span = { ...noSpan, end: () => undefined }
    const tracer = {
      startSpan: (name: string) => (names.push(name), span),
      startActiveSpan: (name: string, work: (given: typeof span) => unknown) => (names.push(name), work(span)),
    }
    await calling([shout, tracing({ tracer: tracer as never })], [{ name: 'shout', args: { text: 'hello' } }])
    assert.ok(
      names.some((name) => name.includes('shout')),
      names.join(', '),
    )
  },

  'secrets are removed from what a tool returns': async () => {
    const key = `sk-proj-${'a1B2'.repeat(12)}`
    const leak = tool({ name: 'leak', description: 'Leaks.', input: anything, execute: () => `The key is ${key}.` })
    const run = await calling([leak, redactSecrets()], [{ name: 'leak', args: {} }])
    assert.match(String(outputs(run)[0]), /\[redacted\]/)
    assert.ok(!JSON.stringify(run.state).includes(key))
  },

  'a run whose process is killed resumes in another process, and nothing runs twice': async ({ folder, restart }) => {
    const signal = await ended(restart, 'killed', folder)
    assert.equal(signal, 'SIGKILL')
    const store = sqliteStore(join(folder, 'sessions.db'))
    const run = await shippingAgent(folder, store).resume('order')
    await store.close()
    assert.equal(run.status, 'completed')
    assert.deepEqual(statuses(run), ['ok', 'outcomeUnknown'])
    assert.equal(readFileSync(join(folder, 'log'), 'utf8'), 'pack\nship\n')
  },

  'an agent behind HTTP streams its answer, and has the conversation afterwards': async ({ folder }) => {
    const store = sqliteStore(join(folder, 'chats.db'))
    const handle = serve(createAgent({ model: scriptedModel(['Hello.']) }), { store, user: () => 'ann' })
    await listening(toNodeListener(handle), async (url) => {
      const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Hi.' }] }
      const body = JSON.stringify({ id: 'c', messages: [message] })
      const headers = { 'content-type': 'application/json' }
      const response = await fetch(new URL('/api/chat', url), { method: 'POST', body, headers })
      assert.match(await response.text(), /"delta":"Hello\."[^]*\[DONE\]/)
      const chat = (await (await fetch(new URL('/api/chat/c', url))).json()) as { role: string }[]
      assert.deepEqual(
        chat.map(({ role }) => role),
        ['user', 'assistant'],
      )
    })
    await store.close()
  },

  'a limit stops a run, and observers see each step': async () => {
    let seen = 0
    const count = observe('afterStep', async () => void seen++)
    const more = hook('afterStep', (ctx) => ctx.requestContinuation('more'))
    const agent = createAgent({ model: scriptedModel(() => 'again'), use: [count, more, guards({ maxSteps: 3 })] })
    const run = await agent.run('go')
    assert.deepEqual([run.status, seen], ['stopped', 3])
  },
}
