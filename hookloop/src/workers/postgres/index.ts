// The only entry point that needs `pg-boss`.

export { serveSessions, type ServeSessionsOptions } from './serve-sessions.ts'
export { fleet, type FleetOptions } from './fleet.ts'
export type { QueueOptions } from './queue.ts'
export type { Fleet, SendTurnOptions, SentTurn } from '../fleet.ts'
export { workerHealth, type WorkerHealthOptions } from '../worker-health.ts'
export type { Agents, SessionWorker, TurnReport, WorkerOptions } from '../turn-driver.ts'
export type { TurnResult } from '../turn.ts'
