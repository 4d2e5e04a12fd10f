import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { AgentError, toAgentError, type ErrorCode } from '../errors.ts'
import { isLeftByLimit, timedOut, type TimeLimit } from '../effects/effects.ts'
import { withTimeout } from '../system/timeout.ts'
import { BaseContext, type Draft, type Mode } from './base-context.ts'
import { changesBetween } from './changes.ts'
import { snapshotHost } from './hook-host.ts'
import { Invocation, timeLimitOf } from './invocation.ts'
import { explainThrown } from './missing-method.ts'
import { joinPerformed, performHook, type Performed } from './perform-hook.ts'
import type { StackedHook } from './stack.ts'
import { andThen, isThenable } from '../state/thenable.ts'
import { specOf } from './triggers.ts'

// The composition rules: transforms run one after the other, then guards on the result, then observers. Only handlers
// that return a promise are awaited; a synchronous one costs no microtask.

const SHADOW_TIMEOUT_MS = 60_000

/** Thrown when a hook fails and `onError` has to decide. `index` is the position of the hook among the transforms. */
export class HookFailure extends Error {
  readonly error: AgentError
  readonly index: number

  constructor(error: AgentError, index: number) {
    super(error.message)
    this.error = error
    this.index = index
  }
}

/** Thrown by replays for an effect without a recorded result: the hook is treated as having no opinion. */
export class Unanswered extends Error {}

/** Runs the transforms, each on the result of the one before it. Throws or rejects with a HookFailure. */
export function runTransforms(invocation: Invocation, hooks: readonly StackedHook[], from = 0): void | Promise<void> {
  for (let i = from; i < hooks.length; i++) {
    const hook = hooks[i]!
    if (invocation.blocked !== undefined) return skipAll(invocation, hooks.slice(i))
    if (hook.shadow) {
      runShadow(invocation, hook)
      continue
    }
    const waiting = isTyped(hook) ? runTyped(invocation, hook, i) : runOne(invocation, hook, 'transform', i)
    if (waiting !== undefined) return waiting.then(() => runTransforms(invocation, hooks, i + 1))
  }
}

/** Runs the guards, all of them on the same value. A guard that fails is treated as a block; only fatal errors throw. */
export function runGuards(invocation: Invocation, hooks: readonly StackedHook[], from = 0): void | Promise<void> {
  for (let i = from; i < hooks.length; i++) {
    const hook = hooks[i]!
    if (invocation.blocked !== undefined) return skipAll(invocation, hooks.slice(i))
    if (hook.shadow) {
      runShadow(invocation, hook)
      continue
    }
    const waiting = runOne(invocation, hook, 'guard', i)
    if (waiting !== undefined) return waiting.then(() => runGuards(invocation, hooks, i + 1))
  }
}

/** Starts the observers, all at once. They run in the background, and their errors are only recorded. */
export function runObservers(invocation: Invocation, hooks: readonly StackedHook[]): void {
  for (const hook of hooks) {
    const started = invocation.startOfHook()
    let error: unknown
    try {
      const ctx = invocation.context('observe')
      if (hook.when !== undefined && !applies(hook, ctx)) continue
      const result =
        hook.action === undefined ? hook.handle(ctx as never, undefined as never) : performHook(invocation, hook, ctx)
      if (isThenable(result)) invocation.host.watch(hook.name, invocation.trigger, result)
    } catch (thrown) {
      error = thrown ?? new Error('threw nothing')
    }
    const why = error === undefined ? undefined : explainThrown(error, invocation.trigger, 'observe')
    note(invocation, hook, started, why === undefined ? undefined : errorOpinion(why))
  }
}

function isTyped({ tool, triggers }: StackedHook): boolean {
  return typeof tool === 'object' && !(tool instanceof RegExp) && triggers.includes('beforeToolUse')
}

const UNFIT = { decision: 'skipped', message: 'the arguments do not fit the tool' }

/** A hook declared with the tool itself only gets valid arguments; one declared with a name gets any, and may fix them. */
function runTyped(invocation: Invocation, hook: StackedHook, index: number): void | Promise<void> {
  return andThen(invocation.fits?.() ?? true, (fits) => {
    if (fits) return runOne(invocation, hook, 'transform', index)
    note(invocation, hook, invocation.startOfHook(), UNFIT)
  })
}

/** The result of `when`. It must be synchronous: a promise is always truthy. */
export function applies(hook: StackedHook, ctx: BaseContext): boolean {
  const answer: unknown = hook.when!(ctx as never)
  if (!isThenable(answer)) return Boolean(answer)
  answer.then(undefined, () => undefined)
  throw new AgentError('HOOK_INVALID_OPTION', 'Its "when" returned a promise; it must return a boolean.')
}

type Started = { readonly started: number; readonly index: number }

function runOne(invocation: Invocation, hook: StackedHook, mode: Mode, index: number): void | Promise<void> {
  const started = invocation.startOfHook()
  try {
    const ctx = invocation.context(mode)
    if (hook.when !== undefined && !applies(hook, ctx)) return undefined
    invocation.running = hook
    const result = isPerformed(hook)
      ? performHook(invocation, hook, ctx)
      : hook.handle(ctx as never, undefined as never)
    if (isThenable(result)) return settle(invocation, hook, { result, started, index })
    if (invocation.inference !== undefined) {
      return settle(invocation, hook, { result: Promise.resolve(result), started, index })
    }
    invocation.endHook()
    if (result === ctx) return note(invocation, hook, started)
    accept(invocation, hook, BaseContext.accept(result, invocation), started)
  } catch (thrown) {
    if (invocation.inference !== undefined) {
      return settle(invocation, hook, { result: Promise.reject(thrown), started, index })
    }
    fail(invocation, hook, { thrown, started, index })
  }
}

/** Whether the hook is recorded as an effect. */
function isPerformed({ effect, action }: StackedHook): boolean {
  return effect || action !== undefined
}

/** Awaits a hook within its time limit. */
async function settle(
  invocation: Invocation,
  hook: StackedHook,
  { result, started, index }: Started & { readonly result: PromiseLike<unknown> },
): Promise<void> {
  const time = new HookTime(invocation, hook)
  try {
    const returned = await invocation.host.effects.withTimeout(result, time)
    const ending = invocation.endTurn('returned')
    if (ending !== undefined) await ending
    const draft = isPerformed(hook)
      ? joinPerformed(invocation, returned as Performed)
      : BaseContext.accept(returned, invocation)
    accept(invocation, hook, draft, started)
  } catch (thrown) {
    if (isLeftByLimit(thrown)) invocation.host.leave?.(`${hook.mode} "${hook.name}" at ${invocation.trigger}`)
    try {
      await invocation.endTurn(time.isOver(thrown) ? 'timedOut' : 'threw')
    } catch (fatal) {
      return fail(invocation, hook, { thrown: fatal, started, index })
    }
    fail(invocation, hook, { thrown, started, index })
  }
}

/** The time limit of a hook in an invocation. */
export class HookTime implements TimeLimit {
  readonly ms: number
  readonly #invocation: Invocation
  readonly #name: string

  constructor(invocation: Invocation, hook: StackedHook) {
    const { action } = hook
    this.ms = action !== undefined && action.asks !== true ? Infinity : timeLimitOf(hook) // an action enforces its own
    this.#invocation = invocation
    this.#name = hook.name
  }

  key(): string {
    return `${this.#invocation.keyFor(this.#name)}/timeout`
  }

  abort(error: AgentError): void {
    this.#invocation.abort(error)
  }

  isOver(thrown: unknown): boolean {
    if (!(thrown instanceof AgentError) || thrown.code !== 'HOOK_TIMED_OUT') return false
    return (thrown.value as { readonly key?: string } | undefined)?.key === this.key()
  }
}

/** Applies what a hook decided and changed to the invocation. */
function accept(invocation: Invocation, hook: StackedHook, draft: Draft, started: number): void {
  const before = invocation.draft
  if (draft === before) return note(invocation, hook, started)
  const { within } = draft
  if (within !== undefined && (invocation.within === undefined || within < invocation.within.ms)) {
    invocation.within = { ms: within, by: hook.name }
  }
  if (isOtherwiseSame(before, draft)) return note(invocation, hook, started)
  const votes = draft.votes.map((vote): ContinuationEvaluation => Object.freeze({ ...vote, source: hook.name }))
  const isNew = (vote: ContinuationEvaluation): boolean =>
    !invocation.votes.some(
      (each) => each.source === vote.source && each.decision === vote.decision && each.message === vote.message,
    )
  invocation.votes = [...invocation.votes, ...votes.filter(isNew)]
  if (draft.spent !== undefined) invocation.host.spend(draft.spent)
  if (draft.verdict !== undefined) applyVerdict(invocation, hook.name, draft.verdict)
  if (draft.compact !== undefined) invocation.compaction ??= { ...draft.compact, by: hook.name }
  if (draft.recovery !== undefined) invocation.recovery ??= { ...draft.recovery, by: hook.name }
  const { transforms, guards } = invocation.plan
  const isLast = transforms.findLast(isInForce) === hook && !guards.some(isInForce)
  const what = opinionOf(hook, before, draft, isLast)
  if (hook.mode === 'transform') invocation.update(draft.state, draft.facts)
  note(invocation, hook, started, Object.keys(what).length > 0 ? what : undefined)
}

function isInForce({ shadow }: StackedHook): boolean {
  return !shadow
}

function opinionOf({ mode, action }: StackedHook, before: Draft, after: Draft, isLast: boolean): Partial<LedgerEntry> {
  const changes = mode === 'transform' ? changesBetween(before, after, isLast) : []
  return {
    ...(action !== undefined && after.spent !== undefined && { value: { spent: after.spent } }),
    ...decisionOf(after),
    ...(after.warnings !== undefined && { warnings: after.warnings }),
    ...(after.decidedAt !== undefined && { definedAt: after.decidedAt }),
    ...(changes.length > 0 && { changes }),
  }
}

/** Whether a hook has set at most a time limit, as the limit on time does before every call of every run. */
function isOtherwiseSame(before: Draft, after: Draft): boolean {
  const { state, facts, votes, verdict, recovery, spent, compact, warnings } = after
  const isSame = state === before.state && facts === before.facts && votes === before.votes
  return (
    isSame &&
    warnings === undefined &&
    compact === undefined &&
    verdict === undefined &&
    recovery === undefined &&
    spent === undefined
  )
}

function applyVerdict(invocation: Invocation, by: string, verdict: NonNullable<Draft['verdict']>): void {
  const message = verdict.message ?? `Not permitted by "${by}".`
  if (verdict.decision === 'block') invocation.blocked ??= { by, message }
  if (verdict.decision === 'ask') invocation.asks = [...invocation.asks, Object.freeze({ by, message })]
  if (verdict.decision === 'allow') invocation.allowed ??= { by, message }
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
  invocation: Invocation,
  hook: StackedHook,
  { thrown, started, index }: Started & { readonly thrown: unknown },
): void {
  if (thrown instanceof Unanswered) return note(invocation, hook, started)
  const cause = toAgentError(explainThrown(thrown, invocation.trigger, hook.mode), 'HOOK_FAILED')
  if (isFatal(cause)) throw cause
  const { code, value } = cause
  const kind = hook.mode === 'guard' ? 'Guard' : 'Hook'
  const message = `${kind} "${hook.name}" failed at ${invocation.trigger}: ${cause.message}`
  const closes = failsClosed(hook)
  if (closes) blockAfterFailure(invocation, hook.name, message)
  note(invocation, hook, started, failedOpinion(invocation, hook, cause))
  if (closes || hook.onFailure === 'continue') return
  throw new HookFailure(new AgentError(code, message, { value, cause: cause.cause ?? cause }), index)
}

function failsClosed({ mode, onFailure }: StackedHook): boolean {
  return mode === 'guard' || onFailure === 'block'
}

/** Adds the block, or the vote, of a hook that failed closed. */
function blockAfterFailure(invocation: Invocation, by: string, message: string): void {
  if (specOf(invocation.trigger).no === 'block') {
    invocation.blocked ??= { by, message }
    return
  }
  const { ended } = invocation.host
  const reason = ended === undefined ? 'errorForbade' : ended === 'limit' ? 'timeLimit' : 'userRequested'
  const vote = { decision: 'forbidContinuation', reason, message, source: by } as const
  invocation.votes = [...invocation.votes, Object.freeze(vote)]
}

function failedOpinion(invocation: Invocation, hook: StackedHook, error: AgentError): Partial<LedgerEntry> {
  const decision = failsClosed(hook) ? specOf(invocation.trigger).no : hook.onFailure
  return { ...errorOpinion(error), ...(decision && { decision }) }
}

/** The error of a hook, for the ledger. */
export function errorOpinion(thrown: unknown): Pick<LedgerEntry, 'error' | 'code'> {
  const { message, code } = toAgentError(thrown, 'HOOK_FAILED')
  return { error: message, code }
}

/** Errors of a run that can no longer be stored. */
export const notStored: ReadonlySet<ErrorCode> = new Set(['RECORDING_FAILED', 'STORE_FAILED', 'SESSION_FENCED'])

/** Errors that end the run whatever hooks decide. They are not caused by a hook. */
export function isFatal(error: unknown): boolean {
  if (!(error instanceof AgentError)) return false
  return error.code.startsWith('REPLAY_') || notStored.has(error.code) || isIncomplete(error)
}

/** Whether a part of Hookloop is missing. A model can do nothing about it, so it is not the result of a call. */
export function isIncomplete(error: unknown): error is AgentError {
  return error instanceof AgentError && error.code === 'PACKAGE_INCOMPLETE'
}

function skipAll(invocation: Invocation, hooks: readonly StackedHook[]): void {
  const message = `blocked by "${invocation.blocked!.by}" before`
  for (const hook of hooks) {
    if (!hook.shadow) note(invocation, hook, invocation.startOfHook(), { decision: 'skipped', message })
  }
}

function note(invocation: Invocation, hook: StackedHook, started: number, what?: Partial<LedgerEntry>): void {
  const ended = performance.now()
  invocation.host.note(invocation, hook, ended - started, what)
  invocation.mark = ended // the next hook starts here: reading the clock costs as much as calling a hook
}

/**
 * Runs a hook in shadow mode, in the background: its decisions are recorded in the ledger and not applied. It changes
 * neither the clock nor the recording, and other hooks do not see it.
 */
function runShadow(invocation: Invocation, hook: StackedHook): void {
  const { shadows } = invocation.host
  if (shadows === undefined) return
  const started = performance.now()
  const { plan, callIndex } = invocation
  const own = new Invocation(snapshotHost(invocation.host), plan, invocation.state, invocation.facts, callIndex)
  let isNoted = false
  const noteOnce = (what?: Partial<LedgerEntry>): void => {
    if (!isNoted) shadows.note({ plan, callIndex, step: own.host.step }, hook, performance.now() - started, what)
    isNoted = true
  }
  const fail = (thrown: unknown): void =>
    noteOnce(failedOpinion(own, hook, toAgentError(explainThrown(thrown, own.trigger, hook.mode), 'HOOK_FAILED')))
  const accept = (returned: unknown): void => {
    const draft = BaseContext.accept(returned, own)
    noteOnce(draft === own.draft ? undefined : opinionOf(hook, own.draft, draft, false))
  }
  try {
    const ctx = own.context(hook.mode)
    own.running = hook
    if (hook.when === undefined || applies(hook, ctx)) {
      const fits = hook.mode === 'guard' || !isTyped(hook) || (invocation.fits?.({ byShadow: true }) ?? true)
      const returned = andThen(fits, (isValid): unknown => {
        if (isValid) return hook.handle(ctx as never, undefined as never)
        noteOnce(UNFIT)
        return ctx
      })
      if (isThenable(returned)) {
        const ms = hook.timeoutMs ?? SHADOW_TIMEOUT_MS
        const giveUp = (): Error => {
          const error = timedOut(hook.name, { ms })
          own.abort(error)
          return error
        }
        const answer = withTimeout(returned, ms, giveUp, { unref: true })
        shadows.follow(answer.then(accept).catch(fail), () => fail(new Error(UNANSWERED)))
      } else {
        accept(returned)
      }
    }
  } catch (thrown) {
    fail(thrown)
  }
  invocation.mark = 0 // the next hook starts when this one has returned
}

const UNANSWERED = 'It had not answered when the run ended.'
