import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { everyday, everydayRules } from './everyday.fixture.ts'
import { commandJudge } from './judge-command.ts'

const judge = commandJudge(everydayRules)

suite('everyday commands', () => {
  test('there are many of them, and bash can read each', () => {
    assert.ok(everyday.length >= 150)
    const unread = everyday.filter((command) => spawnSync('bash', ['-n', '-c', command]).status !== 0)
    assert.deepEqual(unread, [])
  })

  for (const command of everyday) {
    test(`allowed by natural rules: ${command}`, () => {
      const { verdict, rule } = judge(command)
      assert.equal(verdict, 'allow', rule)
    })
  }
})
