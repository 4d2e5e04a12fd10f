import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { AgentError } from '../../../errors.ts'
import { commandJudge, type CommandVerdict } from './judge-command.ts'
import type { CommandRules } from './rules.ts'

const verdictOf = (command: string, rules: CommandRules): CommandVerdict['verdict'] =>
  commandJudge(rules)(command).verdict

suite('a verdict', () => {
  test('has every command with its verdict, and the rule that decided', () => {
    const judge = commandJudge({ allow: ['ls', 'git log'], block: ['rm'] })
    assert.deepEqual(judge('ls -la && echo $(rm "a b")'), {
      verdict: 'block',
      commands: [
        { text: 'ls -la', argv: ['ls', '-la'], verdict: 'allow', rule: 'allow "ls"' },
        { text: 'echo $(rm "a b")', argv: null, verdict: 'ask', rule: 'not all of its words are literal' },
        { text: 'rm "a b"', argv: ['rm', 'a b'], verdict: 'block', rule: 'block "rm"' },
      ],
      rule: 'block "rm"',
      reason: 'Blocked: rm "a b" (block "rm").',
    })
  })

  test('has the command of a wrapper as a separate command', () => {
    const { commands } = commandJudge({ allow: ['ls'] })('timeout 5 nice ls -l')
    assert.deepEqual(
      commands.map(({ argv, verdict }) => [argv!.join(' '), verdict]),
      [
        ['timeout 5 nice ls -l', 'allow'],
        ['nice ls -l', 'allow'],
        ['ls -l', 'allow'],
      ],
    )
  })

  test('names the word that a rule does not cover', () => {
    const { rule } = commandJudge({ allow: ['git log'] })('git log --output=x')
    assert.equal(
      rule,
      'allow "git log" does not cover it: --output=x is not known to be harmless; the rule "git log --output=x" would allow it',
    )
  })
})

suite('an allow rule', () => {
  test('matches complete words from the start', () => {
    const rules = { allow: ['git log', 'npm run *', 'npm run test:*'] }
    const allowed = ['git log', 'git log -5', 'npm run build', 'npm run test:unit'].map((each) =>
      verdictOf(each, rules),
    )
    const asked = ['git', 'git logs', 'git -x log', 'npm run', 'npm running x', 'log'].map((each) =>
      verdictOf(each, rules),
    )
    assert.deepEqual([new Set(allowed), new Set(asked)], [new Set(['allow']), new Set(['ask'])])
  })

  test('with a star in a word matches any text there', () => {
    const rules = { allow: ['p a*c *.ts'] }
    assert.deepEqual(
      ['p abc x.ts', 'p ac .ts', 'p abd x.ts', 'p abc x.js', 'p abc'].map((each) => verdictOf(each, rules)),
      ['allow', 'allow', 'ask', 'ask', 'ask'],
    )
  })

  test('with a path matches that path only, and a name matches no path', () => {
    const rules = { allow: ['./run.sh x', 'bin/*', 'ls'] }
    assert.deepEqual(
      ['./run.sh x', 'bin/a', 'bin/../a', '/run.sh', 'run.sh', './ls', '/bin/ls', 'bin/a/b'].map((each) => {
        return verdictOf(each, rules)
      }),
      ['allow', 'allow', 'ask', 'ask', 'ask', 'ask', 'ask', 'ask'],
    )
  })

  test('covers words that run commands or write files only if it names them', () => {
    const rules = {
      allow: ['sed -i', 'node build.js', 'node --test', 'tee out.txt', 'git log --output=*', 'xargs grep', 'sort *'],
    }
    const allowed = [
      'sed -i 1d x',
      'node build.js -x',
      'node --test a.js',
      'tee out.txt',
      'git log --output=x',
      'xargs grep a',
    ]
    const asked = [
      'sed -n -i p x',
      'node other.js',
      'node --test --import x',
      'tee x',
      'xargs rm',
      'sort -o x',
      'sort -o',
    ]
    assert.deepEqual(
      [...allowed, ...asked].map((each) => verdictOf(each, rules)),
      [...allowed.map(() => 'allow'), ...asked.map(() => 'ask')],
    )
  })
})

suite('a block rule', () => {
  test('matches its program by any path and in any case, after wrappers, and with arguments that expand', () => {
    const rules = { allow: ['*'], block: ['rm'] }
    const commands = [
      'rm',
      '/bin/rm x',
      './rm',
      'RM x',
      'rm.exe x',
      'rm $x',
      'sudo -n rm x',
      'env -u A /bin/rm',
      '\\rm x',
      '"rm" x',
    ]
    assert.deepEqual(new Set(commands.map((each) => verdictOf(each, rules))), new Set(['block']))
  })

  test('of several words matches with options between them', () => {
    const rules = { allow: ['*', 'git'], block: ['git push', 'npm run deploy'] }
    const blocked = [
      'git push',
      'git -C x push',
      'git -c a=b --no-pager push -f',
      '/usr/bin/git push',
      'npm --prefix x run deploy',
      'npm run -s deploy',
    ]
    const others = [
      'git log --grep push',
      'git commit -m push',
      'git stash push',
      'git --no-pager stash push',
      'git -P grep push',
      'npm run build deploy',
      'git log push',
    ]
    assert.deepEqual(
      [...blocked, ...others].map((each) => verdictOf(each, rules) === 'block'),
      [...blocked.map(() => true), ...others.map(() => false)],
    )
  })

  test('with options matches them in any order and form', () => {
    const rules = { allow: ['*'], block: ['rm -rf', 'git push --force'] }
    const blocked = [
      'rm -rf x',
      'rm -fr x',
      'rm -r -f x',
      'rm x -rf',
      'rm -rvf x',
      'rm --recursive --force x',
      'rm -R --forc x',
      'git push origin main --force',
      'git push -f',
    ]
    const others = ['rm x', 'rm -r x', 'rm -f x', 'git push', 'git push origin --follow-tags']
    assert.deepEqual(
      [...blocked, ...others].map((each) => verdictOf(each, rules) === 'block'),
      [...blocked.map(() => true), ...others.map(() => false)],
    )
  })

  test('overrides ask, and ask overrides allow', () => {
    const rules = { allow: ['a', 'b', 'c'], ask: ['b', 'c'], block: ['c'] }
    assert.deepEqual(
      ['a', 'b', 'c', 'a; b', 'b; c'].map((each) => verdictOf(each, rules)),
      ['allow', 'ask', 'block', 'ask', 'block'],
    )
  })

  test('does not match a command because of a word in it', () => {
    const rules = { allow: ['echo', 'grep', 'git log', 'man', 'cat'], block: ['rm', 'curl', 'touch'] }
    const commands = [
      'echo rm',
      'grep -rn "touch" src',
      "git log --grep 'curl'",
      'man rm',
      'cat rm',
      'echo "do not rm this"',
    ]
    assert.deepEqual(new Set(commands.map((each) => verdictOf(each, rules))), new Set(['allow']))
  })
})

suite('invalid rules', () => {
  const wrong: readonly [string, unknown, RegExp][] = [
    ['an unknown option', { alow: ['ls'] }, /unknown option "alow"/],
    ['nothing', { allow: [' '] }, /it is empty/],
    ['a chain', { allow: ['ls; pwd'] }, /plain words/],
    ['a substitution', { allow: ['ls $(x)'] }, /plain words/],
    ['quotes', { allow: ["echo 'a b'"] }, /plain words/],
    ['a control character', { allow: ['ls\u0000'] }, /plain words/],
    ['an option instead of a program', { block: ['-rf'] }, /name of a program/],
    ['a variable instead of a program', { allow: ['A=b ls'] }, /not with a variable/],
  ]
  for (const [what, rules, message] of wrong) {
    test(`${what} is rejected`, () => {
      assert.throws(
        () => commandJudge(rules as CommandRules),
        (thrown) =>
          thrown instanceof AgentError && thrown.code === 'AGENT_INVALID_OPTION' && message.test(thrown.message),
      )
    })
  }
})

suite('a hostile text', () => {
  const texts: { readonly [what: string]: string } = {
    'nested substitutions': '$('.repeat(20_000),
    'nested substitutions that close': `echo ${'$('.repeat(20_000)}ls${')'.repeat(20_000)}`,
    'quoted substitutions': '"$('.repeat(20_000),
    backquotes: '`'.repeat(20_001),
    'nested braces': `echo ${'{a,'.repeat(10_000)}`,
    parameters: '${a:-'.repeat(20_000),
    arithmetic: '$(('.repeat(20_000),
    'here-documents': `cat ${'<<A '.repeat(20_000)}\n${'A\n'.repeat(20_000)}`,
    functions: 'f() '.repeat(16_000),
    coprocesses: 'coproc '.repeat(9000),
    commands: 'true;'.repeat(13_000),
    pipes: 'true|'.repeat(13_000),
    'pipes in a substitution': `echo $(true${'|    true'.repeat(500)})`,
    'loops within each other': `${'for x in a b c; do '.repeat(90)}ls $x${'; done'.repeat(90)}`,
    'a long word': 'a'.repeat(10_000_000),
    quotes: '"'.repeat(60_001),
    'stars in the place of a program': `${'*a'.repeat(30_000)} x`,
    'options of a wrapper': `env ${'-x a '.repeat(13_000)}rm`,
    'wrappers within each other, with options that are not known': 'sudo -x '.repeat(16_000),
    'commands of find': `find . ${'-exec a \\; '.repeat(10_000)}`,
    'options between words': `git ${'-x push '.repeat(8000)}`,
    'unknown options': `git log ${'--xx '.repeat(5900)}`,
    'line ends': '\n'.repeat(60_000),
    'substitutions without an end': 'echo $(echo '.repeat(90),
  }
  const judge = commandJudge({
    allow: ['*', 'git', 'env'],
    block: ['touch', 'git push origin main', 'rm -rf'],
    ask: ['a*b*c'],
  })
  // Each has about the maximum length. With backtracking, a parser would not end before the time limit of the test runner.
  for (const [what, text] of Object.entries(texts)) {
    test(`of ${what} is judged`, () =>
      [text, text.slice(0, 30_000)].forEach((each) => assert.ok(/allow|ask|block/.test(judge(each).verdict))))
  }
})
