import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { Workshop } from '../scripted-project.fixture.ts'

const SECRET = 'sk-live-0123456789abcdef0123'
const shop = new Workshop()

before(async () => {
  await shop.hookloop(['run', `my key is ${SECRET} and I am Jane`, '--agent', 'agent.ts', '--session', 'talk'])
})

describe('hookloop export and import', { concurrency: 2 }, () => {
  test('a session is one file of JSON lines, without what looks like a secret', async () => {
    const { code, stdout, stderr } = await shop.hookloop(['export', 'talk'])
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type: string })
    assert.deepEqual([code, stderr, lines[0]?.type, lines[1]?.type], [0, '', 'export', 'session'])
    assert.ok(!stdout.includes(SECRET) && stdout.includes('I am Jane'))
    assert.doesNotMatch(stdout, /seal:[0-9a-f]/)
  })

  test('more is taken out by text or by pattern, or nothing at all', async () => {
    const [more, nothing] = await Promise.all([
      shop.hookloop(['export', 'talk', '--redact', 'Jane', '--redact', '/i\\s+AM/i']),
      shop.hookloop(['export', 'talk', '--no-redact']),
    ])
    assert.match(more.stdout, /my key is \[redacted\] and \[redacted\] \[redacted\]/)
    assert.ok(!more.stdout.includes('Jane') && nothing.stdout.includes(SECRET))
  })

  test('a file is written for this user alone, and not over another one unless forced', async () => {
    const write = ['export', 'talk', '--output', 'talk.jsonl']
    const [first, again] = [await shop.hookloop(write), await shop.hookloop(write)]
    const forced = await shop.hookloop([...write, '--force', '--json'])
    assert.deepEqual([first.code, first.stdout, again.code, forced.code], [0, '', 2, 0])
    assert.deepEqual(JSON.parse(forced.stdout), { session: 'talk', file: 'talk.jsonl' })
    assert.equal(statSync(shop.path('talk.jsonl')).mode & 0o777, 0o600)
  })

  test('what was exported goes on elsewhere', async () => {
    const { stdout: exported } = await shop.hookloop(['export', 'talk', '--redact', 'Jane'])
    const other = new Workshop()
    writeFileSync(other.path('in.jsonl'), exported)
    const [first, again] = [await other.hookloop(['import', 'in.jsonl']), await other.hookloop(['import', 'in.jsonl'])]
    const named = await other.hookloop(['import', '-', '--as', 'other', '--json'], { input: exported })
    assert.deepEqual([first.code, first.stdout, again.code], [0, 'talk\n', 2])
    assert.match(again.stderr, /A session with the id talk already exists\. Import it with another id: --as ID/)
    assert.deepEqual([named.code, named.stdout], [0, '{"session":"other"}\n'])
    const { last } = await other.result(['run', 'and?', '--agent', 'agent.ts', '--session', 'other'])
    assert.equal(last.text, 'I heard my key is [redacted] and I am [redacted], and?')
  })

  test('what is not an exported session is refused, and leaves nothing behind', async () => {
    const other = new Workshop()
    const lines = (await shop.hookloop(['export', 'talk'])).stdout.trimEnd().split('\n')
    const wrong = [
      '',
      'hello',
      '[]',
      '{"type":"export","version":99,"id":"x"}\n',
      `{"type":"export","version":1,"id":"../x"}\n${lines.slice(1).join('\n')}\n`,
      `${lines[0]}\n${lines.slice(2).join('\n')}\n`,
      lines.join('\n').replace('"phase":"ended"', '"phase":"endless"'),
    ]
    const ends = await Promise.all(wrong.map((input) => other.hookloop(['import', '-'], { input })))
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      wrong.map(() => [2, '']),
    )
    assert.equal((await other.hookloop(['import', 'none.jsonl'])).stderr, 'error: File not found: none.jsonl\n')
    assert.equal((await other.hookloop(['sessions', '--json'])).stdout, '[]\n')
  })

  test('a pattern that is none is refused before anything is written', async () => {
    const { code, stderr } = await shop.hookloop(['export', 'talk', '--redact', '/(/', '-o', 'never.jsonl'])
    assert.equal(code, 2)
    assert.match(stderr, /^error: --redact \/\(\/: /)
    assert.throws(() => readFileSync(shop.path('never.jsonl')))
  })
})
