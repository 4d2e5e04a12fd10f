import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldName, showName } from './paths.ts'

test('names that some file systems treat as equal are folded to the same name', () => {
  const variants = ['.git', '.GIT', '.Git', '.g\u200Bit', '.git.', '.git ', '.gi\uFEFFt', '.\uFF47it', '.gIt. .']
  assert.deepEqual([...new Set(variants.map(foldName))], ['.git'])
})

test('composed and decomposed letters are folded to the same name, and different letters are not', () => {
  assert.equal(foldName('caf\u00E9'), foldName('cafe\u0301'))
  assert.notEqual(foldName('café'), foldName('cafe'))
  assert.equal(foldName('...'), '...')
})

test('a misleading name is shown as a JSON string', () => {
  const odd = ['a\nb', '\u001B[31mred', ' lead', 'trail ', 'say "hi"', '', '\u202Eevil', 'zero\u200Bwidth', '\u2028']
  for (const name of odd) {
    assert.match(showName(name), /^"[ -~…]*"$/)
    assert.equal(JSON.parse(showName(name)), name)
  }
})

test('an ordinary name is shown as it is', () => {
  for (const name of ['a b.ts', 'naïve.md', '日本語', '-rf', "it's", '$(x)', '\\d']) assert.equal(showName(name), name)
})
