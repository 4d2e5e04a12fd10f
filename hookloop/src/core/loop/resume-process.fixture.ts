// One process of a run that outlives it. `start` starts the run, `resume` resumes the one in the folder. Both write
// the run to run.json, and a line to effects.log for each effect that was executed.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Answers } from '../state/tool-call.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { tool } from '../agent/tool.ts'

const [mode, folder = '.', answers = '{}'] = process.argv.slice(2)
const [runFile, logFile] = [join(folder, 'run.json'), join(folder, 'effects.log')]

const note = tool({
  name: 'note',
  description: 'Writes a line.',
  input: z.object({ text: z.string() }),
  execute: ({ text }, { idempotencyKey }) => {
    appendFileSync(logFile, `${JSON.stringify({ text, key: idempotencyKey, pid: process.pid })}\n`)
    return `noted ${text}`
  },
})
const shout = hook('beforeToolUse', (ctx) => ctx.withArgs({ text: ctx.toolCall.args.text.toUpperCase() }), {
  tool: note,
})
const asksAboutSecond = guard('beforeToolUse', (ctx) => (ctx.toolCall.args.text === 'TWO' ? ctx.ask('Two?') : ctx), {
  tool: note,
})
const model = scriptedModel(({ messages }) => {
  if (messages.at(-1)?.role === 'tool') return 'All noted.'
  return { toolCalls: ['one', 'two', 'three'].map((text) => ({ name: 'note', args: { text } })) }
})
const agent = createAgent({ model, use: [note, shout, asksAboutSecond, approval('suspend')] })

const run =
  mode === 'start'
    ? await agent.run('Note one, two, three.')
    : await agent.resume(JSON.parse(readFileSync(runFile, 'utf8')) as SavedRun, {
        answers: JSON.parse(answers) as Answers,
      })
writeFileSync(runFile, JSON.stringify(run))
const pending = run.status === 'suspended' ? run.pending.map(({ id }) => id) : []
console.log(JSON.stringify({ status: run.status, pending, modelCalls: model.requests.length }))
