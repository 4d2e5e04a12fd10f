export { createAgent, type AgentOptions, type TypedAgentOptions } from './create-agent.ts'
export type { Price, Prices } from './models/prices.ts'
export { languageModel, type AskedModel, type AskOptions } from './models/to-model.ts'
export type { Agent, RunOptions } from './agent/build-agent.ts'
export type { AgentDescription } from './agent/agent-description.ts'
export type { ApprovalPolicy, AskedAnswer, Budget, Capability, SlashCommand, Use } from './agent/capability.ts'
export { explain } from './agent/explain.ts'
export { explanation, type Explanation } from './agent/explanation.ts'
export type { Live } from './agent/live.ts'
export type { ResumeOptions } from './agent/resume.ts'
export type { SendOptions, Session } from './agent/session.ts'
export type { Run } from './agent/run.ts'
export { agentTool, type AgentSpec, type ChildLimits, type Delegation } from './agent/agent-tool.ts'
export type { ExplainedSubagent } from './agent/explain-subagents.ts'
export { tool, type DelegationPlace, type OnUnknownOutcome, type Tool, type ToolRun } from './agent/tool.ts'

export {
  guard,
  hook,
  observe,
  shadow,
  type Hook,
  type HookHandler,
  type HookOptions,
  type StreamPolicy,
} from './hooks/hook.ts'
export type { Inferred, InferOptions } from './hooks/asking.ts'
export type { CompactOptions, SummaryContext } from './hooks/compaction.ts'
export type { AroundContext, GuardContext, HookContext, ObserveContext } from './hooks/context.ts'
export { all, any, hasMetadata, not, stepType, toolName, type Matcher } from './hooks/matchers.ts'
export type { HookOutcome } from './hooks/outcome.ts'
export { triggers, type HookTrigger } from './hooks/triggers.ts'

export { cacheResponses, type CacheOptions, type ResponseStore } from './capabilities/cache-responses.ts'
export { approval, type ApprovalHandler, type ApprovalOptions } from './capabilities/approval.ts'
export { completion } from './capabilities/completion.ts'
export { contextConfig } from './capabilities/context-config.ts'
export { fallback, otherMayHelp } from './capabilities/fallback.ts'
export { errorPolicies, errorPolicy, type ErrorPolicy } from './capabilities/error-policy.ts'
export { defaultLimits, guards, type Limits } from './capabilities/guards.ts'
export type { OutputOptions } from './capabilities/output/output.ts'
export { redactSecrets, type RedactOptions } from './capabilities/redact-secrets.ts'
export { responseContent, type ContentVerdict } from './capabilities/response-content.ts'
export { passingFailures, retry, type RetryOptions } from './capabilities/retry.ts'
export { retryLimit } from './capabilities/retry-limit.ts'

export type { AgentState } from './data/agent-state.ts'
export { stopReasons } from './data/continuation.ts'
export type {
  ContinuationDecision,
  ContinuationEvaluation,
  ContinuationOutcome,
  StopReason,
} from './data/continuation.ts'
export type { AgentEvent, Emit, OwnEvent } from './data/event.ts'
export type { ErrorRecord, Execution, FinalRecord, Step, StepType } from './data/execution.ts'
export { modelFailureOf } from './data/inference.ts'
export type {
  AiSdkModel,
  FinishReason,
  InferenceDelta,
  InferenceRequest,
  InferenceResponse,
  LanguageModel,
  ModelCall,
  ModelFailure,
  ModelReply,
  ModelRequest,
  ModelSettings,
  ModelSource,
  RequestChange,
  ResponseChange,
  ToolDescription,
} from './data/inference.ts'
export type { Json, JsonObject } from './data/json.ts'
export type { Change, LedgerEntry, TimedLedgerEntry } from './data/ledger.ts'
export type { List } from './data/list.ts'
export type { Message, Part } from './data/message.ts'
export type { SavedRun } from './data/saved-run.ts'
export { keyPatterns, secretPatterns } from './data/secrets.ts'
export type { Schema } from './data/schema.ts'
export type { AgentPath, AgentPlace, Subagent } from './data/subagent.ts'
export type { Answer, Answers, Approval, ToolCall, ToolExecution, ToolStatus } from './data/tool-call.ts'
export type { TokenUsage, Usage } from './data/usage.ts'

export { liveEffects, type Clock, type Effect, type EffectKind, type Effects, type EffectsFactory } from './effects.ts'
export { AgentError, errorCodes, type ErrorCode } from './errors.ts'
export { answerApproval, listApprovals, type PendingApproval } from './sessions/approvals.ts'
export type { Decided } from './sessions/compare-judged.ts'
export {
  replay,
  type ReplayDifference,
  type ReplayOptions,
  type ReplayPlace,
  type ReplayReport,
} from './sessions/counterfactual.ts'
export {
  diffRuns,
  type ComparedStep,
  type DiffedRun,
  type RunDiff,
  type RunEnd,
  type StepAspect,
  type StepDiff,
} from './sessions/diff-runs.ts'
export { exportSession, importSession, type ExportOptions } from './sessions/export.ts'
export { formatDiff } from './sessions/format-diff.ts'
export { formatReplay } from './sessions/format-replay.ts'
export { forkSession, listPoints, type ForkOptions, type SessionPoint } from './sessions/fork.ts'
export { fileStore, type FileStoreOptions } from './sessions/file-store.ts'
export { memoryStore } from './sessions/memory-store.ts'
export type { PostgresPool } from './sessions/postgres-queries.ts'
export { postgresStore, type PostgresStoreOptions } from './sessions/postgres-store.ts'
export { recordEffects } from './sessions/record-effects.ts'
export {
  fileRecording,
  formatRecording,
  memoryRecording,
  parseRecording,
  type RecordEntry,
  type Recording,
} from './sessions/recording.ts'
export { replayEffects } from './sessions/replay-effects.ts'
export type { SessionHead } from './sessions/session-head.ts'
export { sqliteStore, type SqliteStoreOptions } from './sessions/sqlite-store.ts'
export type { ListedSession, SessionStore, SessionWriter, StoredSession } from './sessions/store.ts'
