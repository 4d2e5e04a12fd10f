import { sameJson, toJson } from '../../values/json.ts'
import type { LedgerEntry } from '../../core/state/ledger.ts'
import type { AgentPath } from '../../core/state/subagent.ts'
import { opinionsIn, type Opinion, type ReplayedStep } from '../../core/effects/tape.ts'
import { triggerNames, type HookTrigger } from '../../core/hooks/triggers.ts'

/** A place in a run. */
export type ReplayPlace = {
  readonly step: number
  readonly trigger: HookTrigger
  readonly call?: { readonly id: string; readonly name: string }
  /** The subagent that it is in; step and call are its own. */
  readonly path?: AgentPath
}

/** What a hook, or the loop, decided or changed. */
export type ReplayDecision = Pick<LedgerEntry, 'hook' | 'decision' | 'message' | 'value' | 'error' | 'changes'>

/** A place at which the changed hooks would have decided differently. What is the same on both sides is left out. */
export type ReplayDifference = ReplayPlace & {
  readonly was: readonly ReplayDecision[]
  readonly would: readonly ReplayDecision[]
  /** Why a live run would diverge from the record here, if it would. */
  readonly divergence?: string
}

/** What differs in a run, or in a step. */
export type ReplayDifferences = {
  readonly differences: readonly ReplayDifference[]
  /** Where a live run would diverge from the record first. Later differences are less reliable. */
  readonly divergesAt?: ReplayPlace & { readonly why: string }
}

type Place = Pick<Opinion, 'step' | 'trigger' | 'call' | 'path' | 'tool'>
type Found = Place & { readonly why: string }
type Compared = {
  readonly at: Place
  readonly was: readonly Opinion[]
  readonly would: readonly Opinion[]
  divergence?: string
}

/** Compares the decisions in a step, place by place, and finds what they cause. `toolOf` returns the tool of a call. */
export function compareStep(
  { was, would, divergences }: ReplayedStep,
  toolOf: (step: number, call: string) => string,
): ReplayDifferences & { readonly places: number } {
  const [before, after] = [opinionsIn(was), opinionsIn(would)]
  const places = Map.groupBy([...before, ...after].filter(isDecision).toSorted(byOrder), keyOf)
  const compared = [...places].map(([key, [at]]): Compared => {
    const [old, now] = [before, after].map((each) => each.filter((one) => isDecision(one) && keyOf(one) === key))
    return { at: at!, was: onlyIn(old!, now!), would: onlyIn(now!, old!) }
  })
  const different = compared.filter((each) => each.was.length + each.would.length > 0)
  const overruled = onlyIn(after, before).filter(({ mode, decision }) => mode === 'loop' && decision === 'overridden')
  const found: readonly Found[] = [
    ...overruled.map((each) => ({ ...each, why: whyOf(each) })),
    ...divergences,
    ...different.filter(isUnasked).map(({ at }) => ({ ...at, why: 'no approver would be asked' })),
  ].toSorted(byOrder)
  for (const each of found) {
    const cause = causeOf(each, different)
    if (cause !== undefined) cause.divergence ??= each.why
  }
  const [first] = found
  const placeOf = ({ step, trigger, call: id, path, tool }: Place) => {
    const call = id === undefined ? undefined : { id, name: tool ?? toolOf(step, id) }
    return { step, trigger, call, path }
  }
  const divergesAt = first && { ...placeOf(causeOf(first, different)?.at ?? first), why: first.why }
  const differences = different.map((each) => ({
    ...placeOf(each.at),
    was: each.was.map(decisionIn),
    would: each.would.map(decisionIn),
    divergence: each.divergence,
  }))
  return { places: places.size, ...(toJson({ differences, divergesAt }) as unknown as ReplayDifferences) }
}

/** A hook that was skipped has decided nothing. That something had begun before is a property of the replay. */
function isDecision({ mode, decision, error }: Opinion): boolean {
  return decision === 'skipped' ? error !== undefined : mode !== 'loop' || decision !== 'overridden'
}

function keyOf({ path = [], step, trigger, call }: Place): string {
  return JSON.stringify([path, step, trigger, call])
}

/** In the order of the lifecycle. What subagents do is done while the calls of their parent run. */
function byOrder(a: Place, b: Place): number {
  const [one, other] = [a, b].map(({ step, trigger, path }) => {
    const rank = triggerNames.indexOf(path === undefined ? (trigger as HookTrigger) : 'aroundToolUse')
    return (path?.[0]?.step ?? step) * triggerNames.length + rank
  })
  return one! - other!
}

function onlyIn(these: readonly Opinion[], others: readonly Opinion[]): readonly Opinion[] {
  const rest = [...others]
  return these.filter((opinion) => {
    const same = rest.findIndex((each) => isSame(opinion, each))
    if (same !== -1) rest.splice(same, 1)
    return same === -1
  })
}

/** The value that a hook has set is in the ledger only if no hook decides after it: one that was added hides it. */
function isSame({ changes: a = [], ...one }: Opinion, { changes: b = [], ...other }: Opinion): boolean {
  if (a.length !== b.length || !sameJson(toJson(one), toJson(other))) return false
  return a.every(({ path, after = null }, i) => {
    const known = b[i]!
    return path === known.path && (after === null || known.after === undefined || sameJson(after, known.after))
  })
}

/** What a live run would do, by what was decided about something that has begun. */
const decided: { readonly [decision: string]: string } = {
  blocked: 'the call would be blocked',
  failed: 'the call would not run',
  'other arguments': 'the call would have different arguments',
  'call removed': 'a different response would be used',
  block: 'the input would be blocked',
  end: 'the error would be handled differently',
  stop: 'the run would stop',
  continue: 'the run would continue',
}

function whyOf({ value, trigger }: Opinion): string {
  const asked = trigger === 'beforeToolUse' ? 'the call would wait for approval' : 'an approver would be asked'
  return (typeof value === 'string' ? decided[value] : undefined) ?? asked
}

function isUnasked({ was, would }: Compared): boolean {
  const isAnswered = ({ mode, decision = '' }: Opinion): boolean =>
    mode === 'loop' && /^(approved|blocked)/.test(decision)
  return was.some(isAnswered) && !would.some(isAnswered)
}

/** The difference that leads to a divergence: that about the same call, or the first one. Metadata alone changes nothing. */
function causeOf(found: Found, differences: readonly Compared[]): Compared | undefined {
  const before = differences.filter(
    ({ at, was, would }) => byOrder(at, found) <= 0 && [...was, ...would].some(isEffective),
  )
  return before.find(({ at }) => found.call !== undefined && keyOf(at) === keyOf(found)) ?? before[0]
}

function isEffective({ changes = [], decision, error }: Opinion): boolean {
  return (decision ?? error) !== undefined || changes.some(({ path }) => !path.startsWith('state.metadata'))
}

function decisionIn({ hook, decision, message, value, error, changes }: Opinion): ReplayDecision {
  return { hook, decision, message, value, error, changes } as ReplayDecision
}
