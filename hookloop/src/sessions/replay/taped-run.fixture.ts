import assert from 'node:assert/strict'
import { z } from 'zod'
import type { Agent } from '../../core/agent/agent.ts'
import type { Use } from '../../core/agent/capability.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { guard, observe } from '../../core/hooks/hook.ts'
import { scriptedModel, type Script } from '../../models/scripted.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { StoredSession } from '../stores/store.ts'
import { replay, type ReplayOptions, type ReplayReport } from './replay.ts'

/** A run that was recorded, and what would be done if it were done again: nothing may be. */
export type Taped = { readonly agent: Agent; readonly stored: StoredSession; readonly done: string[] }

export const listThenPush: Script = [
  { toolCalls: [{ name: 'shell', args: { command: 'ls' }, id: 'list' }] },
  { toolCalls: [{ name: 'shell', args: { command: 'git push' }, id: 'push' }] },
  'Done.',
]

export async function tape(script: Script, use: readonly Use[] = []): Promise<Taped> {
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
  const store = memoryStore()
  const agent = createAgent({ model, store, use: [shell, watcher, ...use] })
  await agent.run('go', { session: 's' })
  done.length = 0
  return { agent, stored: (await store.read('s'))!, done }
}

/** What changed hooks would have done, once it is sure that the replay has done nothing itself. */
export async function judged(
  { agent, stored, done }: Taped,
  changed: Omit<ReplayOptions, 'agent'> = {},
): Promise<Omit<ReplayReport, 'run'>> {
  const { run: _run, ...report } = await replay(stored, { agent, ...changed })
  assert.deepEqual(done, [])
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report)
  return report
}

export const noPush = guard(
  'beforeToolUse',
  (ctx) => (JSON.stringify(ctx.toolCall.args).includes('push') ? ctx.block('Agents never push.') : ctx),
  { name: 'no-push' },
)
