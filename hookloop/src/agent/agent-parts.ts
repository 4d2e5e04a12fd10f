import type { LanguageModel, ModelSettings, ToModel, ToolDescription } from '../state/inference.ts'
import type { Step } from '../state/execution.ts'
import type { List } from '../state/list.ts'
import type { AgentError } from '../errors.ts'
import type { HookStack } from '../hooks/stack.ts'
import type { AgentSpec } from './subagents/agent-tool.ts'
import type { ApprovalPolicy, Budget, Capability, Redact } from './capability.ts'
import type { Tool } from './tool.ts'

/** Reads a typed answer from the steps of a run, or says why there is none. */
export type AnswerReader = (steps: List<Step>) => Promise<{ readonly value: unknown } | { readonly error: AgentError }>

/** How an agent comes to a typed answer: what holds the model to it, and how it is read. */
export type OutputPlan = {
  readonly capability: (model: LanguageModel, hasTools: boolean) => Capability
  readonly reader: AnswerReader
}

/** An agent taken apart: what a run needs of it. Immutable, shared by all its runs. */
export type AgentParts = {
  readonly name: string
  readonly model: LanguageModel
  readonly toModel: ToModel
  readonly instructions: string
  readonly settings: ModelSettings | undefined
  readonly stack: HookStack
  /** A Map, because a model may well call a tool "constructor". */
  readonly tools: ReadonlyMap<string, Tool>
  readonly toolNames: readonly string[]
  readonly descriptions: ReadonlyMap<string, ToolDescription>
  readonly descriptionList: readonly ToolDescription[]
  readonly approval: ApprovalPolicy
  /** What is done to everything users say and tools give back; missing when nothing is. */
  readonly redact: Redact | undefined
  readonly maxConcurrentTools: number
  /** Missing when the answer is the text. */
  readonly reader: AnswerReader | undefined
  readonly notes: readonly string[]
  readonly capabilities: readonly Capability[]
  /** How many agents it is inside of. */
  readonly level: number
  /** What it and its ancestors may spend, by their level. */
  readonly budgets: readonly Budget[]
  /** Another agent that is made of this one, without its hooks. */
  readonly derive: (spec: AgentSpec, name: string) => AgentParts
}
