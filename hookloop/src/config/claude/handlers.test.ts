import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { isJsonObject, type Json, type JsonObject } from '../../data/json.ts'
import { claudeEventNames, eventSpec, handlerTypes, type ClaudeEvent, type HandlerType } from './events.ts'
import { readHandler } from './handlers.ts'
import { bashCall, fireCommand, HookProject, languages, quoted, saidOf } from './hook-project.fixture.ts'
import { promptFor } from './run-handler.ts'

/** What a command prints as the context of a prompt is what it saw. */
async function sees(command: string, more: JsonObject = {}): Promise<string> {
  const { merged } = await fireCommand('UserPromptSubmit', command, { input: { prompt: 'p' }, ...more })
  return merged.additionalContext ?? ''
}

describe('a command', { concurrency: 4 }, () => {
  const readers = {
    bash: 'cat',
    python: `python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)), "")'`,
    node: `${quoted(process.execPath)} -e 'process.stdin.pipe(process.stdout)'`,
  }
  for (const language of languages) {
    test(`reads one JSON object and then the end of its input, in ${language}`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', command: `${readers[language]} > seen.json` }])
      await project.fire('PreToolUse', { ...bashCall, session_id: 's', permission_mode: 'default' })
      const seen = JSON.parse(readFileSync(project.path('seen.json'), 'utf8')) as JsonObject
      const { transcript_path: transcript, ...rest } = seen
      assert.ok(existsSync(transcript as string))
      assert.deepEqual(rest, {
        ...bashCall,
        session_id: 's',
        permission_mode: 'default',
        cwd: project.dir,
        hook_event_name: 'PreToolUse',
      })
    })
  }

  test('runs in a shell, with pipes and variables', async () => {
    assert.equal(await sees('x=a; echo "$x" | tr a b'), 'b')
  })

  test('runs in bash where there is one, so that lines written for it work', async () => {
    assert.equal(await sees('[[ "abc" == a* ]] && cat <<< yes'), 'yes')
  })

  test('runs in sh if it says so', async () => {
    assert.equal(await sees('echo "$0"', { shell: 'sh' }), 'sh')
  })

  test('runs in the folder of the session', async () => {
    using project = new HookProject()
    project.handlers('UserPromptSubmit', [{ type: 'command', command: 'pwd -P' }])
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p' })
    assert.ok(merged.additionalContext!.endsWith(project.dir))
  })

  test('with args it runs without a shell, and variables stand for themselves', async () => {
    using project = new HookProject()
    const args = ['-c', 'printf "%s\\n" "$@"', 'x', '${CLAUDE_PROJECT_DIR}/a b', '$HOME', '*']
    project.handlers('UserPromptSubmit', [{ type: 'command', command: 'bash', args }])
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p' })
    assert.equal(merged.additionalContext, `${project.dir}/a b\n$HOME\n*`)
  })

  test('that never reads its input does no harm', async () => {
    const input = { prompt: 'x'.repeat(3_000_000) }
    const { merged } = await fireCommand('UserPromptSubmit', 'exec <&-; echo done', { input })
    assert.equal(merged.additionalContext, 'done')
  })

  test('has no terminal', async () => {
    assert.equal(await sees('(: > /dev/tty) 2>/dev/null && echo terminal || echo none'), 'none')
  })

  for (const [what, command, problem] of [
    ['is not there', './missing.sh', /exited with 127/],
    ['is not executable', './plain.sh', /exited with 126/],
    ['has an interpreter that is not there', './odd.sh', /exited with 12[67]/],
    ['has ends of lines of another system in its first line', './crlf.sh', /exited with 12[67]/],
  ] as const) {
    test(`that ${what} lets the action proceed`, async () => {
      using project = new HookProject()
      project.write('plain.sh', '#!/bin/sh\nexit 2\n')
      project.write('odd.sh', '#!/no/such/interpreter\nexit 2\n', 0o755)
      project.write('crlf.sh', '#!/bin/bash\r\nexit 2\r\n', 0o755)
      project.handlers('PreToolUse', [{ type: 'command', command }])
      const result = await project.fire('PreToolUse', bashCall)
      assert.deepEqual(saidOf(result), { decision: 'none' })
      assert.match(result.ran[0]!.answer.problem!, problem)
    })
  }

  test('without a shell that is not there is told in words', async () => {
    const result = await fireCommand('PreToolUse', './missing', { args: [], input: bashCall })
    assert.deepEqual([saidOf(result), result.ran[0]!.answer.failed], [{ decision: 'none' }, 'notStarted'])
  })

  test('that takes too long has no say, whatever it has printed', async () => {
    const command = `echo '{"decision":"block","reason":"no"}'; sleep 30`
    const result = await fireCommand('PreToolUse', command, { input: bashCall, timeout: 0.4 })
    assert.deepEqual([saidOf(result), result.ran[0]!.answer.failed], [{ decision: 'none' }, 'timedOut'])
  })
})

describe('onFailure: "block"', { concurrency: 4 }, () => {
  const failing: readonly (readonly [string, string, JsonObject?])[] = [
    ['a command that cannot be started', './missing', { args: [] }],
    ['a command that takes too long', 'sleep 30', { timeout: 0.3 }],
    ['exit 1', 'echo why >&2; exit 1'],
    ['exit 127', 'no-such-command-here'],
    ['exit 1 with JSON that allows', `echo '{"decision":"approve"}'; exit 1`],
    ['JSON that does not fit', `echo '{"decision":"denny"}'`],
    ['broken JSON', `echo '{"decision":'`],
    ['a line in front of JSON', `echo checking; echo '{"decision":"approve"}'`],
    ['JSON in a string', `echo '"{\\"decision\\":\\"approve\\"}"'`],
    ['an array', 'echo "[]"'],
    ['null', 'echo null'],
    ['a signal', 'kill -9 $$'],
  ]
  for (const [what, command, more] of failing) {
    test(`makes a no of ${what}`, async () => {
      const result = await fireCommand('PreToolUse', command, { input: bashCall, onFailure: 'block', ...more })
      assert.equal(result.merged.decision, 'deny')
    })
  }
  for (const event of ['Stop', 'SubagentStop', 'TaskCompleted', 'TeammateIdle'] as const) {
    test(`is ignored at ${event}`, async () => {
      const { merged } = await fireCommand(event, 'exit 1', { onFailure: 'block', input: { agent_type: 'a' } })
      assert.equal(merged.decision, 'none')
    })
  }
  test('is ignored for a command that nobody waits for', async () => {
    const { merged } = await fireCommand('PreToolUse', 'exit 1', { input: bashCall, onFailure: 'block', async: true })
    assert.equal(merged.decision, 'none')
  })
  test('text and silence are no failures', async () => {
    for (const command of ['true', 'echo looked at it']) {
      const { merged } = await fireCommand('PreToolUse', command, { input: bashCall, onFailure: 'block' })
      assert.equal(merged.decision, 'none')
    }
  })
})

describe('the environment of a command', { concurrency: 4 }, () => {
  const variable = (name: string): string => `printf '%s' "\${${name}-unset}"`

  test('says where the project is, and that this is a hook', async () => {
    using project = new HookProject()
    const names = ['CLAUDE_PROJECT_DIR', 'CLAUDECODE', 'CLAUDE_CODE_CHILD_SESSION', 'CLAUDE_CODE_SESSION_ID']
    const command = `printf '%s\\n' ${names.map((name) => `"$${name}"`).join(' ')}`
    project.handlers('UserPromptSubmit', [{ type: 'command', command }])
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p', session_id: 'abc' })
    assert.equal(merged.additionalContext, [project.dir, '1', '1', 'abc'].join('\n'))
  })

  for (const name of ['CLAUDE_CODE_ENTRYPOINT', 'CLAUDE_PID', 'CLAUDE_CONFIG_DIR']) {
    test(`has ${name}`, async () => assert.notEqual(await sees(variable(name)), 'unset'))
  }

  test('knows the effort if the event does', async () => {
    const command = `${variable('CLAUDE_EFFORT')} > effort`
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command }])
    await project.fire('PreToolUse', { ...bashCall, effort: { level: 'high' } })
    assert.equal(readFileSync(project.path('effort'), 'utf8'), 'high')
  })

  for (const event of claudeEventNames) {
    const has = ['SessionStart', 'Setup', 'CwdChanged', 'FileChanged'].includes(event)
    test(`${has ? 'has' : 'has no'} CLAUDE_ENV_FILE at ${event}`, async () => {
      using project = new HookProject()
      project.handlers(event, [{ type: 'command', command: `${variable('CLAUDE_ENV_FILE')} > env-file` }])
      await project.fire(event, {})
      assert.equal(readFileSync(project.path('env-file'), 'utf8') !== 'unset', has)
    })
  }

  test('each hook has a file of its own to write variables into', async () => {
    using project = new HookProject()
    const command = (n: number): string =>
      `echo "export A=${n}" >> "$CLAUDE_ENV_FILE"; echo "$(wc -l < "$CLAUDE_ENV_FILE") $CLAUDE_ENV_FILE"`
    project.handlers('SessionStart', [
      { type: 'command', command: command(1) },
      { type: 'command', command: command(2) },
    ])
    const { ran } = await project.fire('SessionStart', { source: 'startup' })
    const said = ran.map(({ answer }) => answer.context!.split(' '))
    assert.deepEqual([said.map(([lines]) => lines), new Set(said.map(([, file]) => file)).size], [['1', '1'], 2])
  })

  test('has what ours has, without collectors, keys and what would run before it', async () => {
    using project = new HookProject()
    project.handlers('UserPromptSubmit', [{ type: 'command', command: 'env' }])
    const env = {
      ...process.env,
      PLAIN: 'plain',
      GIT_AUTHOR_NAME: 'author',
      SSH_AUTH_SOCK: 'socket',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'hidden-1',
      SERVICE_API_KEY: 'hidden-2',
      DATABASE_URL: 'postgres://me:hidden-3@host/db',
      NODE_OPTIONS: '--no-warnings=hidden-4',
      BASH_ENV: '/hidden-5',
      DB_PASSWORD: 'hidden-6',
      MY_TOKEN: 'passed',
    }
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p' }, { env, passEnv: ['MY_TOKEN'] })
    const seen = merged.additionalContext!
    assert.doesNotMatch(seen, /hidden/)
    for (const line of ['PLAIN=plain', 'GIT_AUTHOR_NAME=author', 'SSH_AUTH_SOCK=socket', 'MY_TOKEN=passed']) {
      assert.ok(seen.includes(line), line)
    }
  })

  test('has nothing that scripts in the wild expect and nobody ever set', async () => {
    for (const name of ['CLAUDE_TOOL_INPUT', 'CLAUDE_SESSION_ID', 'CLAUDE_HOOK_EVENT']) {
      assert.equal(await sees(variable(name)), 'unset')
    }
  })
})

/** A server that answers every post the same way, and keeps what it was sent. */
async function serving(status: number, body: string, headers: Record<string, string> = {}) {
  const posts: { readonly body: Json; readonly headers: NodeJS.Dict<string | string[]> }[] = []
  const server = createServer((request, response) => {
    let text = ''
    request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
    request.on('end', () => {
      posts.push({ body: JSON.parse(text) as Json, headers: request.headers })
      response.writeHead(status, headers).end(body)
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    posts,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describe('an address', { concurrency: 4 }, () => {
  const rows: readonly (readonly [string, number, string, JsonObject, RegExp?])[] = [
    ['an empty answer is no opinion', 200, '', { decision: 'none' }],
    [
      'a JSON answer is read as what a command prints',
      200,
      '{"decision":"block","reason":"r"}',
      { decision: 'deny', reason: 'r' },
    ],
    ['any 2xx is an answer', 204, '', { decision: 'none' }],
    ['text is an error that stops nothing', 200, 'fine', { decision: 'none' }, /did not answer with a JSON object/],
    ['an array is an error that stops nothing', 200, '[]', { decision: 'none' }, /did not answer with a JSON object/],
    ['a status cannot block', 403, '{"decision":"block"}', { decision: 'none' }, /status 403/],
    ['an answer that does not fit is dropped', 200, '{"decision":"no"}', { decision: 'none' }, /does not fit/],
  ]
  for (const [title, status, body, gives, problem] of rows) {
    test(title, async () => {
      await using server = await serving(status, body)
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'http', url: server.url }])
      const result = await project.fire('PreToolUse', bashCall)
      assert.deepEqual(saidOf(result), gives)
      assert.match(result.ran[0]!.answer.problem ?? '', problem ?? /^$/)
      assert.equal((server.posts[0]!.body as JsonObject)['tool_name'], 'Bash')
    })
  }

  test('where nobody listens is an error that stops nothing, unless onFailure says so', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'http', url: 'http://127.0.0.1:9/' }])
    const open = await project.fire('PreToolUse', bashCall)
    project.handlers('PreToolUse', [{ type: 'http', url: 'http://127.0.0.1:9/', onFailure: 'block' }])
    const closed = await project.fire('PreToolUse', bashCall)
    assert.deepEqual([open.merged.decision, closed.merged.decision], ['none', 'deny'])
  })

  test('headers name variables only if they are listed', async () => {
    await using server = await serving(200, '')
    using project = new HookProject()
    const headers = { authorization: 'Bearer $LISTED', 'x-other': '${UNLISTED}!' }
    project.handlers('PreToolUse', [{ type: 'http', url: server.url, headers, allowedEnvVars: ['LISTED'] }])
    await project.fire('PreToolUse', bashCall, { env: { ...process.env, LISTED: 'yes', UNLISTED: 'no' } })
    const { authorization, 'x-other': other } = server.posts[0]!.headers
    assert.deepEqual([authorization, other], ['Bearer yes', '!'])
  })

  test('a redirect is not followed', async () => {
    await using server = await serving(302, '', { location: 'http://127.0.0.1:9/' })
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'http', url: server.url }])
    const { ran } = await project.fire('PreToolUse', bashCall)
    assert.match(ran[0]!.answer.problem!, /status 302/)
  })
})

describe('a tool of a server', () => {
  const handler = {
    type: 'mcp_tool',
    server: 'policy',
    tool: 'check',
    input: { command: '${tool_input.command}', whole: ['${tool_input}', '${no.such}'] },
  }

  test('is given parts of the event, and its text is read as what a command prints', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [handler])
    let given: unknown
    const result = await project.fire('PreToolUse', bashCall, {
      callMcp: (server, tool, { input }) => {
        given = [server, tool, input]
        return Promise.resolve({ text: '{"decision":"block","reason":"policy"}', isError: false })
      },
    })
    assert.deepEqual(given, ['policy', 'check', { command: 'ls', whole: ['{"command":"ls"}', ''] }])
    assert.deepEqual(saidOf(result), { decision: 'deny', reason: 'policy' })
  })

  for (const [what, callMcp] of [
    ['an error', () => Promise.resolve({ text: 'down', isError: true })],
    ['a rejection', () => Promise.reject(new Error('down'))],
    ['no connection', undefined],
  ] as const) {
    test(`${what} stops nothing`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [handler])
      const result = await project.fire('PreToolUse', bashCall, { callMcp })
      assert.equal(result.merged.decision, 'none')
      assert.match(result.ran[0]!.answer.problem!, /down|not connected/)
    })
  }

  test('one that never answers has its time', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ ...handler, timeout: 0.1 }])
    const { ran } = await project.fire('PreToolUse', bashCall, { callMcp: () => new Promise(() => undefined) })
    assert.equal(ran[0]!.answer.failed, 'timedOut')
  })
})

type VerdictRow = readonly [ClaudeEvent, more: JsonObject, verdict: JsonObject, gives: JsonObject]
const reason = 'r'

describe('a model that is asked', () => {
  const rows: readonly VerdictRow[] = [
    ['PreToolUse', {}, { ok: true }, { decision: 'none' }],
    ['Stop', {}, { ok: false, reason }, { decision: 'block', reason }],
    ['Stop', {}, { ok: false, reason, impossible: true }, { decision: 'none' }],
    ['SubagentStop', {}, { ok: false, reason }, { decision: 'block', reason }],
    ['PreToolUse', {}, { ok: false, reason }, { decision: 'stop', reason, beside: { decision: 'deny', reason } }],
    ['PreToolUse', { continueOnBlock: true }, { ok: false, reason }, { decision: 'deny', reason }],
    ['PreToolUse', { type: 'agent' }, { ok: false, reason }, { decision: 'deny', reason }],
    ['PostToolUse', {}, { ok: false, reason }, { decision: 'stop', reason, beside: { decision: 'block', reason } }],
    ['PostToolUse', { continueOnBlock: true }, { ok: false, reason }, { decision: 'block', reason }],
    ['PostToolBatch', {}, { ok: false, reason }, { decision: 'stop', reason, beside: { decision: 'block', reason } }],
    [
      'UserPromptSubmit',
      {},
      { ok: false, reason },
      { decision: 'stop', reason, beside: { decision: 'block', reason } },
    ],
    ['PostToolUseFailure', {}, { ok: false, reason }, { decision: 'block', reason }],
    ['TaskCreated', {}, { ok: false, reason }, { decision: 'block', reason }],
    ['TaskCompleted', {}, { ok: false, reason }, { decision: 'block', reason }],
    ['TeammateIdle', {}, { ok: false, reason }, { decision: 'stop', reason }],
    ['TeammateIdle', { continueOnBlock: true }, { ok: false, reason }, { decision: 'block', reason }],
    ['PermissionRequest', {}, { ok: false, reason }, { decision: 'none' }],
    ['PermissionDenied', {}, { ok: false, reason }, { decision: 'none' }],
    ['PreToolUse', {}, { verdict: 'fine' }, { decision: 'none' }],
    [
      'PreToolUse',
      { onFailure: 'block' },
      { verdict: 'fine' },
      { decision: 'deny', reason: 'the model did not answer with { ok, reason }' },
    ],
  ]
  for (const [event, more, verdict, gives] of rows) {
    test(`at ${event} ${JSON.stringify(more)}, ${JSON.stringify(verdict)} comes to ${JSON.stringify(gives)}`, async () => {
      using project = new HookProject()
      project.handlers(event, [{ type: 'prompt', prompt: 'Is it?', ...more }])
      const result = await project.fire(event, bashCall, { askModel: () => Promise.resolve(verdict) })
      assert.deepEqual(saidOf(result), gives)
    })
  }

  test('reads the event where the prompt says so, or behind it', () => {
    assert.equal(promptFor('Judge $ARGUMENTS now for \\$5', '{"a":"$&"}'), 'Judge {"a":"$&"} now for $5')
    assert.equal(promptFor('Judge it', '{}'), 'Judge it\n\n{}')
  })

  test('is asked by its name', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'prompt', prompt: 'Is it?', model: 'small' }])
    let asked: unknown
    await project.fire('PreToolUse', bashCall, {
      askModel: (_prompt, { model, isAgent }) => {
        asked = [model, isAgent]
        return Promise.resolve({ ok: true })
      },
    })
    assert.deepEqual(asked, ['small', false])
  })

  test('that is not there, or does not answer in time, stops nothing', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'prompt', prompt: 'Is it?', timeout: 0.1 }])
    const nobody = await project.fire('PreToolUse', bashCall)
    const slow = await project.fire('PreToolUse', bashCall, { askModel: () => new Promise(() => undefined) })
    assert.deepEqual(
      [nobody.merged.decision, slow.merged.decision, slow.ran[0]!.answer.failed],
      ['none', 'none', 'timedOut'],
    )
  })
})

/** Which types may stand at which event. */
const withAll: readonly ClaudeEvent[] = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PostToolBatch',
  'PermissionDenied',
  'Stop',
  'SubagentStop',
  'TaskCreated',
  'TaskCompleted',
  'TeammateIdle',
  'UserPromptSubmit',
  'UserPromptExpansion',
  'PermissionRequest',
]
const samples: { readonly [T in HandlerType]: JsonObject } = {
  command: { type: 'command', command: 'true' },
  http: { type: 'http', url: 'https://example.com/' },
  mcp_tool: { type: 'mcp_tool', server: 's', tool: 't' },
  prompt: { type: 'prompt', prompt: 'p' },
  agent: { type: 'agent', prompt: 'p' },
}

describe('types and times', () => {
  for (const event of claudeEventNames) {
    const expected = withAll.includes(event)
      ? handlerTypes
      : event === 'SessionStart' || event === 'Setup'
        ? ['command', 'mcp_tool']
        : ['command', 'http', 'mcp_tool']
    test(`at ${event} handlers are of the types ${expected.join(', ')}`, () => {
      const fit = handlerTypes.filter((type) => isJsonObject(readHandler(samples[type], event) as Json))
      assert.deepEqual(fit, expected)
    })
  }

  for (const [event, type, seconds] of [
    ['PreToolUse', 'command', 600],
    ['PreToolUse', 'http', 600],
    ['PreToolUse', 'mcp_tool', 600],
    ['PreToolUse', 'prompt', 30],
    ['PreToolUse', 'agent', 60],
    ['UserPromptSubmit', 'command', 30],
    ['PreModelSwitch', 'command', 30],
    ['PostModelSwitch', 'command', 30],
    ['MessageDisplay', 'command', 10],
    ['Stop', 'command', 600],
  ] as const) {
    test(`at ${event} a handler of the type ${type} has ${seconds} s`, () => {
      const handler = readHandler(samples[type], event)
      assert.equal(typeof handler === 'object' && handler.timeoutMs, seconds * 1000)
    })
  }

  test('a time of its own is in seconds', () => {
    const handler = readHandler({ ...samples.command, timeout: 2.5 }, 'Stop')
    assert.equal(typeof handler === 'object' && handler.timeoutMs, 2_500)
  })

  test('every event is in the table of types', () => {
    assert.ok(claudeEventNames.every((event) => eventSpec(event).types.length > 0))
  })
})

describe('the end of a session', { concurrency: 3 }, () => {
  const ended = async (handler: JsonObject, env: NodeJS.ProcessEnv = {}): Promise<string | undefined> => {
    using project = new HookProject()
    project.handlers('SessionEnd', [{ type: 'command', ...handler }])
    const { ran } = await project.fire('SessionEnd', { reason: 'other' }, { env: { ...process.env, ...env } })
    return ran[0]!.answer.failed
  }
  test('gives its hooks a second and a half together', async () => {
    assert.equal(await ended({ command: 'sleep 20' }), 'timedOut')
  })
  test('gives them more if a settings file does', async () => {
    assert.equal(await ended({ command: 'sleep 2', timeout: 20 }), undefined)
  })
  test('gives them what the environment says', async () => {
    assert.equal(await ended({ command: 'sleep 20' }, { CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS: '200' }), 'timedOut')
  })
})

describe('what is long', () => {
  const long = (n: number): string => `head -c ${n} /dev/zero | tr '\\0' x`

  test('is shown as far as 10,000 characters', async () => {
    assert.equal((await sees(long(10_000))).length, 10_000)
  })

  test('beyond that is in a file that only its user can read, and the model is given its beginning and its path', async () => {
    const said = await sees(long(10_001))
    const path = /All of it is in (\S+)\]$/.exec(said)?.[1]
    assert.match(said, /^x{2000}\n\[These are the first 2000 of 10001 characters\./)
    assert.equal(readFileSync(path!, 'utf8').length, 10_001)
    assert.equal(statSync(path!).mode & 0o777, 0o600)
  })

  test('is cut in each field on its own', async () => {
    using project = new HookProject()
    const big = 'y'.repeat(10_050)
    const body = { systemMessage: big, hookSpecificOutput: { hookEventName: 'PreToolUse', additionalContext: big } }
    project.write('big.json', JSON.stringify(body))
    project.handlers('PreToolUse', [{ type: 'command', command: 'cat big.json' }])
    const { merged } = await project.fire('PreToolUse', bashCall)
    for (const text of [merged.systemMessage, merged.additionalContext]) assert.match(text!, /^y{2000}\n\[These/)
  })

  test('a reason is cut as well', async () => {
    const { merged } = await fireCommand('PreToolUse', `${long(20_000)} >&2; exit 2`, { input: bashCall })
    assert.ok(merged.reason.length < 3_000)
  })
})
