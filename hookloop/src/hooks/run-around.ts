import type { LedgerEntry } from '../state/ledger.ts'
import { AgentError, messageOf } from '../errors.ts'
import type { Invocation } from './invocation.ts'
import { applies, isFatal } from './run-hooks.ts'
import type { StackedHook } from './stack.ts'

/** What wraps one call: the hooks outermost first, the call itself, and what counts as a result of it. */
export type AroundCall<R, N> = {
  readonly hooks: readonly StackedHook[]
  readonly callId?: string
  /** A firing whose context shows what `next` will do; `change` is what outer hooks asked to be different. */
  firing(change: N | undefined): Invocation
  /** Runs the real call. Each time is a new attempt. */
  attempt(change: N | undefined): Promise<R>
  merge(outer: N | undefined, inner: N | undefined): N | undefined
  check(value: unknown): R | undefined
  /** Keeps what each hook did, to be told with the result of the call: a replay answers both without running either. */
  note(entry: LedgerEntry, durationMs: number): void
}

/** Runs a call inside its around hooks. Misuse of `next` is diagnosed in words. */
export function runAround<R, N>(onion: AroundCall<R, N>, index = 0, change?: N): Promise<R> {
  const hook = onion.hooks[index]
  return hook === undefined ? onion.attempt(change) : runLayer(onion, { hook, index, change })
}

type Layer<N> = { readonly hook: StackedHook; readonly index: number; readonly change: N | undefined }

async function runLayer<R, N>(onion: AroundCall<R, N>, { hook, index, change }: Layer<N>): Promise<R> {
  const started = performance.now()
  const firing = onion.firing(change)
  let calls = 0
  let [returned, passedBy] = [false, false]
  const failures = new Set<unknown>()
  const next = (inner?: N): Promise<R> => {
    if (returned) throw misused(hook, 'called next() after it had returned. Await what next() gives')
    calls++
    const result = runAround(onion, index + 1, onion.merge(change, inner))
    result.catch((thrown: unknown) => failures.add(thrown)) // a hook may race several attempts; the losers have nobody to tell
    return result
  }
  const tell = (what: Partial<LedgerEntry>): void => {
    returned = true // whatever it does from here on comes too late
    onion.note(
      {
        step: firing.host.step,
        trigger: firing.trigger,
        hook: hook.name,
        mode: 'transform',
        ...(onion.callId !== undefined && { call: onion.callId }),
        ...what,
      },
      performance.now() - started,
    )
  }
  try {
    const ctx = firing.context('transform')
    if (hook.when !== undefined && !applies(hook, ctx)) {
      passedBy = true
      return await runAround(onion, index + 1, change)
    }
    const work = Promise.resolve(hook.handle(ctx as never, next as never))
    const value = await limited(firing, hook, work)
    const result = onion.check(value)
    if (result === undefined) throw misused(hook, describeMisuse(value, calls))
    tell(calls === 1 ? {} : { decision: calls === 0 ? 'substituted' : `called ${calls} times` })
    return result
  } catch (thrown) {
    if (passedBy) throw thrown
    const skipped = hook.onFailure === 'continue' && calls === 0 && !isFatalError(thrown)
    // A failure that it only hands on is not its own.
    if (failures.has(thrown)) tell(calls === 1 ? {} : { decision: `called ${calls} times` })
    else tell({ error: messageOf(thrown), ...(skipped && { decision: 'continue' }) })
    if (!skipped) throw thrown
  }
  return runAround(onion, index + 1, change)
}

function limited(firing: Invocation, hook: StackedHook, work: Promise<unknown>): Promise<unknown> {
  if (hook.timeoutMs === undefined) return work
  const key = `${firing.keyFor(hook.name)}/timeout`
  // In a scope: when an outer hook has stopped waiting, the timeout of an inner one must not move the clock.
  return firing.host.effects.scope(key).withTimeout(key, hook.timeoutMs, work)
}

function isFatalError(thrown: unknown): boolean {
  return thrown instanceof AgentError && isFatal(thrown)
}

function describeMisuse(value: unknown, calls: number): string {
  if (value !== undefined) return `returned ${typeof value} that is not a result. Return what next() gave`
  if (calls > 0) return 'called next() but did not return what it gave. Write "return next()"'
  return 'neither called next() nor returned a result of its own. Write "return next()"'
}

function misused(hook: StackedHook, what: string): AgentError {
  return new AgentError('HOOK_NEXT_MISUSED', `The hook "${hook.name}" ${what}.`, { value: hook.name })
}
