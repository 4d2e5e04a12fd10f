import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { commandLists } from './command-lists.fixture.ts'
import { completeWord } from './literal-word.ts'
import { whatBashRuns } from './what-bash-runs.fixture.ts'

const [literal = [], expanding = []] = commandLists('words.txt').map(({ commands }) => commands)

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
