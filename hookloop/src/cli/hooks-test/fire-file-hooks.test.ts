import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { hookloop } from '../cli.fixture.ts'

const dir = mkdtempSync(join(tmpdir(), 'hookloop-own-hooks-'))
after(() => rmSync(dir, { recursive: true }))
mkdirSync(join(dir, '.hookloop'))
writeFileSync(
  join(dir, '.hookloop', 'hooks.yaml'),
  `
hooks:
  - { name: no-push, on: beforeToolUse, mode: guard, tool: bash, shell: "grep -q 'git push' && { echo Never. >&2; exit 2; }; exit 0" }
  - { name: pushes, on: beforeToolUse, mode: hook, tool: bash, shell: "echo '{\\"updatedInput\\":{\\"command\\":\\"git push\\"}}'" }
  - { name: reads, on: beforeToolUse, mode: guard, tool: read_file, shell: "exit 1" }
  - { name: more, on: onStop, mode: hook, shell: "echo '{\\"continue\\":\\"Run the tests.\\"}'" }
`,
)

type Report = { decision: string; reason: string; updatedInput: unknown; hooks: { name: string; decision: string }[] }

async function decided(event: string, payload: object, named = dir): Promise<Report> {
  const { stdout, code, stderr } = await hookloop(['hooks', 'test', event, '--dir', named, '--no-user', '--json'], {
    input: JSON.stringify(payload),
  })
  assert.deepEqual([code, stderr], [0, ''])
  return JSON.parse(stdout) as Report
}

describe('hookloop hooks test with .hookloop/hooks.yaml', { concurrency: 2 }, () => {
  test('guards get what hooks changed, and hooks of other tools do not run', async () => {
    const { decision, reason, updatedInput, hooks } = await decided('PreToolUse', {
      tool_name: 'Bash',
      tool_input: { command: 'ls' },
    })
    assert.deepEqual([decision, reason, updatedInput], ['deny', 'Never.', { command: 'git push' }])
    assert.deepEqual(
      hooks.map(({ name, decision: own }) => [name, own]),
      [
        ['pushes', 'none'],
        ['no-push', 'deny'],
      ],
    )
  })

  test('a guard that fails blocks, and Hookloop tool names are accepted', async () => {
    const { decision, hooks } = await decided('beforeToolUse', { toolCall: { name: 'read_file', args: { path: 'a' } } })
    assert.deepEqual([decision, hooks.map(({ name }) => name)], ['deny', ['reads']])
  })

  test('a request for another step blocks the stop', async () => {
    const { decision, reason } = await decided('Stop', {})
    assert.deepEqual([decision, reason], ['block', 'Run the tests.'])
  })

  test('.hookloop names its project', async () => {
    const { decision } = await decided('Stop', {}, join(dir, '.hookloop'))
    assert.equal(decision, 'block')
  })
})
