// Nested subagents, each of which replies with the turns in its prompt, a list as JSON. So any
// number of them may run concurrently, in any order, and again after a crash, on one stateless model.
import { setTimeout as delay } from 'node:timers/promises'
import { createAgent } from '../../create-agent.ts'
import type { Json } from '../../values/json.ts'
import { scriptedModel, type ScriptedCall, type ScriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { agentTool, type Delegation } from '../agent/agent-tool.ts'
import type { Agent } from '../agent/agent.ts'
import type { Use } from '../agent/capability.ts'
import { tool, type Tool } from '../agent/tool.ts'

export type Turn =
  | string
  | { readonly calls: readonly ScriptedCall[]; readonly text?: string; readonly tokens?: number }

/** The prompt that makes an agent reply with these turns. */
export function plan(...turns: readonly Turn[]): string {
  return JSON.stringify(turns)
}

/** A turn with tool calls. */
export function calls(...made: readonly ScriptedCall[]): Turn {
  return { calls: made }
}

/** A call of a subagent, which replies with these turns. */
export function spawn(id: string, who: string, ...turns: readonly Turn[]): ScriptedCall {
  return { id, name: 'spawn', args: { who, plan: plan(...turns) } }
}

export function look(id: string, at: Json = id): ScriptedCall {
  return { id, name: 'look', args: { at } }
}

/** Replies with the turns of the prompt, one at a time. */
export function planModel(
  options: { readonly usage?: { readonly inputTokens?: number; readonly costUsd?: number } } = {},
): ScriptedModel {
  return scriptedModel(
    ({ messages }): ScriptedTurn => {
      const first = messages.find(({ role }) => role === 'user')?.content[0]
      const turns = JSON.parse(first?.type === 'text' ? first.text : '[]') as readonly Turn[]
      const turn = turns[messages.filter(({ role }) => role === 'assistant').length] ?? 'Done.'
      if (typeof turn === 'string') return turn
      const { calls: toolCalls, text, tokens } = turn
      return {
        toolCalls,
        ...(text !== undefined && { text }),
        ...(tokens !== undefined && { usage: { inputTokens: tokens, outputTokens: 0 } }),
      }
    },
    { usage: { inputTokens: 10, outputTokens: 5, ...options.usage } },
  )
}

export type World = {
  readonly agent: Agent
  readonly model: ScriptedModel
  /** The executed looks, in order. */
  readonly looked: string[]
  /** How many tools are running. */
  readonly atWork: () => number
}

export type WorldOptions = {
  readonly use?: readonly Use[]
  readonly who?: { readonly [name: string]: Delegation['to'] }
  readonly model?: ScriptedModel
  readonly lookMs?: number
  readonly name?: string
  readonly store?: SessionStore
  readonly onLook?: (at: string) => void
}

const plain: Delegation['to'] = { instructions: 'plain' }

/** An agent with the tool "look" and subagents: the given ones, and `plain`, which inherits everything. */
export function familyWorld(options: WorldOptions = {}): World {
  const { use = [], who = {}, model = planModel(), lookMs = 0, name = 'main', store } = options
  const looked: string[] = []
  let working = 0
  const looking = tool({
    name: 'look',
    description: 'Looks.',
    input: { type: 'object', properties: { at: {} } },
    concurrent: true,
    execute: async (args, { signal }) => {
      working++
      try {
        if (lookMs > 0) await delay(lookMs, undefined, { signal })
        const at = lookedAt(args)
        looked.push(at)
        options.onLook?.(at)
        return `saw ${at}`
      } finally {
        working--
      }
    },
  })
  return {
    agent: createAgent({ name, model, use: [looking, spawnTool(who), ...use], ...(store && { store }) }),
    model,
    looked,
    atWork: () => working,
  }
}

/** The argument of a look, as a string. */
export function lookedAt(args: object): string {
  const { at } = args as { at?: Json }
  return typeof at === 'string' ? at : JSON.stringify(at)
}

/** Whether a look needs approval. */
export function isAsked(args: object): boolean {
  return lookedAt(args).startsWith('?')
}

export function spawnTool(who: { readonly [name: string]: Delegation['to'] } = {}): Tool {
  const known: { readonly [name: string]: Delegation['to'] } = { plain, ...who }
  return agentTool({
    name: 'spawn',
    description: 'Lets another agent work.',
    input: {
      type: 'object',
      properties: { who: { type: 'string' }, plan: { type: 'string' } },
      required: ['who', 'plan'],
    },
    concurrent: true,
    to: (args) => {
      const { who: name, plan: input } = args as { who: string; plan: string }
      const to = Object.hasOwn(known, name) ? known[name] : undefined
      if (to === undefined) throw new Error(`There is no agent "${name}".`)
      return { name, to, input }
    },
  })
}
