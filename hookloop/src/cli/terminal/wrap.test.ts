import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wrap, wrapExplanation } from './wrap.ts'

test('a line that is too wide is broken at blanks, and the rest is indented', () => {
  assert.equal(wrap('⊘ one two three four', 12, 2), '⊘ one two\n  three four')
  assert.equal(wrap('short', 12, 2), 'short')
})

test('colours have no width, and a wide word stays whole', () => {
  assert.equal(wrap('\u001B[31mone\u001B[39m two', 7, 2), '\u001B[31mone\u001B[39m two')
  assert.equal(wrap('a wonderfullylongword b', 10, 2), 'a\n  wonderfullylongword\n  b')
})

test('an explanation is broken below its second column, and commands stay whole', () => {
  const text =
    'The run is complete.\n  blocked      step 1, bash, by no-push: Never.\n  to continue  hookloop approve 12345678, then hookloop resume x'
  assert.equal(
    wrapExplanation(text, 36),
    'The run is complete.\n  blocked      step 1, bash, by\n               no-push: Never.\n  to continue  hookloop approve 12345678, then hookloop resume x',
  )
  assert.equal(wrapExplanation(text, undefined), text)
})
