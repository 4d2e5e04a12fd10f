// One process of a run with subagents that outlives it: `start` starts the run with the task, `resume` resumes the one
// in the folder. Both write the run to run.json, and a line to effects.log for each executed look.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Answers } from '../state/tool-call.ts'
import { guard } from '../hooks/hook.ts'
import { isAsked, lookedAt, planModel, spawnTool } from './family-world.fixture.ts'
import { tool } from '../agent/tool.ts'

const [mode, folder = '.', given = ''] = process.argv.slice(2)
const [runFile, logFile] = [join(folder, 'run.json'), join(folder, 'effects.log')]

const look = tool({
  name: 'look',
  description: 'Looks.',
  input: { type: 'object', properties: { at: {} } },
  execute: (args) => {
    const at = lookedAt(args)
    appendFileSync(logFile, `${at}\n`)
    return `saw ${at}`
  },
})
const ask = guard('beforeToolUse', (ctx) => (isAsked(ctx.toolCall.args) ? ctx.ask('Look?') : ctx), {
  name: 'ask',
  tool: 'look',
})
const model = planModel()
const agent = createAgent({ model, use: [look, spawnTool(), ask, approval('suspend')] })

const run =
  mode === 'start'
    ? await agent.run(given)
    : await agent.resume(JSON.parse(readFileSync(runFile, 'utf8')) as SavedRun, {
        answers: JSON.parse(given) as Answers,
      })
writeFileSync(runFile, JSON.stringify(run))
const pending = run.status === 'suspended' ? run.pending.map(({ id }) => id) : []
console.log(JSON.stringify({ status: run.status, text: run.text, pending, modelCalls: model.requests.length }))
