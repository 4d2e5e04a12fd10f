export { pruneSessions } from './stores/list-sessions.ts'
export { memoryStore } from './stores/memory-store.ts'
export { postgresStore, type PostgresStoreOptions } from './stores/postgres-store.ts'
export type { PostgresPool } from './stores/postgres-tables.ts'
export { sqliteStore, type SqliteStoreOptions } from './stores/sqlite-store.ts'
export type {
  AppendOptions,
  ListedSession,
  ListOptions,
  Piece,
  PruneOptions,
  ReadOptions,
  SessionFilter,
  SessionLock,
  SessionStore,
  SessionWriter,
  StoredSession,
} from './stores/store.ts'
export type { StopRequest } from '../core/state/stop-request.ts'
export { budget, type BudgetOptions } from './limits/budget.ts'
export type { LimitOptions } from './limits/limit-waits.ts'
export { callLimit, type CallLimitOptions } from './limits/call-limit.ts'
export { rateLimit, type RateLimitOptions } from './limits/rate-limit.ts'
export { runLimit, type RunLimitOptions } from './limits/run-limit.ts'
export { answerApproval, listApprovals, type PendingApproval } from './session/approvals.ts'
export { exportSession, importSession, type ExportOptions, type ImportOptions } from './session/export-session.ts'
export { forkSession, listPoints, type ForkOptions, type SessionPoint } from './session/fork-session.ts'
export { readRuns, type ReadRunsOptions } from './log/read-runs.ts'
export type {
  CallPath,
  ModelUsage,
  RunLimits,
  StoredCall,
  StoredCallKind,
  StoredRun,
  StoredRunEvent,
  StoredStep,
  StoredToolCall,
} from '../core/state/stored-run.ts'
export { requestStop } from './session/request-stop.ts'
export { watchSession, type WatchOptions } from './log/watch-session.ts'
export { rewindSession, type RewindOptions } from './session/rewind-session.ts'
export type { SessionHead } from './session/session-head.ts'
