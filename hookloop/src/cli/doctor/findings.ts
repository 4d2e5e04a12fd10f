import { messageOf } from '../../errors.ts'
import type { CanaryPath, Flight } from './probe-runs.ts'
import type { Patient } from './checked-hooks.ts'
import { PATIENCE } from './watched-hook.ts'

/**
 * `ok`: once for each event. `fails`: it fires, and then fails. `slow`: it fires, and was not waited for. `never`, `missed`, `twice`: what is wrong. `untried`: the
 * canary did not fly. `–`: it has nothing to do on that path, which `why` explains.
 */
export type PathStatus = 'ok' | 'fails' | 'slow' | 'never' | 'missed' | 'twice' | 'untried' | '–'

/** What was found out about a hook on one path. */
export type Finding = {
  readonly status: PathStatus
  /** How often it fired, and how often it should have. */
  readonly fired: number
  readonly expected: number
  readonly why?: string
  /** Its `when` held for none of the canaries; it was fired all the same. */
  readonly isConditional?: true
}

/** What a flight says about a hook. */
export function findingOf(patient: Patient, path: CanaryPath, { seen, expected, executed, ran }: Flight): Finding {
  const { hook, isOfFile, on } = patient
  const counts = { fired: seen.at(on), expected: expected.at(on) }
  const isConditional =
    isOfFile && patient.isOwned !== true && hook.when !== undefined && counts.fired > 0 && !seen.whenHeld
  const found = (status: PathStatus, why?: string): Finding => ({
    status,
    ...counts,
    ...(why !== undefined && { why }),
    ...(isConditional && { isConditional }),
  })
  const due = on.filter((trigger) => happens(patient, trigger, path))
  if (counts.fired === 0 && due.length === 0) return found('–', whyNothing(patient))
  if (path === 'subagent' && counts.fired === 0 && !isInherited(patient)) {
    return found('–', 'what changes things stays with the agent it was given to; a guard goes along')
  }
  if (hook.when !== undefined && !isOfFile && counts.fired < counts.expected) {
    return counts.fired === 0 ? found('–', 'its "when" does not hold for a canary') : found('ok')
  }
  const mayEnd = hook.mode === 'transform' && hook.action === undefined // a function's changes are not taken back
  const silent = mayEnd ? undefined : due.find((trigger) => !seen.fired.has(trigger))
  if (silent !== undefined) return found(counts.fired === 0 ? 'never' : 'missed', `nothing was seen of it at ${silent}`)
  const wrong = on.map((trigger) => wrongAt(patient, trigger, { seen, expected })).find((each) => each !== undefined)
  if (wrong !== undefined) return found(...wrong)
  const isJudge = hook.mode === 'guard' && on.includes('beforeToolUse')
  if (isJudge && hook.when === undefined && seen.judged.size < executed) {
    return found('missed', `${executed - seen.judged.size} of ${executed} calls were made without it`)
  }
  if (ran === 0 && !seen.isSlow) return found('–', 'nothing happens there that it is for')
  const [failure] = seen.failures
  if (seen.isSlow) return found('slow', `it takes more than ${PATIENCE.ms / 1000} seconds`)
  return failure === undefined ? found('ok') : found('fails', failure)
}

export function findingOfFailure(thrown: unknown): Finding {
  return { status: 'untried', fired: 0, expected: 0, why: messageOf(thrown) }
}

type Counted = Pick<Flight, 'seen' | 'expected'>

function wrongAt(
  { hook }: Patient,
  trigger: string,
  { seen, expected }: Counted,
): [status: PathStatus, why: string] | undefined {
  const [fired, should] = [seen.fired.get(trigger) ?? 0, expected.fired.get(trigger) ?? 0]
  if (fired === should || (fired > should && hook.stream === 'window')) return undefined
  if (fired > should) return ['twice', `it fired ${fired} times for ${should} events at ${trigger}`]
  return [fired === 0 ? 'never' : 'missed', `it fired ${fired} times for ${should} events at ${trigger}`]
}

function isInherited({ hook }: Patient): boolean {
  return hook.mode !== 'transform' || hook.action?.inherited === true
}

/** Moments that only one of the paths has. */
const elsewhere: { readonly [trigger: string]: { readonly path: CanaryPath; readonly why: string } } = {
  onSessionStart: { path: 'session', why: 'there is no session' },
  onSessionEnd: { path: 'session', why: 'there is no session' },
  onPause: { path: 'resume', why: 'nothing waits for a person' },
  onResume: { path: 'resume', why: 'nothing is resumed' },
  onSubagentStop: { path: 'subagent', why: 'no agent works for another' },
}

/** Whether something happens on a path at which a hook has to fire. */
function happens({ tools }: Patient, trigger: string, path: CanaryPath): boolean {
  if (Object.hasOwn(elsewhere, trigger)) return elsewhere[trigger]!.path === path
  return !trigger.endsWith('ToolUse') || tools.length > 0
}

function whyNothing({ on, tool, tools }: Patient): string {
  if (tool !== undefined && tools.length === 0) return `no tool is called ${tool.words}`
  const why = [...new Set(on.flatMap((trigger) => elsewhere[trigger]?.why ?? []))].join(', ')
  return why === '' ? 'nothing of it happens there' : why
}
