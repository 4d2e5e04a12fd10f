import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toRipgrepPattern } from './ripgrep-pattern.ts'

test('what means the same to ripgrep is said as it is', () => {
  for (const pattern of ['foo', 'a|b', '^a+b*c?$', 'a{2,3}', '[a-z0-9_]+', 'é'])
    assert.equal(toRipgrepPattern(pattern), pattern)
})

test('what would mean something else is translated', () => {
  assert.equal(toRipgrepPattern('\\d'), '[0-9]')
  assert.equal(toRipgrepPattern('[\\w-]'), '[0-9A-Za-z_-]')
  assert.equal(toRipgrepPattern('[a&&b]'), '[a\\x{26}\\x{26}b]')
  assert.equal(toRipgrepPattern('\\bx'), '(?-u:\\b)x')
  assert.equal(toRipgrepPattern('(?P<name>a)(?:b)'), '(?:a)(?:b)')
  assert.equal(toRipgrepPattern('a{,2}'), 'a\\x{7b}\\x{2c}2\\x{7d}')
})

test('what is not certain is not said', () => {
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
