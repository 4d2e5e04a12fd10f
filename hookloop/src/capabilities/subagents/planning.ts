import { agentTool, type AgentSpec, type ChildLimits } from '../../agent/subagents/agent-tool.ts'
import type { Capability } from '../../agent/capability.ts'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import type { ModelSource } from '../../state/inference.ts'
import { hook } from '../../hooks/hook.ts'

export type PlanningOptions = {
  /** What the agent is told about planning, behind its own instructions. An empty text: nothing. */
  readonly instructions?: string
  /** The system prompt of the planner. */
  readonly plannerInstructions?: string
  /** The tools of the agent that the planner gets: such as only read. `*` stands for any letters. */
  readonly tools?: readonly string[]
  /** The model of the planner. Left out or null: that of the agent. */
  readonly model?: ModelSource | null
  /** Limits of the planner. Those of the agent hold in any case. */
  readonly limits?: ChildLimits
}

/** What applies unless it is told otherwise. */
export const planningPolicy = Object.freeze({
  instructions:
    'Before work that takes several steps, call plan_with_subagent with a full specification, then follow the plan it gives you. Do small things without a plan.',
  plannerInstructions:
    'You make plans; somebody else carries them out. Look at what there is with the tools you have, change nothing, and answer with a numbered list of steps. Each step says what to do, where, and how to see that it is done. Name what is uncertain.',
  tools: Object.freeze(['read_file', 'list_dir', 'search_files']),
  model: null as ModelSource | null,
  limits: Object.freeze({ maxSteps: 10 }),
})

const PLAN = 'plan_with_subagent'

/** Whatever a planner is given, it neither plans with another nor lets others work. */
const never = [PLAN, 'spawn_subagent']

/** A planner: an agent with tools that only read, which answers a specification with a plan. */
export function planning(options: PlanningOptions = {}): Capability {
  checkOptions('planning', options, Object.keys(planningPolicy))
  const { instructions, plannerInstructions, tools, model, limits } = { ...planningPolicy, ...definedOptions(options) }
  if (typeof instructions !== 'string' || typeof plannerInstructions !== 'string') {
    throw invalidOption('planning', '"instructions" and "plannerInstructions" must be texts', instructions)
  }
  if (!Array.isArray(tools) || !tools.every((each) => typeof each === 'string')) {
    throw invalidOption('planning', '"tools" must be a list of names', tools)
  }
  const isThere = (name: string, there: readonly string[]): boolean => name.includes('*') || there.includes(name)
  const planner = (there: readonly string[]): AgentSpec => ({
    instructions: plannerInstructions,
    tools: tools.filter((name) => isThere(name, there)), // nobody minds if there is nothing to read
    disallowedTools: never,
    limits,
    ...(model !== null && { model }),
  })
  const planners = new Map<string, AgentSpec>()
  const plan = agentTool({
    name: PLAN,
    description:
      'Lets a planner make a plan for a piece of work. It can look around but changes nothing, and knows only what you write.',
    input: {
      type: 'object',
      properties: {
        specification: {
          type: 'string',
          minLength: 1,
          description: 'What is wanted, what is known, what must not happen, and how to tell that it is done.',
        },
      },
      required: ['specification'],
      additionalProperties: false,
    },
    concurrent: true,
    to: (args, { tools: there }) => {
      const key = there.join(' ')
      const to = planners.get(key) ?? planner(there)
      planners.set(key, to)
      return { name: 'planner', to, input: (args as { specification: string }).specification }
    },
  })
  const tell = hook(
    'beforeInference',
    (ctx) =>
      instructions === '' || !ctx.request.tools.includes(PLAN)
        ? ctx
        : ctx.withRequest({
            system: ctx.request.system === '' ? instructions : `${ctx.request.system}\n\n${instructions}`,
          }),
    { name: 'planning.instructions', priority: 90 },
  )
  return {
    name: 'planning',
    hooks: [tell],
    tools: [plan],
    ...(model !== null && { models: [model] }),
    notes: [`A planner makes plans with: ${tools.join(', ') || 'no tools'}.`],
  }
}
