import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toRipgrepPattern } from './ripgrep.ts'

test('syntax with the same meaning is passed to ripgrep unchanged', () => {
  for (const pattern of ['foo', 'a|b', '^a+b*c?$', 'a{2,3}', '[a-z0-9_]+', 'é'])
    assert.equal(toRipgrepPattern(pattern), pattern)
})

test('syntax with another meaning is translated', () => {
  assert.equal(toRipgrepPattern('\\d'), '[0-9]')
  assert.equal(toRipgrepPattern('[\\w-]'), '[0-9A-Za-z_-]')
  assert.equal(toRipgrepPattern('[a&&b]'), '[a\\x{26}\\x{26}b]')
  assert.equal(toRipgrepPattern('\\bx'), '(?-u:\\b)x')
  assert.equal(toRipgrepPattern('(?P<name>a)(?:b)'), '(?:a)(?:b)')
  assert.equal(toRipgrepPattern('a{,2}'), 'a\\x{7b}\\x{2c}2\\x{7d}')
})

test('uncertain syntax is not translated', () => {
  const uncertain = [
    '\\pL',
    '\\x{41}',
    '\\A',
    'a\\z',
    '(?s)a',
    '(?i:a)',
    '[+--]',
    '\\Qa\\E',
    'a$b',
    'a^',
    '\uFFFD',
    '[a',
    '\\',
  ]
  for (const pattern of uncertain) assert.equal(toRipgrepPattern(pattern), undefined, pattern)
})
