import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { claudeEventNames } from '../../hook-files/claude/events/claude-events.ts'
import { prints } from '../../hook-files/claude/hook-project.fixture.ts'
import { chat } from '../commands/chat.ts'
import { Terminal } from '../terminal/terminal.fixture.ts'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

/** A project whose hooks log every event that they receive, with its details. */
function telling(): ProjectWithHooks {
  const project = new ProjectWithHooks()
  const what =
    '[e.hook_event_name, e.source ?? e.trigger ?? e.reason ?? e.tool_name ?? e.prompt ?? ""].join(" ").trim()'
  const hooks = [{ type: 'command', command: `${prints(what)} >> '${project.marks}'`, timeout: 60 }]
  project.write('.claude/settings.json', {
    hooks: Object.fromEntries(claudeEventNames.map((name) => [name, [{ hooks }]])),
  })
  return project
}

const turn = ['UserPromptSubmit work x', 'PreToolUse work', 'worked x', 'PostToolUse work', 'PostToolBatch']
const end = ['MessageDisplay', 'Stop']

test('hookloop chat fires them too, with compact, clear and exit', async () => {
  const project = telling()
  const agent = join(project.root, 'summing.mjs')
  const sums = `import { summarization } from 'hookloop/summarization'\n`
  const code = readFileSync(project.agent, 'utf8')
  writeFileSync(agent, `${sums}${code.replace('use: [', "use: [summarization({ summarize: () => 'sum' }), ")}`)
  await project.trust('--yes')
  process.chdir(project.dir)
  Object.assign(process.env, project.env)
  const terminal = new Terminal()
  const chatting = chat({ agent, session: 'talk', stream: true }, terminal.cli(project.env))
  for (const line of ['work x', '/compact', 'hello', '/clear', 'bye', '/exit']) await terminal.after('› ', `${line}\r`)
  assert.equal(await chatting, 0)
  assert.deepEqual(project.marked(), [
    'SessionStart startup',
    ...turn,
    ...end,
    'UserPromptSubmit hello',
    'PreCompact manual',
    'SessionStart compact',
    'PostCompact manual',
    ...end,
    'SessionEnd clear',
    'SessionStart clear',
    'UserPromptSubmit bye',
    ...end,
    'SessionEnd prompt_input_exit',
  ])
})

test('hookloop run names the file and the command of a hook that injected, blocked or failed, live and as JSON', async () => {
  const project = new ProjectWithHooks()
  const on = (command: string) => [
    {
      hooks: [
        { type: 'command', command: 'true' },
        { type: 'command', command },
      ],
    },
  ]
  project.write('.claude/settings.json', {
    hooks: {
      UserPromptSubmit: on('echo On the main branch.'),
      PreToolUse: on('if grep -q wrong; then echo Never. >&2; exit 2; fi'),
      PostToolUse: on('exit 3'),
    },
  })
  await project.trust('--yes')
  const live = (await project.run('work good wrong')).stderr
  const place = (command: string) => `(.claude/settings.json: ${command}`
  const stop = place('if grep -q wrong; then echo Never. >&2; exit 2; fi)')
  for (const line of [
    `claude ${place('echo On the main branch.)')} injected "On the main branch."`,
    `blocked by claude ${stop}: PreToolUse:work hook error: Never.`,
    `! PostToolUse hook: exit exited with 3 ${place('exit 3)')}`,
  ])
    assert.ok(live.includes(line), `${line}\n${live}`)
  const { stdout } = await project.run('work good wrong', '--json')
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, { definedAt?: string }>)
  const places = new Set(events.flatMap(({ entry, ...event }) => [entry?.definedAt, event['definedAt']]))
  for (const command of ['echo On the main branch.', 'if grep -q wrong; then echo Never. >&2; exit 2; fi', 'exit 3'])
    assert.ok([...places].includes(`.claude/settings.json: ${command}`), command)
})

test('Ctrl-C during SessionEnd hooks ends them with a warning', async () => {
  const project = new ProjectWithHooks()
  const hooks = [{ type: 'command', command: `${project.mark('ending')}; sleep 50`, timeout: 60 }]
  project.write('.claude/settings.json', { hooks: { SessionEnd: [{ hooks }] } })
  await project.trust('--yes')
  for (const [signal, expected] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    const before = project.marked().length
    const running = project.start(['run', 'hello', '--agent', project.agent])
    while (project.marked().length === before) await sleep(5)
    running.kill(signal)
    const { code, stderr } = await running.ended
    assert.equal(code, expected, stderr)
    assert.match(stderr, /! SessionEnd hook: .* was cancelled/)
  }
})
