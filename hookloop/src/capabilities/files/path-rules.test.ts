import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathRules } from './path-rules.ts'

const ruleFor = (patterns: readonly string[], path: string): string | undefined =>
  pathRules('hide', patterns)(path.split('/'))

test('a pattern without a slash matches a name anywhere, and everything below it', () => {
  for (const path of ['.git', '.git/config', 'a/b/.git/hooks/x']) assert.equal(ruleFor(['.git'], path), '.git')
  for (const path of ['git', '.gitignore', 'a/x.git']) assert.equal(ruleFor(['.git'], path), undefined)
})

test('a pattern with a slash is a path from the root', () => {
  for (const path of ['docs/private', 'docs/private/a/b']) assert.equal(ruleFor(['docs/private'], path), 'docs/private')
  assert.equal(ruleFor(['docs/private'], 'a/docs/private'), undefined)
  assert.equal(ruleFor(['/top'], 'top/x'), '/top')
  assert.equal(ruleFor(['/top'], 'a/top'), undefined)
  assert.equal(ruleFor(['**/private'], 'a/b/private/x'), '**/private')
})

test('a folder pattern may end with a slash or two stars', () => {
  for (const pattern of ['build/', 'build/**']) assert.equal(ruleFor([pattern], 'a/build/x'), pattern)
  assert.equal(ruleFor(['a/build/**'], 'a/build/x'), 'a/build/**')
})

test('case, composed letters, invisible characters and dots at the end make no difference', () => {
  for (const path of ['.ENV', '.Env.Local', '.e\u200Bnv', '.env.', 'caf\u00E9', 'CAFE\u0301/x']) {
    assert.notEqual(ruleFor(['.env*', 'cafe\u0301'], path), undefined, path)
  }
})
