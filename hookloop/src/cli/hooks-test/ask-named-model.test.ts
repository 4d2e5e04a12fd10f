import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { LLMock } from '@copilotkit/aimock'
import { ProjectWithHooks } from '../project-with-hooks.fixture.ts'

const mock = new LLMock({ port: 0, logLevel: 'silent' })
before(async () => {
  mock.onMessage('Are the tests green?', { content: JSON.stringify({ ok: false, reason: 'Two are red.' }) })
  await mock.start()
})
after(() => mock.stop())

test('hooks test calls the model named by an option or a variable, and reports that there is none', async () => {
  const project = new ProjectWithHooks()
  const hooks = ['prompt', 'agent'].map((type) => ({ type, prompt: 'Are the tests green? $ARGUMENTS' }))
  project.write('.claude/settings.json', { hooks: { Stop: [{ hooks }] } })
  const env = { OPENAI_BASE_URL: `${mock.url}/v1`, OPENAI_API_KEY: 'sk-none' }
  const test = async (args: readonly string[], more: NodeJS.ProcessEnv = {}) => {
    const all = ['hooks', 'test', 'Stop', '--dir', '.', '--no-user', '--json', ...args]
    const { stdout } = await project.hookloop(all, { input: '{}', env: { ...env, ...more } })
    const {
      decision,
      reason,
      hooks: ran,
    } = JSON.parse(stdout) as {
      readonly [field: string]: unknown
      readonly hooks: readonly { readonly problem: string | null }[]
    }
    return [decision, reason, ran.map(({ problem }) => problem)]
  }
  const said = ['block', 'Two are red.\nTwo are red.', [null, null]]
  assert.deepEqual(await test(['--model', 'openai/gpt-5-mini']), said)
  assert.deepEqual(await test([], { HOOKLOOP_MODEL: 'openai/gpt-5-mini' }), said)
  const none = 'there is no model to call'
  assert.deepEqual(await test([]), ['none', null, [none, none]])
})
