import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

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
