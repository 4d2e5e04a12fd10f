import { AgentError } from '../errors.ts'

/** An agent as it is written down: what it is for, what it is told, and what it may use. */
export type AgentDefinition = {
  readonly name: string
  /** For whoever chooses among agents: when to use it. */
  readonly description: string
  /** Its system prompt. */
  readonly instructions: string
  /** Names of tools; `*` stands for any letters. Left out: all that its parent has. An empty list: none. */
  readonly tools?: readonly string[]
  readonly disallowedTools?: readonly string[]
  /** The name of a model, or a short one that is made clear elsewhere. Left out: that of its parent. */
  readonly model?: string
  readonly maxSteps?: number
  readonly maxTokens?: number
  readonly maxTimeMs?: number
  readonly maxCost?: number
  readonly maxToolCalls?: number
}

/** The limits that a definition may have. */
export const definitionLimits = ['maxSteps', 'maxTokens', 'maxTimeMs', 'maxCost', 'maxToolCalls'] as const

const texts = ['name', 'description', 'instructions'] as const
const lists = ['tools', 'disallowedTools'] as const
const known: readonly string[] = [...texts, ...lists, 'model', ...definitionLimits]

const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/

/** A definition that can be relied on: every field is of its kind, and none is unknown. Throws AGENT_INVALID_OPTION. */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  const problem = problemOf(definition)
  if (problem !== undefined) {
    throw new AgentError('AGENT_INVALID_OPTION', `The agent cannot be defined: ${problem}.`, { value: definition })
  }
  const { tools, disallowedTools } = definition
  return Object.freeze({
    ...definition,
    ...(tools !== undefined && { tools: Object.freeze([...tools]) }),
    ...(disallowedTools !== undefined && { disallowedTools: Object.freeze([...disallowedTools]) }),
  })
}

function problemOf(fields: { readonly [field: string]: unknown } | null | undefined): string | undefined {
  if (typeof fields !== 'object' || fields === null) return 'it is not an object'
  const unknown = Object.keys(fields).find((field) => !known.includes(field))
  if (unknown !== undefined) return `there is no field "${unknown}". Known: ${known.join(', ')}`
  for (const field of texts) if (typeof fields[field] !== 'string') return `"${field}" must be a text`
  if (!NAME.test(fields['name'] as string)) return '"name" must be 1 to 64 letters, digits, _ and -'
  if ((fields['description'] as string).trim() === '') return '"description" says when to use it, and is empty'
  for (const field of lists) {
    const list = fields[field]
    if (Object.hasOwn(fields, field) && !(Array.isArray(list) && list.every((each) => isName(each)))) {
      return `"${field}" must be a list of names`
    }
  }
  if (Object.hasOwn(fields, 'model') && !isName(fields['model'])) return '"model" must be the name of a model'
  const limit = definitionLimits.find((field) => Object.hasOwn(fields, field) && !isAmount(fields[field]))
  return limit === undefined ? undefined : `"${limit}" must be a number from 0 up`
}

function isName(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== ''
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value >= 0
}
