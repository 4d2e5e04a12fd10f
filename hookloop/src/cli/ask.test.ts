import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { approvalFor } from '../data/tool-call.ts'
import { askHere } from './ask.ts'
import { terminal } from './cli.fixture.ts'
import { Screen } from './screen.ts'

const approval = approvalFor(
  { id: 'c1', name: 'shell', args: { command: 'ls \u001B[8m; rm -rf /' } },
  [{ by: 'careful', message: 'Run it?' }],
  { key: 'k' },
)

async function ask(typed: string | undefined, signal = new AbortController().signal) {
  const { out, err, written } = terminal()
  const stdin = new PassThrough()
  const screen = new Screen({ out, err, env: { NO_COLOR: '1' } })
  const answer = askHere(approval, { screen, stdin, signal })
  if (typed !== undefined) stdin.end(typed)
  return { answer: await answer, written: written() }
}

test('a person is shown all of what is asked for, and what hides in it', async () => {
  const { written } = await ask('y\n')
  const shown =
    '? shell {\n    "command": "ls \\u001b[8m; rm -rf /"\n  }\n  Run it? (asked by careful)\n  Allow it? [y/N] '
  assert.equal(written, shown)
})

test('yes is a yes, and everything else is a no', async () => {
  const answers = await Promise.all(['y\n', ' YES \n', '\n', 'n\n', 'yellow\n', ''].map((typed) => ask(typed)))
  const no = { block: 'The user said no.' }
  assert.deepEqual(
    answers.map(({ answer }) => answer),
    ['allow', 'allow', no, no, no, no],
  )
})

test('a run that is cancelled does not wait for an answer', async () => {
  const { answer, written } = await ask(undefined, AbortSignal.timeout(20))
  assert.deepEqual([answer, written.endsWith('[y/N] \n')], [{ block: 'The user said no.' }, true])
})
