import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { developerCommands, developerLists, developerRules, listRules, ON_PURPOSE } from './developer.fixture.ts'
import { everyday, everydayRules } from './everyday.fixture.ts'
import { commandJudge } from './judge-command.ts'
import type { CommandRules } from './rules.ts'

const judge = commandJudge(everydayRules)

suite('everyday commands', () => {
  test('are many, and bash can parse each', () => {
    assert.ok(everyday.length >= 150)
    const canRead = (script: string): boolean => spawnSync('bash', ['-n', '-c', script]).status === 0
    const all = everyday.map((command) => `f() {\n${command}\n}`).join('\n')
    assert.deepEqual(canRead(all) ? [] : everyday.filter((command) => !canRead(command)), [])
  })

  for (const command of everyday) {
    test(`allowed by natural rules: ${command}`, () => {
      const { verdict, rule } = judge(command)
      assert.equal(verdict, 'allow', rule)
    })
  }

  const askedOf = (commands: readonly string[], rules: CommandRules): readonly string[] => {
    const judgeForDeveloper = commandJudge(rules)
    return commands
      .map((command) => ({ command, judged: judgeForDeveloper(command) }))
      .filter(({ judged }) => judged.verdict !== 'allow')
      .map(({ command, judged }) => `${command}: ${judged.rule}`)
  }

  test('of developers: at most 3 in 100 need approval, with globs, variables, loops, redirections and here-documents', () => {
    const asked = askedOf(developerCommands, developerRules)
    assert.ok(developerCommands.length >= 200)
    assert.ok(asked.length <= developerCommands.length * 0.03, asked.join('\n'))
  })

  for (const [title, commands] of developerLists) {
    if (title === ON_PURPOSE) continue
    test(`of ${title}: at most 3 in 100 need approval`, () => {
      const asked = askedOf(commands, listRules)
      assert.ok(commands.length >= 200)
      assert.ok(asked.length <= commands.length * 0.03, asked.join('\n'))
    })
  }

  test('that change settings, run code or write elsewhere need approval, or a rule that names it', () => {
    const commands = developerLists.get(ON_PURPOSE)!
    assert.equal(askedOf(commands, listRules).length, commands.length)
  })
})
