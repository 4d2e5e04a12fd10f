import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { JsonObject } from '../../values/json.ts'
import { textOf } from '../../core/state/message.ts'
import { anHour, countWith, until } from '../../system/processes/processes.fixture.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { claudeHooks } from './claude-hooks.ts'
import { bashCall, HookProject } from './hook-project.fixture.ts'

const RUNS = 50
const skip = process.platform !== 'linux' && 'what is left is read from /proc'

/** The child processes of this process, zombies included. */
function children(): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === process.pid
    } catch {
      return false
    }
  })
}

describe('parallel runs', { skip }, () => {
  test('fifty parallel runs with three hooks for each call decide correctly, and no process is left', async () => {
    using project = new HookProject()
    const before = children().length
    const denies = project.write(
      'deny.sh',
      '#!/bin/bash\nread -r event\n[[ "$event" == *odd* ]] && { echo "odd" >&2; exit 2; }\nexit 0\n',
      0o755,
    )
    const counts = project.write('count.sh', '#!/bin/bash\ncat > /dev/null\necho x >> count\n', 0o755)
    const tells = `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"seen"}}'`
    project.handlers(
      'PreToolUse',
      [denies, counts, tells].map((command) => ({ type: 'command', command })),
    )
    const ran: string[] = []
    const bash = tool({
      name: 'bash',
      description: 'Runs.',
      input: { type: 'object', properties: { command: { type: 'string' } } },
      execute: ({ command }) => void ran.push(command as string),
    })
    const model = scriptedModel(({ messages }) => {
      const calls = messages.filter(({ role }) => role === 'tool').length
      const name = textOf(messages.find(({ role }) => role === 'user')!.content)
      return calls === 2 ? 'Done.' : { toolCalls: [{ name: 'bash', args: { command: `${name} ${calls}` } }] }
    })
    const agent = createAgent({ model, use: [bash, claudeHooks({ dir: project.dir, trust: 'all', home: false })] })
    const names = Array.from({ length: RUNS }, (_, i) => (i % 2 === 0 ? `even ${i}` : `odd ${i}`))
    const runs = await Promise.all(names.map((name) => agent.run(name)))
    const expected = names.filter((name) => name.startsWith('even')).flatMap((name) => [`${name} 0`, `${name} 1`])
    assert.deepEqual(ran.toSorted(), expected.toSorted())
    assert.ok(runs.every(({ status }) => status === 'completed'))
    assert.equal(readFileSync(project.path('count'), 'utf8').length, 2 * 2 * RUNS)
    for (const { state } of runs) {
      assert.equal([...state.messages].filter(({ content }) => textOf(content).includes('\nseen\n')).length, 2)
    }
    assert.ok(await until(() => children().length <= before), 'a process is left')
  })
})

type Bad = readonly [what: string, command: string, open: string, failed: string | undefined, more?: JsonObject]

const hour = anHour()
const bad: readonly Bad[] = [
  ['hangs', `sleep ${hour}`, 'none', 'timedOut', { timeout: 0.5 }],
  [
    'hangs and does not want to end',
    `trap "" TERM; while :; do sleep ${hour}; done`,
    'none',
    'timedOut',
    { timeout: 0.5 },
  ],
  ['floods standard output', 'yes', 'none', 'timedOut', { timeout: 1 }],
  ['prints too much and ends', 'head -c 3000000 /dev/zero | tr "\\0" x', 'none', 'tooMuchOutput'],
  ['floods standard error', 'yes >&2', 'none', 'timedOut', { timeout: 1 }],
  ['closes its input', 'exec <&-; sleep 0.1; exit 2', 'deny', undefined],
  ['closes its input and output', 'exec <&- >&- 2>&-; exit 0', 'none', undefined],
  ['forks and exits', `sleep ${hour} & exit 2`, 'deny', undefined],
  ['is killed', 'kill -KILL $$', 'none', 'killed'],
  ['ends itself', 'kill -TERM $$; sleep 5', 'none', 'killed'],
]

describe('hanging and crashing hooks', { skip, concurrency: 2 }, () => {
  for (const [what, command, open, failed, more] of bad) {
    test(`a hook that ${what} is handled as onFailure says, and no process is left`, async () => {
      using project = new HookProject()
      const fired = async (onFailure: string) => {
        project.handlers('PreToolUse', [{ type: 'command', command, onFailure, ...more }])
        const { merged, ran } = await project.fire('PreToolUse', bashCall)
        return [merged.decision, ran[0]!.answer.failed]
      }
      const closed = failed === undefined ? open : 'deny'
      assert.deepEqual(await Promise.all([fired('continue'), fired('block')]), [
        [open, failed],
        [closed, failed],
      ])
      assert.ok(await until(() => countWith(hour) === 0))
    })
  }
})
