import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { completeWord } from './literal-word.ts'
import { whatBashRuns } from './what-bash-runs.fixture.ts'

const literal: readonly string[] = [
  'a',
  'a.b',
  'a=b',
  'a#b',
  'a~',
  'a{b}',
  '{}',
  '@{u}',
  '{a',
  'a,b',
  '!',
  '%s',
  '^a',
  '-x',
  '--a=b',
  '[',
  "''",
  "'a b'",
  "'$x'",
  "'`'",
  "'*'",
  '"a b"',
  '"*"',
  '"$"',
  '"a$"',
  '"$ x"',
  '"\\$x"',
  '"\\a"',
  '"\\\\"',
  '"\\""',
  '"a\\\nb"',
  '\\$x',
  '\\*',
  '\\ ',
  '\\\\',
  "\\'",
  'a\'b\'"c"\\d',
  '$',
  'a$',
  '$.',
  '"~"',
]

const expanding: readonly string[] = [
  '$x',
  '${x}',
  '$(x)',
  '`x`',
  '$((1))',
  '$[1]',
  '$1',
  '$@',
  '$?',
  '$-',
  '"$x"',
  '"`x`"',
  '"${x}"',
  '"$(x)"',
  '$"a"',
  '*',
  'a*',
  '?',
  '[a]',
  'a[1]',
  '{a,b}',
  '{1..3}',
  'a{b,c}d',
  '~',
  '~/x',
  '~a',
  'a=~',
  'a:~',
  '$\\\nx',
  '"$\\\nx"',
  "$'\\x41'",
  "$'\\101'",
  "$'\\u0041'",
  'a\\',
  'a\\\nb',
  '"',
  "'",
  '"a',
  'a b',
  'a;b',
]

suite('completeWord', () => {
  test('returns the value that bash gives a word without expansions', () => {
    const [argv] = whatBashRuns(`p ${literal.join(' ')}`)
    assert.deepEqual(
      literal.map((word) => completeWord(word)?.value),
      argv!.slice(1),
    )
  })

  for (const word of expanding) {
    test(`is null for a word that is not literal: ${JSON.stringify(word)}`, () => {
      assert.equal(completeWord(word)?.value ?? null, null)
    })
  }
})
