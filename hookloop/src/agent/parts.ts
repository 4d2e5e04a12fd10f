import type { LanguageModel, ToolDescription } from '../data/inference.ts'
import type { JsonObject } from '../data/json.ts'
import type { HookStack } from '../hooks/stack.ts'
import type { ApprovalPolicy } from './capability.ts'
import type { Tool } from './tool.ts'

/** An agent taken apart: what a run needs of it. Immutable, shared by all its runs. */
export type AgentParts = {
  readonly name: string
  readonly model: LanguageModel
  readonly instructions: string
  readonly settings: JsonObject | undefined
  readonly stack: HookStack
  /** A Map, because a model may well call a tool "constructor". */
  readonly tools: ReadonlyMap<string, Tool>
  readonly toolNames: readonly string[]
  readonly descriptions: ReadonlyMap<string, ToolDescription>
  readonly descriptionList: readonly ToolDescription[]
  readonly approval: ApprovalPolicy
  readonly maxConcurrentTools: number
  readonly notes: readonly string[]
}
