import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Json } from '../../values/json.ts'
import type { AgentError } from '../../errors.ts'
import { fire } from '../../testing/fire.ts'
import { type FileHook, type FileSource } from './hook-file.ts'
import { readHookFile } from './read-hook-file.fixture.ts'

type Reading = { readonly file?: string; readonly kind?: FileSource['kind']; readonly env?: readonly string[] }

function read(text: string, { file = 'hooks.json', kind = 'user', env = [] }: Reading = {}): readonly FileHook[] {
  const allowed = { env, privateAddresses: false }
  return readHookFile(text, { kind, file }, { cwd: '.', projectDir: '.', allowed, taken: new Set() }).hooks
}

const one = (entry: Json, how?: Reading): FileHook => read(JSON.stringify({ hooks: [entry] }), how)[0]!

suite('a hook file', () => {
  test('a hook file can be JSON, JSON with comments, or YAML', () => {
    const json = '{ "hooks": [{ "on": "beforeToolUse", "mode": "guard", "tool": "bash", "shell": "exit 2" }] }'
    const jsonc = `\uFEFF// mine\n{ "hooks": [ /* one */ { "on": "beforeToolUse", "mode": "guard", "tool": "bash", "shell": "exit 2", }, ], }`
    const yaml = 'hooks:\n  - on: beforeToolUse\n    mode: guard\n    tool: bash\n    shell: exit 2\n'
    const found = [read(json), read(jsonc, { file: 'hooks.jsonc' }), read(yaml, { file: 'hooks.yaml' })].flat()
    const seen = found.map(({ hook, line }) => [hook.triggers, hook.mode, hook.tool, hook.action?.label, line])
    const expected = (line: number) => [['beforeToolUse'], 'guard', 'bash', 'shell:exit', line]
    assert.deepEqual(seen, [expected(1), expected(2), expected(2)])
  })

  test('an entry has all options of a hook', () => {
    const { hook } = one({
      name: 'check',
      on: ['beforeToolUse', 'afterToolUse'],
      mode: 'hook',
      tool: '/^(read|write)_/i',
      when: { metadata: { role: 'guest', team: null }, not: { any: [{ metadata: { trusted: true } }] } },
      priority: 150,
      timeoutMs: 5000,
      onFailure: 'block',
      shell: { args: ['node', 'check.js'], cwd: 'tools', env: { MODE: 'strict' }, maxOutputBytes: 1000 },
    })
    assert.deepEqual(
      [hook.name, hook.triggers, hook.mode, hook.priority],
      ['check', ['beforeToolUse', 'afterToolUse'], 'transform', 150],
    )
    assert.deepEqual(
      [hook.timeoutMs, hook.onFailure, (hook.tool as RegExp).source, hook.named],
      [5000, 'block', '^(read|write)_', true],
    )
  })

  test('a hook with "when" fires only if the condition holds', async () => {
    const entry = {
      on: 'beforeToolUse',
      mode: 'guard',
      when: {
        any: [
          { metadata: { role: 'guest' } },
          { all: [{ metadata: { risky: null } }, { not: { metadata: { role: 'admin' } } }] },
        ],
      },
      shell: 'exit 2',
    }
    const { hook } = one(entry)
    const fired = async (metadata: { [key: string]: Json }): Promise<boolean> =>
      (await fire(hook, 'beforeToolUse' as never, { metadata })).decision === 'block'
    assert.deepEqual(
      [
        await fired({}),
        await fired({ role: 'guest' }),
        await fired({ risky: 1 }),
        await fired({ risky: 1, role: 'admin' }),
      ],
      [false, true, true, false],
    )
  })

  test('there are entries for every kind of action', () => {
    const kinds: readonly Json[] = [
      { on: 'beforeToolUse', mode: 'guard', shell: 'true' },
      { on: 'afterToolUse', mode: 'observe', http: 'https://hooks.example/x' },
      { on: 'beforeToolUse', mode: 'guard', prompt: 'Is it safe?' },
      { on: 'onStop', mode: 'guard', subagent: { prompt: 'Are the tests green?', tools: ['read'], maxSteps: 5 } },
    ]
    const found = read(JSON.stringify({ hooks: kinds }))
    assert.deepEqual(
      found.map(({ hook }) => hook.action?.kind),
      ['shell', 'http', 'prompt', 'subagent'],
    )
  })
})

suite('an invalid entry', () => {
  const reading = (...entries: readonly Json[]) =>
    readHookFile(
      JSON.stringify({ hooks: entries }, undefined, 1),
      { kind: 'project', file: 'hooks.json' },
      { cwd: '.', projectDir: '.', allowed: { env: [], privateAddresses: false }, taken: new Set() },
    )
  const guarding = { name: 'watch', on: 'beforeToolUse', mode: 'guard', shell: 'exit 2' }
  const watching = { name: 'watch', on: 'onStop', mode: 'observe', shell: 'true' }
  const wrong: readonly [what: string, entry: { readonly [key: string]: Json }][] = [
    ['an unknown trigger', { on: 'onstop' }],
    ['an unknown key', { tools: 'bash' }],
    ['an unknown action', { shell: null, run: 'true' }],
    ['two actions', { http: 'https://hooks.example' }],
    ['a timeout that is a string', { timeoutMs: '5' }],
    ['an empty condition', { when: {} }],
    ['a variable that is not allowed', { shell: { command: 'true', passEnv: ['TOKEN'] } }],
    ['a negative timeout', { priority: Number.MAX_VALUE, timeoutMs: -1 }],
  ]
  for (const [what, entry] of wrong) {
    test(`an observer with ${what} is left out and reported with its line, and its name stays free`, () => {
      const { hooks, mistakes } = reading({ ...watching, ...entry }, guarding)
      assert.deepEqual(
        hooks.map(({ hook }) => [hook.name, hook.mode]),
        [['watch', 'guard']],
      )
      assert.deepEqual(
        mistakes.map(({ code, message }) => [code, /^hooks\.json:\d+: /.test(message)]),
        [['CONFIG_INVALID', true]],
      )
    })

    for (const mode of ['guard', 'hook', 'Observe', ['observe'], null]) {
      test(`an entry with ${what} and mode ${JSON.stringify(mode)} throws, because it may be a guard`, () => {
        assert.throws(() => reading(guarding, { ...watching, name: 'b', ...entry, mode }), { code: 'CONFIG_INVALID' })
      })
    }
  }

  test('an observer with onFailure "block" throws, because its author relies on its decision', () => {
    assert.throws(() => reading({ ...watching, onFailure: 'block' }), { code: 'CONFIG_INVALID' })
  })

  test('a guard with the name of an observer throws', () => {
    assert.throws(() => reading(watching, guarding), /another hook of this file is called "watch"/)
    assert.deepEqual(reading(guarding, watching).mistakes.length, 1)
  })
})

suite('an invalid file throws with the line of the problem', () => {
  const lines = (...entry: readonly string[]): string =>
    ['{', '  "hooks": [', '    {', ...entry, '    }', '  ]', '}'].join('\n')
  const good = ['      "on": "beforeToolUse",', '      "mode": "guard",', '      "shell": "true"']
  const mistakes: readonly [what: string, text: string, why: RegExp | number, file?: string][] = [
    [
      'a trigger with wrong case',
      lines('"on": "beforeTooluse",', '"mode": "guard", "shell": "true"'),
      /:4: .*did you mean "beforeToolUse"/,
    ],
    [
      'an event of Claude Code',
      lines('"on": "PreToolUse",', '"mode": "guard", "shell": "true"'),
      /:4: .*did you mean "beforeToolUse"/,
    ],
    ['an unknown key', lines(...good, ',', '"tools": "bash"'), 8],
    ['a guard at a trigger without guards', lines('"on": "onSessionStart",', '"mode": "guard", "shell": "true"'), 3],
    [
      'a tool at a trigger without tools',
      lines('"on": "beforeStep", "tool": "bash",', '"mode": "guard", "shell": "true"'),
      3,
    ],
    ['an invalid pattern', lines(...good, ',', '"tool": "/(/"'), 8],
    ['a pattern with a back reference', lines(...good, ',', '"tool": "/(a)\\\\1/"'), 8],
    ['onFailure of a guard', lines(...good, ',', '"onFailure": "continue"'), 3],
    [
      'an environment variable that runs code',
      lines('"on": "beforeStep", "mode": "guard",', '"shell": { "command": "true", "env": { "BASH_ENV": "x" } }'),
      5,
    ],
    [
      'a duplicated name',
      '{ "hooks": [\n{ "name": "a", "on": "onStop", "mode": "guard", "shell": "x" },\n{ "name": "a", "on": "onStop", "mode": "guard", "shell": "y" }] }',
      3,
    ],
    ['a duplicated key', '{ "hooks": [\n{ "on": "onStop", "mode": "guard",\n"mode": "observe", "shell": "x" }] }', 3],
    ['the key __proto__', '{ "hooks": [\n{ "__proto__": { "mode": "observe" } }] }', 2],
    ['the key constructor', '{ "hooks": [\n{ "constructor": { "mode": "observe" } }] }', 2],
    ['a setting of Claude Code', '{ "hooks": [],\n"disableAllHooks": true }', 2],
    ['hooks by event', '{ "hooks": {\n"PreToolUse": [] } }', /"hooks" must be a list/],
    ['incomplete JSON', '{ "hooks": [', 1],
    ['an empty text', '', /it is (?:empty|not valid JSON)/],
    ['too many levels', '['.repeat(200_000), /levels deep|not valid JSON/],
    ['an alias', 'hooks:\n  - &a { on: onStop, mode: guard, shell: x }\n  - *a\n', 3, 'hooks.yaml'],
    [
      'an alias bomb',
      'a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n',
      /aliases are not supported|there is no "a"/,
      'hooks.yaml',
    ],
    ['a tag', 'hooks: !!js/function "x"\n', /tag|Unresolved/i, 'hooks.yaml'],
    ['a duplicated key in YAML', 'hooks: []\nhooks: []\n', 2, 'hooks.yaml'],
    ['a tab in YAML', 'hooks:\n\t- on: onStop\n', 2, 'hooks.yaml'],
  ]
  for (const [what, text, why, file = 'hooks.json'] of mistakes) {
    test(`a file with ${what} throws`, () =>
      assert.throws(
        () => read(text, { file }),
        ({ code, message }: AgentError) =>
          code === 'CONFIG_INVALID' &&
          message.startsWith(file) &&
          (typeof why === 'number' ? new RegExp(`:${why}: `) : why).test(message),
      ))
  }

  test('H12: a file cannot change a prototype', () => {
    assert.throws(() => read('{"hooks":{"__proto__":{"enabled":false}},"constructor":{"prototype":{"enabled":false}}}'))
    assert.equal(({} as { enabled?: boolean }).enabled, undefined)
  })
})

suite('the tool of an entry', () => {
  test('a pattern is matched in linear time', async () => {
    const { hook } = one({ on: 'beforeToolUse', mode: 'guard', tool: '/^(a+)+$/', shell: 'exit 2' })
    // With backtracking, this would not end.
    const toolCall = { name: `${'a'.repeat(60)}!`, args: {} }
    assert.equal((await fire(hook, 'beforeToolUse' as never, { toolCall } as never)).decision, undefined)
  })
})

suite('a file that is not the user file', () => {
  const http = (options: object): Json => ({
    on: 'onStop',
    mode: 'guard',
    http: { url: 'https://hooks.example', ...options },
  })
  for (const kind of ['project', 'plugin', 'skill', 'agent'] as const) {
    test(`the file of a ${kind} cannot allow variables or private addresses`, () => {
      const reading = { kind, file: 'hooks.json' }
      assert.throws(() => read('{ "allow": { "env": ["TOKEN"] } }', reading), /only the user file can have "allow"/)
      assert.throws(
        () => one(http({ headers: { a: '$TOKEN' }, allowedEnvVars: ['TOKEN'] }), reading),
        /the user file does not allow TOKEN/,
      )
      assert.throws(() => one(http({ allowPrivate: true }), reading), /the user file does not allow private addresses/)
      assert.throws(
        () => one({ on: 'onStop', mode: 'guard', shell: { command: 'x', passEnv: ['TOKEN'] } }, reading),
        /the user file does not allow TOKEN/,
      )
    })
  }

  test('a project hook may use what the user file allows', () => {
    const entry = http({ headers: { a: '$TOKEN' }, allowedEnvVars: ['TOKEN'] })
    assert.equal(one(entry, { kind: 'project', env: ['TOKEN'] }).hook.action?.kind, 'http')
  })
})
