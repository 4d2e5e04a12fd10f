import assert from 'node:assert/strict'
import { z } from 'zod'
import type { Agent } from '../agent/agent.ts'
import type { RunOptions } from '../agent/run-options.ts'
import type { Use } from '../agent/capability.ts'
import { tool } from '../agent/tool.ts'
import { createAgent } from '../create-agent.ts'
import { guard, observe } from '../hooks/hook.ts'
import { scriptedModel, type Script } from '../models/scripted.ts'
import { replay, type ReplayOptions, type ReplayReport } from '../sessions/replay/replay.ts'
import { recordEffects } from './record-effects.ts'
import { memoryRecording, type Recording } from './recording.ts'

/** A run that was recorded, and what would be done if it were done again: nothing may be. */
export type Taped = { readonly agent: Agent; readonly recording: Recording; readonly done: string[] }

export const listThenPush: Script = [
  { toolCalls: [{ name: 'shell', args: { command: 'ls' }, id: 'list' }] },
  { toolCalls: [{ name: 'shell', args: { command: 'git push' }, id: 'push' }] },
  'Done.',
]

export async function tape(script: Script, use: readonly Use[] = [], options: RunOptions = {}): Promise<Taped> {
  const done: string[] = []
  const model = scriptedModel(
    script.map((turn) => (request) => (done.push('model'), typeof turn === 'function' ? turn(request) : turn)),
  )
  const shell = tool({
    name: 'shell',
    description: 'Runs a command.',
    input: z.object({ command: z.string() }),
    execute: ({ command }) => {
      done.push(command)
      return `ran ${command}`
    },
  })
  const watcher = observe('*', (ctx) => void done.push(`saw ${ctx.trigger}`), { name: 'watcher' })
  const agent = createAgent({ model, use: [shell, watcher, ...use] })
  const recording = memoryRecording()
  await agent.run('go', { ...options, effects: recordEffects(recording) })
  done.length = 0
  return { agent, recording, done }
}

/** What changed hooks would have done, once it is sure that the replay has done nothing itself. */
export async function judged(
  { agent, recording, done }: Taped,
  changed: Omit<ReplayOptions, 'agent'> = {},
): Promise<ReplayReport> {
  const report = await replay(recording, { agent, input: 'go', ...changed })
  assert.deepEqual(done, [])
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report)
  return report
}

export const noPush = guard(
  'beforeToolUse',
  (ctx) => (JSON.stringify(ctx.toolCall.args).includes('push') ? ctx.block('Agents never push.') : ctx),
  { name: 'no-push' },
)
