import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { fileStore } from './file-store.ts'
import { start } from './store-processes.fixture.ts'
import { wholeBatches } from './batches.fixture.ts'

const root = mkdtempSync(join(tmpdir(), 'hookloop-hostile-'))
after(() => rmSync(root, { recursive: true, force: true }))

/** A store with a session of two segments, the second by a process that took over the lock, and another session. */
async function scene(): Promise<{ folder: string; session: string; file: (name: string) => string }> {
  const folder = mkdtempSync(join(root, 'store-'))
  const store = fileStore(folder)
  for (const id of ['good', 'bad']) {
    for (const part of [1, 2]) {
      const writer = await store.open(id, { create: true })
      await writer.append([`${part} é`])
      await writer.append([`${part} one`, `${part} two`], { head: { part } })
      await writer.release()
      if (part === 1) writeFileSync(join(folder, id, '1.lock'), 'unknown\n')
      if (part === 1) utimesSync(join(folder, id, '1.lock'), 1, 1)
    }
  }
  const session = join(folder, 'bad')
  assert.deepEqual(readdirSync(session).toSorted(), ['1.jsonl', '2.jsonl', '2.lock', 'head.json'])
  return { folder, session, file: (name) => join(session, name) }
}

function edit(file: string, from: string | RegExp, to: string): void {
  const text = readFileSync(file, 'utf8')
  assert.match(text, from instanceof RegExp ? from : new RegExp(from.replace(/[{}[\]"]/g, '\\$&')))
  writeFileSync(file, text.replace(from, to))
}

/** Everything in a folder, to see that nothing was touched. */
function contents(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((each) => {
      const path = join(each.parentPath, each.name)
      return `${path} ${each.isFile() ? readFileSync(path, 'latin1') : 'no file'}`
    })
    .toSorted()
}

type Scene = Awaited<ReturnType<typeof scene>>

const attacks: readonly [what: string, code: string, attack: (scene: Scene) => void][] = [
  [
    'whose file has another beginning',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), '"session"', '"sessiom"'),
  ],
  ['whose file is empty', 'SESSION_CORRUPT', ({ file }) => truncateSync(file('2.jsonl'), 0)],
  ['whose file is cut in its first line', 'SESSION_CORRUPT', ({ file }) => truncateSync(file('1.jsonl'), 9)],
  [
    'whose file is not text',
    'SESSION_CORRUPT',
    ({ file }) => appendFileSync(file('2.jsonl'), Buffer.from([0xff, 0xfe, 10])),
  ],
  [
    'whose first file is cut',
    'SESSION_CORRUPT',
    ({ file }) => truncateSync(file('1.jsonl'), statSync(file('1.jsonl')).size - 3),
  ],
  ['whose first file is missing', 'SESSION_CORRUPT', ({ file }) => rmSync(file('1.jsonl'))],
  [
    'whose files are all missing',
    'SESSION_CORRUPT',
    ({ file }) => ['1.jsonl', '2.jsonl'].forEach((name) => rmSync(file(name))),
  ],
  [
    'whose files are exchanged',
    'SESSION_CORRUPT',
    ({ file }) => {
      renameSync(file('1.jsonl'), file('0'))
      renameSync(file('2.jsonl'), file('1.jsonl'))
      renameSync(file('0'), file('2.jsonl'))
    },
  ],
  [
    'that goes on from itself',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), '"after":{"segment":1', '"after":{"segment":2'),
  ],
  [
    'that goes on from a later file',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('1.jsonl'), '"segment":1}', '"segment":1,"after":{"segment":2,"bytes":9}}'),
  ],
  [
    'that goes on from the middle of a batch',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), /"bytes":\d+/, `"bytes":${statSync(file('1.jsonl')).size - 6}`),
  ],
  [
    'that goes on from before the beginning',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), /"bytes":\d+/, '"bytes":-1'),
  ],
  [
    'that goes on from a huge place',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), /"bytes":\d+/, '"bytes":1e308'),
  ],
  [
    'with a batch of a huge number of lines',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), '"lines":2', '"lines":1e400'),
  ],
  [
    'with a batch of less than no lines',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), '"lines":2', '"lines":-1'),
  ],
  ['with a batch of half a line', 'SESSION_CORRUPT', ({ file }) => edit(file('2.jsonl'), '"lines":2', '"lines":0.5')],
  [
    'with a batch that does not say of what',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), '{"batch":{', '{"batch":{{'),
  ],
  [
    'whose head is no object',
    'SESSION_CORRUPT',
    ({ file }) => edit(file('2.jsonl'), '"head":{"part":2}', '"head":[1]'),
  ],
  ['of a newer version', 'STATE_VERSION', ({ file }) => edit(file('2.jsonl'), '"version":1', '"version":2')],
  ['of no version', 'SESSION_CORRUPT', ({ file }) => edit(file('2.jsonl'), '"version":1', '"version":"1"')],
  [
    'whose file is a link',
    'SESSION_CORRUPT',
    ({ file, folder }) => {
      rmSync(file('2.jsonl'))
      symlinkSync(join(folder, 'good', '2.jsonl'), file('2.jsonl'))
    },
  ],
  [
    'whose file is a pipe',
    'SESSION_CORRUPT',
    ({ file }) => {
      rmSync(file('2.jsonl'))
      execFileSync('mkfifo', [file('2.jsonl')])
    },
  ],
  ['whose file is a folder', 'SESSION_CORRUPT', ({ file }) => mkdirSync(file('3.jsonl'))],
  [
    'that is a link',
    'SESSION_CORRUPT',
    ({ folder, session }) => {
      rmSync(session, { recursive: true })
      symlinkSync(join(folder, 'good'), session)
    },
  ],
]

suite('session files that were changed', () => {
  for (const [what, code, attack] of attacks) {
    test(`D11: a session ${what} is rejected with ${code}, not changed, and does not hide other sessions`, async () => {
      const there = await scene()
      attack(there)
      const before = contents(there.folder)
      const store = fileStore(there.folder)
      await assert.rejects(store.read('bad'), { code })
      await assert.rejects(store.open('bad'), { code })
      await assert.rejects(store.open('bad', { create: true }), { code })
      const listed = await store.list()
      assert.deepEqual(contents(there.folder), before)
      assert.deepEqual(listed.map(({ id }) => id).toSorted(), ['bad', 'good'])
      assert.deepEqual(listed.find(({ id }) => id === 'good')?.head, { part: 2 })
    })
  }
})

test('D11: what cannot be read is listed with what is wrong, and can be deleted', async () => {
  const { folder, file } = await scene()
  truncateSync(file('2.jsonl'), 0)
  rmSync(file('head.json'))
  writeFileSync(join(folder, 'a file'), 'of another program')
  writeFileSync(join(folder, 'another'), 'of another program')
  mkdirSync(join(folder, 'never-written-to'))
  const store = fileStore(folder)
  const listed = await store.list()
  assert.deepEqual(listed.map(({ id, problem }) => `${id} ${problem === undefined}`).toSorted(), [
    'bad false',
    'good true',
  ])
  assert.match(listed.find(({ id }) => id === 'bad')!.problem!, /segment 2 does not start with a header/)
  await store.delete('bad')
  assert.deepEqual(readdirSync(folder).toSorted(), ['a file', 'another', 'good', 'never-written-to'])
})

test('D11: a torn end is dropped wherever it was torn, and nothing is added to it', async () => {
  const { folder, file } = await scene()
  const whole = readFileSync(file('2.jsonl'))
  const begin = whole.indexOf(10) + 1
  const first = whole.indexOf(10, begin) + 1
  for (let length = begin; length < whole.length; length++) {
    const id = `cut-${length}`
    cpSync(join(folder, 'bad'), join(folder, id), { recursive: true })
    truncateSync(join(folder, id, '2.jsonl'), length)
    const store = fileStore(folder)
    const expected = ['1 é', '1 one', '1 two', ...(length < first ? [] : ['2 é'])]
    assert.deepEqual((await store.read(id))?.lines, expected)
    const writer = await store.open(id)
    await writer.append(['new'])
    await writer.release()
    assert.deepEqual((await store.read(id))?.lines, [...expected, 'new'])
    assert.ok(
      readFileSync(join(folder, id, '2.jsonl'))
        .subarray(0, length)
        .equals(whole.subarray(0, length)),
    )
  }
})

test('a saved head that is wrong or of another moment is not used', async () => {
  const { folder, file } = await scene()
  const store = fileStore(folder)
  const good = readFileSync(file('head.json'), 'utf8')
  const wrong = [
    '',
    '[]',
    'null',
    '{"__proto__":{"polluted":true}}',
    good.replace(/"bytes":\d+/, '"bytes":1'),
    good.replace('{"part":2}', '3'),
  ]
  for (const text of wrong) {
    writeFileSync(file('head.json'), text)
    assert.deepEqual(
      (await store.list()).map(({ head }) => head),
      [{ part: 2 }, { part: 2 }],
    )
  }
  assert.equal('polluted' in {}, false)
})

test('D15: folders are for their owner alone, and so are files, whatever the mask', async () => {
  const before = process.umask(0o022)
  try {
    const folder = join(root, 'made', 'deeper')
    const writer = await fileStore(folder).open('private', { create: true })
    await writer.append(['secret'], { head: { secret: true } })
    const modes = [
      join(root, 'made'),
      folder,
      ...readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))),
    ]
      .map((path) => statSync(path))
      .map((found) => [found.isDirectory(), (found.mode & 0o777).toString(8)])
    await writer.release()
    assert.ok(modes.length >= 5)
    assert.deepEqual(new Set(modes.map(String)), new Set(['true,700', 'false,600']))
  } finally {
    process.umask(before)
  }
})

test('D16: a owner counts as dead only where its pid means something', async () => {
  const folder = join(root, 'holders')
  const claims = async (owner: object, ageMs: number): Promise<string> => {
    const store = fileStore(folder)
    await (await store.open('held', { create: true })).release()
    const [claim] = readdirSync(join(folder, 'held')).filter((name) => name.endsWith('.lock'))
    const path = join(folder, 'held', claim!)
    const own = JSON.parse(readFileSync(path, 'utf8').split('\n')[0]!) as object
    writeFileSync(path, `${JSON.stringify({ ...own, ...owner })}\n`)
    utimesSync(path, (Date.now() - ageMs) / 1000, (Date.now() - ageMs) / 1000)
    const outcome = await store.open('held').then(
      (writer) => writer.release().then(() => 'taken'),
      (error: { code: string }) => error.code,
    )
    await store.delete('held').catch(() => rmSync(join(folder, 'held'), { recursive: true }))
    return outcome
  }
  const elsewhere = `${hostname()} another-boot -`
  const outcomes = {
    lives: await claims({}, 0),
    'silent for too long': await claims({}, 31_000),
    'is from the future': await claims({}, -31_000),
    'has a longer lease': await claims({ leaseMs: 60_000 }, 31_000),
    'has an endless lease': await claims({ leaseMs: 1e308 }, 3_601_000),
    'is dead': await claims({ pid: 2 ** 22 + 1 }, 0),
    'has a pid that is used again': await claims({ started: '1' }, 0),
    'is dead elsewhere': await claims({ pid: 2 ** 22 + 1, where: elsewhere }, 0),
    'is silent elsewhere': await claims({ pid: 2 ** 22 + 1, where: elsewhere }, 31_000),
    'is everybody': await claims({ pid: -1 }, 0),
    'has no process': await claims({ pid: null }, 31_000),
  }
  assert.deepEqual(outcomes, {
    lives: 'SESSION_BUSY',
    'silent for too long': 'taken',
    'is from the future': 'taken',
    'has a longer lease': 'SESSION_BUSY',
    'has an endless lease': 'taken',
    'is dead': 'taken',
    'has a pid that is used again': 'taken',
    'is dead elsewhere': 'SESSION_BUSY',
    'is silent elsewhere': 'taken',
    'is everybody': 'SESSION_BUSY',
    'has no process': 'taken',
  })
})

test('a lock file with the last possible number is rejected', async () => {
  const { folder, file } = await scene()
  writeFileSync(file('999999999999999.lock'), '')
  await assert.rejects(fileStore(folder).open('bad'), { code: 'SESSION_CORRUPT' })
})

test('D14: on a full disk the append fails, and what was stored before is complete', async () => {
  const folder = join(root, 'full')
  const child = start({ kind: 'file', place: folder }, ['write', 'full', '1000'], {}, `trap '' XFSZ; ulimit -f 8`)
  const said = await child.said()
  const store = fileStore(folder)
  assert.equal(said.at(-1), 'STORE_FAILED')
  assert.equal(wholeBatches((await store.read('full'))!), said.length - 1)
  const writer = await store.open('full')
  assert.equal((await writer.read()).lines.length > 0, true)
  await writer.append(['more'])
  await writer.release()
  assert.equal((await store.read('full'))?.lines.at(-1), 'more')
})

test('D14: a writer that failed once fails until the session is opened again', async (t) => {
  const store = fileStore(join(root, 'fails'))
  const writer = await store.open('fails', { create: true })
  await writer.append(['one'])
  const fs = process.getBuiltinModule('node:fs')
  const real = fs.writeSync
  t.mock.method(
    fs,
    'writeSync',
    (file: number, bytes: Buffer) => {
      real(file, bytes.subarray(0, 2))
      throw Object.assign(new Error('EIO: i/o error, write'), { code: 'EIO' })
    },
    { times: 1 },
  )
  assert.throws(() => writer.append(['two']), { code: 'STORE_FAILED', message: /EIO/ })
  assert.throws(() => writer.append(['three']), { code: 'STORE_FAILED' })
  await writer.release()
  const next = await store.open('fails')
  await next.append(['four'])
  assert.deepEqual((await store.read('fails'))?.lines, ['one', 'four'])
  await next.release()
})

test('D14: a store that cannot be made or read fails with a code', async () => {
  const file = join(root, 'a-file')
  writeFileSync(file, '')
  const store = fileStore(join(file, 'inside'))
  await assert.rejects(store.open('x', { create: true }), { code: 'STORE_FAILED' })
  await assert.rejects(fileStore(file).list(), { code: 'STORE_FAILED' })
})

test('on a file system without links there is one writer as well', async (t) => {
  const fs = process.getBuiltinModule('node:fs')
  t.mock.method(fs, 'linkSync', () => {
    throw Object.assign(new Error('EPERM: operation not permitted, link'), { code: 'EPERM' })
  })
  const store = fileStore(join(root, 'linkless'))
  const writer = await store.open('x', { create: true })
  await assert.rejects(store.open('x'), { code: 'SESSION_BUSY', message: /process \d+ on/ })
  await writer.append(['one'])
  await writer.release()
  assert.deepEqual((await (await store.open('x')).read()).lines, ['one'])
  assert.deepEqual(readdirSync(join(root, 'linkless', 'x')).toSorted(), ['1.jsonl', '2.lock', 'head.json'])
  await store.close()
})

test('an invalid option is rejected when the store is created', () => {
  for (const leaseMs of [0, -1, 1.5, Number.NaN, Infinity, '30' as unknown as number])
    assert.throws(() => fileStore(root, { leaseMs }), { code: 'AGENT_INVALID_OPTION' })
})
