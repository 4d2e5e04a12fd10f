export {
  scriptedModel,
  type Script,
  type ScriptedCall,
  type ScriptedModel,
  type ScriptedTurn,
} from '../models/scripted.ts'
export { fakeClock, type FakeClock } from './fake-clock.ts'
export { fire, type FactsToFire } from './fire.ts'
export type { HookOutcome } from '../core/hooks/outcome.ts'
export { recordEvents, type EventRecorder } from './record-events.ts'
export { storeContract, type ContractOptions, type MakeStore } from './store-contract.ts'
