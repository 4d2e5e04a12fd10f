import { agentTool, checkChildLimits, type AgentSpec, type ChildLimits } from '../../agent/agent-tool.ts'
import type { Capability } from '../../agent/capability.ts'
import { invalidOption, readOptions } from '../../state/check-options.ts'
import { isStringList, optionTypes } from '../../state/option-types.ts'
import type { ModelSource } from '../../state/inference.ts'
import { hook } from '../../hooks/hook.ts'
import { objectSchema } from '../../state/schema.ts'

/** Options of `planning`. */
export type PlanningOptions = {
  /** Appended to the system prompt of the agent; empty for nothing. Default: when to ask for a plan. */
  readonly instructions?: string
  /** The system prompt of the planner. Default: how to write a plan. */
  readonly plannerInstructions?: string
  /** Tools of the agent that the planner gets; `*` matches anything. Default `read_file`, `list_dir`, `search_files`. */
  readonly tools?: readonly string[]
  /** The model of the planner; `null` for the model of the agent. Default null. */
  readonly model?: ModelSource | null
  /** Limits of the planner, in addition to those of the agent. Default `{ maxSteps: 10 }`. */
  readonly limits?: ChildLimits
}

export const planningDefaults = Object.freeze({
  instructions:
    'Before work that takes several steps, call plan_with_subagent with a full specification, then follow the plan it returns. Do small tasks without a plan.',
  plannerInstructions:
    'You write plans that another agent carries out. Explore with the tools you have, change nothing, and answer with a numbered list of steps. Each step says what to do, where, and how to verify it. Name what is uncertain.',
  tools: Object.freeze(['read_file', 'list_dir', 'search_files']),
  model: null as ModelSource | null,
  limits: Object.freeze({ maxSteps: 10 }),
})

const PLAN = 'plan_with_subagent'

/** A planner never calls another planner or a subagent. */
const disallowedTools = [PLAN, 'spawn_subagent']

/**
 * Gives the model the tool `plan_with_subagent`: a planner with read-only tools answers a specification with a plan.
 *
 * @example
 * createAgent({ model, use: [files({ root: '.' }), planning({ model: 'anthropic/claude-opus-5' })] })
 */
export function planning(options: PlanningOptions = {}): Capability {
  const { instructions, plannerInstructions, tools, model, limits } = readOptions(
    'planning',
    options,
    planningDefaults,
    {
      model: [(value) => value === null || optionTypes.model[0](value), `${optionTypes.model[1]}, or null`],
      limits: optionTypes.object,
    },
  )
  if (typeof instructions !== 'string' || typeof plannerInstructions !== 'string') {
    throw invalidOption('planning', '"instructions" and "plannerInstructions" must be strings', instructions)
  }
  checkChildLimits('planning', limits)
  if (!isStringList(tools)) throw invalidOption('planning', '"tools" must be a list of names', tools)
  const planner = (available: readonly string[]): AgentSpec => ({
    instructions: plannerInstructions,
    tools: tools.filter((name) => name.includes('*') || available.includes(name)), // missing tools are not an error
    disallowedTools,
    limits,
    ...(model !== null && { model }),
  })
  const planners = new Map<string, AgentSpec>()
  const plan = agentTool({
    name: PLAN,
    description: 'Asks a planner for a plan. It can read but changes nothing, and knows only what you write.',
    input: objectSchema(
      {
        specification: {
          type: 'string',
          minLength: 1,
          description: 'The goal, what is known, what must not happen, and how to verify the result.',
        },
      },
      ['specification'],
    ),
    concurrent: true,
    to: (args, { tools: available }) => {
      const key = available.join(' ')
      const to = planners.get(key) ?? planner(available)
      planners.set(key, to)
      return { name: 'planner', to, input: (args as { specification: string }).specification }
    },
  })
  const instruct = hook(
    'beforeInference',
    (ctx) =>
      instructions === '' || !ctx.request.tools.includes(PLAN)
        ? ctx
        : ctx.withRequest({
            system: ctx.request.system === '' ? instructions : `${ctx.request.system}\n\n${instructions}`,
          }),
    { name: 'planning.instructions', bookkeeping: true, priority: 90 },
  )
  return {
    name: 'planning',
    hooks: [instruct],
    tools: [plan],
    ...(model !== null && { models: [model] }),
    notes: [`Planner with the tools: ${tools.join(', ') || 'none'}.`],
  }
}
