import { readJson } from '../../../agent/output/answer-shape.ts'
import type { AgentSpec } from '../../../agent/subagents/agent-tool.ts'
import { runForHook } from '../../../agent/subagents/hook-agent.ts'
import { files } from '../../../capabilities/files/files.ts'
import type { ModelSource } from '../../../state/inference.ts'
import { isJsonObject } from '../../../state/json.ts'
import { toTokens, type TokenUsage } from '../../../state/usage.ts'
import { BaseContext } from '../../../hooks/base-context.ts'
import { JUDGE, verdict } from './ask-model.ts'

const NAME = 'inspector'
const MAX_STEPS = 50

/** What an agent found out, and what that cost. An agent that came to no answer has said why instead. */
export type Inspected = { readonly found: unknown; readonly problem?: string; readonly spent: TokenUsage }

export type AskAgent = (
  prompt: string,
  how: { readonly model?: string; readonly signal: AbortSignal },
) => Promise<Inspected>

/** Agents that look into an event for a handler: they read the files of the project and change nothing. */
export class Inspectors {
  readonly #root: string
  readonly #models: { readonly [name: string]: ModelSource }
  readonly #specs = new Map<string, AgentSpec>()

  constructor(root: string, models: { readonly [name: string]: ModelSource }) {
    this.#root = root
    this.#models = models
  }

  /** Sets one to work in the run that a hook has fired in. */
  askIn(ctx: BaseContext): AskAgent {
    return async (prompt, { model = '', signal }) => {
      const input = `${prompt}\n\nEnd with nothing but a JSON object that fits this schema: ${JSON.stringify(verdict)}`
      const run = await runForHook(BaseContext.hostOf(ctx), { name: NAME, to: this.#specFor(model), input, signal })
      if (run === undefined) throw new Error('there is no run to look into')
      const spent = toTokens(run.state.usage)
      if (run.status === 'completed') return { found: found(run.output), spent }
      const why = run.status === 'suspended' ? 'it waits for a person, and a hook cannot' : run.final.message
      return { found: undefined, problem: `its agent came to no answer: ${why}`, spent }
    }
  }

  /** The same object every time, so that its agent is put together once. */
  #specFor(model: string): AgentSpec {
    let spec = this.#specs.get(model)
    if (spec === undefined) {
      const own = Object.hasOwn(this.#models, model) ? { model: this.#models[model]! } : {}
      const use = [files({ root: this.#root, write: false })]
      spec = Object.freeze({ instructions: JUDGE, tools: [], use, limits: { maxSteps: MAX_STEPS }, ...own })
      this.#specs.set(model, spec)
    }
    return spec
  }
}

function found(output: unknown): unknown {
  return isJsonObject(output) ? output : readJson(String(output))
}
