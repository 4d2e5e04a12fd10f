import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite, test } from 'node:test'

// The size and the documentation of what users import. Reading the source is enough: index files re-export by name.

const MAX_ENTRY_POINTS = 20
const MAX_MAIN_NAMES = 130

const read = (file: string): string => readFileSync(file, 'utf8')
const { exports } = JSON.parse(read('hookloop/package.json')) as { exports: Record<string, unknown> }
const entryPoints = Object.entries(exports).flatMap(([name, target]) =>
  typeof target === 'object' ? [{ name, ...(target as { readonly 'hookloop-source': string; types: string }) }] : [],
)
const sourceOf = (target: string): string => join('hookloop', target)

test(`there are at most ${MAX_ENTRY_POINTS} entry points, and their sources exist`, () => {
  assert.ok(entryPoints.length <= MAX_ENTRY_POINTS, `${entryPoints.length} entry points`)
  const sources = entryPoints.map((entry) => sourceOf(entry['hookloop-source']))
  const files = Object.values(exports).flatMap((target) => (typeof target === 'string' ? [sourceOf(target)] : []))
  assert.deepEqual(
    [...sources, ...files].filter((file) => !existsSync(file)),
    [],
  )
})

test('what is built lies in dist as its source lies in src', () => {
  for (const { name, 'hookloop-source': source, types, ...rest } of entryPoints) {
    const built = source.replace('./src/', './dist/').replace(/\.ts$/, '')
    assert.deepEqual({ name, types, ...rest }, { name, types: `${built}.d.ts`, default: `${built}.js` })
  }
})

test(`hookloop exports at most ${MAX_MAIN_NAMES} names`, () => {
  const names = namesIn(sourceOf('src/index.ts'))
  assert.ok(names.length <= MAX_MAIN_NAMES, `${names.length} names`)
})

suite('every exported name has a TSDoc comment', () => {
  for (const { name, 'hookloop-source': source } of entryPoints)
    test(name === '.' ? 'hookloop' : `hookloop${name.slice(1)}`, () => {
      const undocumented = namesIn(sourceOf(source)).filter((each) => !isDocumented(each))
      assert.deepEqual(
        undocumented.map((each) => `${each.name} (${each.file})`),
        [],
      )
    })
})

type ExportedName = { readonly name: string; readonly file: string }

/** The names that a file exports, each with the file that defines it. */
function namesIn(file: string): readonly ExportedName[] {
  const text = read(file)
  const reexported = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '([^']+)'/gm)].flatMap(([, list, from]) =>
    list!.split(',').flatMap((item) => {
      const name = item.trim().replace(/^type /, '')
      return name === '' ? [] : [{ name, file: join(dirname(file), from!) }]
    }),
  )
  const defined = [...text.matchAll(/^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm)].map(
    ([, name]) => ({
      name: name!,
      file,
    }),
  )
  return [...reexported, ...new Map(defined.map((each) => [each.name, each])).values()]
}

/** Whether a comment ends on the line above the definition, which may be in a file that this one exports from. */
function isDocumented({ name, file }: ExportedName): boolean {
  if (file.endsWith('plugin.ts')) return namesIn(file).some((each) => each.name === name && isDocumented(each))
  return new RegExp(`\\*/\\nexport (?:async )?(?:function|const|class|interface|type) ${name}\\b`).test(read(file))
}
