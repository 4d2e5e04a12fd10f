import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'

// The floor plan as a test: folders know only what lies below them, and files stay short enough to read.

const SOURCE = 'hookloop/src'
const MAX_LINES = 400

/** From the ground up. Folders on one line do not know each other. */
const floors: readonly (readonly string[])[] = [
  ['errors.ts'],
  ['state'],
  ['system'],
  ['effects'],
  ['hooks'],
  ['agent'],
  ['capabilities', 'actions', 'models', 'sessions'],
  ['create-agent.ts', 'hook-files'],
  ['testing', 'tracing', 'index.ts'],
  ['cli'],
]

const rooms = floors.flat()
const files = globSync(`${SOURCE}/**/*.ts`).filter((file) => !/\.(test|types|fixture)\.ts$/.test(file))
const roomOf = (file: string): string =>
  normalize(file)
    .slice(SOURCE.length + 1)
    .split('/')[0]!
const floorOf = (file: string): number => floors.findIndex((floor) => floor.includes(roomOf(file)))

test('every file lies in a room of the floor plan', () => {
  assert.deepEqual(
    files.filter((file) => !rooms.includes(roomOf(file))),
    [],
  )
})

test('imports go downwards only, and siblings do not know each other', () => {
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((to) => (floorOf(to) >= floorOf(file) && roomOf(to) !== roomOf(file)) || floorOf(to) > floorOf(file))
      .map((to) => `${file} → ${to}`),
  )
  assert.deepEqual(wrong, [])
})

test('capabilities do not import each other', () => {
  const capabilityOf = (file: string): string | undefined =>
    roomOf(file) === 'capabilities' ? normalize(file).split('/')[3] : undefined
  const wrong = files.flatMap((file) => {
    const own = capabilityOf(file)
    const others = own === undefined ? [] : importsOf(file).filter((to) => ![undefined, own].includes(capabilityOf(to)))
    return others.map((to) => `${file} → ${to}`)
  })
  assert.deepEqual(wrong, [])
})

test('no file imports itself through others, types included', () => {
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    assert.ok(!path.includes(file), `a cycle: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
    if (done.has(file)) return
    for (const to of importsOf(file)) visit(to, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
})

test(`no file is longer than ${MAX_LINES} lines`, () => {
  const all = globSync('{hookloop,examples,bench,scripts}/**/*.{ts,mjs}').filter(
    (file) => !/node_modules|\/dist\//.test(file),
  )
  const long = all.filter((file) => readFileSync(file, 'utf8').split('\n').length > MAX_LINES)
  assert.deepEqual(long, [])
})

test('no room has a name that means nothing', () => {
  const meaningless = files.filter((file) => /\/(utils?|helpers?|common|core|misc|shared)(\/|\.ts$)/.test(file))
  assert.deepEqual(meaningless, [])
})

test('there is no any, no silenced error, and nothing left open', () => {
  const open = /: any\s*[;,)=>\]}|&]|\bas any\b|<any>|@ts-ignore|eslint-disable|\b(TODO|FIXME|XXX)\b/
  const all = globSync('{hookloop/src,examples,bench}/**/*.ts').filter((file) => !file.includes('node_modules'))
  assert.deepEqual(
    all.filter((file) => open.test(readFileSync(file, 'utf8'))),
    [],
  )
})

test('no file names a path of the machine it was written on, or a host to download from', () => {
  const named = /"resolved": "https?:|\/(home|Users|root|work|tmp)\/[a-z]/
  const all = globSync(['*.{json,md}', '{hookloop,examples,bench,scripts,docs}/**/*.{ts,md,mjs,json}', '.npmrc'])
  const found = all.filter(
    (file) => !/node_modules|\/dist\/|architecture\.test/.test(file) && named.test(readFileSync(file, 'utf8')),
  )
  assert.deepEqual(found, [])
})

function importsOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/(?:from|import\()\s*'(\.{1,2}\/[^']+)'/g)].map(([, path]) => join(dirname(file), path!))
}
