import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, suite, test } from 'node:test'
import { namedFiles } from './named-files.ts'
import { TrustStore } from './trust-store.ts'

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hookloop-named-')))
after(() => rmSync(folder, { recursive: true, force: true }))

const dir = join(folder, 'project')
for (const path of ['hooks/a.sh', 'hooks/a b.sh', 'hooks/lib.sh', 'rules.json', 'run.log', 'notes', '../outside.sh']) {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), '')
}
symlinkSync('hooks', join(dir, 'linked'))
symlinkSync('../outside.sh', join(dir, 'leaving.sh'))

type Places = { readonly cwd?: string; readonly variables?: Readonly<Record<string, string>> }

function namedIn(command: string | readonly string[], places: Places = {}): readonly string[] {
  return namedFiles([command].flat(), { dir, ...places }).map(({ path }) => relative(dir, path))
}

suite('a file of a project that a command names is found', () => {
  const rows: readonly (readonly [command: string | readonly string[], file: string, places?: Places])[] = [
    ['"$CLAUDE_PROJECT_DIR"/hooks/a.sh', 'hooks/a.sh'],
    ['"${HOOKLOOP_PROJECT_DIR}/hooks/a.sh" 2>&1', 'hooks/a.sh'],
    ['sh ${FOLDER:-hooks}/a.sh', 'hooks/a.sh'],
    ['sh hooks/a\\ b.sh', 'hooks/a b.sh'],
    ["sh hooks/'a b'.sh", 'hooks/a b.sh'],
    [['sh', 'hooks/a b.sh'], 'hooks/a b.sh'],
    ['cd hooks && sh a.sh', 'hooks/a.sh'],
    ['D=hooks; sh "$D/a.sh"', 'hooks/a.sh'],
    ['bash -lc "cd hooks; . ./a.sh"', 'hooks/a.sh'],
    ['cat hooks/a.sh | sh', 'hooks/a.sh'],
    ['echo $(sh hooks/a.sh)', 'hooks/a.sh'],
    ['guard --rules=rules.json', 'rules.json'],
    ['NODE_OPTIONS="-r ./hooks/a.sh" node x', 'hooks/a.sh'],
    ['linked/a.sh', 'hooks/a.sh'],
    ['./leaving.sh', '../outside.sh'],
    ['./a.sh', 'hooks/a.sh', { cwd: join(dir, 'hooks') }],
    ['sh $PLUGIN/a.sh', 'hooks/a.sh', { variables: { PLUGIN: 'hooks' } }],
  ]
  for (const [command, file, places] of rows) {
    test(JSON.stringify(command), () => assert.deepEqual(namedIn(command, places), [file]))
  }
})

test('a command names no file of the project if it only writes one, or names a folder, a log or a file elsewhere', () => {
  for (const command of [
    'echo x >> notes',
    'ls | tee -a "notes"',
    'date 2>notes',
    'ls hooks',
    'x run.log',
    '../outside.sh',
    '',
  ])
    assert.deepEqual(namedIn(command), [], command)
})

test('a file is trusted by its content, and one that appears is new', () => {
  const prints = (): ReturnType<typeof namedFiles> => namedFiles(['sh hooks/a.sh hooks/new.sh'], { dir })
  const trust = TrustStore.of(prints())
  assert.deepEqual(trust.untrusted(prints()), [])
  appendFileSync(join(dir, 'hooks/a.sh'), '# changed')
  writeFileSync(join(dir, 'hooks/new.sh'), '')
  assert.deepEqual(
    trust.untrusted(prints()).map(({ path, status }) => [relative(dir, path), status]),
    [
      ['hooks/a.sh', 'changed'],
      ['hooks/new.sh', 'untrusted'],
    ],
  )
})

test('a hostile command is read in bounded time, and never trusted if it names too much', () => {
  for (const hostile of [
    '$('.repeat(100_000),
    '${a:-'.repeat(50_000),
    '"'.repeat(100_001),
    `"'`.repeat(50_000),
    '1'.repeat(200_000),
    `tee${' '.repeat(200_000)}`,
    '>'.repeat(200_000),
    '\\'.repeat(200_001),
  ])
    namedIn(hostile)
  const many = Array.from({ length: 20_000 }, (_, i) => `x${i}`).join(' ')
  assert.equal(namedFiles([many], { dir })[0]?.hash, '')
})
