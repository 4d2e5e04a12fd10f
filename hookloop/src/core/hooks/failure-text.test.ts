import assert from 'node:assert/strict'
import { exec, execFileSync, execSync } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { messageOf } from '../../errors.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { guard } from './hook.ts'

const quiet = { stdio: 'pipe' } as const
const line = `sh -c 'exit 3' -- --token=hunter2`

const failures: { readonly [how: string]: () => unknown } = {
  execSync: () => execSync(line, quiet),
  execFileSync: () => execFileSync('sh', ['-c', 'exit 3', '--token=hunter2'], quiet),
  exec: () => promisify(exec)(line),
  'execSync, in a message of its own': () => {
    try {
      return execSync(line, quiet)
    } catch (error) {
      throw new Error(`The check failed. ${messageOf(error)}`, { cause: error })
    }
  },
}

for (const [how, fail] of Object.entries(failures)) {
  test(`a guard that runs a command with ${how} does not quote the command line to the model when it fails`, async () => {
    const work = tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked' })
    const checked = guard('beforeToolUse', async (ctx) => (await fail(), ctx), { name: 'checked' })
    const model = scriptedModel([{ toolCalls: [{ name: 'work' }] }, 'Done.'])
    const run = await createAgent({ model, use: [work, checked] }).run('Go.')
    const sent = JSON.stringify(model.requests.at(-1)!.messages)
    assert.match(sent, /Guard \\"checked\\" failed at beforeToolUse: .*a command failed/)
    assert.doesNotMatch(sent, /hunter2/)
    assert.match(run.warnings[0]!.message, /hunter2/) // the warning is for the user of this machine
  })
}
