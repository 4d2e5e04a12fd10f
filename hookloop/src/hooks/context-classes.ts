import { abilities } from './abilities.ts'
import { toTokens, type TokenUsage } from '../state/usage.ts'
import type { InferOptions } from './asking.ts'
import { Context, type Mode } from './draft.ts'
import { specOf, triggerNames, type Ability, type HookTrigger } from './triggers.ts'

/** One class for each trigger and mode, with the methods of its abilities and no others. */
export const contextClasses = Object.fromEntries(
  triggerNames.map((trigger) => {
    const { hook, guard } = specOf(trigger)
    const own = contextClass(trigger, hook === 'around' ? [] : hook)
    const transform = hook === 'around' ? spendingAtOnce(own) : inferring(own)
    const judging = contextClass(trigger, guard)
    const observe = withTimes(contextClass(trigger, []))
    return [trigger, { transform, guard: trigger === 'beforeInference' ? judging : inferring(judging), observe }]
  }),
) as { readonly [T in HookTrigger]: { readonly [M in Mode]: typeof Context } }

function contextClass(trigger: HookTrigger, can: readonly Ability[]): typeof Context {
  class TriggerContext extends Context {}
  for (const fact of specOf(trigger).carries) {
    Object.defineProperty(TriggerContext.prototype, fact, {
      enumerable: true,
      get(this: Context): unknown {
        return Context.draftOf(this).facts[fact]
      },
    })
  }
  for (const ability of can) {
    for (const [name, method] of Object.entries(abilities[ability])) {
      Object.defineProperty(TriggerContext.prototype, name, { value: method })
    }
  }
  return TriggerContext
}

/** Hooks and guards may ask models. Guards at `beforeInference` may not: they are what such a call is judged by. */
function inferring(Asking: typeof Context): typeof Context {
  Object.defineProperty(Asking.prototype, 'infer', {
    value(this: Context, asked: InferOptions): Promise<unknown> {
      return Context.infer(this, asked)
    },
  })
  return Asking
}

/** Around a call nothing is given back, so what a hook has spent is counted when it says so. */
function spendingAtOnce(Around: typeof Context): typeof Context {
  Object.defineProperty(Around.prototype, 'spend', {
    value(this: Context, usage: Partial<TokenUsage>): void {
      Context.hostOf(this).spend(toTokens(usage))
    },
  })
  return Around
}

/** Observers see how long hooks and tools took: they can change nothing, so nothing can depend on it. */
function withTimes(Watched: typeof Context): typeof Context {
  Object.defineProperty(Watched.prototype, 'durationMs', {
    get(this: Context): unknown {
      return Context.draftOf(this).facts['durationMs']
    },
  })
  Object.defineProperty(Watched.prototype, 'ledger', {
    get(this: Context): unknown {
      const { watchedLedger, ledger } = Context.hostOf(this)
      return watchedLedger ?? ledger
    },
  })
  return Watched
}
