import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { commandJudge } from './judge-command.ts'
import { whatBashRuns } from './what-bash-runs.fixture.ts'

const denying = commandJudge({ allow: ['*'], block: ['touch'] })

/** Ways to quote one character without changing its meaning for bash. */
const disguises: readonly ((character: string) => string)[] = [
  (character) => character,
  (character) => `\\${character}`,
  (character) => `'${character}'`,
  (character) => `"${character}"`,
  (character) => `$'${character}'`,
  (character) => `$'\\x${character.charCodeAt(0).toString(16)}'`,
  (character) => `$'\\${character.charCodeAt(0).toString(8)}'`,
  (character) => `$'\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}'`,
  (character) => `''${character}`,
  (character) => `${character}""`,
  (character) => `\\\n${character}`,
  (character) => `$''${character}`,
]

const disguised = fc
  .array(fc.nat(disguises.length - 1), { minLength: 5, maxLength: 5 })
  .map((choices) => choices.map((choice, index) => disguises[choice]!('touch'[index]!)).join(''))

/** Ways to run a command inside another one. */
const surroundings: readonly ((command: string) => string)[] = [
  (command) => `ls; ${command}`,
  (command) => `ls && ${command}`,
  (command) => `ls | ${command}`,
  (command) => `ls\n${command}`,
  (command) => `${command} & ls`,
  (command) => `( ${command} )`,
  (command) => `{ ${command}; }`,
  (command) => `! ${command}`,
  (command) => `if ${command}; then ls; fi`,
  (command) => `if ls; then ${command}; fi`,
  (command) => `while ${command}; do ls; done`,
  (command) => `for x in a; do ${command}; done`,
  (command) => `case x in x) ${command};; esac`,
  (command) => `f() { ${command}; }`,
  (command) => `echo $( ${command} )`,
  (command) => `echo "$( ${command} )"`,
  (command) => `cat <( ${command} )`,
  (command) => `x=$( ${command} )`,
  (command) => `echo \${x:-$( ${command} )}`,
  (command) => `cat <<E\n$( ${command} )\nE\n`,
  (command) => `[[ -n $( ${command} ) ]]`,
  (command) => `ls # a comment\n${command}`,
  (command) => `cat <<'E'\n"'\`\nE\n${command}`,
]

/** Programs that run a simple command. */
const wrappers: readonly string[] = [
  'env',
  'env -i',
  'env A=b',
  'timeout 5',
  'timeout -s KILL 5',
  'nice',
  'nice -n 5',
  'nohup',
  'command',
  'exec',
  'builtin command',
  'setsid',
  'stdbuf -o0',
  'sudo',
  'sudo -u x',
  'xargs',
  'xargs -n 1',
  'busybox',
  'A=b',
  '>x',
  'find . -exec',
  'ionice -c 3',
  'flock x',
  'chroot /',
  'ssh host',
  'watch',
  'npx',
  'docker run image',
  'time',
]

suite('properties', () => {
  test('a blocked name is blocked however it is quoted', () => {
    fc.assert(
      fc.property(disguised, (name) => {
        assert.equal(denying(`${name} x`).verdict, 'block')
      }),
      { numRuns: 500 },
    )
  })

  test('a quoted name is the same name for bash', () => {
    fc.assert(
      fc.property(disguised, (name) => {
        assert.deepEqual(whatBashRuns(`${name} x`), [['touch', 'x']])
      }),
      { numRuns: 30 },
    )
  })

  test('a blocked command is not allowed in any composition of constructs and wrappers', () => {
    const compositions = fc.record({
      name: disguised,
      wrapped: fc.array(fc.constantFrom(...wrappers), { maxLength: 4 }),
      around: fc.array(fc.nat(surroundings.length - 1), { maxLength: 5 }),
    })
    fc.assert(
      fc.property(compositions, ({ name, wrapped, around }) => {
        const command = [...wrapped, name, 'x'].join(' ')
        const whole = around.reduce((inner, choice) => surroundings[choice]!(inner), command)
        assert.notEqual(denying(whole).verdict, 'allow')
      }),
      { numRuns: 1000 },
    )
  })

  test('an allowed command is what bash runs, word for word', () => {
    const judge = commandJudge({ allow: ['cat', 'wc'] })
    fc.assert(
      fc.property(literalCommands, (command) => {
        const { verdict, commands } = judge(command)
        fc.pre(verdict === 'allow' && commands.every(({ argv }) => argv !== null))
        assert.deepEqual(sorted(whatBashRuns(command)), sorted(commands.map(({ argv }) => argv)))
      }),
      { numRuns: 100 },
    )
  })

  test('no text makes the judge throw or hang', () => {
    const soup = fc.array(fc.oneof(fc.constantFrom(...hostilePieces), fc.string({ unit: 'binary' })), { maxLength: 60 })
    const judge = commandJudge({ allow: ['*', 'git log'], block: ['touch', 'git push', 'rm -rf'], ask: ['mv *'] })
    fc.assert(
      fc.property(soup, (pieces) => {
        const { verdict, rule, reason } = judge(pieces.join(''))
        assert.ok(['allow', 'ask', 'block'].includes(verdict) && rule !== '' && reason !== '')
      }),
      { numRuns: 300 },
    )
  })
})

const hostilePieces: readonly string[] = [
  ...'ls p1 touch git a 1 -x -- = ~ { } , .. ! * ? [ ] # $ ` " $('.split(' '),
  ...') ( ${ $(( )) <( << <<< > >& 2> ; ;; & && | || fi done esac f() $" a=( é'.split(' '),
  '\\',
  "'",
  '<<E\n',
  'E\n',
  '\n',
  ' ',
  '\t',
  '\r',
  '\0',
  '\u200B',
  'if ',
  'then ',
  'do ',
  'case x in ',
  'function ',
  '[[ ',
  ' ]]',
  'time ',
  'coproc ',
  "$'",
  '\\\n',
  '\uD800',
]

const wordPieces: readonly string[] = [
  'a',
  'b',
  '1',
  '-',
  '--o=',
  '=',
  '}',
  '{',
  '!',
  '^',
  '%',
  '@',
  ':',
  '.',
  '/',
  '+',
  'x#',
  ']',
  ',',
  'é',
  '日',
  '\\\\',
  '\\"',
  "\\'",
  '\\$',
  '\\ ',
  '\\*',
  "'a b'",
  "'$x'",
  '"a b"',
  '"\\$x"',
  '"a\\b"',
  '"a\\\nb"',
  '"$"',
  "'#'",
  "$'a\\tb'",
  "$'\\''",
  '""',
  "''",
  '"a;b"',
  '\\#',
  '\\;',
  '\\&',
  '\\|',
  '\\<',
  'if',
  'fi',
  'in',
  '$',
  '~',
  '*',
  '"*"',
]

const words = fc.array(fc.constantFrom(...wordPieces), { minLength: 1, maxLength: 4 }).map((pieces) => pieces.join(''))
const programs = fc.constantFrom('cat --', 'wc --', 'c"at" --', "'cat' --", 'c\\at --', '"wc" --', "$'wc' --")
const simpleCommands = fc.tuple(programs, fc.array(words, { maxLength: 3 })).map(([program, args]) => {
  return [program, ...args].join(' ')
})
const endings = fc.constantFrom(
  '; ',
  '\n',
  ' | ',
  ' && ',
  ' & ',
  '|',
  ' # "\n',
  ' >/dev/null; ',
  ' 2>&1 | ',
  " <<'E'\n$(p9)\nE\n",
)
const literalCommands = fc
  .array(fc.tuple(simpleCommands, endings), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.map(([command, ending]) => command + ending).join('') + 'cat')

function sorted(lists: readonly (readonly string[] | null)[]): readonly string[] {
  return lists.map((list) => JSON.stringify(list)).toSorted()
}
