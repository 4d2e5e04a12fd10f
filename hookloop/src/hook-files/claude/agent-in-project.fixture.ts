import { setTimeout as sleep } from 'node:timers/promises'
import type { Use } from '../../core/agent/capability.ts'
import type { Session } from '../../core/agent/session.ts'
import { tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import type { JsonObject } from '../../values/json.ts'
import { textOf, type Message } from '../../core/state/message.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { claudeHooks, type ClaudeHooksOptions } from './claude-hooks.ts'
import type { ClaudeEvent } from './events/claude-events.ts'
import { quoted, type HookProject } from './hook-project.fixture.ts'

export const own = (event: ClaudeEvent, fields: JsonObject): string =>
  `echo ${quoted(JSON.stringify({ hookSpecificOutput: { hookEventName: event, ...fields } }))}`

export type World = {
  readonly options?: Partial<ClaudeHooksOptions>
  readonly use?: readonly Use[]
  readonly replies?: readonly ScriptedTurn[]
}

/** An agent with the hooks of a project, and a bash tool that returns its command. */
export function agentIn(project: HookProject, { options = {}, use = [], replies = [call('ls'), 'Done.'] }: World = {}) {
  const ran: string[] = []
  const bash = tool({
    name: 'bash',
    description: 'Runs a command.',
    input: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
    concurrent: true,
    execute: ({ command }) => {
      ran.push(command as string)
      return command === 'fail' ? 'Exit code: 1\noutput\nSTDERR:\nerror' : `ran ${command as string}`
    },
  })
  const model = scriptedModel([...replies])
  const hooks = claudeHooks({ dir: project.dir, trust: 'all', home: false, ...options })
  const store = memoryStore()
  return {
    agent: createAgent({ model, store, use: [bash, hooks, ...use] }),
    bare: { model, use: [bash, hooks, ...use] },
    ran,
    model,
    store,
  }
}

export function call(...commands: readonly string[]): ScriptedTurn {
  return { toolCalls: commands.map((command) => ({ name: 'bash', args: { command } })) }
}

export function said(messages: Iterable<Message>): readonly string[] {
  return [...messages].map(({ role, content }) => `${role}: ${textOf(content)}`)
}

/** Sends inputs until the model gets a text of a background handler. */
export async function askedUntil(session: Session, words: string): Promise<readonly string[]> {
  for (let asked = 0; ; asked++) {
    const heard = said((await session.send('And now?')).state.messages)
    if (asked === 290 || heard.some((each) => each.includes(words))) return heard
    await sleep(50)
  }
}

/** The result of the last call, as the model gets it. */
export function resultIn(messages: Iterable<Message>): unknown {
  const parts = [...messages].flatMap(({ content }) => content)
  return parts.findLast((part) => part.type === 'tool-result')
}
