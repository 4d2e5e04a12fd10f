// What capabilities, actions and servers are written with: everything that this package's own ones import from the core.

// Hooks, tools and capabilities.
export { agentTool, checkSpec, type AgentSpec, type Delegation } from './core/agent/agent-tool.ts'
export type { ApprovalPolicy, Budget, Capability, SlashCommand, Use } from './core/agent/capability.ts'
export { tool, type OnUnknownOutcome, type Tool, type ToolRun } from './core/agent/tool.ts'
export type { CompactOptions } from './core/hooks/compaction.ts'
export type { GuardContext, HookContext, ObserveContext } from './core/hooks/context.ts'
export { guard, hook, observe, type Hook } from './core/hooks/hook.ts'
export { triggers, type HookTrigger } from './core/hooks/triggers.ts'
export { matchesWildcard, toNameTest, type NamePattern } from './core/hooks/patterns.ts'

// Hooks whose work happens elsewhere: a command, a request, an agent.
export { runForHook, type HookAgent } from './core/agent/hook-agent.ts'
export { action, askModel, factsOf, type Action, type ActionContext, type ActionRun } from './core/hooks/action.ts'
export type { Vote } from './core/hooks/base-context.ts'
export { failureText, type FailedAction } from './core/hooks/failure-text.ts'
export type { HookOutcome } from './core/hooks/outcome.ts'
export type { StateChange } from './core/state/state-diff.ts'

// Agents and their inputs.
export type { Agent } from './core/agent/agent.ts'
export type { Run } from './core/agent/run.ts'
export type { AgentDescription } from './core/agent/agent-description.ts'
export { isAgent, storeOf } from './core/agent/agent-parts.ts'
export { typedCommand, type TypedCommand } from './core/agent/slash-commands.ts'

// The state of a run.
export { AgentState, messageList, metadataKeys } from './core/state/agent-state.ts'
export { decidingVote, type ContinuationOutcome, type StopReason } from './core/state/continuation.ts'
export { explain } from './core/explain/explain.ts'
export { explanation } from './core/explain/explanation.ts'
export type { AgentEvent, OwnEvent } from './core/state/event.ts'
export type { Change, LedgerEntry, TimedLedgerEntry } from './core/state/ledger.ts'
export type { Step } from './core/state/execution.ts'
export type { FoldCache, List } from './core/state/list.ts'
export {
  isReplyPart,
  textMessage,
  textOf,
  toInput,
  toMessage,
  type FilePart,
  type Message,
  type Part,
  type TextPart,
} from './core/state/message.ts'
export { stopError } from './core/state/stop-request.ts'
export type { AgentPath } from './core/state/subagent.ts'
export { answerProblem, askedHash, type Answer, type Approval } from './core/state/tool-call.ts'
export { totalTokens, toTokens, type TokenUsage } from './core/state/usage.ts'

// Requests to models and their answers.
export { estimateTokens } from './core/model/estimate-usage.ts'
export { fingerprintRequest } from './core/model/fingerprint-request.ts'
export { readJson } from './core/output/answer-shape.ts'
export {
  changeResponse,
  getModelFailure,
  isFinishReason,
  toResponse,
  type FinishReason,
  type InferenceRequest,
  type InferenceResponse,
  type LanguageModel,
  type ModelSettings,
  type ModelSource,
} from './core/state/inference.ts'

// Options, errors and warnings.
export { checkOptions } from './values/check-options.ts'
export type { WarningCode } from './core/state/warning.ts'
export { AgentError, type ErrorCode } from './errors.ts'
