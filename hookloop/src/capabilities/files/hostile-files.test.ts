import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import type { JsonObject } from '../../values/json.ts'
import { CANARY, everythingOf, statuses, Workshop, type Call, type Ran } from './files.fixture.ts'

// Cases F05, F10 and F24 of the security checklist, which need another process or concurrent runs.

let shop = new Workshop()
const shops = [shop]
beforeEach(() => {
  shop = new Workshop()
  shops.push(shop)
})
after(() => shops.forEach((each) => each.remove()))

const child = join(import.meta.dirname, 'child.fixture.ts')
const linux = process.platform === 'linux' ? false : 'needs /proc'

/** Replaces a folder by a link and back, as fast as it can. */
const flipper = `
  const fs = require('node:fs')
  const [path, target] = process.argv.slice(1)
  let flips = 0
  process.on('SIGTERM', () => { console.log(flips); process.exit() })
  const place = (put) => {
    for (;;) try { return put() } catch { try { fs.renameSync(path, path + '.made' + flips + Math.random()) } catch {} }
  }
  const turn = () => {
    for (let i = 0; i < 50; i++, flips++) {
      fs.renameSync(path, path + '.real')
      place(() => fs.symlinkSync(target, path))
      for (let spin = 0; spin < (flips % 7) * 2000; spin++);
      fs.unlinkSync(path)
      place(() => fs.renameSync(path + '.real', path))
    }
    // Sometimes it stays a folder for a while, so that some calls succeed, also on a slow machine.
    setTimeout(turn, flips % 1_000 === 0 ? 300 : 2)
  }
  console.log('ready')
  turn()`

async function flipping<T>(path: string, target: string, work: () => Promise<T>): Promise<{ value: T; flips: number }> {
  const other = spawn(process.execPath, ['-e', flipper, path, target], { stdio: ['ignore', 'pipe', 'inherit'] })
  const output: Buffer[] = []
  other.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  const closed = new Promise((resolve) => other.once('close', resolve))
  await new Promise((resolve) => other.stdout.once('data', resolve))
  try {
    const value = await work()
    other.kill('SIGTERM')
    await closed
    return { value, flips: Number(Buffer.concat(output).toString().trim().split('\n').at(-1)) }
  } finally {
    other.kill('SIGKILL')
  }
}

/** Repeats the calls until enough of them have succeeded and enough have failed, which is a matter of chance. */
async function makeUntil(
  enough: { readonly ok: number; readonly others: number },
  ...[calls, options]: Parameters<Workshop['run']>
): Promise<{ readonly runs: readonly Ran[]; readonly ok: number; readonly others: number }> {
  const runs: Ran[] = []
  for (;;) {
    runs.push(await shop.run(calls, options))
    const all = runs.flatMap(({ executions }) => statuses(executions))
    const ok = all.filter((status) => status === 'ok').length
    const others = all.length - ok
    if ((ok >= enough.ok && others >= enough.others) || runs.length === 60) return { runs, ok, others }
  }
}

test(
  'F05 nothing is written or read outside while a folder is replaced by a link again and again',
  { skip: linux },
  async () => {
    mkdirSync(shop.path('d'))
    shop.put('d/f', 'inside\n')
    writeFileSync(join(shop.outside, 'f'), `${CANARY}\n`)
    const calls = Array.from({ length: 150 }, (_, i): readonly Call[] => [
      ['write_file', { path: `d/new${i}`, content: 'x' }],
      ['write_file', { path: 'd/f', content: `inside ${i}\n`, overwrite: true }],
      ['read_file', { path: 'd/f' }],
      ['edit_file', { path: 'd/f', old_string: 'inside', new_string: 'inside!' }],
      ['list_dir', { path: 'd' }],
      ['search_files', { path: 'd', pattern: 'C.NARY|secret' }],
    ]).flat()
    const seen: string[] = []
    const watcher = watch(shop.outside, (event, name) => void seen.push(`${event} ${name}`))
    const { value, flips } = await flipping(shop.path('d'), '../o', () => makeUntil({ ok: 20, others: 20 }, calls))
    watcher.close()
    assert.deepEqual(seen, [], 'not even for a moment')
    assert.deepEqual(readdirSync(shop.outside).toSorted(), ['f', 'secret'])
    assert.equal(readFileSync(join(shop.outside, 'f'), 'utf8'), `${CANARY}\n`)
    for (const { run } of value.runs) assert.ok(!everythingOf(run).includes(CANARY))
    assert.ok(flips > 0)
    assert.ok(value.ok >= 20, 'some calls succeeded')
    assert.ok(value.others >= 20, 'some calls were refused')
  },
)

test('F05 a protected file is not written while a folder is replaced by a link to it', { skip: linux }, async () => {
  mkdirSync(shop.path('.git/hooks'), { recursive: true })
  mkdirSync(shop.path('d'))
  const calls = Array.from({ length: 200 }, (_, i): Call => ['write_file', { path: `d/hook${i}`, content: 'evil' }])
  const { value, flips } = await flipping(shop.path('d'), '.git/hooks', () => makeUntil({ ok: 1, others: 1 }, calls))
  assert.deepEqual(readdirSync(shop.path('.git/hooks')), [])
  assert.ok(flips > 0)
  assert.ok(value.ok >= 1, 'some calls succeeded')
})

test('a file that is exchanged for a link during a write or an edit leads nowhere', { skip: linux }, async () => {
  shop.put('f', 'inside\n')
  writeFileSync(join(shop.outside, 'f'), `${CANARY}\n`)
  const calls = Array.from({ length: 150 }, (_, i): readonly Call[] => [
    ['write_file', { path: 'f', content: `inside ${i}\n`, overwrite: true }],
    ['read_file', { path: 'f' }],
    ['edit_file', { path: 'f', old_string: 'inside', new_string: 'inside!' }],
  ]).flat()
  const { value, flips } = await flipping(shop.path('f'), '../o/f', () => makeUntil({ ok: 20, others: 20 }, calls))
  assert.equal(readFileSync(join(shop.outside, 'f'), 'utf8'), `${CANARY}\n`)
  assert.deepEqual(readdirSync(shop.outside).toSorted(), ['f', 'secret'])
  for (const { run } of value.runs) assert.ok(!everythingOf(run).includes(CANARY))
  assert.ok(flips > 0)
})

type Answer = { readonly ok?: string; readonly failed?: string; readonly chars?: number; readonly grownKb?: number }

function runChild(
  calls: readonly Call[],
  { options = {}, node = [] }: { options?: JsonObject; node?: readonly string[] } = {},
): readonly Answer[] {
  const args = [
    ...node,
    '--conditions=hookloop-source',
    child,
    shop.inside,
    JSON.stringify(options),
    JSON.stringify(calls),
  ]
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(status, 0, stderr)
  return stdout
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => JSON.parse(line) as Answer)
}

test('F10 huge files are read in little memory, and the result says how to continue', () => {
  writeFileSync(shop.path('sparse'), 'first\nsecond\n'.repeat(1_000))
  truncateSync(shop.path('sparse'), 5_368_709_120)
  writeFileSync(shop.path('zeros'), '')
  truncateSync(shop.path('zeros'), 5_368_709_120)
  execFileSync('sh', ['-c', 'head -c 150000000 /dev/zero | tr "\\0" a > "$0"', shop.path('line')])
  execFileSync('sh', ['-c', 'seq 1 2000000 > "$0"', shop.path('lines')])
  const answers = runChild(
    [
      ['read_file', { path: 'sparse' }],
      ['read_file', { path: 'zeros' }],
      ['read_file', { path: 'line' }],
      ['read_file', { path: 'lines' }],
      ['read_file', { path: 'lines', offset: 1_999_000 }],
      ['edit_file', { path: 'sparse', old_string: 'first', new_string: 'x' }],
      ['write_file', { path: 'line', content: 'a' }],
      ['search_files', { pattern: 'first|aaaa' }],
      ['list_dir', {}],
    ],
    { node: ['--max-old-space-size=64'], options: { readFirst: false, timeoutMs: 120_000 } },
  )
  assert.match(answers[0]!.ok!, /2\\tsecond/)
  assert.match(answers[1]!.ok!, /binary file of 5368709120 bytes/)
  assert.ok(answers[2]!.chars! < 10_000)
  assert.match(answers[3]!.ok!, /^\{"text":" {5}1\\t1/)
  assert.match(answers[4]!.ok!, /1999001\\t1999001/)
  assert.match(answers[5]!.failed!, /larger than/)
  assert.match(answers[6]!.failed!, /exists and was not read/)
  assert.equal(answers[7]!.ok, '"(no matches)"')
  assert.ok(answers.at(-1)!.grownKb! < 64 * 1_024, `memory grew by ${answers.at(-1)!.grownKb} KB`)
  rmSync(shop.path('line'))
})

test('F24 two runs that edit one file at the same time do not undo each other', async () => {
  shop.put('shared', 'first\nsecond\n')
  const edit = (old: string): Call => ['edit_file', { path: 'shared', old_string: old, new_string: old.toUpperCase() }]
  const reads = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const bothRead = (at: number) => (): Promise<unknown> => {
    reads[at]!.resolve()
    return Promise.all(reads.map(({ promise }) => promise))
  }
  const both = await Promise.all(
    ['first', 'second'].map((old, at) => shop.run([['read_file', { path: 'shared' }], bothRead(at), edit(old)])),
  )
  const ends = both.map(({ executions }) => executions[1]!.status)
  const content = readFileSync(shop.path('shared'), 'utf8')
  const made = ['first', 'second'].filter((_old, at) => ends[at] === 'ok')
  assert.ok(made.length >= 1)
  for (const old of made) assert.ok(content.includes(old.toUpperCase()), content)
  for (const [at, end] of ends.entries())
    if (end !== 'ok')
      assert.match(both[at]!.outputs[1]!, /was changed since you read it|was changed by another process/)
})

test('F24 of twenty runs that create one file at the same time, one succeeds', async () => {
  const all = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      shop.run([['write_file', { path: 'sub/once', content: `${i}`.repeat(1_000) }]]),
    ),
  )
  const created = all.flatMap(({ outputs }, i) => (outputs[0]!.startsWith('Created') ? [i] : []))
  assert.equal(created.length, 1)
  assert.equal(readFileSync(shop.path('sub/once'), 'utf8'), `${created[0]}`.repeat(1_000))
  assert.deepEqual(readdirSync(shop.path('sub')), ['once'])
  assert.ok(existsSync(shop.inside))
})
