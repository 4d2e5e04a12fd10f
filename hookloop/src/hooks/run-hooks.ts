import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { MAX_TIMER_MS } from '../system/timeout.ts'
import { AgentError, messageOf, toAgentError, type ErrorCode } from '../errors.ts'
import { changesBetween } from './changes.ts'
import { BaseContext, type Draft, type Mode } from './base-context.ts'
import { Invocation } from './invocation.ts'
import { Moment } from './hook-host.ts'
import { isPerformed, perform, performed, type Performed } from './perform-hook.ts'
import type { StackedHook } from './stack.ts'
import { specOf } from './triggers.ts'

// The law of composition: transforms one after the other, then guards on the result, then observers. A handler that
// answers at once costs no microtask; only what is thenable is waited for.

const GUARD_TIMEOUT_MS = 60_000
const SHADOW_TIMEOUT_MS = 60_000

/** A hook that failed where nobody had said what to do then. Says which, and where the others would go on. */
export class HookFailure extends Error {
  readonly error: AgentError
  readonly index: number

  constructor(error: AgentError, index: number) {
    super(error.message)
    this.error = error
    this.index = index
  }
}

/** Why a hook ends that asked what a record does not know: it has no opinion. */
export class Unanswered extends Error {}

/** Runs the hooks that change, each on what the one before it returned. Throws or rejects with a HookFailure. */
export function runTransforms(firing: Invocation, hooks: readonly StackedHook[], from = 0): void | Promise<void> {
  for (let i = from; i < hooks.length; i++) {
    if (firing.blocked !== undefined) return skipAll(firing, hooks.slice(i))
    if (hooks[i]!.shadow) {
      runShadow(firing, hooks[i]!)
      continue
    }
    const waiting = isTyped(hooks[i]!) ? runTyped(firing, hooks[i]!, i) : runOne(firing, hooks[i]!, 'transform', i)
    if (waiting !== undefined) return waiting.then(() => runTransforms(firing, hooks, i + 1))
  }
}

/** Runs the hooks that decide, all of them on the same value. Never throws: a guard that fails has said no. */
export function runGuards(firing: Invocation, hooks: readonly StackedHook[], from = 0): void | Promise<void> {
  for (let i = from; i < hooks.length; i++) {
    if (firing.blocked !== undefined) return skipAll(firing, hooks.slice(i))
    if (hooks[i]!.shadow) {
      runShadow(firing, hooks[i]!)
      continue
    }
    const waiting = runOne(firing, hooks[i]!, 'guard', i)
    if (waiting !== undefined) return waiting.then(() => runGuards(firing, hooks, i + 1))
  }
}

/** Starts the hooks that watch, all together. Never throws, and nobody waits. */
export function runObservers(firing: Invocation, hooks: readonly StackedHook[]): void {
  for (const hook of hooks) {
    const started = firing.startOfHook()
    let error: unknown
    try {
      const ctx = firing.context('observe')
      if (hook.when !== undefined && !applies(hook, ctx)) continue
      const result =
        hook.action === undefined ? hook.handle(ctx as never, undefined as never) : perform(firing, hook, ctx)
      if (isThenable(result)) firing.host.watch(hook.name, firing.trigger, result)
    } catch (thrown) {
      error = thrown ?? new Error('threw nothing')
    }
    note(firing, hook, started, error === undefined ? undefined : { error: messageOf(error) })
  }
}

/** Adds a vote or verdict that a hook cast by failing. */
function sayNo(firing: Invocation, by: string, message: string, reason: 'userRequested' | 'errorForbade'): void {
  if (specOf(firing.trigger).no === 'block') {
    firing.blocked ??= { by, message }
  } else {
    const vote = { decision: 'forbidContinuation', reason, message, source: by } as const
    firing.votes = [...firing.votes, Object.freeze(vote)]
  }
}

/** Whether a handler's answer must be waited for. Our own functions return real promises, where `instanceof` is enough. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value instanceof Promise || typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

function isTyped({ tool, triggers }: StackedHook): boolean {
  return typeof tool === 'object' && !(tool instanceof RegExp) && triggers.includes('beforeToolUse')
}

const UNFIT = { decision: 'skipped', message: 'the arguments do not fit the tool' }

/** A hook that was given the tool itself is promised valid arguments; one that was given a name may repair them. */
function runTyped(firing: Invocation, hook: StackedHook, index: number): void | Promise<void> {
  const go = (fits: boolean): void | Promise<void> => {
    if (fits) return runOne(firing, hook, 'transform', index)
    note(firing, hook, firing.startOfHook(), UNFIT)
  }
  const fits = firing.fits?.() ?? true
  return typeof fits === 'boolean' ? go(fits) : fits.then(go)
}

/** What `when` says. It must say it at once: a promise is always true, and a guard would guard too much or a hook too often. */
export function applies(hook: StackedHook, ctx: BaseContext): boolean {
  const answer: unknown = hook.when!(ctx as never)
  if (!isThenable(answer)) return Boolean(answer)
  answer.then(undefined, () => undefined)
  throw new AgentError('HOOK_INVALID_OPTION', 'Its "when" gave a promise; it must answer at once.')
}

function runOne(firing: Invocation, hook: StackedHook, mode: Mode, index: number): void | Promise<void> {
  const started = firing.startOfHook()
  try {
    const ctx = firing.context(mode)
    if (hook.when !== undefined && !applies(hook, ctx)) return undefined
    firing.running = hook
    const result = isPerformed(hook) ? perform(firing, hook, ctx) : hook.handle(ctx as never, undefined as never)
    if (isThenable(result)) return settle(firing, hook, { result, started, index })
    if (firing.asking !== undefined) return settle(firing, hook, { result: Promise.resolve(result), started, index })
    firing.running = undefined
    if (result === ctx) return note(firing, hook, started)
    accept(firing, hook, BaseContext.accept(result, firing), started)
  } catch (thrown) {
    if (firing.asking !== undefined) return settle(firing, hook, { result: Promise.reject(thrown), started, index })
    fail(firing, hook, { thrown, started, index })
  }
}

async function settle(
  firing: Invocation,
  hook: StackedHook,
  { result, started, index }: { result: PromiseLike<unknown>; started: number; index: number },
): Promise<void> {
  try {
    const returned = await limited(firing, hook, result)
    const ending = firing.endTurn('returned')
    if (ending !== undefined) await ending
    accept(
      firing,
      hook,
      isPerformed(hook) ? performed(firing, returned as Performed) : BaseContext.accept(returned, firing),
      started,
    )
  } catch (thrown) {
    try {
      await firing.endTurn(isTimeoutOf(firing, hook, thrown) ? 'timedOut' : 'threw')
    } catch (fatal) {
      return fail(firing, hook, { thrown: fatal, started, index })
    }
    fail(firing, hook, { thrown, started, index })
  }
}

function limited(firing: Invocation, hook: StackedHook, work: PromiseLike<unknown>): PromiseLike<unknown> {
  const { action } = hook
  if (action !== undefined && action.asks !== true) return work // it ends what it began when its time is over, and says so
  const ms = hook.timeoutMs ?? action?.timeoutMs ?? (hook.mode === 'guard' ? GUARD_TIMEOUT_MS : Infinity)
  return firing.host.effects.withTimeout(timeoutKey(firing, hook), ms, work)
}

function timeoutKey(firing: Invocation, { name }: StackedHook): string {
  return `${firing.keyFor(name)}/timeout`
}

function isTimeoutOf(firing: Invocation, hook: StackedHook, thrown: unknown): boolean {
  if (!(thrown instanceof AgentError) || thrown.code !== 'HOOK_TIMED_OUT') return false
  return (thrown.value as { readonly key?: string } | undefined)?.key === timeoutKey(firing, hook)
}

function accept(firing: Invocation, hook: StackedHook, draft: Draft, started: number): void {
  const before = firing.draft
  if (draft === before) return note(firing, hook, started)
  if (draft.within !== undefined) limitTime(firing, hook.name, draft.within)
  if (saysNothingElse(before, draft)) return note(firing, hook, started)
  const votes = draft.votes.map((vote): ContinuationEvaluation => Object.freeze({ ...vote, source: hook.name }))
  const cast = (vote: ContinuationEvaluation): boolean =>
    firing.votes.some(
      (each) => each.source === vote.source && each.decision === vote.decision && each.message === vote.message,
    )
  firing.votes = [...firing.votes, ...votes.filter((vote) => !cast(vote))]
  if (draft.spent !== undefined) firing.host.spend(draft.spent)
  if (draft.verdict !== undefined) judge(firing, hook.name, draft.verdict)
  if (draft.compact !== undefined) firing.compaction ??= { ...draft.compact, by: hook.name }
  if (draft.recovery !== undefined) firing.recovery ??= { ...draft.recovery, by: hook.name }
  const { transforms, guards } = firing.plan
  const isLast = transforms.findLast(isInForce) === hook && !guards.some(isInForce)
  const what = opinionOf(hook, before, draft, isLast)
  if (hook.mode === 'transform') firing.update(draft.state, draft.facts)
  note(firing, hook, started, Object.keys(what).length > 0 ? what : undefined)
}

function isInForce({ shadow }: StackedHook): boolean {
  return !shadow
}

function opinionOf({ mode, action }: StackedHook, before: Draft, after: Draft, isLast: boolean): Partial<LedgerEntry> {
  const changes = mode === 'transform' ? changesBetween(before, after, isLast) : []
  return {
    ...(action !== undefined && after.spent !== undefined && { value: { spent: after.spent } }),
    ...decisionOf(after),
    ...(changes.length > 0 && { changes }),
  }
}

function limitTime(firing: Invocation, by: string, ms: number): void {
  if (firing.within === undefined || ms < firing.within.ms) firing.within = { ms, by }
}

/** Whether a hook has only said how long a call may take: a limit on time does so before every call of every run. */
function saysNothingElse(before: Draft, { state, facts, votes, verdict, recovery, spent, compact }: Draft): boolean {
  const isSame = state === before.state && facts === before.facts && votes === before.votes
  return isSame && compact === undefined && verdict === undefined && recovery === undefined && spent === undefined
}

function judge(firing: Invocation, by: string, verdict: NonNullable<Draft['verdict']>): void {
  const message = verdict.message ?? `Not permitted by "${by}".`
  if (verdict.decision === 'block') firing.blocked ??= { by, message }
  if (verdict.decision === 'ask') firing.asks = [...firing.asks, Object.freeze({ by, message })]
  if (verdict.decision === 'allow') firing.allowed ??= { by, message }
}

function decisionOf({ verdict, votes, recovery, compact }: Draft): Partial<LedgerEntry> {
  const vote = votes.find((each) => each.decision === 'forbidContinuation') ?? votes[0]
  const cast = votes.map((each) => each.decision)
  const decisions = [verdict?.decision, ...cast, recovery?.decision, compact && 'compact'].filter(Boolean)
  if (decisions.length === 0) return {}
  const message = verdict?.message ?? vote?.message
  return {
    decision: decisions.join('+'),
    ...(message !== undefined && { message }),
    ...(vote?.value !== undefined && { value: vote.value }),
  }
}

function fail(
  firing: Invocation,
  hook: StackedHook,
  { thrown, started, index }: { thrown: unknown; started: number; index: number },
): void {
  if (thrown instanceof Unanswered) return note(firing, hook, started)
  const cause = toAgentError(thrown, 'HOOK_FAILED')
  const { code, value } = cause
  if (isFatal(cause)) throw cause
  const error = new AgentError(code, `${words(hook, firing)}: ${cause.message}`, { value, cause: cause.cause ?? cause })
  const closes = failsClosed(hook)
  if (closes) sayNo(firing, hook.name, error.message, firing.host.cancelled ? 'userRequested' : 'errorForbade')
  note(firing, hook, started, failedOpinion(firing, hook, cause.message))
  if (!closes && hook.onFailure !== 'continue') throw new HookFailure(error, index)
}

function failsClosed({ mode, onFailure }: StackedHook): boolean {
  return mode === 'guard' || onFailure === 'block'
}

function failedOpinion(firing: Invocation, hook: StackedHook, error: string): Partial<LedgerEntry> {
  const decision = failsClosed(hook) ? specOf(firing.trigger).no : hook.onFailure
  return { error, ...(decision && { decision }) }
}

/** What a run that is written down ends with when it cannot be. */
export const notStored: ReadonlySet<ErrorCode> = new Set(['RECORDING_FAILED', 'STORE_FAILED', 'SESSION_FENCED'])

/** Errors that are not about the hook: the run cannot go on whatever anybody decides. */
export function isFatal(error: AgentError): boolean {
  return error.code.startsWith('REPLAY_') || notStored.has(error.code)
}

function words(hook: StackedHook, firing: Invocation): string {
  const kind = hook.mode === 'guard' ? 'Guard' : 'Hook'
  return `${kind} "${hook.name}" failed at ${firing.trigger}`
}

function skipAll(firing: Invocation, hooks: readonly StackedHook[]): void {
  const message = `blocked by "${firing.blocked!.by}" before`
  for (const hook of hooks) {
    if (!hook.shadow) note(firing, hook, firing.startOfHook(), { decision: 'skipped', message })
  }
}

function note(firing: Invocation, hook: StackedHook, started: number, what?: Partial<LedgerEntry>): void {
  const ended = performance.now()
  firing.host.note(firing, hook, ended - started, what)
  firing.mark = ended // the next hook begins here: reading the clock costs as much as calling a hook
}

/**
 * Gives a shadow what it would be given. Its answer is a line in the ledger and nothing else: no clock, no record and no
 * other hook knows of it, and nobody waits for it.
 */
function runShadow(firing: Invocation, hook: StackedHook): void {
  const { shadows } = firing.host
  if (shadows === undefined) return
  const started = performance.now()
  const { plan, callIndex } = firing
  const own = new Invocation(new Moment(firing.host), plan, firing.state, firing.facts, callIndex)
  let isTold = false
  const tell = (what?: Partial<LedgerEntry>): void => {
    if (!isTold) shadows.note({ plan, callIndex, step: own.host.step }, hook, performance.now() - started, what)
    isTold = true
  }
  const fail = (thrown: unknown): void => tell(failedOpinion(own, hook, messageOf(thrown)))
  const take = (returned: unknown): void => {
    const draft = BaseContext.accept(returned, own)
    tell(draft === own.draft ? undefined : opinionOf(hook, own.draft, draft, false))
  }
  try {
    const ctx = own.context(hook.mode)
    own.running = hook
    const go = (fits: boolean): unknown => {
      if (fits) return hook.handle(ctx as never, undefined as never)
      tell(UNFIT)
      return ctx
    }
    if (hook.when === undefined || applies(hook, ctx)) {
      const fits = hook.mode === 'guard' || !isTyped(hook) || (firing.fits?.({ byShadow: true }) ?? true)
      const returned = typeof fits === 'boolean' ? go(fits) : fits.then(go)
      if (isThenable(returned)) {
        shadows.follow(limitedAside(hook, returned).then(take).catch(fail), () => fail(new Error(UNANSWERED)))
      } else {
        take(returned)
      }
    }
  } catch (thrown) {
    fail(thrown)
  }
  firing.mark = 0 // the next hook begins when this one has ended
}

const UNANSWERED = 'It had not answered when the run was over.'

/** A limit on time that is on no record. */
function limitedAside(hook: StackedHook, work: PromiseLike<unknown>): Promise<unknown> {
  const ms = Math.min(hook.timeoutMs ?? SHADOW_TIMEOUT_MS, MAX_TIMER_MS)
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`No answer within ${ms} ms.`)), ms)
    timer.unref() // whoever has nothing left to do need not wait for it
  })
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer))
}
