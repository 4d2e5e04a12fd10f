import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFrontMatter } from './front-matter.ts'

const fieldsOf = (head: string, plainTexts = false): unknown =>
  readFrontMatter(`---\n${head}\n---\nbody\n`, { plainTexts }).fields

test('the head is read as plain values, and the rest is the body', () => {
  const text = '---\nname: a\ntools: [x, y]\nlimits:\n  steps: 3\n  on: true\nnone:\n---\n\n# Title\n---\nmore\n'
  assert.deepEqual(readFrontMatter(text), {
    fields: { name: 'a', tools: ['x', 'y'], limits: { steps: 3, on: true }, none: null },
    body: '\n# Title\n---\nmore\n',
  })
})

test('a file without a head is all body, also when a line in it looks like one', () => {
  assert.deepEqual(readFrontMatter('# Title\n---\nname: a\n---\n'), {
    fields: {},
    body: '# Title\n---\nname: a\n---\n',
  })
})

test('a byte order mark, Windows lines and an empty head are no trouble', () => {
  assert.deepEqual(readFrontMatter('\uFEFF---\r\nname: a\r\n---\r\nbody\r\n'), {
    fields: { name: 'a' },
    body: 'body\r\n',
  })
  assert.deepEqual(readFrontMatter('---\n---\nbody'), { fields: {}, body: 'body' })
})

test('an empty list is not the same as no list', () => {
  assert.deepEqual(fieldsOf('tools: []'), { tools: [] })
  assert.deepEqual(fieldsOf('other: 1'), { other: 1 })
})

const refused: { readonly [what: string]: [string, RegExp] } = {
  'a repeated key': ['name: a\nname: b', /unique/],
  'an alias': ['a: &x [1]\nb: *x', /"\*x" stands for something else/],
  'a bomb of aliases': [
    `a0: &a0 [x]\n${Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`).join('\n')}`,
    /stands for something else/,
  ],
  'a tag of another language': ['a: !!js/function "function () {}"', /tag/],
  'a tag of its own': ['a: !secret x', /tag/],
  'a number that is none': ['a: .inf', /no plain value/],
  'the key __proto__': ['__proto__: { admin: true }', /no key/],
  'an object as a key': ['? { a: 1 }\n: b', /no key/],
  'something too deep': [`a: ${'['.repeat(40)}${']'.repeat(40)}`, /levels deep/],
  'something far too deep': [`a: ${'['.repeat(30_000)}${']'.repeat(30_000)}`, /levels deep|cannot be read/],
  'something too long': [`a: ${'x'.repeat(70_000)}`, /at most 65536/],
  'a list': ['- a\n- b', /not a list of "key: value"/],
  'broken YAML': ['a: [1, 2', /./],
}

for (const [what, [head, words]] of Object.entries(refused)) {
  test(`${what} in the head is refused`, () => {
    assert.throws(() => fieldsOf(head), words)
  })
}

test('a head that does not end is refused', () => {
  assert.throws(() => readFrontMatter('---\nname: a\n'), /does not end/)
})

test('what is refused leaves no trace on objects', () => {
  assert.throws(() => fieldsOf('__proto__:\n  admin: true'))
  assert.equal(({} as { admin?: boolean }).admin, undefined)
})

test('with plain texts, a description with colons is a text', () => {
  const head = 'name: reviewer\ndescription: Use it when: code was written. Examples: "a": b # c\ntools: Read, Grep'
  assert.throws(() => fieldsOf(head))
  assert.deepEqual(fieldsOf(head, true), {
    name: 'reviewer',
    description: 'Use it when: code was written. Examples: "a": b # c',
    tools: 'Read, Grep',
  })
})

test('plain texts do not make a mistake elsewhere good', () => {
  assert.throws(() => fieldsOf('description: a: b\nname: x\nname: y', true), /unique/)
  assert.throws(() => fieldsOf('description: a: b\nlist: [1, 2', true))
})
