import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { developerRules } from './developer.fixture.ts'
import { everydayRules } from './everyday.fixture.ts'
import { generousRules, hostile } from './hostile.fixture.ts'
import { commandJudge } from './judge-command.ts'
import type { CommandRules } from './rules.ts'

suite('hostile commands', () => {
  test('are many, and none is listed twice', () => {
    assert.ok(hostile.length >= 3_000, String(hostile.length))
    assert.deepEqual(
      hostile.filter((command, index) => hostile.indexOf(command) !== index),
      [],
    )
  })

  const allowedBy = (rules: CommandRules): readonly string[] => {
    const judge = commandJudge(rules)
    return hostile.filter((command) => judge(command).verdict === 'allow')
  }

  test('none is allowed with rules of every day', () => assert.deepEqual(allowedBy(everydayRules), []))

  test('none is allowed with rules of developers', () => {
    const block = [...developerRules.block!, 'touch'] // the payload of many
    assert.deepEqual(allowedBy({ ...developerRules, block }), [])
  })

  test('none is allowed with generous rules', () => assert.deepEqual(allowedBy(generousRules), []))
})
