import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import { setImmediate as soon, setTimeout as sleep } from 'node:timers/promises'
import { testIf } from '../../system/test-if.fixture.ts'
import { Workshop } from './files.fixture.ts'
import { markOf } from './open-file.ts'

// Cases F16 and F17 of the security checklist: the writer is killed, or the disk is full.

let shop = new Workshop()
const shops = [shop]
beforeEach(() => {
  shop = new Workshop()
  shops.push(shop)
})
after(() => shops.forEach((each) => each.remove()))

const child = join(import.meta.dirname, 'child.fixture.ts')

const SIZE = 8_000_000
/** More kills find rarer problems: each starts a process. */
const KILLS = Number(process.env['HOOKLOOP_TEST_KILLS'] ?? 4)

test('F16 a writer that is killed leaves the old content or the new one', async () => {
  const path = shop.path('file')
  writeFileSync(path, 'a'.repeat(SIZE))
  const write = (letter: string): object => ['write_file', { path: 'file', repeat: [letter, SIZE], overwrite: true }]
  const options = { maxFileBytes: 2 * SIZE }
  const complete = ['a', 'b'].map((letter) => Buffer.alloc(SIZE, letter))
  let midway = 0
  let round = 0
  for (; round < KILLS || (midway < KILLS / 5 && round < 20 * KILLS); round++) {
    const args = [
      '--conditions=hookloop-source',
      child,
      shop.inside,
      JSON.stringify(options),
      JSON.stringify([write('b'), write('a')]),
      'loop',
    ]
    const writer = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    for (let ms = 0; ms < 30_000 && !readdirSync(shop.inside).some((name) => name.endsWith('.tmp')); ms++)
      await sleep(1)
    if (round % 2 === 0) await sleep((round % 10) * 2) // during the write or the flush
    else await changed(path) // as soon as it is not what it was
    writer.kill('SIGKILL')
    await new Promise((resolve) => writer.once('close', resolve))
    const content = readFileSync(path)
    assert.ok(
      complete.some((bytes) => bytes.equals(content)),
      `the content is torn in round ${round}`,
    )
    const left = readdirSync(shop.inside).filter((name) => name !== 'file')
    if (left.length > 0) midway++
    for (const name of left) rmSync(shop.path(name))
  }
  assert.ok(midway >= KILLS / 5, `only ${midway} of ${round} were killed in the middle of writing`)
})

/** Waits without a pause: the moment in which a file that is written in place is incomplete is short. */
async function changed(path: string): Promise<void> {
  const before = markOf(statSync(path))
  for (let look = 1; markOf(statSync(path)) === before; look++) if (look % 1_000 === 0) await soon()
}

test('F17 on a full disk the old content stays, no temporary file is left, and the error says why', (t) => {
  const script = `
    set -e
    mount -t tmpfs -o size=1m none "$1"
    head -c 100000 /dev/zero | tr '\\0' a > "$1/file"
    "$2" --conditions=hookloop-source "$3" "$1" '{}' "$4"
    mount -o remount,ro "$1"
    "$2" --conditions=hookloop-source "$3" "$1" '{}' "$4"
    ls -A "$1"; tr -d a < "$1/file" | wc -c; wc -c < "$1/file"`
  const calls = JSON.stringify([
    ['write_file', { path: 'file', repeat: ['b', 3_000_000], overwrite: true }],
    ['write_file', { path: 'new', repeat: ['b', 3_000_000] }],
  ])
  const args = ['-rm', 'sh', '-c', script, 'sh', shop.inside, process.execPath, child, calls]
  const { stdout, status, stderr } = spawnSync('unshare', args, { encoding: 'utf8' })
  if (status !== 0) return t.diagnostic(`cannot mount a file system: ${stderr.slice(0, 100)}`)
  const answers = stdout.split('\n').filter((line) => line.startsWith('{"failed"'))
  assert.equal(answers.filter((line) => /no space is left on the disk \(ENOSPC\)/.test(line)).length, 2, stdout)
  assert.equal(answers.filter((line) => /the file system is read-only \(EROFS\)/.test(line)).length, 2, stdout)
  assert.deepEqual(stdout.trim().split('\n').slice(-3), ['file', '0', '100000'])
})

testIf(process.getuid?.() !== 0)('F17 in a read-only folder nothing is written, and the error says why', async () => {
  shop.put('d/file', 'old')
  chmodSync(shop.path('d'), 0o555)
  const { outputs } = await shop.run([
    ['write_file', { path: 'd/file', content: 'new', overwrite: true }],
    ['write_file', { path: 'd/new', content: 'new' }],
  ])
  chmodSync(shop.path('d'), 0o755)
  assert.ok(outputs.every((output) => /permission denied/.test(output)))
  assert.deepEqual(readdirSync(shop.path('d')), ['file'])
  assert.equal(readFileSync(shop.path('d/file'), 'utf8'), 'old')
})
