export { replay, type ReplayOptions, type ReplayReport } from './replay.ts'
export type { ReplayDecision, ReplayDifference, ReplayPlace } from './compare-ledgers.ts'
export { formatReplay } from './format-replay.ts'
export {
  diffRuns,
  type ComparedStep,
  type DiffedRun,
  type RunDiff,
  type RunEnd,
  type StepAspect,
  type StepDiff,
} from './diff-runs.ts'
export { formatDiff } from './format-diff.ts'
export { liveEffects, type EffectsOptions } from '../../core/effects/effects.ts'
export type { Clock } from '../../core/effects/run-time.ts'
