import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hintFor } from './hints.ts'

test('a missing key gets a hint with its variable, and a rejected key none', () => {
  const error = {
    code: 'MODEL_UNAUTHORIZED',
    message: 'No.',
    value: { provider: 'openai', model: 'gpt-5-mini' },
  } as const
  assert.equal(hintFor(error, {}), 'No API key for openai is set. Set one with: export OPENAI_API_KEY=…')
  assert.equal(hintFor(error, { OPENAI_API_KEY: 'wrong' }), undefined)
})

test('Ollama errors get a hint how to start it or pull a model', () => {
  const value = { provider: 'ollama', model: 'llama3.2' }
  assert.match(hintFor({ code: 'MODEL_UNREACHABLE', message: '', value }, {})!, /ollama serve/)
  assert.match(
    hintFor({ code: 'MODEL_REJECTED', message: '', value: { ...value, status: 404 } }, {})!,
    /ollama pull llama3\.2/,
  )
  assert.equal(hintFor({ code: 'HOOK_FAILED', message: '', value: 7 }, {}), undefined)
})
