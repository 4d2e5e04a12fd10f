import { messageOf } from '../../errors.ts'
import type { CheckedHook } from './checked-hooks.ts'
import type { ProbePath, ProbeResult } from './probe-runs.ts'
import { TIMEOUT } from './watched-hook.ts'

/**
 * `ok`: it fired once for each event. `fails`: it fired and failed. `slow`: it timed out. `never`, `missed`, `twice`: it did not
 * fire once for each event. `untried`: the probe run failed. `–`: it has nothing to do on that path, and `why` says why.
 */
export type PathStatus = 'ok' | 'fails' | 'slow' | 'never' | 'missed' | 'twice' | 'untried' | '–'

/** The result for a hook on one path. */
export type Finding = {
  readonly status: PathStatus
  /** How often it fired, and how often it should have. */
  readonly fired: number
  readonly expected: number
  readonly why?: string
  /** Its `when` was never true; it was run anyway. */
  readonly isConditional?: true
}

/** The finding of a probe run. */
export function findingOf(
  checked: CheckedHook,
  path: ProbePath,
  { activity, expected, executed, ran }: ProbeResult,
): Finding {
  const { hook, isFromFile, on } = checked
  const counts = { fired: activity.at(on), expected: expected.at(on) }
  const isConditional =
    isFromFile && checked.isOwned !== true && hook.when !== undefined && counts.fired > 0 && !activity.whenHeld
  const found = (status: PathStatus, why?: string): Finding => ({
    status,
    ...counts,
    ...(why !== undefined && { why }),
    ...(isConditional && { isConditional }),
  })
  const due = on.filter((trigger) => happens(checked, trigger, path))
  if (counts.fired === 0 && due.length === 0) return found('–', whyIdle(checked))
  if (path === 'subagent' && counts.fired === 0 && !isInherited(checked)) {
    return found('–', 'a subagent inherits guards and observers, not transforms')
  }
  if (hook.when !== undefined && !isFromFile && counts.fired < counts.expected) {
    return counts.fired === 0 ? found('–', 'its "when" is false in a probe run') : found('ok')
  }
  const mayEndRun = hook.mode === 'transform' && hook.action === undefined // the changes of a function are applied
  const silent = mayEndRun ? undefined : due.find((trigger) => !activity.fired.has(trigger))
  if (silent !== undefined) return found(counts.fired === 0 ? 'never' : 'missed', `it did not fire on ${silent}`)
  for (const trigger of on) {
    const [fired, should] = [activity.fired.get(trigger) ?? 0, expected.fired.get(trigger) ?? 0]
    if (fired === should || (fired > should && hook.stream === 'window')) continue
    const status = fired > should ? 'twice' : fired === 0 ? 'never' : 'missed'
    return found(status, `it fired ${fired} times for ${should} events on ${trigger}`)
  }
  const isJudge = hook.mode === 'guard' && on.includes('beforeToolUse')
  if (isJudge && hook.when === undefined && activity.judged.size < executed) {
    return found('missed', `${executed - activity.judged.size} of ${executed} calls were made without it`)
  }
  if (ran === 0 && !activity.isSlow) return found('–', 'no event on this path matches it')
  const [failure] = activity.failures
  if (activity.isSlow) return found('slow', `it takes longer than ${TIMEOUT.ms / 1000} seconds`)
  return failure === undefined ? found('ok') : found('fails', failure)
}

export function findingOfFailure(thrown: unknown): Finding {
  return { status: 'untried', fired: 0, expected: 0, why: messageOf(thrown) }
}

function isInherited({ hook }: CheckedHook): boolean {
  return hook.mode !== 'transform' || hook.action?.inherited === true
}

/** Triggers that fire on one path only. */
const onlyOn: { readonly [trigger: string]: { readonly path: ProbePath; readonly why: string } } = {
  onSessionStart: { path: 'session', why: 'there is no session' },
  onSessionEnd: { path: 'session', why: 'there is no session' },
  onPause: { path: 'resume', why: 'no run is suspended for approval' },
  onResume: { path: 'resume', why: 'no run is resumed' },
  onSubagentStop: { path: 'subagent', why: 'there is no subagent' },
}

/** Whether a trigger has to fire on a path. */
function happens({ tools }: CheckedHook, trigger: string, path: ProbePath): boolean {
  if (Object.hasOwn(onlyOn, trigger)) return onlyOn[trigger]!.path === path
  return !trigger.endsWith('ToolUse') || tools.length > 0
}

function whyIdle({ on, tool, tools }: CheckedHook): string {
  if (tool !== undefined && tools.length === 0) return `no tool matches ${tool.text}`
  const why = [...new Set(on.flatMap((trigger) => onlyOn[trigger]?.why ?? []))].join(', ')
  return why === '' ? 'its events do not occur on this path' : why
}
