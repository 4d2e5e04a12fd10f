import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { commandJudge } from './judge-command.ts'
import type { CommandRules } from './rules.ts'

/** The commands that get each verdict, with the same rules. */
type Expected = {
  readonly allow?: readonly string[]
  readonly ask?: readonly string[]
  readonly block?: readonly string[]
}

function assertVerdicts(rules: CommandRules, expected: Expected): void {
  const judge = commandJudge(rules)
  const wrong = Object.entries(expected).flatMap(([verdict, commands]) =>
    commands
      .map((command) => ({ command, got: judge(command) }))
      .filter(({ got }) => got.verdict !== verdict)
      .map(({ command, got }) => `${got.verdict} (${got.rule}), expected ${verdict}: ${command.slice(0, 200)}`),
  )
  assert.deepEqual(wrong, [])
}

function ruleOf(rules: CommandRules, command: string): string {
  return commandJudge(rules)(command).rule
}

suite('a command that runs others', () => {
  const exec = (count: number, command: string): string => `-exec ${command} \\; `.repeat(count)
  const TOO_MANY = 'it runs too many nested commands'

  test('hides none behind many: of 64 each is judged, and one with more is blocked', () => {
    const rules = { block: ['rm'] }
    assertVerdicts(rules, {
      ask: [`find . ${exec(64, 'ls')}`, `find . ${exec(31, 'timeout 5 ls')}${exec(2, 'ls')}`],
      block: [
        `find . ${exec(63, 'ls')}${exec(1, 'rm x')}`,
        `find . ${exec(64, 'ls')}${exec(1, 'rm x')}`,
        `find . ${exec(64, 'ls')}${exec(1, 'ls')}`,
        `find . ${exec(32, 'timeout 5 ls')}${exec(1, 'ls')}`,
        `find . ${exec(32, 'timeout 5 ls')}${exec(1, 'timeout 5 ls')}`,
      ],
    })
    assert.equal(ruleOf(rules, `find . ${exec(32, 'timeout 5 ls')}${exec(1, 'ls')}`), TOO_MANY)
    assert.equal(ruleOf(rules, `find . ${exec(32, 'timeout 5 ls')}${exec(1, 'timeout 5 ls')}`), TOO_MANY)
  })

  test('hides none behind options that are not known', () => {
    const options = '-e A=1 '.repeat(20)
    assertVerdicts(
      { allow: ['*'], block: ['rm'] },
      { block: [`docker run ${options}--rm image rm x`], ask: [`docker run ${options}--rm image ls x`] },
    )
  })

  test('hides none behind shell code: of 64 texts each is judged, and one with more is blocked', () => {
    const rules = { allow: ['*'], block: ['rm'] }
    const aliases = (count: number): string => `alias ${'a=ls '.repeat(count)}`
    assertVerdicts(rules, {
      ask: [aliases(64)],
      block: [`${aliases(63)}a="rm x"`, `${aliases(64)}a="rm x"`, aliases(65)],
    })
    assert.equal(ruleOf(rules, aliases(65)), TOO_MANY)
  })

  test('may be nested eight times, and is blocked beyond that', () => {
    const nested = (count: number): string => `${'timeout 5 '.repeat(count)}ls`
    assertVerdicts({ allow: ['ls'] }, { allow: [nested(8)], block: [nested(9), `nice ${nested(8)}`] })
  })

  test('is covered with all that it runs by a rule that names every word, up to eight of them', () => {
    const nested = (count: number): string => `${'setsid '.repeat(count)}ls`
    assertVerdicts({ allow: [nested(8), nested(9)] }, { allow: [nested(8)], block: [nested(9)] })
  })

  test('as shell code needs approval, even if rules name the shell, its option and the code', () => {
    assertVerdicts(
      { allow: ['*', 'bash', 'bash -c', 'bash -c ls', 'env -S', 'ls', 'flock x -c ls'] },
      { ask: ['bash -c ls', 'env -S ls', 'flock x -c ls', 'bash <<< ls', 'bash <<E\nls\nE'] },
    )
    assert.equal(ruleOf({ allow: ['bash -c'] }, 'bash -c ls'), 'bash runs shell code')
  })

  test('is known by its exact name only', () => {
    const paths = [
      './timeout 5 ls',
      'bin/nice ls',
      '/usr/bin/env ls',
      './command ls',
      'timeout 5 ./nice ls',
      './time ls',
    ]
    const asked = ['TIMEOUT 5 ls', 'gtimeout 5 ls', ...paths]
    assertVerdicts({ allow: ['ls'] }, { allow: ['timeout 5 ls', 'timeout 5 nice ls'], ask: asked })
    assertVerdicts(
      { allow: ['ls', '/usr/bin/env'] },
      { allow: ['/usr/bin/env ls'], ask: ['/usr/bin/env rm x', ...paths.slice(0, 2)] },
    )
  })

  test('runs what is up to a semicolon or a plus sign if it is find, and otherwise all words', () => {
    const texts = (command: string): readonly string[] => commandJudge({})(command).commands.map(({ text }) => text)
    assert.deepEqual(texts('find . -exec ls a \\; -exec wc {} + -print').slice(1), ['ls a', 'wc {}'])
    assert.deepEqual(texts('timeout 5 ls a + b \\; c').slice(1), ['ls a + b ; c'])
    assert.deepEqual(texts('env -S ls').slice(1), ['ls'])
  })

  test('as shell code that cannot be parsed is searched for blocked words', () => {
    assertVerdicts(
      { allow: ['*'], block: ['rm'] },
      { block: [`bash -c 'echo "rm x'`, `bash -c 'f( rm x'`], ask: [`bash -c 'echo "ls x'`, `bash -c 'ls x'`] },
    )
    const verdicts = commandJudge({ allow: ['*'] })(`bash -c 'echo "ls x'`).commands.map(({ verdict }) => verdict)
    assert.deepEqual(new Set(verdicts), new Set(['ask']))
  })
})

suite('a redirection', () => {
  test('to a file of data needs no rule, and allows nothing of the command before it', () => {
    assertVerdicts(
      { allow: ['ls'] },
      { allow: ['> out.txt', 'ls > out.txt'], ask: ['curl evil.example > out.txt', 'ls > run.sh', 'x > out.txt'] },
    )
    assert.deepEqual(commandJudge({ allow: ['ls'] })('ls > out.txt').commands, [
      { text: 'ls > out.txt', argv: ['ls'], verdict: 'allow', rule: 'allow "ls"', writes: ['out.txt'] },
    ])
  })
})

suite('a program', () => {
  test('that is a builtin which changes the shell needs approval, even if rules name all its words', () => {
    const commands = [
      'export A=b',
      'umask 000',

      'shift',
      'history -c',
      'hash x',
      'exec ls',
    ]
    assertVerdicts({ allow: ['*', 'ls', ...commands.filter((each) => !each.includes('='))] }, { ask: commands })
    assert.match(ruleOf({ allow: ['hash x'] }, 'hash x'), /^the builtin hash: /)
  })
})

suite('a catastrophe', () => {
  test('is blocked whatever the rules say, for each program that can cause one', () => {
    assertVerdicts(
      { allow: ['rm *', 'chmod *', 'chown *', 'chgrp *', 'find *', 'dd *', 'mkfs*'] },
      {
        block: [
          'rm -r /',
          'rm --recursive ~',
          'rm --recurs ~',
          'rm --r ~',
          'chmod -R 777 /',
          'chown -R me /',
          'chgrp -R me /home',
          'rm --no-preserve-root x',
          'chown --no-preserve-root me x',
          'find / -delete',
          'find x / -delete',
          'dd if=x of=/dev/sda',
          'mkfs /dev/sda',
          'mkfs.ext4 x',
        ],
      },
    )
    assertVerdicts({}, { ask: ['rm --force ~', 'chmod 755 /home', 'find ~ -print'] })
    const rules = ['rm x', 'rm -- x', 'rm --force x', 'chmod 644 x', 'chown me x', 'find . -delete', 'dd if=a of=b']
    assertVerdicts({ allow: rules }, { allow: rules.filter((each) => !each.startsWith('find')) })
  })
})

suite('the reason', () => {
  test('suggests a rule only if one can be written', () => {
    assert.equal(ruleOf({}, 'foo bar'), 'no rule allows it; the rule "foo bar" would allow it')
    for (const command of ['foo "a b"', "foo 'a*'", "foo ''", "foo '$x'", 'foo "a b" c', "foo ''  c"])
      assert.equal(ruleOf({}, command), 'no rule allows it', command)
  })
})
