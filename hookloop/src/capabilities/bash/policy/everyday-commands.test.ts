import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, test } from 'node:test'
import { developerCommands, developerLists, developerRules, listRules, ON_PURPOSE } from './developer.fixture.ts'
import { everyday, everydayRules } from './everyday.fixture.ts'
import { commandJudge } from './judge-command.ts'
import type { CommandRules } from './rules.ts'

suite('everyday commands', () => {
  test('are many, and bash can parse each', () => {
    assert.ok(everyday.length >= 150)
    const canRead = (script: string): boolean => spawnSync('bash', ['-n', '-c', script]).status === 0
    const all = everyday.map((command) => `f() {\n${command}\n}`).join('\n')
    assert.deepEqual(canRead(all) ? [] : everyday.filter((command) => !canRead(command)), [])
  })

  const askedOf = (commands: readonly string[], rules: CommandRules): readonly string[] => {
    const judge = commandJudge(rules)
    return commands
      .map((command) => ({ command, judged: judge(command) }))
      .filter(({ judged }) => judged.verdict !== 'allow')
      .map(({ command, judged }) => `${command}: ${judged.rule}`)
  }

  const lists = new Map([
    ['any user', { commands: everyday, rules: everydayRules }],
    ...[...developerLists]
      .filter(([title]) => title !== ON_PURPOSE)
      .map(
        ([title, commands]) =>
          [title, { commands, rules: commands === developerCommands ? developerRules : listRules }] as const,
      ),
  ])
  for (const [title, { commands, rules }] of lists)
    test(`of ${title} need no approval`, () => assert.deepEqual(askedOf(commands, rules), []))

  const forms: { readonly [what: string]: readonly string[] } = {
    'an expansion': ['ls $x', 'ls "$HOME"', 'ls ~/x', 'ls ${x%.ts}', 'ls {a,b}', "echo $'a'", 'echo $?'],
    'a substitution': ['wc -l $(ls)', 'echo `pwd`', 'diff <(ls a) <(ls b)'],
    'a here-document': ["cat <<'E'\na\nE", 'cat <<E\na\nE'],
    'a variable': ['x=a', 'x=src; ls $x', 'for f in *.ts; do wc -l $f; done', 'while read x; do echo; done'],
    'another folder': ['cd src && ls', 'pushd src; ls', 'git -C src status', 'command cd src; ls'],
    'a script of sed or awk': [
      "sed 's/a/b/' x",
      "sed -n '/a/,/b/p' x",
      "awk 'NR>1' x",
      "awk '{sum+=$1} END {print sum}' x",
    ],
    '[[ ]]': ['[[ -f a ]] && ls'],
  }
  for (const [what, commands] of Object.entries(forms))
    test(`with ${what} need approval`, () =>
      assert.equal(askedOf(commands, { allow: [...listRules.allow!, 'cd', 'pushd'] }).length, commands.length))

  test('that change settings, run code or write elsewhere need approval, or a rule that names it', () => {
    const commands = developerLists.get(ON_PURPOSE)!
    assert.equal(askedOf(commands, listRules).length, commands.length)
  })
})
