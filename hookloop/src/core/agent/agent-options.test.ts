import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import * as v from 'valibot'
import * as z from 'zod'
import * as z3 from 'zod/v3'
import { guards } from '../../capabilities/guards.ts'
import { createAgent } from '../../create-agent.ts'
import { observe, type Hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { Use } from './capability.ts'
import { tool } from './tool.ts'

const model = scriptedModel(() => 'done')
const named = (name: string): Hook => observe('*', () => undefined, { name })
const hooksOf = (use: readonly Use[]): readonly string[] =>
  createAgent({ model, use })
    .describe()
    .hooks.map(({ name }) => name)
    .filter((name) => name.length === 1)

suite('use', () => {
  test('ignores falsy values, and flattens lists in order', () => {
    const isOff = Math.random() < 0
    const use: readonly Use[] = [
      isOff && named('x'),
      named('a'),
      [named('b'), null, [named('c'), [[]], undefined]],
      0,
      '',
      NaN as 0, // of a count that is not a number: `count && hook(…)`
      named('d'),
    ]
    assert.deepEqual(hooksOf(use), ['a', 'b', 'c', 'd'])
    const more = createAgent({ model }).with(isOff && named('x'), [named('e'), [named('f')]], undefined)
    const names = more.describe().hooks.map(({ name }) => name)
    assert.deepEqual(
      names.filter((name) => name.length === 1),
      ['e', 'f'],
    )
  })

  test('finds capabilities with the same name in nested lists', () => {
    assert.throws(() => createAgent({ model, use: [[guards()], [[guards()]]] }), /"guards" was added twice/)
  })

  for (const [what, use, message] of [
    ['a capability that was not called', [guards], /not the function "guards"\. Call the function/],
    ['a promise', [Promise.resolve(guards())], /not an instance of Promise\. Await it\.$/],
    ['a name', ['bash'], /"use" takes hooks, tools and capabilities.*not "bash"/],
    ['true', [true], /not true/],
    ['a promise', [Promise.resolve(guards())], /not an instance of Promise/],
  ] as const) {
    test(`that is or has ${what} is rejected with a clear message`, () => {
      assert.throws(() => createAgent({ model, use: use as never }), { code: 'AGENT_INVALID_OPTION', message })
    })
  }
})

suite('a schema that cannot be used gets the advice for its library', () => {
  const zod3 = /a schema of Zod 3, which has no JSON Schema; use Zod 4, or import \{ z \} from 'zod\/v4'/
  const old = { _def: { typeName: 'ZodObject' }, safeParse: () => undefined }
  for (const [what, schema, message] of [
    ['Zod 3', z3.object({ n: z3.number() }), zod3],
    ['Zod 3 before Standard Schema', old, zod3],
    ['Valibot', v.object({ n: v.number() }), /Valibot schema has no JSON Schema; wrap it in toStandardJsonSchema\(\)/],
    ['fields without z.object', { n: z.number() }, /its fields are schemas, but it is not one; use z\.object/],
    ['another library', { '~standard': { version: 1, vendor: 'acme' } }, /acme does not convert it to JSON Schema/],
    ['nothing', undefined, /(undefined|null) is neither a schema of Zod 4/],
    ['a class', new URL('https://a.example'), /an instance of URL is neither/],
    ['names of types', { a: 'string' }, /"a" is not a keyword of JSON Schema; write \{ type: 'object', properties/],
    [
      'fields with the names of keywords',
      { title: {}, description: { type: 'string' }, url: 1 },
      /"title", "desc.* are not/,
    ],
    ['JSON Schemas of fields', { city: { type: 'string' }, description: 'Where.' }, /"city" is not a keyword/],
    ['constructors', { a: String, b: Number }, /"a", "b" are not keywords of JSON Schema/],
    ['a type that does not exist', { type: 'text' }, /its schema is invalid at "type"/],
    ['a property that is no schema', { type: 'object', properties: { a: 'string' } }, /invalid at "properties\.a"/],
    ['required as a boolean', { properties: { a: { type: 'string', required: true } } }, /"properties\.a\.required"/],
    [
      'a keyword with a typo',
      { type: 'object', require: ['a'] },
      /"require" is not a keyw.*; did you mean "required"\?/,
    ],
    ['a keyword in the singular', { type: 'object', property: {} }, /"property" is not.*did you mean "properties"\?/],
    [
      'a keyword with a typo of a field',
      { type: 'object', properties: { a: { anyOf: [{ type: 'string', maxlength: 5 }] } } },
      /"maxlength" is not a keyword of JSON Schema; did you mean "maxLength"\?/,
    ],
    ['a constructor', String, /the function "String" is neither/],
  ] as const) {
    test(what, () => {
      const make = () => tool({ name: 'a', description: 'b', input: schema as never, execute: () => 'ok' })
      assert.throws(make, { code: 'TOOL_INVALID', message })
      assert.throws(() => createAgent({ model, output: (schema ?? null) as never }), message)
    })
  }
})

suite('a tool whose schema fits no object is rejected', () => {
  for (const [what, schema] of Object.entries({
    'a string': z.string(),
    'a list': z.array(z.string()),
    'a tuple': z.tuple([z.string()]),
    'a union without an object': z.union([z.string(), z.null()]),
    'an enum': z.enum(['a', 'b']),
    'a literal': z.literal(5),
    'a transformed string': z.string().transform((text) => ({ text })),
    'JSON Schema of a string': { type: 'string' },
    'JSON Schema of two types': { type: ['string', 'null'] },
    'JSON Schema of alternatives': { oneOf: [{ type: 'string' }, { const: 5 }] },
  })) {
    test(what, () => {
      const make = () => tool({ name: 'a', description: 'b', input: schema as never, execute: () => 'ok' })
      const message = /its input schema fits no object: arguments are an object, so write z\.object\(\{ … \}\)/
      assert.throws(make, { code: 'TOOL_INVALID', message })
    })
  }
})

suite('a tool whose schema may fit an object is accepted', () => {
  const object = z.object({ a: z.string() })
  for (const [what, schema] of Object.entries({
    anything: z.any(),
    unknown: z.unknown(),
    'an empty JSON Schema': {},
    'a union of objects': z.union([object, z.object({ b: z.string() })]),
    'an object or null': object.nullable(),
    'a discriminated union': z.discriminatedUnion('k', [
      z.object({ k: z.literal('x') }),
      z.object({ k: z.literal('y') }),
    ]),
    'an intersection': z.intersection(object, z.object({ b: z.string() })),
    'a transformed object': object.transform(({ a }) => a),
    'a pipe': z.preprocess((value) => value, object),
    'a record': z.record(z.string(), z.number()),
    'a lazy object': z.lazy(() => object),
    'a reference': { $ref: '#/$defs/a', $defs: { a: { type: 'object' } } },
    'keywords of other programs': {
      type: 'object',
      properties: {
        require: { type: 'string', note: 'n', enumNames: [], markdownDescription: 'm', errorMessage: 'e' },
      },
      'x-order': 1,
      propertyOrdering: ['require'],
      discriminator: { propertyName: 'k' },
      nullable: true,
      id: 'a',
      name: 'a',
      strict: true,
      title: 'A',
      description: 'An a.',
      $comment: 'c',
    },
  })) {
    test(what, () => void tool({ name: 'a', description: 'b', input: schema as never, execute: () => 'ok' }))
  }
})

suite('a part of the application that fails is reported', () => {
  test('a store', async () => {
    const open = (): Promise<never> => Promise.reject(new Error('no disk'))
    const run = createAgent({ model, store: { ...memoryStore(), open } }).run('go', { session: 's' })
    await assert.rejects(run, { code: 'STORE_FAILED' })
  })

  test('a schema', async () => {
    const jsonSchema = { input: () => ({ type: 'object' }), output: () => ({ type: 'object' }) }
    for (const result of [undefined, null, 5] as never[]) {
      const input = { '~standard': { version: 1, vendor: 'own', validate: () => result, jsonSchema } } as const
      const own = tool({ name: 'own', description: 'Own.', input, execute: () => 'ran' })
      const calls = scriptedModel([{ toolCalls: [{ name: 'own' }] }, 'done'])
      const run = await createAgent({ model: calls, use: [own] }).run('go')
      const output = JSON.stringify(run.state.execution!.steps.at(0)!.toolExecutions[0]!.output)
      assert.match(output, new RegExp(`the schema failed: it returned ${String(result)}`))
    }
  })
})

test('the text of a saved run is not a session id, and the error says how to pass it', async () => {
  const agent = createAgent({ model: scriptedModel(['Done.']), store: memoryStore() })
  const text = JSON.stringify(await agent.run('go'))
  await assert.rejects(agent.resume(text), {
    code: 'AGENT_INVALID_OPTION',
    message: 'The run cannot start: a saved run is passed as an object: agent.resume(JSON.parse(text)).',
  })
})
