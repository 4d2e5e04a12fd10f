export { createAgent, type AgentOptions, type TypedAgentOptions } from './create-agent.ts'
export type { Agent } from './agent/agent.ts'
export type { RunOptions } from './agent/run-options.ts'
export type { Capability, Use } from './agent/capability.ts'
export type { Run } from './agent/run.ts'
export type { RunStream } from './agent/run-stream.ts'
export type { ResumeOptions } from './agent/loop/resume.ts'
export type { SendOptions, Session } from './agent/session.ts'
export { tool, type Tool, type ToolDefinition, type ToolRun } from './agent/tool.ts'
export { agentTool, type AgentSpec } from './agent/agent-tool.ts'
export { explain } from './agent/explain/explain.ts'
export { explanation, type Explanation } from './agent/explain/explanation.ts'

export { guard, hook, observe, shadow, type Hook, type HookHandler, type HookOptions } from './hooks/hook.ts'
export type { AroundContext, GuardContext, HookContext, ObserveContext } from './hooks/context.ts'
export { all, any, hasMetadata, not, stepType, toolName, type Matcher } from './hooks/matchers.ts'
export { triggers, type HookTrigger } from './hooks/triggers.ts'

export { approval, type ApprovalHandler, type ApprovalOptions } from './capabilities/approval.ts'
export { cacheResponses, type CacheResponsesOptions, type ResponseStore } from './capabilities/cache-responses.ts'
export { completion } from './capabilities/completion.ts'
export { contextConfig } from './capabilities/context-config.ts'
export { errorPolicies, errorPolicy, type ErrorPolicy } from './capabilities/error-policy.ts'
export { fallback, fallbackErrorCodes } from './capabilities/fallback.ts'
export { guards, type Limits } from './capabilities/guards.ts'
export { getMetadata, metadata, type MetadataOptions } from './capabilities/metadata.ts'
export type { OutputOptions } from './capabilities/output.ts'
export { redactSecrets, type RedactSecretsOptions } from './capabilities/redact-secrets.ts'
export { responseContent } from './capabilities/response-content.ts'
export { retry, retryableErrorCodes, type RetryOptions } from './capabilities/retry.ts'
export { retryLimit } from './capabilities/retry-limit.ts'
export { getCritique, selfCritique, type SelfCritiqueOptions } from './capabilities/self-critique.ts'

export { languageModel } from './models/to-model.ts'
export type { Prices } from './models/price-list.ts'
export { getModelFailure } from './state/inference.ts'
export type {
  AiSdkModel,
  InferenceDelta,
  InferenceRequest,
  InferenceResponse,
  LanguageModel,
  ModelReply,
  ModelRequest,
  ModelSettings,
  ModelSource,
} from './state/inference.ts'

export type { AgentState } from './state/agent-state.ts'
export { stopReasons, type ContinuationEvaluation, type StopReason } from './state/continuation.ts'
export type { AgentEvent } from './state/event.ts'
export type { Execution, FinalRecord, Step } from './state/execution.ts'
export type { Json, JsonObject } from './values/json.ts'
export type { TimedLedgerEntry } from './state/ledger.ts'
export type { Message, Part } from './state/message.ts'
export type { SavedRun } from './state/saved-run.ts'
export type { Schema } from './values/schema.ts'
export { secretPatterns } from './values/secrets.ts'
export type { Answers, Approval, ToolCall, ToolExecution } from './state/tool-call.ts'
export type { Usage } from './state/usage.ts'
export { warningCodes, type Warning } from './state/warning.ts'

export { AgentError, errorCodes, type ErrorCode } from './errors.ts'
