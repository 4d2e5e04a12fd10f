import assert from 'node:assert/strict'
import { test } from 'node:test'
import { median } from '../src/median.js'

test('the one in the middle', () => assert.equal(median([3, 1, 2]), 2))
test('between the two in the middle', () => assert.equal(median([4, 1, 2, 3]), 2.5))
test('numbers are compared as numbers', () => assert.equal(median([10, 9, 1]), 9))
