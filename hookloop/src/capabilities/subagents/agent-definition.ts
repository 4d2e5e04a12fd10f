import { AgentError, clause } from '../../errors.ts'
import { checkOptions } from '../../values/check-options.ts'
import { amount, listOf, must, optional, shapeOf, string } from '../../values/shape.ts'

/** A subagent as data: when to use it, its instructions, and which tools and limits it has. */
export type AgentDefinition = {
  /** 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string
  /** When to use it. The agent that delegates reads this. */
  readonly description: string
  /** Its system prompt. */
  readonly instructions: string
  /** Names of tools; `*` matches any characters. Default: all tools of the parent. An empty array: no tools. */
  readonly tools?: readonly string[]
  /** Names of tools that it never has; overrides `tools`. Default none. */
  readonly disallowedTools?: readonly string[]
  /** The name of a model, or an alias that the application resolves. Default: the model of the parent. */
  readonly model?: string
  /** Steps. Default: no limit of its own. */
  readonly maxSteps?: number
  /** Input and output tokens. Default: no limit of its own. */
  readonly maxTokens?: number
  /** Run time in milliseconds. Default: no limit of its own. */
  readonly maxTimeMs?: number
  /** Cost in US dollars. Default: no limit of its own. */
  readonly maxCost?: number
  /** Tool calls. Default: no limit of its own. */
  readonly maxToolCalls?: number
}

/** The limits that a definition may have. */
export const definitionLimits = ['maxSteps', 'maxTokens', 'maxTimeMs', 'maxCost', 'maxToolCalls'] as const

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/
const filled = must((value) => typeof value === 'string' && value.trim() !== '', 'must be a string that is not empty')
const fields = {
  name: must((value) => typeof value === 'string' && NAME.test(value), 'must be 1 to 64 letters, digits, _ and -'),
  description: filled,
  instructions: string,
  tools: optional(listOf(filled)),
  disallowedTools: optional(listOf(filled)),
  model: optional(filled),
  ...Object.fromEntries(definitionLimits.map((limit) => [limit, optional(amount)])),
}
const shape = shapeOf(fields)

/** Checks and freezes a definition. Throws AGENT_INVALID_OPTION if a field is unknown or has the wrong type. */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  checkOptions('defineAgent', definition, Object.keys(fields))
  const problem = shape(definition, '')
  if (problem !== undefined) {
    throw new AgentError('AGENT_INVALID_OPTION', `The agent definition is invalid: ${clause(problem)}.`, {
      value: definition,
    })
  }
  const { tools, disallowedTools } = definition
  return Object.freeze({
    ...definition,
    ...(tools !== undefined && { tools: Object.freeze([...tools]) }),
    ...(disallowedTools !== undefined && { disallowedTools: Object.freeze([...disallowedTools]) }),
  })
}
