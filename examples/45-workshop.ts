// Seven capabilities repair a small repository: files, bash, tasks, a skill, a subagent, metadata and a critic. The
// tests really run; two actions are blocked, one answer is returned. The ledger tells the story.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAgent, explain, getMetadata, hook, metadata, selfCritique } from 'hookloop'
import { bash } from 'hookloop/bash'
import { files } from 'hookloop/files'
import { skills } from 'hookloop/skills'
import { subagents } from 'hookloop/subagents'
import { renderTasks, tasks } from 'hookloop/tasks'
import { scriptedModel } from 'hookloop/testing'
import { critic, repairer, scout } from './workshop/scripts.ts'

const root = await mkdtemp(join(tmpdir(), 'workshop-'))
await cp(join(import.meta.dirname, 'workshop', 'repository'), root, { recursive: true })

const testsPass = hook(
  'onStop',
  (ctx) => {
    const last = ctx.ledger.findLast(({ hook, trigger }) => hook === 'bash.policy' && trigger === 'beforeToolUse')
    const step = last === undefined ? undefined : ctx.state.execution!.steps.at(last.step)
    const failed = JSON.stringify(step?.toolExecutions ?? '').includes('Exit code')
    return failed ? ctx.requestContinuation('The tests do not pass.') : ctx
  },
  { name: 'tests-pass' },
)

const agent = createAgent({
  name: 'repairer',
  model: scriptedModel(repairer),
  instructions: 'You repair programs. Never change their tests.',
  use: [
    files({ root, protect: ['test'] }),
    bash({ cwd: root, allow: ['node --test'], block: ['rm', 'git push'] }),
    tasks(),
    metadata(),
    skills({ cwd: root }),
    subagents({
      agents: {
        scout: {
          description: 'Looks, and changes nothing.',
          tools: ['read_file', 'list_dir'],
          model: scriptedModel(scout),
        },
      },
    }),
    selfCritique({ model: scriptedModel(critic) }),
    testsPass,
  ],
})

const live = agent.stream('The tests of this repository fail. Repair it.')
for await (const said of live) {
  const [who, event] = said.type === 'subagent' ? [said.path.at(-1)!.agent, said.event] : ['repairer', said]
  if (event.type !== 'toolFinished') continue
  const { call, execution } = event
  console.log(`${who} ${call.name} ${execution.status}: ${JSON.stringify(execution.output).slice(0, 90)}`)
}
const run = await live.run
console.log(`\n${run.text}\n\n${explain(run)}\n\n${renderTasks(run.state)}\n`)
console.log('stored:', getMetadata(run.state))
console.log('src/median.js:', (await readFile(join(root, 'src/median.js'), 'utf8')).split('\n')[1])
await rm(root, { recursive: true })
