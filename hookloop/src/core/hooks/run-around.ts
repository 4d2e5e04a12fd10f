import type { LedgerEntry } from '../state/ledger.ts'
import { AgentError, toAgentError } from '../../errors.ts'
import { BaseContext } from './base-context.ts'
import { describeValue } from '../../values/describe-value.ts'
import { HookLimit, LateCalls, neverEnds, type Invocation } from './invocation.ts'
import { errorOpinion, hookError } from './failure-text.ts'
import { applies, isFatal } from './run-hooks.ts'
import type { PlannedHook } from './hook-plans.ts'

/** A call with hooks around it, outermost first. */
export type AroundCall<R, N> = {
  readonly hooks: readonly PlannedHook[]
  readonly callId?: string
  /** An invocation whose context shows what `next` will do; `change` is what outer hooks have changed. */
  invocation(change: N | undefined): Invocation
  /** Runs the call itself. Each time is a new attempt. */
  attempt(change: N | undefined): Promise<R>
  merge(outer: N | undefined, inner: N | undefined): N | undefined
  /** The value as a result of the call, or undefined if it is not one. */
  check(value: unknown): R | undefined
  /** Stores what each hook did with the result of the call: a replay answers both without running either. */
  note(entry: LedgerEntry, durationMs: number): void
}

/** Runs a call inside its around hooks. */
export function runAround<R, N>(call: AroundCall<R, N>, index = 0, change?: N): Promise<R> {
  const hook = call.hooks[index]
  return hook === undefined ? call.attempt(change) : runLayer(call, { hook, index, change })
}

type Layer<N> = { readonly hook: PlannedHook; readonly index: number; readonly change: N | undefined }

async function runLayer<R, N>(call: AroundCall<R, N>, { hook, index, change }: Layer<N>): Promise<R> {
  const started = performance.now()
  const invocation = call.invocation(change)
  let calls = 0
  let [returned, skipsItself] = [false, false]
  const failures = new Set<unknown>()
  const late = new LateCalls()
  const next = (inner?: N): Promise<R> => {
    if ((returned || invocation.host.checkEnd() !== undefined) && late.isTooMany()) return neverEnds()
    if (returned) throw misused(hook, 'called next() after it had returned. Await the result of next()')
    calls++
    const result = runAround(call, index + 1, call.merge(change, inner))
    result.catch((thrown: unknown) => failures.add(thrown)) // a hook may race attempts and ignore those that lose
    return result
  }
  const note = (what: Partial<LedgerEntry>): void => {
    returned = true // later calls of next() are rejected
    call.note(
      {
        step: invocation.host.step,
        trigger: invocation.trigger,
        hook: hook.name,
        mode: 'transform',
        ...(call.callId !== undefined && { call: call.callId }),
        ...what,
      },
      performance.now() - started,
    )
  }
  try {
    const ctx = invocation.context('transform')
    if (hook.when !== undefined && !applies(hook, ctx)) {
      skipsItself = true
      return await runAround(call, index + 1, change)
    }
    invocation.running = hook
    const work = Promise.resolve(hook.handle(ctx as never, next as never))
    const value = await limitTime(invocation, hook, work)
    const result = value instanceof BaseContext ? undefined : call.check(value)
    if (result === undefined) throw misused(hook, describeMisuse(value, calls))
    note(calls === 1 ? {} : { decision: calls === 0 ? 'substituted' : `called ${calls} times` })
    return result
  } catch (caught) {
    if (skipsItself) throw caught
    const passed = errorOfNext(caught, failures)
    if (passed !== undefined) {
      note(calls === 1 ? {} : { decision: `called ${calls} times` })
      throw passed
    }
    const thrown = toAgentError(caught, 'HOOK_FAILED')
    const isSkipped = hook.onFailure === 'continue' && calls === 0 && !isFatal(thrown)
    note({ ...errorOpinion(thrown), ...(isSkipped && { decision: 'continue' }) })
    if (!isSkipped) throw isOfCall(thrown, invocation) ? caught : hookError(hook, invocation.trigger, thrown)
  }
  return runAround(call, index + 1, change)
}

/** The error of `next()` that a hook only passes on, also from attempts that it raced. Undefined if the error is its own. */
function errorOfNext(caught: unknown, failures: ReadonlySet<unknown>): unknown {
  if (failures.has(caught)) return caught
  const raced: readonly unknown[] = caught instanceof AggregateError ? caught.errors : []
  return raced.every((each) => failures.has(each)) ? raced.at(-1) : undefined
}

/** Whether an error is about the call or the run, not about the hook that threw it: a limit rejects calls with `MODEL_RATE_LIMITED`. */
function isOfCall(error: AgentError, { host }: Invocation): boolean {
  return isFatal(error) || error.code.startsWith('MODEL_') || host.checkEnd() !== undefined
}

function limitTime(invocation: Invocation, hook: PlannedHook, work: Promise<unknown>): Promise<unknown> {
  if (hook.timeoutMs === undefined) return work // the call as a whole ends with the run
  // In a scope: the timeout of an inner hook must not move the clock after an outer hook has given up.
  return invocation.host.effects.scope().withTimeout(work, new HookLimit(invocation, hook))
}

function describeMisuse(value: unknown, calls: number): string {
  if (value instanceof BaseContext) return 'returned its context. Return the result of next()'
  if (value !== undefined) return `returned ${describeValue(value)}, which is not a result. Return the result of next()`
  if (calls > 0) return 'called next() but did not return its result. Write "return next()"'
  return 'neither called next() nor returned a result of its own. Write "return next()"'
}

function misused(hook: PlannedHook, what: string): AgentError {
  return new AgentError('HOOK_NEXT_MISUSED', `It ${what}.`, { value: hook.name })
}
