import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvalFor } from '../../state/tool-call.ts'
import { findApproval, isTrue, shortId } from '../sessions/approval-ids.ts'
import { quoted } from './next-steps.ts'

const question = (key: string, to: string) =>
  approvalFor({ id: 'c', name: 'deploy', args: { to } }, [{ by: 'careful', message: 'Deploy?' }], { key })

test('a value is quoted as a shell takes it, and shows what hides in it', () => {
  const values = ['agent.ts', '', 'my agent.ts', "it's", '$(rm -rf /)', 'a\u001B[2J\nb']
  assert.deepEqual(values.map(quoted), [
    'agent.ts',
    "''",
    "'my agent.ts'",
    `'it'\\''s'`,
    "'$(rm -rf /)'",
    "'a\\u{1b}[2J\\nb'",
  ])
})

test('a question is called by as much of its hash as tells it from the others', () => {
  const [one, two, again] = [question('a', 'x'), question('a', 'y'), question('b', 'x')]
  assert.equal(shortId(one, [one, two]), one.id.split('#')[1]!.slice(0, 8))
  assert.deepEqual([shortId(one, [one, again]), shortId(again, [one, again])], [one.id, again.id])
  assert.equal(findApproval([one, two], shortId(two, [one, two])), two)
  assert.equal(findApproval([one, again], again.id), again)
  assert.equal(findApproval([one, again], 'b#'.concat(again.hash.slice(0, 4))), again)
})

test('a question that shows other arguments than its id stands for is not true', () => {
  const asked = question('a', 'staging')
  const forged = { ...asked, toolCall: { ...asked.toolCall, args: { to: 'production' } } }
  const nameless = { ...asked, id: 'a#' }
  assert.deepEqual([asked, forged, nameless].map(isTrue), [true, false, false])
})
