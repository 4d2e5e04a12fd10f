import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hintFor } from './hints.ts'

test('who has no key is told which variable to set; who has one is not', () => {
  const error = { code: 'MODEL_UNAUTHORIZED', value: { provider: 'openai', model: 'gpt-5-mini' } } as const
  assert.equal(hintFor(error, {}), 'There is no key for openai. Set one with: export OPENAI_API_KEY=…')
  assert.equal(hintFor(error, { OPENAI_API_KEY: 'wrong' }), undefined)
})

test('who uses Ollama is told how to start it, and how to get a model', () => {
  const value = { provider: 'ollama', model: 'llama3.2' }
  assert.match(hintFor({ code: 'MODEL_UNREACHABLE', value }, {})!, /ollama serve/)
  assert.match(hintFor({ code: 'MODEL_REJECTED', value: { ...value, status: 404 } }, {})!, /ollama pull llama3\.2/)
  assert.equal(hintFor({ code: 'HOOK_FAILED', value: 7 }, {}), undefined)
})
