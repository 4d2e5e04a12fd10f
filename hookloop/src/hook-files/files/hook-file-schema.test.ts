import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { Validator } from '@cfworker/json-schema'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { messageOf } from '../../errors.ts'
import { claudeEventNames, triggersOfEvent } from '../claude/events/claude-events.ts'
import { hookFileSchema } from './hook-file-schema.ts'
import { readHookFile } from './read-hook-file.fixture.ts'

test('the published schema is the one of the code', () => {
  const published: unknown = JSON.parse(readFileSync(new URL('../../../hooks.schema.json', import.meta.url), 'utf8'))
  assert.deepEqual(published, hookFileSchema())
})

const schema = hookFileSchema()
const validator = new Validator(schema, '7', false)
const isValid = (file: Json): boolean => validator.validate(file).valid

/** The error of the reader, if there is one. */
function problemOf(file: Json): string | undefined {
  try {
    const making = { cwd: '.', projectDir: '.', allowed: { env: [], privateAddresses: true }, taken: new Set<string>() }
    return readHookFile(JSON.stringify(file), { kind: 'user', file: 'hooks.json' }, making).mistakes[0]?.message
  } catch (error) {
    return messageOf(error)
  }
}

suite('the schema and the reader', () => {
  const random = randomFrom(20_261_115)
  const entries = [...validEntries(400, random), ...everyEvent()]

  test('the reader accepts what the schema accepts', () => {
    const rejected = entries.flatMap((entry) => {
      const problem = problemOf({ hooks: [entry] })
      return problem === undefined ? [] : [`${JSON.stringify(entry)}: ${problem}`]
    })
    assert.deepEqual(rejected, [])
  })

  test('the samples contain every field, trigger, mode and action', () => {
    const seen = new Set(entries.flatMap((entry) => [...Object.keys(entry), ...[entry['on']!].flat(), entry['mode']!]))
    const { properties } = (schema['definitions'] as { hook: { properties: JsonObject } }).hook
    const triggers = (properties['on'] as { anyOf: [{ enum: string[] }] }).anyOf[0].enum
    const missing = [...Object.keys(properties), ...triggers, 'guard', 'hook', 'observe'].filter(
      (each) => !seen.has(each),
    )
    assert.deepEqual(missing, [])
  })

  test('the reader rejects what the schema rejects', () => {
    const wrong = entries.flatMap((entry) => mutationsOf(entry, random).map((mutated) => ({ hooks: [mutated] })))
    const mistakes = wrong.filter((file) => !isValid(file))
    const taken = mistakes.filter((file) => problemOf(file) === undefined)
    assert.ok(mistakes.length > 1_000, String(mistakes.length))
    assert.deepEqual(
      taken.map((file) => JSON.stringify(file)),
      [],
    )
  })

  for (const file of [
    [],
    7,
    'hooks',
    null,
    { hook: [] },
    { hooks: {} },
    { hooks: [7] },
    { hooks: [], allow: { env: 'X' } },
  ]) {
    test(`the schema and the reader reject ${JSON.stringify(file)}`, () => {
      assert.ok(!isValid(file))
      assert.ok(problemOf(file) !== undefined)
    })
  }
})

/** Random entries that the schema accepts: values are generated field by field, and invalid combinations are dropped. */
function validEntries(count: number, random: () => number): readonly JsonObject[] {
  const made: JsonObject[] = []
  const hook = { $ref: '#/definitions/hook' }
  for (let tries = 0; made.length < count && tries < 200_000; tries++) {
    const entry = sample(hook, random, 0) as JsonObject
    if (isValid({ hooks: [entry] })) made.push(entry)
  }
  assert.equal(made.length, count)
  return made
}

/** A random handler hardly ever has the trigger of its event. */
function everyEvent(): readonly JsonObject[] {
  const entries = claudeEventNames.flatMap((event): JsonObject[] => {
    const on = [...triggersOfEvent(event)]
    const claude = { event, command: 'true', args: ['x'], pluginRoot: '.', timeout: 5 }
    return on.length === 0 ? [] : [{ on, mode: 'hook', claude }]
  })
  assert.ok(entries.every((entry) => isValid({ hooks: [entry] })))
  return entries
}

function sample(given: JsonObject, random: () => number, depth: number): Json {
  const node = resolved(given)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  if (node['const'] !== undefined) return node['const']
  if (Array.isArray(node['enum'])) return pick(node['enum'] as Json[])
  if (Array.isArray(node['anyOf'])) return sample(pick(node['anyOf'] as JsonObject[]), random, depth)
  switch (node['type']) {
    case 'string':
      return JSON.stringify(node['pattern'] ?? '').startsWith('"^[Hh]')
        ? 'https://hooks.example/x'
        : pick(['true', 'a b', 'work'])
    case 'boolean':
      return random() < 0.5
    case 'integer':
    case 'number':
      return Math.ceil(random() * 1_000)
    case 'array': {
      const least = (node['minItems'] as number | undefined) ?? 0
      const length = least + Math.floor(random() * 3 * (depth < 3 ? 1 : 0))
      return Array.from({ length }, () => sample(node['items'] as JsonObject, random, depth + 1))
    }
    default:
      return sampleObject(node, random, depth)
  }
}

function sampleObject(node: JsonObject, random: () => number, depth: number): JsonObject {
  const properties = (node['properties'] ?? {}) as { readonly [key: string]: JsonObject }
  const required = new Set((node['required'] ?? []) as string[])
  const choices = (node['oneOf'] ?? []) as { readonly required?: string[] }[]
  const exclusive = choices.flatMap((choice) => choice.required ?? [])
  const chosen = exclusive[Math.floor(random() * exclusive.length)]
  const wanted = Object.keys(properties).filter((key) => {
    if (exclusive.includes(key)) return key === chosen
    return required.has(key) || random() < (depth > 4 ? 0.05 : 0.25)
  })
  if (Object.keys(properties).length === 0) return random() < 0.5 ? {} : { Accept: 'text' }
  return Object.fromEntries(wanted.map((key) => [key, sample(properties[key]!, random, depth + 1)]))
}

function resolved(node: JsonObject): JsonObject {
  const { $ref } = node
  if (typeof $ref !== 'string') return node
  return (schema['definitions'] as { readonly [name: string]: JsonObject })[$ref.split('/').at(-1)!]!
}

/** Copies of an entry with one change, most of which make it invalid. */
function mutationsOf(entry: JsonObject, random: () => number): readonly Json[] {
  const keys = Object.keys(entry)
  const key = keys[Math.floor(random() * keys.length)]!
  const inner = keys.find((each) => isJsonObject(entry[each]) && each !== 'claude' && each !== 'when')
  const { [key]: _gone, ...without } = entry
  return [
    without,
    { ...entry, [`${key}s`]: entry[key]! },
    { ...without, [key.toUpperCase()]: entry[key]! },
    { ...entry, [key]: null },
    { ...entry, [key]: [] },
    { ...entry, [key]: 7.5 },
    { ...entry, [key]: { strange: true } },
    { ...entry, mode: 'gaurd' },
    { ...entry, on: 'PreToolUse' },
    { ...entry, on: ['beforeToolUse', 'beforeTooluse'] },
    { ...entry, timeoutMs: '5' },
    { ...entry, priority: 'high' },
    { ...entry, onFailure: 'ignore' },
    { ...entry, shell: 'true', http: 'https://hooks.example' },
    ...(inner === undefined ? [] : [{ ...entry, [inner]: { ...(entry[inner] as JsonObject), strange: 1 } }]),
  ]
}

/** A pseudo-random generator with a fixed seed. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296
    return state / 4_294_967_296
  }
}
