// The model writes a task list that users see while it works. If it does not update the list for some steps, it is
// reminded by a message at the end of the conversation, so cached requests stay valid.
import { createAgent, hook, tool } from 'hookloop'
import { renderTasks, tasks, getEventTasks, getTasks } from 'hookloop/tasks'
import { scriptedModel, type ScriptedTurn } from 'hookloop/testing'

const shell = tool({
  name: 'shell',
  description: 'Runs a command.',
  input: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
  execute: ({ command }) => `ran ${JSON.stringify(command)}`,
})

const write = (...done: readonly string[]): ScriptedTurn => {
  const names = ['Read the log', 'Fix the import', 'Run the tests']
  const todos = names.map((content, i) => ({ content, status: done[i] ?? 'pending', activeForm: `${content} (now)` }))
  return { toolCalls: [{ name: 'todo_write', args: { todos } }] }
}
const run = (command: string): ScriptedTurn => ({ toolCalls: [{ name: 'shell', args: { command } }] })

const agent = createAgent({
  model: scriptedModel([
    write('in_progress', 'in_progress'), // one too many
    write('in_progress'),
    run('cat build.log'),
    run('sed -i s/fo/foo/ main.ts'),
    run('git diff'),
    write('completed', 'completed', 'in_progress'),
    'It is fixed.',
    run('npm test'),
    write('completed', 'completed', 'completed'),
    'It is fixed, and the tests pass.',
  ]),
  use: [
    tasks({ reminderEverySteps: 3 }),
    shell,
    hook('onStop', (ctx) => {
      const open = getTasks(ctx.state).filter(({ status }) => status !== 'completed')
      return open.length === 0 ? ctx : ctx.requestContinuation(`Not done yet: ${open[0]!.content}.`)
    }),
  ],
})

const live = agent.stream('The build fails. Fix it.')
for await (const event of live) {
  const list = getEventTasks(event)
  if (list !== undefined) console.log(renderTasks(list).replaceAll('\n', ' · '))
  else if (event.type === 'toolFinished') console.log(`  ${event.execution.status}:`, event.execution.output)
}

const { state, text } = await live.run
console.log('\nmessages to the model:')
for (const { role, content } of state.messages.slice(1)) {
  if (role === 'user' && content[0]?.type === 'text') console.log('-', content[0].text)
}
console.log(`\n${text}\n${renderTasks(state, 'markdown')}`)
