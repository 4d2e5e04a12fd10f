import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { askTriggers, type AskTrigger } from '../../core/state/tool-call.ts'
import { ScriptedProject } from '../scripted-project.fixture.ts'

// Questions that guards ask without a tool call, with the commands of the CLI.

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
  const { code, stderr } = await project.hookloop(['run', 'go', '--agent', 'agent.ts', '--session', 's'])
  const id = / approve (\w+),/.exec(stderr)?.[1]
  assert.ok(code === 4 && id !== undefined, stderr)
  return { project, id }
}

for (const trigger of askTriggers) {
  suite(`a question at ${trigger} in the CLI`, () => {
    test('is listed, approved, resumed and replayed by other commands', async () => {
      const { project, id } = await suspended(trigger)
      const listed = await project.hookloop(['approvals'])
      assert.match(listed.stdout, new RegExp(`^${id}  ${trigger} [^]*Really\\? \\(asked by asks in s\\)`))
      const edited = await project.hookloop(['approve', id, '--args', '{"a":1}'])
      assert.match(edited.stderr, new RegExp(`A question at ${trigger} has no arguments to edit`))
      const approved = await project.hookloop(['approve', id])
      assert.match(approved.stderr, new RegExp(`^Approved: ${trigger} .* in s\\.\n`))
      const resumed = await project.hookloop(['resume', 's'])
      assert.deepEqual([resumed.code, resumed.stdout], [0, 'To: go\n'], resumed.stderr)
      const explained = await project.hookloop(['explain', 's'])
      assert.match(
        explained.stdout,
        new RegExp(`^ +asked +step 1, ${trigger}, by asks \\(.+\\): Really\\? approved$`, 'm'),
      )
      const replayed = await project.hookloop(['replay', 's'])
      assert.match(replayed.stdout, /^\d+ decisions? judged again: nothing would have differed\.$/m)
    })
  })
}
