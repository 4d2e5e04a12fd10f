import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import type { JsonObject } from '../state/json.ts'
import { guard } from '../hooks/hook.ts'
import { scriptedModel } from '../models/scripted.ts'
import { guards } from './guards.ts'
import { selfDescription, type Section } from './self-description.ts'

const rm = tool({ name: 'rm', description: 'Removes.', input: { type: 'object' }, ask: true, execute: () => '' })

/** The description that the model gets of an agent with these parts. */
async function described(section: Section | undefined, ...use: readonly Use[]): Promise<JsonObject> {
  const args = section === undefined ? {} : { section }
  const model = scriptedModel([{ toolCalls: [{ name: 'describe_self', args }] }, 'Done.'], { modelId: 'tiny' })
  const run = await createAgent({ model, name: 'clerk', instructions: 'SECRET prompt', use }).run('Who are you?')
  return run.state.execution!.steps.at(0)!.toolExecutions[0]!.output as JsonObject
}

test('the model gets its tools, capabilities, hooks and limits', async () => {
  const noRm = guard('beforeToolUse', (ctx) => ctx.block('Never.'), { name: 'noRm', tool: rm })
  const reported = await described(undefined, selfDescription(), rm, noRm, guards({ maxSteps: 7 }))
  assert.deepEqual([reported['name'], reported['model']], ['clerk', 'scripted/tiny'])
  assert.deepEqual((reported['tools'] as JsonObject[])[1], { name: 'rm', description: 'Removes.', needsApproval: true })
  assert.deepEqual(reported['capabilities'], ['completion', 'selfDescription', 'guards'])
  assert.ok(
    (reported['hooks'] as JsonObject[]).some(
      ({ name, tools }) => name === 'noRm' && JSON.stringify(tools) === '["rm"]',
    ),
  )
  assert.match(JSON.stringify(reported['limits']), /maxSteps: 7,/)
  assert.doesNotMatch(JSON.stringify(reported), /SECRET/)
})

test('one section can be requested, and a section that is not offered cannot', async () => {
  const reported = await described('tools', selfDescription(), rm)
  assert.deepEqual(Object.keys(reported), ['name', 'model', 'tools'])
  const closed = selfDescription({ sections: ['tools'] })
  assert.deepEqual(Object.keys(await described(undefined, closed)), ['name', 'model', 'tools'])
  assert.match(JSON.stringify(await described('hooks', closed)), /do not fit/)
})

test('secrets are redacted anywhere in the description', async () => {
  process.env['CANARY_API_KEY'] = 'correct-horse-battery'
  const notes = [
    'Server: correct-horse-battery at https://me:pa55@host/x.',
    'Header: Authorization: Bearer abcdefghijkl, key sk-proj-ABCDEFGHIJKLMNOPQRST.',
  ]
  const leaky = tool({ name: 'leaky', description: 'Uses correct-horse-battery.', input: {}, execute: () => '' })
  const reported = await described(undefined, selfDescription(), leaky, { name: 'noted', notes })
  delete process.env['CANARY_API_KEY']
  assert.doesNotMatch(JSON.stringify(reported), /horse|pa55|abcdefghijkl|ABCDEFGHIJKLM/)
  const cut = tool({
    name: 'cut',
    description: `${'x'.repeat(290)} correct-horse-battery`,
    input: {},
    execute: () => '',
  })
  process.env['CANARY_API_KEY'] = 'correct-horse-battery'
  assert.doesNotMatch(JSON.stringify(await described('tools', selfDescription(), cut)), /correct/)
  delete process.env['CANARY_API_KEY']
  assert.match(JSON.stringify(reported), /https:\/\/\[redacted\]@host\/x/)
})

test('ordinary text is not redacted', async () => {
  const text =
    'An ordinary step: maxSteps 20. See https://example.com/a@b and skip-the-rest-of-it-all-please. The key is on the table.'
  Object.assign(process.env, { KEYBOARD: 'the table', GIT_AUTHOR_NAME: 'ordinary' })
  const { limits } = await described('limits', selfDescription(), { name: 'noted', notes: [text] })
  delete process.env['KEYBOARD']
  delete process.env['GIT_AUTHOR_NAME']
  assert.ok((limits as { notes: string[] }).notes.includes(text), JSON.stringify(limits))
})

test('long descriptions are shortened, and invalid options are rejected by name', async () => {
  const long = tool({ name: 'long', description: 'x'.repeat(5_000), input: {}, execute: () => '' })
  const reported = await described('tools', selfDescription({ maxChars: 10 }), long)
  assert.equal((reported['tools'] as JsonObject[])[1]!['description'], 'xxxxxxxxxx…')
  assert.throws(() => selfDescription({ section: 'tools' } as never), /unknown option "section"/)
  assert.throws(() => selfDescription({ sections: ['keys' as never] }), /"sections" must be/)
})
