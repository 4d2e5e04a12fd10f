/** What an effect does: call a model, a tool, a subagent, an approver or a hook, or wait. */
export type EffectKind = 'model' | 'attempt' | 'tool' | 'child' | 'ask' | 'infer' | 'hook' | 'sleep' | 'timeout'

/** What an effect is, in its run. It is the same in every process that runs the step. */
export type EffectKey = {
  readonly step: number
  readonly kind: EffectKind
  /** The id of the tool call that it belongs to. Never its position: hooks may remove calls. */
  readonly call?: string | undefined
  readonly trigger?: string | undefined
  readonly hook?: string | undefined
  /** The number of the attempt; of questions, hooks and their model calls, a hash of the input. */
  readonly n: number | string
}

/** Where a run is: [] is the run itself. A subagent is the call that started it; `n` counts how often it was continued. */
export type EffectPath = readonly PathStep[]
export type PathStep = {
  readonly step: number
  readonly call: string
  readonly n: number
  readonly agent: string
  /** In a replay: the step of the subagent, because its steps are not forgotten one by one. */
  readonly part?: number
}

/** The key of an attempt at a model call: `2.1` is the first attempt at the second call of the step. */
export function attemptKey(step: number, n: string): EffectKey {
  return { step, kind: 'attempt', trigger: 'aroundInference', n }
}

export const rootPath: EffectPath = Object.freeze([])

/** A key as an index. It is built and compared, never taken apart; lengths keep texts of models and users apart. */
export function keyId({ step, kind, call = '', trigger = '', hook = '', n }: EffectKey): string {
  return `${step} ${kind} ${trigger} ${call.length}:${call} ${hook.length}:${hook} ${n}`
}

/** A path as an index. The index of a subagent starts with that of the agent that called it. */
export function pathId(path: EffectPath): string {
  return path
    .map(({ step, call, n, part }) => `/${step}.${n}.${call.length}:${call}${part === undefined ? '' : `~${part}`}`)
    .join('')
}

export function isWithin(id: string, outer: string): boolean {
  return id === outer || id.startsWith(`${outer}/`) || id.startsWith(`${outer}~`)
}
