import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Explanation } from '../../core/explain/explanation.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

const project = new ScriptedProject()

async function explained(text: string, session: string): Promise<string> {
  await project.hookloop(['run', text, '--agent', 'agent.ts', '--session', session])
  return (await project.hookloop(['explain', session])).stdout
}

describe('hookloop explain', { concurrency: 2 }, () => {
  test('prints the commands that continue a suspended run', async () => {
    const words = await explained('deploy production', 'waiting')
    assert.match(words, /^The run waits for approval: deploy: Deploy to production\?\n/)
    assert.match(words, / {2}to continue +\S.* approve \w{8}, then \S.* resume waiting\n$/)
  })

  test('explains who blocked an input, not the run before it', async () => {
    await explained('hello', 'rude')
    const words = await explained('rude words', 'rude')
    assert.match(
      words,
      /^The run was stopped: Be polite\.\n {2}decided by +polite \(agent\.ts:\d+\), reason inputBlocked\n/,
    )
  })

  test('explains why a run failed, and says each sentence once', async () => {
    const words = await explained('fail', 'failed')
    assert.match(words, /^The run failed: The model is out\.\n {2}error +MODEL_FAILED at aroundInference\n {2}spent/)
    assert.equal(words.split('The model is out').length, 2)
  })

  test('advises the option of the command for a limit that the command line has set', async () => {
    const limited = new ScriptedProject()
    await limited.hookloop(['run', 'charge', '--agent', 'agent.ts', '--session', 'one', '--max-steps', '1'])
    const { stdout } = await limited.hookloop(['explain', 'one'])
    assert.match(stdout, /to continue +raise --max-steps\n$/)
    const more = await limited.hookloop(['run', 'charge', '--agent', 'agent.ts', '--max-steps', '2'])
    assert.equal(more.code, 0)
  })

  test('prints JSON, of the latest session by default', async () => {
    const own = new ScriptedProject()
    await own.hookloop(['run', 'hello', '--agent', 'agent.ts', '--session', 'only'])
    const { stdout } = await own.hookloop(['explain', '--json'])
    const { session, status, decided, spent } = JSON.parse(stdout) as Explanation & { session: string }
    assert.deepEqual([session, status, decided.by, spent.steps], ['only', 'completed', 'completion', 1])
  })
})
