import assert from 'node:assert/strict'
import { test } from 'node:test'
import { approvalFor } from '../../core/state/tool-call.ts'
import { findApproval, isAuthentic, shortId } from './approval-ids.ts'

const question = (key: string, to: string) =>
  approvalFor({ id: 'c', name: 'deploy', args: { to } }, [{ by: 'careful', message: 'Deploy?' }], { key })

test('a short id is as much of the hash as distinguishes an approval from the others', () => {
  const [one, two, again] = [question('a', 'x'), question('a', 'y'), question('b', 'x')]
  assert.equal(shortId(one, [one, two]), one.id.split('#')[1]!.slice(0, 8))
  assert.deepEqual([shortId(one, [one, again]), shortId(again, [one, again])], [one.id, again.id])
  assert.equal(findApproval([one, two], shortId(two, [one, two])), two)
  assert.equal(findApproval([one, again], again.id), again)
  assert.equal(findApproval([one, again], 'b#'.concat(again.hash.slice(0, 4))), again)
})

test('an approval whose arguments do not match its id is not authentic', () => {
  const asked = question('a', 'staging')
  const forged = { ...asked, toolCall: { ...asked.toolCall, args: { to: 'production' } } }
  const nameless = { ...asked, id: 'a#' }
  assert.deepEqual([asked, forged, nameless].map(isAuthentic), [true, false, false])
})
