import type { ModelSettings, ModelSource } from '../../state/inference.ts'
import type { JsonObject } from '../../state/json.ts'
import type { Message } from '../../state/message.ts'
import type { InputOf, OutputOf, Schema } from '../../state/schema.ts'
import type { Use } from '../capability.ts'
import { declareTool, type DelegationPlace, type Tool } from '../tool.ts'

/** An agent that is made of the one that calls it: what is left out, it has from there. */
export type AgentSpec = {
  readonly instructions?: string
  /** Names of its parent's tools. Left out: all of them. An empty list: none. */
  readonly tools?: readonly string[]
  /** Names of its parent's tools that it does not get, whatever `tools` says. */
  readonly disallowedTools?: readonly string[]
  /** Left out: the model its parent uses. */
  readonly model?: ModelSource
  readonly settings?: ModelSettings
  /** Capabilities, hooks and tools of its own. */
  readonly use?: readonly Use[]
  /** Limits of its own. Those of its parent hold for it in any case. */
  readonly limits?: ChildLimits
}

/** As `guards` takes them. What is left out has no limit of its own. */
export type ChildLimits = {
  readonly maxSteps?: number
  readonly maxTokens?: number
  readonly maxTimeMs?: number
  readonly maxCost?: number
  readonly maxToolCalls?: number
}

/** Who is to do what. */
export type Delegation = {
  /** What it is called: in events, in the ledger, in approvals. */
  readonly name: string
  /** An agent as made by `createAgent`, or what one is to be made of. The same object for the same agent, every time. */
  readonly to: AgentSpec | { readonly describe: () => unknown }
  /** What it is told. It sees nothing else of the conversation. */
  readonly input: string | Message
}

/**
 * Declares a tool that another agent does the work of, inside the run of the one that calls it. What it answers is the
 * result of the call. `to` says which agent, from the arguments and nothing else, and throws an Error for the model to
 * read when there is none.
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
  const { to, ...rest } = definition
  return declareTool<S>({ ...rest, execute: notExecuted, idempotent: true }, to)
}

function notExecuted(): never {
  throw new Error('A tool that is an agent is run by the loop.')
}
