import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { askTriggers, type AskTrigger } from '../../core/state/tool-call.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

// Questions that guards ask without a tool call, with the commands of the CLI. A process is started for each half of a run.

const code = (trigger: AskTrigger): string => `import { guard } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'
const asks = guard('${trigger}', (ctx) => (ctx.state.stepCount > ${trigger === 'onStop' ? 1 : 0} ? ctx : ctx.ask('Really?')), { name: 'asks' })
const model = scriptedModel(({ messages }) => 'To: ' + messages.at(-1).content[0].text)
export default { name: 'asker', model, use: [asks] }
`

function projectFor(trigger: AskTrigger): ScriptedProject {
  const project = new ScriptedProject()
  writeFileSync(project.agent, code(trigger))
  return project
}

/** A run in a process of its own that is suspended at the question. */
async function suspended(trigger: AskTrigger) {
  const project = projectFor(trigger)
  const { code, stderr } = await project.start(['run', 'go', '--agent', 'agent.ts', '--session', 's']).ended
  const id = / approve (\w+),/.exec(stderr)?.[1]
  assert.ok(code === 4 && id !== undefined, stderr)
  return { project, id }
}

/** The exit code and the output of a run whose question was blocked with "Not today." */
const blocked: { readonly [T in AskTrigger]: { readonly code: number; readonly stdout: string } } = {
  onUserInput: { code: 3, stdout: '' },
  beforeStep: { code: 3, stdout: '' },
  beforeInference: { code: 3, stdout: '' },
  onStop: { code: 0, stdout: 'To: Not today.\n' },
}

for (const trigger of askTriggers) {
  suite(`a question at ${trigger} in the CLI`, () => {
    test('is listed, approved by a command, and resumed and replayed by other processes', async () => {
      const { project, id } = await suspended(trigger)
      const listed = await project.hookloop(['approvals'])
      assert.match(listed.stdout, new RegExp(`^${id}  ${trigger} [^]*Really\\? \\(asked by asks in s\\)`))
      const edited = await project.hookloop(['approve', id, '--args', '{"a":1}'])
      assert.match(edited.stderr, new RegExp(`A question at ${trigger} has no arguments to edit`))
      const approved = await project.hookloop(['approve', id])
      assert.match(approved.stderr, new RegExp(`^Approved: ${trigger} .* in s\\.\n`))
      const resumed = await project.start(['resume', 's']).ended
      assert.deepEqual([resumed.code, resumed.stdout], [0, 'To: go\n'], resumed.stderr)
      const explained = await project.hookloop(['explain', 's'])
      assert.match(
        explained.stdout,
        new RegExp(`^ +asked +step 1, ${trigger}, by asks \\(.+\\): Really\\? approved$`, 'm'),
      )
      const replayed = await project.start(['replay', 's']).ended
      assert.match(replayed.stdout, /^\d+ decisions? judged again: nothing would have differed\.$/m)
    })

    test('is blocked by a command, and replayed by another process', async () => {
      const { project, id } = await suspended(trigger)
      const { code, stdout, stderr } = await project.hookloop(['block', id, '--reason', 'Not today.', '--resume'])
      assert.deepEqual({ code, stdout }, blocked[trigger], stderr)
      const explained = await project.hookloop(['explain', 's'])
      if (trigger !== 'onStop') assert.match(explained.stdout, /Not today\./)
      assert.match(
        explained.stdout,
        new RegExp(`^ +asked +step 1, ${trigger}, by asks \\(.+\\): Really\\? blocked: Not today\\.$`, 'm'),
      )
      const replayed = await project.start(['replay', 's']).ended
      assert.match(replayed.stdout, /^\d+ decisions? judged again: nothing would have differed\.$/m)
    })

    test('suspends a chat, which another chat continues after the answer', async () => {
      const project = projectFor(trigger)
      const chat = ['chat', '--agent', 'agent.ts', '--session', 's']
      const waits = await project.hookloop(chat, { input: 'go\n' })
      const id = / approve (\w+),/.exec(waits.stderr)?.[1]
      assert.ok(id !== undefined, waits.stderr)
      await project.hookloop(['approve', id])
      const again = await project.hookloop(chat, { input: '' })
      assert.deepEqual([again.code, again.stdout], [0, 'To: go\n'], again.stderr)
    })
  })
}
