import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ToolNames } from './tool-names.ts'

const described = (name: string) => ({ name, description: '', inputSchema: {} })

test('every tool name is converted to one that all providers accept, and back', () => {
  const name = fc.oneof(fc.string(), fc.string({ minLength: 60, maxLength: 90 }), fc.constantFrom('a.b', 'a_b', 'a:b'))
  fc.assert(
    fc.property(fc.uniqueArray(name), (all) => {
      const names = new ToolNames(all.map(described))
      const sent = all.map((each) => names.sent(each))
      assert.deepEqual(
        sent.filter((each) => !/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(each)),
        [],
      )
      assert.equal(new Set(sent).size, all.length)
      assert.deepEqual(
        sent.map((each) => names.own(each)),
        all,
      )
    }),
  )
})

test('an unknown name from the model is not mapped to a tool', () => {
  const names = new ToolNames([described('file.read')])
  assert.deepEqual(
    [names.own('file_read'), names.own('file.read'), names.own('toString')],
    ['file.read', 'file.read', 'toString'],
  )
})

test('a tool of an earlier conversation is not mapped to a current tool', () => {
  const names = new ToolNames([described('file.read')])
  assert.notEqual(names.sent('file_read'), names.sent('file.read'))
})
