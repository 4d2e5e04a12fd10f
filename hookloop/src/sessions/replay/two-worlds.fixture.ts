import { z } from 'zod'
import { tool, type Tool } from '../../core/agent/tool.ts'
import type { ModelRequest } from '../../core/state/inference.ts'
import { scriptedModel, type ScriptedModel, type ScriptedTurn } from '../../models/scripted.ts'

// An agent is made twice: once in a world where things happen, once in a world where they must not.

export type Speaker = (request: ModelRequest, asked: number) => ScriptedTurn | Promise<ScriptedTurn>

export type World = {
  model(speak: Speaker): ScriptedModel
  tool(name: string, options: { concurrent?: boolean; ask?: boolean }, run: (n: number) => unknown): Tool
  /** What only a live run may do: the inside of an effect. */
  really<T>(what: T): T
}

export const alive: World = {
  model(speak) {
    let asked = 0
    return scriptedModel((request) => speak(request, ++asked))
  },
  tool: (name, options, run) =>
    tool({ name, description: name, input: z.object({ n: z.number() }), execute: ({ n }) => run(n), ...options }),
  really: (what) => what,
}

export function deadWorld(): World & { readonly calls: string[] } {
  const calls: string[] = []
  const happened = (what: string): never => {
    calls.push(what)
    throw new Error(`${what} happened in a replay`)
  }
  return {
    calls,
    model: () => scriptedModel(() => happened('the model')),
    tool: (name, options) => alive.tool(name, options, () => happened(name)),
    really: () => happened('an effect'),
  }
}
