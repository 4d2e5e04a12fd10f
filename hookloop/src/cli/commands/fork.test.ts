import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { RunDiff } from '../../sessions/replay/diff-runs.ts'
import type { SessionPoint } from '../../sessions/session/fork-session.ts'
import { Workshop } from '../scripted-project.fixture.ts'

const shop = new Workshop()

before(async () => {
  await shop.hookloop(['chat', '--agent', 'agent.ts', '--session', 'talk'], { input: 'charge\none\n' })
})

async function points(session: string): Promise<readonly SessionPoint[]> {
  const { stdout } = await shop.hookloop(['steps', session, '--json'])
  return (JSON.parse(stdout) as { readonly steps: readonly SessionPoint[] }).steps
}

describe('going back in a session', { concurrency: 2 }, () => {
  test('its steps are listed with the number to go back to', async () => {
    const { code, stdout } = await shop.hookloop(['steps', 'talk'])
    assert.equal(code, 0)
    const lines = stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '))
    assert.equal(lines[0], 'AT | RUN | STEP | WHEN | CALLS | TEXT')
    assert.match(lines[1]!, /^\d+ \| 1 \| 1 \| now \| charge$/)
    assert.match(lines[3]!, /^\d+ \| 2 \| 1 \| now \| I heard charge, one$/)
  })

  test('a fork goes on from there, and the other stays as it is', async () => {
    const [, second] = await points('talk')
    const { code, stdout, stderr } = await shop.hookloop(['fork', 'talk', '--at', String(second!.seq), '--as', 'copy'])
    assert.deepEqual([code, stdout], [0, 'copy\n'])
    assert.match(stderr, /^Continue with: .* chat --session copy\n$/)
    const chat = await shop.hookloop(['chat', '--session', 'copy', '-q'], { input: 'two\n' })
    assert.equal(chat.stdout, 'I heard charge, two\n')
    assert.equal((await points('talk')).length, 3)
  })

  test('a fork may begin with something else than what was said there', async () => {
    const { stdout, stderr } = await shop.hookloop(['fork', 'talk', '--message', 'two', '--as', 'other'])
    assert.match(stderr, /^Continue with: .* resume other\n$/)
    const resumed = await shop.hookloop(['resume', stdout.trim(), '-q'])
    assert.deepEqual([resumed.code, resumed.stdout], [0, 'I heard charge, two\n'])
  })

  test('a fork has a name of its own, and is printed as JSON', async () => {
    const { stdout } = await shop.hookloop(['fork', 'tal', '--json'])
    const { session, from, at } = JSON.parse(stdout) as { session: string; from: string; at: null }
    assert.deepEqual([session.startsWith('talk-'), from, at], [true, 'talk', null])
  })

  test('two sessions are compared, and it is said where they part', async () => {
    await shop.hookloop(['fork', 'talk', '--message', 'three', '--as', 'third'])
    await shop.hookloop(['resume', 'third'])
    const [words, same, data] = await Promise.all([
      shop.hookloop(['diff', 'talk', 'third', '--exit-code']),
      shop.hookloop(['diff', 'talk', 'talk', '--exit-code']),
      shop.hookloop(['diff', 'talk', 'third', '--json']),
    ])
    assert.deepEqual([words.code, same.code, data.code], [1, 0, 0])
    assert.match(words.stdout, /I heard charge, three/)
    assert.deepEqual((JSON.parse(data.stdout) as RunDiff).partsAt, { step: 0, in: 'text' })
  })

  test('what cannot be forked is refused, and nothing is made', async () => {
    const wrong = [
      ['fork', 'talk', '--as', 'talk'],
      ['fork', 'talk', '--at', '9999', '--as', 'nothing'],
      ['fork', 'talk', '--at', '-1', '--as', 'nothing'],
      ['fork', 'nobody', '--as', 'nothing'],
      ['fork', 'talk', '--as', '../nothing'],
    ]
    const ends = await Promise.all(wrong.map((args) => shop.hookloop(args)))
    assert.deepEqual(
      ends.map(({ code, stdout }) => [code, stdout]),
      wrong.map(() => [2, '']),
    )
    assert.equal((await shop.hookloop(['steps', 'nothing'])).code, 2)
  })
})
