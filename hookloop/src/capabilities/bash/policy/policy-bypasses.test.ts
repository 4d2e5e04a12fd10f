import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { commandJudge } from './judge-command.ts'
import { securityRows, strictRules } from './security-rows.fixture.ts'
import { bypasses } from '../bypass.fixture.ts'

suite('security cases, by verdict', () => {
  for (const { title, rules, verdict, commands } of securityRows) {
    test(`${title}: ${verdict}`, () => {
      const judge = commandJudge(rules)
      const wrong = commands
        .map((command) => ({ command, got: judge(command) }))
        .filter(({ got }) => (verdict === 'not allow' ? got.verdict === 'allow' : got.verdict !== verdict))
        .map(({ command, got }) => `${got.verdict} (${got.rule}): ${command.slice(0, 200)}`)
      assert.deepEqual(wrong, [])
    })
  }
})

suite('tricks', () => {
  const policies = { 'safe programs': strictRules, everything: { ...strictRules, allow: ['*'] } }
  const places = { 'in a variable': '$M', 'written out': '/o/MARK', relative: 'MARK' }
  for (const [allowed, rules] of Object.entries(policies)) {
    for (const [how, place] of Object.entries(places)) {
      test(`none is allowed if ${allowed} may run, with a file name ${how}`, () => {
        const judge = commandJudge(rules)
        const allowedTricks = bypasses
          .filter(({ command }) => judge(command.replaceAll('$M', place)).verdict === 'allow')
          .map(({ name }) => name)
        assert.deepEqual(allowedTricks, [])
        assert.equal(bypasses.length, 60)
      })
    }
  }
})
