import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

// The reference of options is generated from their comments, so these are held to the types.

const read = (file: string): string => readFileSync(file, 'utf8')
const { exports: published } = JSON.parse(read('hookloop/package.json')) as {
  exports: { readonly [path: string]: { readonly 'hookloop-source'?: string } }
}
const entries = Object.values(published).flatMap(({ 'hookloop-source': source }) => source ?? [])
const exported = new Set(entries.flatMap((source) => read(`hookloop/${source}`).match(/\b[A-Z]\w+\b/g) ?? []))
const sources = globSync('hookloop/src/**/*.ts')
  .filter((file) => !/\.(test|fixture)\.|\/(cli|studio)\//.test(file))
  .map(read)

const comment = String.raw`(\/\*\*(?:(?!\*\/)[^])*\*\/\n)?`

test('every option has a comment, and the comment says its default', () => {
  const types = sources
    .flatMap((source) => [...source.matchAll(/^export type (\w+)[^\n]*\{\n([^]*?)\n\}/gm)])
    .filter(([, type]) => /(?:Options|Limits|ErrorPolicy|Settings|Definition)$/.test(type!) && exported.has(type!))
  const options = types.flatMap(([, type, body]) => {
    const members = body!.matchAll(new RegExp(`${comment}^ {2}readonly (\\w+)(\\??):`, 'gm'))
    return [...members].map(([, text = '', name, mark]) => ({
      option: `${type}.${name}`,
      isDocumented: mark === '' ? text !== '' : /default|required/i.test(text),
    }))
  })
  assert.ok(options.length > 200)
  assert.deepEqual(
    options.filter(({ isDocumented }) => !isDocumented).map(({ option }) => option),
    [],
  )
})

test('the reference of options that are made of several types has all of them', () => {
  const isSum = String.raw`(?:[A-Z][^\n]* & \{|\{(?:\n {2}[^\n]*)*\n\} & [A-Z])`
  const sums = sources
    .flatMap((source) => [
      ...source.matchAll(new RegExp(`${comment}^export type (\\w+Options)\\b[^\\n]* = ${isSum}`, 'gm')),
    ])
    .filter(([, , type]) => exported.has(type!))
  assert.ok(sums.length > 10)
  assert.deepEqual(
    sums.filter(([, text = '']) => !text.includes('@interface')).map(([, , type]) => type),
    [],
  )
})
