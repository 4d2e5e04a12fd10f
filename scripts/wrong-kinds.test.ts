import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { AgentError, messageOf } from '../hookloop/src/errors.ts'
import { memoryStore } from '../hookloop/src/sessions/stores/memory-store.ts'

// Every public function is called with values of the wrong kind, as arguments and as each of its options.

type Call = (...args: readonly unknown[]) => unknown
type Manifest = { readonly exports: { readonly [entry: string]: { readonly 'hookloop-source'?: string } } }

const kinds: { readonly [name: string]: unknown } = {
  null: null,
  number: 5,
  NaN: Number.NaN,
  bigint: 5n,
  boolean: true,
  list: [],
  'list of null': [null],
  object: { a: 1 },
  function: () => 1,
  symbol: Symbol('kind'),
  map: new Map(),
}

const folder = mkdtempSync(join(tmpdir(), 'hookloop-kinds-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** What a function may take before its options. */
function startsOf(name: string): readonly (readonly unknown[])[] {
  if (/^(?:guard|hook|observe)$/.test(name)) return [['beforeStep', () => 1]]
  return [[], [join(folder, name)], [memoryStore()], [memoryStore(), 'x']]
}

/** What a call throws that is not an error with a code. */
async function rawError(call: Call, args: readonly unknown[]): Promise<unknown> {
  try {
    const result = call(...args)
    await Promise.race([result, new Promise((resolve) => setImmediate(resolve))])
    return undefined
  } catch (thrown) {
    return thrown instanceof AgentError ? undefined : thrown
  }
}

/** The names of the options of a function, from the error about an unknown one. */
function optionsOf(call: Call, start: readonly unknown[]): readonly string[] {
  try {
    const result = call(...start, { unknownOption: 1 })
    if (result instanceof Promise) result.catch(() => undefined)
    return []
  } catch (thrown) {
    const [, names = ''] = /"unknownOption".*Known options: ([\w, ]+)/.exec((thrown as Error).message) ?? []
    return names === '' ? [] : names.split(', ')
  }
}

const root = join(import.meta.dirname, '..')
const manifest = JSON.parse(readFileSync(join(root, 'hookloop/package.json'), 'utf8')) as Manifest
for (const [entry, { 'hookloop-source': source }] of Object.entries(manifest.exports)) {
  if (source?.endsWith('.ts') !== true || /restate|pg-workers/.test(entry)) continue
  test(`the functions of ${entry} reject a value of the wrong kind with an error that has a code`, async () => {
    const module = (await import(join(root, 'hookloop', source))) as { readonly [name: string]: unknown }
    const raw: string[] = []
    for (const [name, value] of Object.entries(module)) {
      if (typeof value !== 'function' || name === 'storeContract') continue
      const isClass = Function.prototype.toString.call(value).startsWith('class')
      const call: Call = isClass ? (...args) => Reflect.construct(value, [...args]) : (value as Call)
      for (const [kind, wrong] of Object.entries(kinds)) {
        const tries: { readonly [what: string]: readonly unknown[] } = { [`(${kind})`]: [wrong] }
        for (const start of startsOf(name))
          for (const option of isClass ? [] : optionsOf(call, start))
            Object.assign(tries, { [`({ ${option}: ${kind} })`]: [...start, { [option]: wrong }] })
        for (const [what, args] of Object.entries(tries)) {
          const thrown = await rawError(call, args)
          if (thrown !== undefined) raw.push(`${name}${what}: ${messageOf(thrown)}`)
        }
      }
    }
    assert.deepEqual(raw, [])
  })
}
