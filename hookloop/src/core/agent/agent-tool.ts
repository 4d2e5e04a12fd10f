import { checkOptions } from '../../values/check-options.ts'
import type { ModelSettings, ModelSource } from '../state/inference.ts'
import type { JsonObject } from '../../values/json.ts'
import { checkedSettings } from '../state/model-settings.ts'
import type { Message } from '../state/message.ts'
import type { InputOf, OutputOf, Schema } from '../../values/schema.ts'
import type { Use } from './capability.ts'
import { declareTool, type DelegationPlace, type Tool } from './tool.ts'

/** A subagent that inherits from the agent that calls it. What is omitted is inherited. */
export type AgentSpec = {
  /** The system prompt. Default: empty. */
  readonly instructions?: string
  /** Names of the parent's tools that it gets. Default: all; an empty list: none. */
  readonly tools?: readonly string[]
  /** Names of the parent's tools that it never gets. Default none. */
  readonly disallowedTools?: readonly string[]
  /** The model. Default: the model of the parent. */
  readonly model?: ModelSource
  /** Model settings. Default: those of the parent. */
  readonly settings?: ModelSettings
  /** Its own capabilities, hooks and tools. Default none. */
  readonly use?: readonly Use[]
  /** Its own limits, in addition to those of the parent. Default none. */
  readonly limits?: ChildLimits
}

/** Limits of a subagent, as in `guards`. An omitted one has no limit. */
export type ChildLimits = {
  readonly maxSteps?: number
  readonly maxTokens?: number
  readonly maxTimeMs?: number
  readonly maxCost?: number
  readonly maxToolCalls?: number
}

const limitNames = ['maxSteps', 'maxTokens', 'maxTimeMs', 'maxCost', 'maxToolCalls']
const specNames = ['instructions', 'tools', 'disallowedTools', 'model', 'settings', 'use', 'limits']

/** Throws for a field that a spec does not have: with `tool` instead of `tools`, the subagent would get all tools. */
export function checkSpec(where: string, spec: object): asserts spec is AgentSpec {
  checkOptions(where, spec, specNames)
  const { limits, settings }: AgentSpec = spec
  if (limits !== undefined) checkChildLimits(where, limits)
  if (settings !== undefined) checkedSettings(where, settings)
}

function checkChildLimits(where: string, limits: ChildLimits): void {
  checkOptions(`${where}: limits`, limits, limitNames)
}

/** Which agent works on a call of an `agentTool`, and with which input. */
export type Delegation = {
  /** Its name in events, in the ledger and in approvals. */
  readonly name: string
  /** An agent, or a spec of one. Must be the same object for the same agent. */
  readonly to: AgentSpec | { readonly describe: () => unknown }
  /** Its input. It does not see the conversation of its parent. */
  readonly input: string | Message
}

/**
 * Defines a tool whose work another agent does, inside the run of its caller. The answer of that agent is the result of the
 * call. `to` selects the agent from the arguments alone; an error it throws is reported to the model.
 *
 * @example
 * const research = agentTool({
 *   name: 'research',
 *   description: 'Answers a question with sources.',
 *   input: z.object({ question: z.string() }),
 *   to: ({ question }) => ({ name: 'researcher', to: researcher, input: question }),
 * })
 */
export function agentTool<S extends Schema | JsonObject>(definition: {
  readonly name: string
  readonly description: string
  readonly input: S
  readonly to: (args: OutputOf<S>, at: DelegationPlace) => Delegation
  readonly concurrent?: boolean
  readonly ask?: boolean
  readonly maxOutputChars?: number
}): Tool<InputOf<S>, OutputOf<S>> {
  checkOptions('agentTool', definition, names, 'TOOL_INVALID')
  const { to, ...rest } = definition
  return declareTool<S>({ ...rest, execute: notExecuted, idempotent: true }, to)
}

const names = ['name', 'description', 'input', 'to', 'concurrent', 'ask', 'maxOutputChars']

function notExecuted(): never {
  throw new Error('A tool that is an agent is run by the loop.')
}
