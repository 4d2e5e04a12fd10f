import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Validator } from '@cfworker/json-schema'
import type { Json, JsonObject } from '../../values/json.ts'
import { fileTriggers, hookFileSchema } from './hook-file-schema.ts'
import { readHookFile } from './read-hook-file.fixture.ts'

test('the published schema is the one of the code', () => {
  const published: unknown = JSON.parse(readFileSync(new URL('../../../hooks.schema.json', import.meta.url), 'utf8'))
  assert.deepEqual(published, hookFileSchema())
})

const validator = new Validator(hookFileSchema(), '7', false)

/** Whether the schema and the reader accept a file. */
function accepted(file: Json): readonly [schema: boolean, reader: boolean] {
  const making = { cwd: '.', projectDir: '.', allowed: { env: [], privateAddresses: true }, taken: new Set<string>() }
  let isRead = true
  try {
    isRead = readHookFile(JSON.stringify(file), { kind: 'user', file: 'hooks.json' }, making).mistakes.length === 0
  } catch {
    isRead = false
  }
  return [validator.validate(file).valid, isRead]
}

const shell = { on: 'onStop', mode: 'guard', shell: 'true' }
const call = {
  on: 'beforeToolUse',
  mode: 'hook',
  name: 'a',
  tool: '/a|b/',
  priority: 3,
  timeoutMs: 5,
  onFailure: 'block',
}
const when = { all: [{ metadata: { role: null } }, { not: { stepType: 'finalResponse' } }], any: [] }
const url = 'https://hooks.example/x'

const valid: readonly JsonObject[] = [
  ...fileTriggers.map((on) => ({ ...shell, on: [on], mode: 'observe' })),
  { ...call, shell: { args: ['sh', '-c', 'true'], cwd: '.', env: { A: 'b' }, passEnv: ['C'], conversation: true } },
  { ...call, http: url, when },
  { ...call, http: { url, headers: { Accept: 'x' }, allowedEnvVars: ['A'], allowPrivate: true, maxOutputBytes: 9 } },
  {
    ...call,
    prompt: { prompt: 'Is it?', model: 'openai/x', system: 's', answer: 'outcome', settings: { temperature: 0 } },
  },
  { ...call, subagent: { prompt: 'Is it?', name: 'n', instructions: 'i', tools: ['t'], maxSteps: 3, maxTokens: 9 } },
  { on: 'afterInference', mode: 'guard', stream: 'hold', prompt: 'Is it?' },
]

const invalid: readonly Json[] = [
  7,
  { ...shell, shel: 'x' },
  { ...shell, shell: '' },
  { ...shell, shell: {} },
  { ...shell, shell: { command: 'x', args: ['x'] } },
  { ...shell, shell: { command: 'x', strange: 1 } },
  { ...shell, http: url },
  { ...shell, on: 'PreToolUse' },
  { ...shell, on: [] },
  { ...shell, on: 'aroundToolUse' },
  { ...shell, mode: 'gaurd' },
  { ...shell, timeoutMs: '5' },
  { ...shell, timeoutMs: 0 },
  { ...shell, priority: 'high' },
  { ...shell, onFailure: 'ignore' },
  { ...shell, when: {} },
  { ...shell, name: ' ' },
  { mode: 'guard', shell: 'true' },
  { on: 'onStop', mode: 'guard' },
  { on: 'onStop', mode: 'hook', http: 'file:///x' },
  { on: 'onStop', mode: 'hook', prompt: {} },
]

test('the schema and the reader accept the same entries and files', () => {
  for (const entry of valid) assert.deepEqual(accepted({ hooks: [entry] }), [true, true], JSON.stringify(entry))
  for (const entry of invalid) assert.deepEqual(accepted({ hooks: [entry] }), [false, false], JSON.stringify(entry))
  for (const file of [[], 'hooks', null, { hook: [] }, { hooks: {} }, { hooks: [], allow: { env: 'X' } }] as Json[])
    assert.deepEqual(accepted(file), [false, false], JSON.stringify(file))
})
