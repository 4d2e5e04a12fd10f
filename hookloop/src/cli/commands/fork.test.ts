import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { RunDiff } from '../../sessions/replay/diff-runs.ts'
import type { SessionPoint } from '../../sessions/session/fork-session.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const project = new ScriptedProject()

before(async () => {
  await project.hookloop(['chat', '--agent', 'agent.ts', '--session', 'talk'], { input: 'charge\none\n' })
})

async function points(session: string): Promise<readonly SessionPoint[]> {
  const { stdout } = await project.hookloop(['steps', session, '--json'])
  return (JSON.parse(stdout) as { readonly steps: readonly SessionPoint[] }).steps
}

describe('hookloop steps, fork and diff', { concurrency: 2 }, () => {
  test('steps are listed with the number that fork --at takes', async () => {
    const { code, stdout } = await project.hookloop(['steps', 'talk'])
    assert.equal(code, 0)
    const lines = stdout.split('\n').map((line) => line.replaceAll(/ {2,}/g, ' | '))
    assert.equal(lines[0], 'AT | RUN | STEP | WHEN | CALLS | TEXT')
    assert.match(lines[1]!, /^\d+ \| 1 \| 1 \| now \| charge$/)
    assert.match(lines[3]!, /^\d+ \| 2 \| 1 \| now \| I heard charge, one$/)
  })

  test('rewind goes back in place, and resume regenerates the answer', async () => {
    const own = new ScriptedProject()
    await own.hookloop(['chat', '--agent', 'agent.ts', '--session', 'talk'], { input: 'one\ntwo\n' })
    const rewound = await own.hookloop(['rewind', 'talk'])
    assert.deepEqual([rewound.code, rewound.stdout], [0, 'talk\n'])
    assert.match(rewound.stderr, /Continue with: .* resume talk/)
    assert.equal((await own.hookloop(['resume', 'talk', '-q'])).stdout, 'I heard one, two\n')
    const { steps } = JSON.parse((await own.hookloop(['steps', 'talk', '--json'])).stdout) as { steps: SessionPoint[] }
    assert.deepEqual(
      steps.map(({ isRewound = false }) => isRewound),
      [false, true, false],
    )
    await own.hookloop(['rewind', 'talk', '--at', String(steps[0]!.seq)])
    assert.equal((await own.hookloop(['run', 'three', '--session', 'talk', '-q'])).stdout, 'I heard one, three\n')
    assert.equal((await own.hookloop(['rewind', 'talk', '--at', '9999'])).code, 2)
  })

  test('a fork continues from a step, and the original does not change', async () => {
    const [, second] = await points('talk')
    const { code, stdout, stderr } = await project.hookloop([
      'fork',
      'talk',
      '--at',
      String(second!.seq),
      '--as',
      'copy',
    ])
    assert.deepEqual([code, stdout], [0, 'copy\n'])
    assert.match(stderr, /^Continue with: .* chat --session copy\n$/)
    const chat = await project.hookloop(['chat', '--session', 'copy', '-q'], { input: 'two\n' })
    assert.equal(chat.stdout, 'I heard charge, two\n')
    assert.equal((await points('talk')).length, 3)
  })

  test('a fork can replace the user message at that point', async () => {
    const { stdout, stderr } = await project.hookloop(['fork', 'talk', '--message', 'two', '--as', 'other'])
    assert.match(stderr, /^Continue with: .* resume other\n$/)
    const resumed = await project.hookloop(['resume', stdout.trim(), '-q'])
    assert.deepEqual([resumed.code, resumed.stdout], [0, 'I heard charge, two\n'])
  })

  test('diff prints where two sessions diverge', async () => {
    await project.hookloop(['fork', 'talk', '--message', 'three', '--as', 'third'])
    await project.hookloop(['resume', 'third'])
    const [words, same, data] = await Promise.all([
      project.hookloop(['diff', 'talk', 'third', '--exit-code']),
      project.hookloop(['diff', 'talk', 'talk', '--exit-code']),
      project.hookloop(['diff', 'talk', 'third', '--json']),
    ])
    assert.deepEqual([words.code, same.code, data.code], [1, 0, 0])
    assert.match(words.stdout, /I heard charge, three/)
    assert.deepEqual((JSON.parse(data.stdout) as RunDiff).partsAt, { step: 0, in: 'text' })
  })
})
