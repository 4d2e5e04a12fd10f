import type { ContinuationEvaluation } from '../state/continuation.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import { isLeftByLimit, timedOut } from '../effects/effects.ts'
import { passes, Unanswered } from '../effects/journal.ts'
import { withTimeout } from '../../system/timeout.ts'
import { BaseContext, type Draft, type Mode } from './base-context.ts'
import { errorOpinion, hookError, modelText } from './failure-text.ts'
import { enforcedLimitOf, HookLimit, opinionOf, type Invocation } from './invocation.ts'
import { joinPerformed, performHook, type Performed } from './perform-hook.ts'
import type { PlannedHook } from './hook-plans.ts'
import { isThenable } from '../../values/thenable.ts'
import { specOf, type HookTrigger } from './triggers.ts'

// The composition rules: transforms run one after the other, then guards on the result, then observers. Only handlers
// that return a promise are awaited; a synchronous one costs no microtask.

const { performance } = globalThis // read once: it is a getter

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

/** Runs the transforms, each on the result of the one before it. Rejects with a HookFailure. */
export function runTransforms(invocation: Invocation, hooks: readonly PlannedHook[], from = 0): Promise<void> {
  return runInOrder(invocation, hooks, 'transform', from)
}

/** Runs the guards, all of them on the same value. A guard that fails is treated as a block; only fatal errors reject. */
export function runGuards(invocation: Invocation, hooks: readonly PlannedHook[]): Promise<void> {
  return runInOrder(invocation, hooks, 'guard', 0)
}

async function runInOrder(
  invocation: Invocation,
  hooks: readonly PlannedHook[],
  mode: 'transform' | 'guard',
  from: number,
): Promise<void> {
  for (let i = from; i < hooks.length; i++) {
    const ending = runNext(invocation, hooks[i]!, mode, i)
    if (ending !== undefined) await ending
  }
}

/** Undefined if the hook has ended. */
type Ending = Promise<void> | undefined

function runNext(invocation: Invocation, hook: PlannedHook, mode: Mode, index: number): Ending {
  if (hook.shadow) {
    if (invocation.blocked === undefined) invocation.host.shadows?.run(invocation, hook)
    return undefined
  }
  if (invocation.blocked !== undefined) {
    const message = `blocked by "${invocation.blocked.by}" before`
    note(invocation, hook, startOfHook(invocation), { decision: 'skipped', message })
    return undefined
  }
  return mode === 'transform' && isTyped(hook)
    ? runTyped(invocation, hook, index)
    : runOne(invocation, hook, mode, index)
}

/** Starts the observers, all at once. They run in the background, and their errors are only recorded. */
export function runObservers(invocation: Invocation, hooks: readonly PlannedHook[]): void {
  for (const hook of hooks) {
    const started = startOfHook(invocation)
    let error: unknown
    try {
      const own = enforcedLimitOf(hook) === Infinity ? invocation : invocation.copyFor(hook)
      const ctx = own.context('observe')
      if (hook.when !== undefined && !applies(hook, ctx)) continue
      const result =
        hook.action === undefined ? hook.handle(ctx as never, undefined as never) : performHook(invocation, hook, ctx)
      if (isThenable(result)) invocation.host.watch(hook.name, invocation.trigger, withinTime(own, hook, result))
    } catch (thrown) {
      error = thrown ?? new Error('threw nothing')
    }
    note(invocation, hook, started, error === undefined ? undefined : errorOpinion(error))
  }
}

/** Work of an observer, which fails and is aborted after the time limit of the hook. */
function withinTime(own: Invocation, hook: PlannedHook, work: PromiseLike<unknown>): typeof work {
  const ms = enforcedLimitOf(hook)
  if (ms === Infinity) return work
  return withTimeout(work, ms, () => own.abort(timedOut({ hook: hook.name }, { ms })), { unref: true })
}

export function isTyped({ tool, triggers, action }: PlannedHook): boolean {
  const isOfTool = typeof tool === 'object' && !(tool instanceof RegExp)
  return (isOfTool || action?.fitting === true) && triggers.includes('beforeToolUse')
}

export const UNFIT = { decision: 'skipped', message: 'the arguments do not fit the tool' }

/** A hook declared with the tool itself, or `fitting`, only gets valid arguments; others get any, and may fix them. */
function runTyped(invocation: Invocation, hook: PlannedHook, index: number): Ending {
  const run = (fits: boolean): Ending => {
    if (fits) return runOne(invocation, hook, 'transform', index)
    note(invocation, hook, startOfHook(invocation), UNFIT)
    return undefined
  }
  const fits = invocation.fits?.() ?? true
  return fits instanceof Promise ? fits.then(run) : run(fits)
}

/** The result of `when`. It must be synchronous: a promise is always truthy. */
export function applies(hook: PlannedHook, ctx: BaseContext): boolean {
  const answer: unknown = hook.when!(ctx as never)
  if (!isThenable(answer)) return Boolean(answer)
  answer.then(undefined, () => undefined)
  throw new AgentError('HOOK_INVALID_OPTION', 'Its "when" returned a promise; it must return a boolean.')
}

function runOne(invocation: Invocation, hook: PlannedHook, mode: Mode, index: number): Ending {
  const running = { hook, index, started: startOfHook(invocation) }
  try {
    const ctx = invocation.context(mode)
    if (hook.when !== undefined && !applies(hook, ctx)) return undefined
    invocation.running = hook
    const result = isPerformed(hook)
      ? performHook(invocation, hook, ctx)
      : hook.handle(ctx as never, undefined as never)
    // Most hooks return the context they got. It is no thenable, and to look for "then" in it costs as much as the call.
    if (result !== ctx && isThenable(result)) return settle(invocation, running, result)
    if (invocation.inference !== undefined) return settle(invocation, running, Promise.resolve(result))
    invocation.endHook()
    if (result === ctx) note(invocation, hook, running.started)
    else accept(invocation, hook, BaseContext.accept(result, invocation), running.started)
  } catch (thrown) {
    if (invocation.inference !== undefined) return settle(invocation, running, Promise.reject(thrown))
    fail(invocation, running, thrown)
  }
  return undefined
}

/** Whether the hook is recorded as an effect. */
function isPerformed({ effect, action }: PlannedHook): boolean {
  return effect || action !== undefined
}

type RunningHook = {
  readonly hook: PlannedHook
  /** The position of the hook among the transforms or guards. */
  readonly index: number
  readonly started: number
}

/** Waits for a hook that has returned a promise, and for its model calls. */
async function settle(invocation: Invocation, running: RunningHook, result: PromiseLike<unknown>): Promise<void> {
  const { hook, started } = running
  try {
    const work = withCalls(invocation, result)
    const returned = await invocation.host.effects.withTimeout(work, new HookLimit(invocation, hook))
    const closing = invocation.endTurn('returned')
    if (closing !== undefined) await closing
    const draft = isPerformed(hook)
      ? joinPerformed(invocation, returned as Performed)
      : BaseContext.accept(returned, invocation)
    accept(invocation, hook, draft, started)
  } catch (thrown) {
    if (isLeftByLimit(thrown)) invocation.host.noteStillRunning?.(nameInRun(hook, invocation.trigger))
    let why = thrown
    try {
      await invocation.endTurn(isTimeout(thrown, hook.name) ? 'timedOut' : 'threw')
    } catch (fatal) {
      why = fatal
    }
    fail(invocation, running, why)
  }
}

/** What a hook returned, when the model calls that it did not wait for have ended as well: one limit is for all of it. */
async function withCalls(invocation: Invocation, result: PromiseLike<unknown>): Promise<unknown> {
  const returned = await result
  const calls = invocation.inference?.pending
  if (calls !== undefined) await calls
  return returned
}

/** A hook, for messages: `guard "no-push" at beforeToolUse`. */
function nameInRun({ mode, name }: PlannedHook, trigger: HookTrigger): string {
  return `${mode === 'transform' ? 'hook' : mode} "${name}" at ${trigger}`
}

function isTimeout(thrown: unknown, hook: string): boolean {
  if (!(thrown instanceof AgentError) || thrown.code !== 'HOOK_TIMED_OUT') return false
  return (thrown.value as { readonly hook?: string } | undefined)?.hook === hook
}

/** Applies what a hook decided and changed to the invocation. */
function accept(invocation: Invocation, hook: PlannedHook, draft: Draft, started: number): void {
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

function isInForce({ shadow }: PlannedHook): boolean {
  return !shadow
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
  const message = verdict.message?.trim() ? verdict.message : `Not permitted by "${by}".`
  if (verdict.decision === 'block') invocation.blocked ??= { by, message }
  if (verdict.decision === 'ask') {
    const kind = verdict.byDefault === true ? 'defaultAsks' : 'asks'
    invocation[kind] = [...invocation[kind], Object.freeze({ by, message })]
  }
  if (verdict.decision === 'allow') invocation.allowed ??= { by, message }
}

function fail(invocation: Invocation, { hook, index, started }: RunningHook, thrown: unknown): void {
  if (thrown instanceof Unanswered) return note(invocation, hook, started)
  const cause = toAgentError(thrown, 'HOOK_FAILED')
  if (isFatal(cause)) throw cause
  const error = hookError(hook, invocation.trigger, cause)
  const closes = failsClosed(hook)
  if (closes) {
    blockAfterFailure(invocation, hook.name, modelText(error))
    invocation.failures ??= new Map()
    invocation.failures.set(hook.name, error.message)
  }
  note(invocation, hook, started, failedOpinion(invocation, hook, cause))
  if (closes || hook.onFailure === 'continue') return
  throw new HookFailure(error, index)
}

function failsClosed({ mode, onFailure }: PlannedHook): boolean {
  return mode === 'guard' || onFailure === 'block'
}

/** Adds the block, or the vote, of a hook that failed closed. */
function blockAfterFailure(invocation: Invocation, by: string, message: string): void {
  if (specOf(invocation.trigger).onGuardFailure === 'block') {
    invocation.blocked ??= { by, message }
    return
  }
  const end = invocation.host.checkEnd()
  const reason = end === undefined ? 'errorForbade' : end === 'limit' ? 'timeLimit' : 'userRequested'
  const vote = { decision: 'forbidContinuation', reason, message, source: by } as const
  invocation.votes = [...invocation.votes, Object.freeze(vote)]
}

export function failedOpinion(invocation: Invocation, hook: PlannedHook, error: AgentError): Partial<LedgerEntry> {
  const decision = failsClosed(hook) ? specOf(invocation.trigger).onGuardFailure : hook.onFailure
  return { ...errorOpinion(error), ...(decision && { decision }) }
}

/** Errors that end the run whatever hooks decide. They are not caused by a hook. */
export function isFatal(error: unknown): boolean {
  return passes(error)
}

function startOfHook(invocation: Invocation): number {
  const { mark } = invocation
  invocation.mark = 0
  return mark === 0 ? performance.now() : mark
}

function note(invocation: Invocation, hook: PlannedHook, started: number, what?: Partial<LedgerEntry>): void {
  const ended = performance.now()
  if (what !== undefined) invocation.host.note(invocation, hook, ended - started, what)
  invocation.mark = ended // the next hook starts here: reading the clock costs as much as calling a hook
}
