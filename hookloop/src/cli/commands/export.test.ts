import assert from 'node:assert/strict'
import { statSync, writeFileSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const SECRET = 'sk-live-0123456789abcdef0123'
const project = new ScriptedProject()

before(async () => {
  await project.hookloop(['run', `my key is ${SECRET} and I am Jane`, '--agent', 'agent.ts', '--session', 'talk'])
})

describe('hookloop export and import', { concurrency: 2 }, () => {
  test('a session is exported as JSON lines, with secrets redacted', async () => {
    const { code, stdout, stderr } = await project.hookloop(['export', 'talk'])
    const lines = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { type?: string; t?: string })
    assert.deepEqual([code, stderr, lines[0]?.type, lines[1]?.t], [0, '', 'export', 'session'])
    assert.ok(!stdout.includes(SECRET) && stdout.includes('I am Jane'))
    assert.doesNotMatch(stdout, /seal:[0-9a-f]/)
  })

  test('--redact redacts a text or a pattern, and --no-redact nothing', async () => {
    const [more, nothing] = await Promise.all([
      project.hookloop(['export', 'talk', '--redact', 'Jane', '--redact', '/i\\s+AM/i']),
      project.hookloop(['export', 'talk', '--no-redact']),
    ])
    assert.match(more.stdout, /my key is \[redacted\] and \[redacted\] \[redacted\]/)
    assert.ok(!more.stdout.includes('Jane') && nothing.stdout.includes(SECRET))
  })

  test('the file is readable by its owner only, and overwrites another one only with --force', async () => {
    const write = ['export', 'talk', '--output', 'talk.jsonl']
    const [first, again] = [await project.hookloop(write), await project.hookloop(write)]
    const forced = await project.hookloop([...write, '--force', '--json'])
    assert.deepEqual([first.code, first.stdout, again.code, forced.code], [0, '', 2, 0])
    assert.deepEqual(JSON.parse(forced.stdout), { session: 'talk', file: 'talk.jsonl' })
    assert.equal(statSync(project.path('talk.jsonl')).mode & 0o777, 0o600)
  })

  test('an exported session continues in another store', async () => {
    const { stdout: exported } = await project.hookloop(['export', 'talk', '--redact', 'Jane'])
    const other = new ScriptedProject()
    writeFileSync(other.path('in.jsonl'), exported)
    const [first, again] = [await other.hookloop(['import', 'in.jsonl']), await other.hookloop(['import', 'in.jsonl'])]
    const named = await other.hookloop(['import', '-', '--as', 'other', '--json'], { input: exported })
    assert.deepEqual([first.code, first.stdout, again.code], [0, 'talk\n', 2])
    assert.match(again.stderr, /A session with the id talk already exists\. Import it with another id: --as ID/)
    assert.deepEqual([named.code, named.stdout], [0, '{"session":"other"}\n'])
    const { last } = await other.result(['run', 'and?', '--agent', 'agent.ts', '--session', 'other'])
    assert.equal(last.text, 'I heard my key is [redacted] and I am [redacted], and?')
  })

  test('a file that is not an exported session is rejected, and nothing is stored', async () => {
    const other = new ScriptedProject()
    const lines = (await project.hookloop(['export', 'talk'])).stdout.trimEnd().split('\n')
    const wrong = [
      '',
      'hello',
      '[]',
      '{"type":"export","version":99,"id":"x"}\n',
      `{"type":"export","version":4,"id":"../x"}\n${lines.slice(1).join('\n')}\n`,
      `${lines[0]}\n${lines.slice(2).join('\n')}\n`,
      lines.join('\n').replace('"t":"final"', '"t":"endless"'),
    ]
    const ends = await Promise.all(wrong.map((input) => other.hookloop(['import', '-'], { input })))
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      wrong.map(() => [2, '']),
    )
    assert.equal((await other.hookloop(['import', 'none.jsonl'])).stderr, 'error: File not found: none.jsonl\n')
    assert.match((await other.hookloop(['import', '.'])).stderr, /^error: \. cannot be read: /)
    assert.equal((await other.hookloop(['sessions', '--json'])).stdout, '[]\n')
  })
})
