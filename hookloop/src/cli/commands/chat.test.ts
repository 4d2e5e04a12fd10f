import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const agent = ['--agent', 'agent.ts']

describe('hookloop chat in a pipe', { concurrency: 2 }, () => {
  test('sends each line as a message, and prints answers to stdout', async () => {
    const project = new ScriptedProject()
    const { code, stdout, stderr } = await project.hookloop(['chat', ...agent], { input: 'one\r\n\n  \ntwo' })
    assert.deepEqual([code, stdout], [0, 'I heard one\nI heard one, two\n'])
    assert.equal(stderr.match(/✓ completed/g)?.length, 2)
  })

  test('ends with the first run that does not complete, and with its exit code', async () => {
    const project = new ScriptedProject()
    const [failed, waits] = await Promise.all([
      project.hookloop(['chat', ...agent], { input: 'fail\nnever said\n' }),
      project.hookloop(['chat', ...agent], { input: 'deploy production\nnever said\n' }),
    ])
    assert.deepEqual([failed.code, failed.stdout, waits.code, waits.stdout], [1, '', 4, ''])
    assert.match(waits.stderr, / approve \w{8}, or /)
  })

  test('with --on-new-input block, the next message blocks what is asked, and the model receives both', async () => {
    const project = new ScriptedProject()
    const input = 'deploy production\nnot now\n'
    const talk = ['chat', ...agent, '--session', 'talk', '-q', '--on-new-input', 'block']
    const { code, stdout } = await project.hookloop(talk, { input })
    assert.deepEqual([code, stdout, project.done()], [0, 'I heard deploy production, not now\n', []])
    await project.hookloop(['run', 'deploy staging', '--session', 'talk'])
    const rejected = await project.hookloop(['run', 'stop', '--session', 'talk'])
    assert.deepEqual([rejected.code, rejected.stdout], [2, ''])
    const taken = await project.hookloop(['run', 'stop', '--session', 'talk', '-q', '--on-new-input', 'block'])
    assert.match(taken.stdout, /not now, deploy staging, stop/)
    assert.deepEqual(project.done(), [])
  })

  test('stores nothing with --no-store, and blocks approvals', async () => {
    const project = new ScriptedProject()
    const { code, stdout } = await project.hookloop(['chat', ...agent, '--no-store', '-q'], {
      input: 'deploy x\nand?\n',
    })
    assert.equal(code, 0)
    assert.match(stdout, /^It says: Not run: .*the agent has no approver\.\nI heard deploy x, and\?\n$/)
    assert.equal((await project.hookloop(['sessions', '--json'])).stdout, '[]\n')
  })
})
