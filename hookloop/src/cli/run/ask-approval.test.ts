import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { approvalFor } from '../../state/tool-call.ts'
import { askHere, type Asking } from './ask-approval.ts'
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
    ...asking
  }: Partial<Asking> & { stdin?: PassThrough; afterMs?: number } = {},
) {
  const { out, err, written } = terminal()
  const screen = new Screen({ out, err, env: { NO_COLOR: '1' } })
  const answer = askHere(approval, { screen, stdin, signal: new AbortController().signal, ...asking })
  await sleep(afterMs)
  if (typed !== undefined) stdin.end(typed)
  return { answer: await answer, written: written() }
}

test('a person is shown all of what is asked for, and what hides in it', async () => {
  const { written } = await ask('y\n')
  const shown =
    '? shell {\n    "command": "ls \\u001b[8m; rm -rf /"\n  }\n  Run it? (asked by careful)\n  Allow it? [y]es, [N]o, [e]dit '
  assert.equal(written, shown)
})

test('yes is a yes, and everything else is a no, with what was typed as its reason', async () => {
  const typed = ['y\n', ' YES \n', '\n', 'n\n\n', 'no\nnot on Fridays\n', 'yellow\n', 'l\n', '']
  const answers = await Promise.all(typed.map((each) => ask(each)))
  const no = { block: 'The user said no.' }
  assert.deepEqual(
    answers.map(({ answer }) => answer),
    [
      'allow',
      'allow',
      no,
      no,
      { block: 'The user said no: not on Fridays' },
      { block: 'The user said no: yellow' },
      no,
      no,
    ],
  )
})

test('the arguments can be replaced, by JSON that is an object', async () => {
  const { answer, written } = await ask('e\n{"command"\ne\n["ls"]\nedit\n{"command":"ls"}\n')
  assert.deepEqual(answer, { allow: { command: 'ls' } })
  assert.equal(written.match(/That is not a JSON object/g)?.length, 2)
})

test('a question may be left open where somebody can answer it later', async () => {
  const { answer, written } = await ask('l\n', { mayWait: true })
  assert.equal(answer, 'suspend')
  assert.match(written, /\[l\]ater/)
})

test('what was typed at a terminal before the question is no answer to it', async () => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  stdin.write('y\n')
  const { answer } = await ask('n\n\n', { stdin, afterMs: 100 })
  assert.deepEqual(answer, { block: 'The user said no.' })
})

test('a run that is cancelled does not wait for an answer', async () => {
  const { answer, written } = await ask(undefined, { signal: AbortSignal.timeout(20) })
  assert.deepEqual([answer, written.endsWith('[e]dit \n')], [{ block: 'The user said no.' }, true])
})
