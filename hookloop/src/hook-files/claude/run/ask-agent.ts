import type { AgentSpec } from '../../../agent/subagents/agent-tool.ts'
import { inspect, type Inspection } from '../../../actions/inspect.ts'
import { files } from '../../../capabilities/files/files.ts'
import type { ModelSource } from '../../../state/inference.ts'
import type { BaseContext } from '../../../hooks/base-context.ts'
import { JUDGE, verdict } from './ask-model.ts'

const NAME = 'inspector'
const MAX_STEPS = 50

export type AskAgent = (
  prompt: string,
  options: { readonly model?: string; readonly signal: AbortSignal },
) => Promise<Inspection>

/** Agents for handlers of type `agent`. They can read the files of the project and change nothing. */
export class Inspectors {
  readonly #root: string
  readonly #models: { readonly [name: string]: ModelSource }
  readonly #specs = new Map<string, AgentSpec>()

  constructor(root: string, models: { readonly [name: string]: ModelSource }) {
    this.#root = root
    this.#models = models
  }

  /** Returns a function that runs an agent inside the run of a hook. */
  askIn(ctx: BaseContext): AskAgent {
    return (prompt, { model = '', signal }) => {
      const input = `${prompt}\n\nEnd with nothing but a JSON object that fits this schema: ${JSON.stringify(verdict)}`
      return inspect(ctx, { name: NAME, to: this.#specFor(model), input, signal })
    }
  }

  /** Returns the same object every time, so that its agent is created only once. */
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
