export { createAgent, type AgentOptions } from './create-agent.ts'
export type { Agent } from './core/agent/agent.ts'
export type { AgentDescription } from './core/agent/agent-description.ts'
export type { RunOptions } from './core/agent/run-options.ts'
export type { Capability, Use } from './core/agent/capability.ts'
export type { Run } from './core/agent/run.ts'
export type { RunStream } from './core/agent/run-stream.ts'
export type { ResumeOptions } from './core/loop/resume.ts'
export type { SendOptions, Session } from './core/agent/session.ts'
export { tool, type Tool, type ToolDefinition, type ToolRun } from './core/agent/tool.ts'
export { agentTool, type AgentSpec } from './core/agent/agent-tool.ts'
export { explain } from './core/explain/explain.ts'
export type { Decided } from './core/explain/explainable.ts'
export type { ExplainedSubagent } from './core/explain/explain-subagents.ts'
export { explanation, type Explanation } from './core/explain/explanation.ts'

export { guard, hook, observe, shadow, type Hook, type HookHandler, type HookOptions } from './core/hooks/hook.ts'
export type { AroundContext, GuardContext, HookContext, ObserveContext } from './core/hooks/context.ts'
/** @hidden */
export type * as contexts from './core/hooks/context.ts'
export type { CompactOptions } from './core/hooks/compaction.ts'
export type { Inferred, InferOptions, Infers } from './core/hooks/infer.ts'
export { all, any, hasMetadata, not, stepType, toolName, type Matcher } from './core/hooks/matchers.ts'
export { triggers, type GuardTrigger, type HookTrigger, type PlainTrigger } from './core/hooks/triggers.ts'

export { approval, type ApprovalHandler, type ApprovalOptions } from './capabilities/approval.ts'
export { cacheResponses, type CacheResponsesOptions, type ResponseStore } from './capabilities/cache-responses.ts'
export { completion } from './capabilities/completion.ts'
export { contextConfig } from './capabilities/context-config.ts'
export { errorPolicies, errorPolicy, type ErrorPolicy } from './capabilities/error-policy.ts'
export { fallback, fallbackErrorCodes } from './capabilities/fallback.ts'
export { guards, type Limits } from './capabilities/guards.ts'
export { getMetadata, metadata, type MetadataOptions } from './capabilities/metadata.ts'
export type { OutputOptions } from './typed-output.ts'
export { redactSecrets, type RedactSecretsOptions } from './capabilities/redact-secrets.ts'
export { responseContent } from './capabilities/response-content.ts'
export { retry, retryableErrorCodes, type RetryOptions } from './capabilities/retry.ts'
export { retryLimit } from './capabilities/retry-limit.ts'
export { getCritique, selfCritique, type SelfCritique, type SelfCritiqueOptions } from './capabilities/self-critique.ts'

export { languageModel, type CallableModel } from './models/to-model.ts'
export type { Prices } from './models/price-list.ts'
export { getModelFailure } from './core/state/inference.ts'
export type {
  AiSdkModel,
  InferenceDelta,
  InferenceRequest,
  InferenceResponse,
  LanguageModel,
  ModelFailure,
  ModelReply,
  ModelRequest,
  ModelSettings,
  ModelSource,
} from './core/state/inference.ts'

export type { AgentState } from './core/state/agent-state.ts'
export {
  stopReasons,
  type ContinuationEvaluation,
  type ContinuationOutcome,
  type StopReason,
} from './core/state/continuation.ts'
export type { AgentEvent } from './core/state/event.ts'
export type { ErrorRecord, Execution, FinalRecord, HookRecord, Step } from './core/state/execution.ts'
export type { Json, JsonObject } from './values/json.ts'
export type { Change, LedgerEntry, TimedLedgerEntry } from './core/state/ledger.ts'
export type { Message, Part } from './core/state/message.ts'
export type { Subagent } from './core/state/subagent.ts'
export type { SavedRun } from './core/state/saved-run.ts'
export type { Schema, ToolRef } from './values/schema.ts'
export { secretPatterns } from './values/secrets.ts'
export type { Answers, Approval, ToolCall, ToolExecution } from './core/state/tool-call.ts'
export type { Usage } from './core/state/usage.ts'
export { warningCodes, type Warning } from './core/state/warning.ts'

export { AgentError, errorCodes, type ErrorCode } from './errors.ts'
