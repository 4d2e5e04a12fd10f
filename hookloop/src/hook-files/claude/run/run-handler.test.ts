import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../values/json.ts'
import type { HandlerType } from '../events/claude-events.ts'
import { readHandler } from '../load/handlers.ts'
import { bashCall, fireCommand, HookProject, isHere, quoted, saidOf, contextIn } from '../hook-project.fixture.ts'
import { HookTable, runEvent, type RanHandler } from './run-event.ts'
import { readSettings } from '../load/read-settings.ts'
import { examplePayload } from '../events/example-payload.ts'

/** The output of a command at UserPromptSubmit. */
async function sees(command: string, more: JsonObject = {}): Promise<string> {
  const { merged } = await fireCommand('UserPromptSubmit', command, { input: { prompt: 'p' }, ...more })
  return merged.additionalContext ?? ''
}

describe('a command', { concurrency: 4 }, () => {
  const readers = {
    bash: 'cat',
    node: `${quoted(process.execPath)} -e 'process.stdin.pipe(process.stdout)'`,
    ...(isHere('python3') && {
      python: `python3 -c 'import json,sys; print(json.dumps(json.load(sys.stdin)), "")'`,
    }),
  }
  for (const [language, reader] of Object.entries(readers)) {
    test(`a command in ${language} reads one JSON object and the end of its input`, async () => {
      using project = new HookProject()
      project.handlers('PreToolUse', [{ type: 'command', command: `${reader} > seen.json` }])
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

  test('a command runs in bash if it is installed', async () => {
    assert.equal(await sees('[[ "abc" == a* ]] && cat <<< yes'), 'yes')
  })

  test('a command runs in sh if it is set', async () => {
    assert.equal(await sees('echo "$0"', { shell: 'sh' }), 'sh')
  })

  test('a command with args runs without a shell, and its variables are replaced', async () => {
    using project = new HookProject()
    const args = ['-c', 'printf "%s\\n" "$@"', 'x', '${CLAUDE_PROJECT_DIR}/a b', '$HOME', '*']
    project.handlers('UserPromptSubmit', [{ type: 'command', command: 'bash', args }])
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p' })
    assert.equal(merged.additionalContext, `${project.dir}/a b\n$HOME\n*`)
  })

  for (const [what, command, problem] of [
    ['is not there', './missing.sh', /exited with 127/],
    ['is not executable', './plain.sh', /exited with 126/],
    ['has an interpreter that is not there', './odd.sh', /exited with 12[67]/],
    ['has ends of lines of another system in its first line', './crlf.sh', /exited with 12[67]/],
  ] as const) {
    test(`a command that ${what} stops nothing`, async () => {
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

  test('an async command runs in the background and decides nothing', async () => {
    using project = new HookProject()
    project.handlers('PreToolUse', [{ type: 'command', command: 'touch begun; sleep 0.3; exit 2', async: true }])
    const late: Promise<RanHandler>[] = []
    const { groups } = readSettings({ dir: project.dir, home: false })
    const result = await runEvent(new HookTable(groups), examplePayload(bashCall, 'PreToolUse', project.dir), {
      context: contextIn(project.dir),
      onBackground: (each) => late.push(each),
    })
    const [{ answer }] = (await Promise.all(late)) as [RanHandler]
    assert.deepEqual([result.merged.decision, result.ran, answer.exitCode], ['none', [], 2])
    assert.ok(existsSync(project.path('begun')))
  })
})

test('background processes of a command are ended and reported', async () => {
  const { merged, ran } = await fireCommand('PreToolUse', 'sleep 60 & echo no >&2; exit 2', { input: bashCall })
  assert.deepEqual([merged.decision, merged.reason], ['deny', 'no'])
  assert.match(ran[0]!.answer.problem ?? '', /background processes of .* were ended/)
})

describe('onFailure: "block"', { concurrency: 4 }, () => {
  for (const event of ['Stop', 'SubagentStop', 'TaskCompleted', 'TeammateIdle'] as const) {
    test(`onFailure is ignored at ${event}`, async () => {
      const { merged } = await fireCommand(event, 'exit 1', { onFailure: 'block', input: { agent_type: 'a' } })
      assert.equal(merged.decision, 'none')
    })
  }
  test('onFailure is ignored for an async command', async () => {
    const { merged } = await fireCommand('PreToolUse', 'exit 1', { input: bashCall, onFailure: 'block', async: true })
    assert.equal(merged.decision, 'none')
  })
  test('plain text and no output are not failures', async () => {
    for (const command of ['true', 'echo looked at it', 'echo "[check] fine"', 'echo 3']) {
      const { merged } = await fireCommand('PreToolUse', command, { input: bashCall, onFailure: 'block' })
      assert.equal(merged.decision, 'none')
    }
  })
})

describe('the environment of a command', { concurrency: 4 }, () => {
  const variable = (name: string): string => `printf '%s' "\${${name}-unset}"`

  test('the environment has the project folder and the variables of Claude Code', async () => {
    using project = new HookProject()
    const names = ['CLAUDE_PROJECT_DIR', 'CLAUDECODE', 'CLAUDE_CODE_CHILD_SESSION', 'CLAUDE_CODE_SESSION_ID']
    const command = `printf '%s\\n' ${names.map((name) => `"$${name}"`).join(' ')}`
    project.handlers('UserPromptSubmit', [{ type: 'command', command }])
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p', session_id: 'abc' })
    assert.equal(merged.additionalContext, [project.dir, '1', '1', 'abc'].join('\n'))
  })

  for (const event of ['SessionStart', 'Setup', 'CwdChanged', 'FileChanged', 'PreToolUse', 'Stop'] as const) {
    const has = event !== 'PreToolUse' && event !== 'Stop'
    test(`there is ${has ? 'a' : 'no'} CLAUDE_ENV_FILE at ${event}`, async () => {
      using project = new HookProject()
      project.handlers(event, [{ type: 'command', command: `${variable('CLAUDE_ENV_FILE')} > env-file` }])
      await project.fire(event, {})
      assert.equal(readFileSync(project.path('env-file'), 'utf8') !== 'unset', has)
    })
  }

  test('each hook has its own CLAUDE_ENV_FILE', async () => {
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

  test('the environment is that of the process without collectors, secrets and injection variables', async () => {
    using project = new HookProject()
    project.handlers('UserPromptSubmit', [{ type: 'command', command: 'env' }])
    const words =
      'PAT DB_PASS DBPASS SNOWFLAKE_PW ADMINPW DB_CREDS WALLET_MNEMONIC MYSQL_PWD SMTP_PASS_PHRASE WIFI_PSK PSK TOTP BACKUP_RECOVERY STRIPE_SK REFRESH_TOK HASH_PEPPER'
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
      ACCESS_TOKEN: '123454321',
      ...Object.fromEntries(words.split(' ').map((name) => [name, 'hidden'])),
      BYPASS_CHECKS: 'warn',
      DATABASE_DSN: 'host=db user=me password=hidden',
      CONNECTION: 'Server=db;Uid=me;Pwd=hidden',
      RANDOM_VALUE: 'h1dd3n-aZ09_xyhidden',
      HOOK_FOLDER: '/srv/hooks',
      MAX_OUTPUT_TOKENS: '8000',
      TOKEN_BUDGET: '50000',
      SECRET_SCAN_MODE: 'warn',
      SKIP_SECRET_GUARD: '1',
      OTEL_LOGS_EXPORTER: 'none',
      MY_TOKEN: 'passed',
    }
    const { merged } = await project.fire('UserPromptSubmit', { prompt: 'p' }, { env, passEnv: ['MY_TOKEN'] })
    const seen = merged.additionalContext!
    assert.doesNotMatch(seen, /hidden|123454321|OTEL/)
    const amounts = ['MAX_OUTPUT_TOKENS=8000', 'TOKEN_BUDGET=50000'] // how many, not which
    for (const line of [
      'PLAIN=plain',
      'HOOK_FOLDER=/srv/hooks',
      'GIT_AUTHOR_NAME=author',
      'SSH_AUTH_SOCK=socket',
      'MY_TOKEN=passed',
      'SECRET_SCAN_MODE=warn', // how to look for secrets is none
      'SKIP_SECRET_GUARD=1',
      'BYPASS_CHECKS=warn',
      ...amounts,
    ]) {
      assert.ok(seen.includes(line), line)
    }
  })
})

const samples: { readonly [T in HandlerType]: JsonObject } = {
  command: { type: 'command', command: 'true' },
  http: { type: 'http', url: 'https://example.com/' },
  mcp_tool: { type: 'mcp_tool', server: 's', tool: 't' },
  prompt: { type: 'prompt', prompt: 'p' },
  agent: { type: 'agent', prompt: 'p' },
}

describe('timeouts', () => {
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
    test(`at ${event} the default timeout of a ${type} handler is ${seconds} s`, () => {
      const handler = readHandler(samples[type], event)
      assert.equal(typeof handler === 'object' && handler.timeoutMs, seconds * 1000)
    })
  }
})

describe('SessionEnd hooks', { concurrency: 3 }, () => {
  const ended = async (handler: JsonObject, env: NodeJS.ProcessEnv = {}): Promise<string | undefined> => {
    using project = new HookProject()
    project.handlers('SessionEnd', [{ type: 'command', ...handler }])
    const { ran } = await project.fire('SessionEnd', { reason: 'other' }, { env: { ...process.env, ...env } })
    return ran[0]!.answer.failed
  }
  test('SessionEnd hooks share a timeout of 1.5 seconds', async () => {
    assert.equal(await ended({ command: 'sleep 20' }), 'timedOut')
  })
  test('a variable sets the timeout of SessionEnd hooks', async () => {
    assert.equal(await ended({ command: 'sleep 20' }, { CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS: '200' }), 'timedOut')
  })
})
