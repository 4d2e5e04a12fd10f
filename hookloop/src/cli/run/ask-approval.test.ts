import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { approvalFor, type Approval } from '../../core/state/tool-call.ts'
import { askApproval, type AskOptions } from './ask-approval.ts'
import { terminal } from '../cli.fixture.ts'
import { Screen } from '../terminal/screen.ts'

const approval = approvalFor(
  { id: 'c1', name: 'shell', args: { command: 'ls \u001B[8m; rm -rf /' } },
  [{ by: 'careful', message: 'Run it?' }],
  { key: 'k' },
)

async function ask(
  typed: string | undefined,
  {
    stdin = new PassThrough(),
    afterMs = 0,
    asked = approval,
    ...asking
  }: Partial<AskOptions> & { stdin?: PassThrough; afterMs?: number; asked?: Approval } = {},
) {
  const { out, err, written } = terminal()
  const screen = new Screen({ out, err, env: { NO_COLOR: '1' } })
  const answer = askApproval(asked, { screen, stdin, signal: new AbortController().signal, ...asking })
  await sleep(afterMs)
  if (typed !== undefined) stdin.end(typed)
  return { answer: await answer, written: written() }
}

test('the user sees the complete call, with control characters escaped', async () => {
  const { written } = await ask('y\n')
  const shown =
    '? shell {\n    "command": "ls \\u001b[8m; rm -rf /"\n  }\n  Run it? (asked by careful)\n  Allow this call? [y]es, [N]o, [e]dit '
  assert.equal(written, shown)
})

test('the user sees all of a long call, also its middle', async () => {
  const command = `${'echo first; '.repeat(1_000)}rm -rf /; ${'echo last; '.repeat(1_000)}`
  const { written } = await ask('y\n', {
    asked: approvalFor({ id: 'c1', name: 'shell', args: { command } }, [{ by: 'careful', message: '?' }], { key: 'k' }),
  })
  assert.ok(written.includes(command))
})

test('only yes approves; anything else blocks, with the typed text as the reason', async () => {
  const typed = ['y\n', ' YES \n', '\n', 'n\n\n', 'no\nnot on Fridays\n', 'yellow\n', 'l\n', '']
  const answers = await Promise.all(typed.map((each) => ask(each)))
  const no = { block: 'The user blocked this call.' }
  assert.deepEqual(
    answers.map(({ answer }) => answer),
    [
      'allow',
      'allow',
      no,
      no,
      { block: 'The user blocked this call: not on Fridays' },
      { block: 'The user blocked this call: yellow' },
      no,
      no,
    ],
  )
})

test('the arguments can be replaced by a JSON object', async () => {
  const { answer, written } = await ask('e\n{"command"\ne\n["ls"]\nedit\n{"command":"ls"}\n')
  assert.deepEqual(answer, { allow: { command: 'ls' } })
  assert.equal(written.match(/Not a JSON object/g)?.length, 2)
})

test('arguments with a number that would be rounded are not accepted', async () => {
  const { answer, written } = await ask('e\n{"id":9007199254740993}\ne\n{"id":"9007199254740993"}\n')
  assert.deepEqual(answer, { allow: { id: '9007199254740993' } })
  assert.match(written, /9007199254740993 cannot be represented exactly\. Write it as a string\./)
})

test('a question at a trigger has no call, and so no arguments to replace', async () => {
  const asked = approvalFor(
    { id: 'beforeStep', name: 'beforeStep', args: {} },
    [{ by: 'careful', message: 'Go on?' }],
    { key: 'k', trigger: 'beforeStep' },
  )
  const [allowed, blocked] = await Promise.all([ask('e\ny\n', { asked }), ask('n\ntoo late\n', { asked })])
  assert.deepEqual([allowed.answer, blocked.answer], ['allow', { block: 'The user blocked this: too late' }])
  assert.match(allowed.written, /Allow this\? \[y\]es, \[N\]o (?!,)/)
})

test('a question can be answered later if the run is stored', async () => {
  const { answer, written } = await ask('l\n', { canSuspend: true })
  assert.equal(answer, 'suspend')
  assert.match(written, /\[l\]ater/)
})

test('text that was typed before the question appeared does not answer it', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  stdin.write('y\n')
  const { answer } = await ask('n\n\n', { stdin, afterMs: 100 })
  assert.deepEqual(answer, { block: 'The user blocked this call.' })
})

test('a cancelled run does not wait for an answer', async () => {
  const { answer, written } = await ask(undefined, { signal: AbortSignal.timeout(20) })
  assert.deepEqual([answer, written.endsWith('[e]dit \n')], [{ block: 'The user blocked this call.' }, true])
})
