import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ScriptedProject } from '../scripted-project.fixture.ts'
import type { Started } from '../cli.fixture.ts'

const agent = ['--agent', 'agent.ts']

/** A run in a process of its own, whose tool has been called and does not return. */
async function hanging(): Promise<{ readonly project: ScriptedProject; readonly running: Started }> {
  const project = new ScriptedProject({ HANGS: '1' })
  const running = project.start(['run', 'charge', ...agent, '--session', 'pay', '--json'])
  while (!project.done().includes('charged')) await sleep(5)
  return { project, running }
}

describe('hookloop stop', { concurrency: 2 }, () => {
  test('stops a run in another process, and says who stopped it and why', async () => {
    const { project, running } = await hanging()
    const stopped = await project.hookloop(['stop', 'pay', '--by', 'jane', '--reason', 'wrong card'])
    const { code, stdout } = await running.ended
    const { status } = JSON.parse(stdout.trimEnd().split('\n').at(-1)!) as { status: string }
    assert.deepEqual([stopped.code, stopped.stderr, code, status], [0, 'pay is stopped.\n', 3, 'cancelled'])
    const explained = await project.hookloop(['explain', 'pay'])
    assert.match(explained.stdout, /^The run was stopped on request of jane: wrong card\n/)
    const again = await project.hookloop(['stop', 'pay'])
    assert.deepEqual([again.code, again.stderr], [2, 'pay has no run to stop: it is cancelled.\n'])
    const next = await project.result(['run', 'one', ...agent, '--session', 'pay'], { env: { HANGS: '' } })
    assert.deepEqual([next.code, next.last.status], [0, 'completed'])
  })

  test('stops a run whose process is killed before it has noticed: it is resumed without another effect', async () => {
    const { project, running } = await hanging()
    running.kill('SIGSTOP')
    const requested = await project.hookloop(['stop', 'pay', '--by', 'jane', '--no-wait', '--json'])
    assert.deepEqual(JSON.parse(requested.stdout), { session: 'pay', requested: true, status: 'running' })
    const listed = await project.hookloop(['sessions', '--open'])
    assert.match(listed.stdout, /^pay +\S+ +running +shipper +process \d+ on \S+ +\S+ +to stop, on request of jane$/m)
    running.kill('SIGKILL')
    await running.ended
    const hint = await project.hookloop(['stop', 'pay'])
    assert.equal(hint.code, 0)
    assert.match(hint.stderr, /No process runs pay now \(interrupted\).* hookloop resume pay\n$/)
    const resumed = await project.result(['resume', 'pay'], { env: { HANGS: '' } })
    assert.deepEqual([resumed.code, resumed.last.status, project.done()], [3, 'cancelled', ['charged']])
    const explained = await project.hookloop(['explain', 'pay'])
    assert.match(explained.stdout, /^The run was stopped on request of jane\.\n/)
  })

  test('stops a run that waits for approval when it is resumed, although the call was approved', async () => {
    const project = new ScriptedProject()
    const { last } = await project.result(['run', 'deploy x', ...agent, '--session', 'ship'])
    const stopped = await project.hookloop(['stop', 'shi', '--json'])
    assert.deepEqual(
      [stopped.code, JSON.parse(stopped.stdout)],
      [0, { session: 'ship', requested: true, status: 'suspended' }],
    )
    const approved = await project.hookloop(['approve', last.pending![0]!.id, '--resume', ...agent])
    assert.deepEqual([approved.code, project.done()], [3, []])
  })
})
