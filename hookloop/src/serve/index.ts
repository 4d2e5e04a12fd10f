export { serve, type ServeOptions } from './serve.ts'
export { toNodeListener } from './node-listener.ts'
export { agentRunner, type AgentRunner, type SentTurn, type SessionRunner, type TurnOptions } from './session-runner.ts'
export type { Question } from './chat.ts'
