import { toAgentError } from '../../errors.ts'
import { timedOut } from '../effects/effects.ts'
import { andThen, isThenable } from '../../values/thenable.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import { withTimeout } from '../../system/timeout.ts'
import { BaseContext } from './base-context.ts'
import { snapshotHost } from './hook-host.ts'
import { Invocation, opinionOf } from './invocation.ts'
import { applies, failedOpinion, isTyped, UNFIT } from './run-hooks.ts'
import type { PlannedHook } from './hook-plans.ts'

const SHADOW_TIMEOUT_MS = 60_000

/**
 * Runs a hook in shadow mode, in the background: its decisions are recorded in the ledger and not applied. It changes
 * neither the clock nor the recording, and other hooks do not see it.
 */
export function runShadow(invocation: Invocation, hook: PlannedHook): void {
  const { shadows } = invocation.host
  if (shadows === undefined) return
  const started = performance.now()
  const { plan, call } = invocation
  const own = new Invocation(snapshotHost(invocation.host), plan, invocation.state, invocation.facts, call)
  let isNoted = false
  const noteOnce = (what?: Partial<LedgerEntry>): void => {
    if (!isNoted) shadows.note({ plan, call, step: own.host.step }, hook, performance.now() - started, what)
    isNoted = true
  }
  const fail = (thrown: unknown): void => noteOnce(failedOpinion(own, hook, toAgentError(thrown, 'HOOK_FAILED')))
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
        const answer = withTimeout(returned, ms, () => own.abort(timedOut({ hook: hook.name }, { ms })), {
          unref: true,
        })
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
