import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFrontMatter } from './front-matter.ts'

const fieldsOf = (head: string, plainTexts = false): unknown =>
  readFrontMatter(`---\n${head}\n---\nbody\n`, { plainTexts }).fields

test('front matter is read as plain values, and the rest is the body', () => {
  const text = '---\nname: a\ntools: [x, y]\nlimits:\n  steps: 3\n  on: true\nnone:\n---\n\n# Title\n---\nmore\n'
  assert.deepEqual(readFrontMatter(text), {
    fields: { name: 'a', tools: ['x', 'y'], limits: { steps: 3, on: true }, none: null },
    body: '\n# Title\n---\nmore\n',
  })
})

test('a file without front matter is all body, even if a line in it looks like front matter', () => {
  assert.deepEqual(readFrontMatter('# Title\n---\nname: a\n---\n'), {
    fields: {},
    body: '# Title\n---\nname: a\n---\n',
  })
})

test('a byte order mark, Windows line ends and empty front matter are accepted', () => {
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
  'a repeated key': ['name: a\nname: b', /duplicated/],
  'an alias': ['a: &x [1]\nb: *x', /aliases are not supported/],
  'a bomb of aliases': [
    `a0: &a0 [x]\n${Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`).join('\n')}`,
    /aliases are not supported/,
  ],
  'a tag of another language': ['a: !!js/function "function () {}"', /tag/],
  'a custom tag': ['a: !secret x', /tag/],
  'an infinite number': ['a: .inf', /not a plain value/],
  'the key __proto__': ['__proto__: { admin: true }', /not a valid key/],
  'an object as a key': ['? { a: 1 }\n: b', /not a valid key/],
  'something too deep': [`a: ${'['.repeat(40)}${']'.repeat(40)}`, /levels deep/],
  'something far too deep': [`a: ${'['.repeat(30_000)}${']'.repeat(30_000)}`, /levels deep|cannot be parsed/],
  'something too long': [`a: ${'x'.repeat(70_000)}`, /maximum is 65536/],
  'a list': ['- a\n- b', /not a list of "key: value"/],
  'broken YAML': ['a: [1, 2', /./],
}

for (const [what, [head, words]] of Object.entries(refused)) {
  test(`${what} in front matter is rejected`, () => {
    assert.throws(() => fieldsOf(head), words)
  })
}

test('front matter without an end is rejected', () => {
  assert.throws(() => readFrontMatter('---\nname: a\n'), /has no end/)
})

test('rejected front matter leaves no trace on objects', () => {
  assert.throws(() => fieldsOf('__proto__:\n  admin: true'))
  assert.equal(({} as { admin?: boolean }).admin, undefined)
})

test('with plainTexts, a description with colons is a text', () => {
  const head = 'name: reviewer\ndescription: Use it when: code was written. Examples: "a": b # c\ntools: Read, Grep'
  assert.throws(() => fieldsOf(head))
  assert.deepEqual(fieldsOf(head, true), {
    name: 'reviewer',
    description: 'Use it when: code was written. Examples: "a": b # c',
    tools: 'Read, Grep',
  })
})

test('plainTexts does not hide other mistakes', () => {
  assert.throws(() => fieldsOf('description: a: b\nname: x\nname: y', true), /duplicated/)
  assert.throws(() => fieldsOf('description: a: b\nlist: [1, 2', true))
})
