// The model says that it is done, and a hook at `onStop` requests another step until the tests have passed.
// The hook reads the state of the run, not the text of the model.
import { createAgent, guard, tool } from 'hookloop'
import { scriptedModel } from 'hookloop/testing'

let edits = 0

const edit = tool({
  name: 'edit',
  description: 'Edits the program.',
  input: { type: 'object' },
  execute: () => `edit ${++edits}`,
})

const test = tool({
  name: 'test',
  description: 'Runs the tests.',
  input: { type: 'object' },
  execute: () => (edits < 2 ? 'FAIL' : 'PASS'),
})

const testsPass = guard(
  'onStop',
  (ctx) => {
    const calls = ctx.state.execution!.steps.flatMap((step) =>
      step.toolCalls.map((call, i) => ({ name: call.name, output: step.toolExecutions[i]!.output })),
    )
    const last = calls.findLast(({ name }) => name === 'edit' || name === 'test')
    if (last?.output === 'PASS') return ctx
    return ctx.requestContinuation(last?.name === 'test' ? 'The tests fail.' : 'The tests were not run after the edit.')
  },
  { name: 'tests-pass' },
)

const agent = createAgent({
  model: scriptedModel([
    { toolCalls: [{ name: 'edit' }] },
    'Done!',
    { toolCalls: [{ name: 'test' }] },
    'They fail, but the idea is right. Done!',
    { toolCalls: [{ name: 'edit' }, { name: 'test' }] },
    'Now they pass.',
  ]),
  use: [edit, test, testsPass],
})

for await (const event of agent.stream('Repair it.')) {
  if (event.type === 'responded' && event.text !== '') console.log('model:     ', event.text)
  if (event.type === 'toolFinished') console.log('tool:      ', event.call.name, '→', event.execution.output)
  if (event.type === 'hook' && event.entry.hook === 'tests-pass') console.log('tests-pass:', event.entry.message)
}
