export { replay, type ReplayDifference, type ReplayOptions, type ReplayPlace, type ReplayReport } from './replay.ts'
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
export { recordEffects } from '../../effects/record-effects.ts'
export { replayEffects } from '../../effects/replay-effects.ts'
export {
  fileRecording,
  formatRecording,
  memoryRecording,
  parseRecording,
  type RecordEntry,
  type Recording,
} from '../../effects/recording.ts'
export { liveEffects, type Effect, type EffectKind, type Effects, type EffectsFactory } from '../../effects/effects.ts'
export type { Clock } from '../../effects/run-time.ts'
