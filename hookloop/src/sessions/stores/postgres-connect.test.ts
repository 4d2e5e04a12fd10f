import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cannotUse } from './postgres-connect.ts'

test('the error of a database has its address without the password, and says if the address names no host', () => {
  const messageFor = (address: string): string => cannotUse('The database', address, new Error('refused')).message
  assert.match(messageFor('postgres://ann:secret@db:5432/app'), /^The database at db:5432\/app cannot be used: refused/)
  assert.match(messageFor('postgres://'), /^The database, whose address names no host, cannot be used: refused/)
})
