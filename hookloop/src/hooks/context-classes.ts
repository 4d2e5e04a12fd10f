import { abilities } from './context-methods.ts'
import { toTokens, type TokenUsage } from '../state/usage.ts'
import type { InferOptions } from './infer.ts'
import { BaseContext, type Mode } from './base-context.ts'
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
) as { readonly [T in HookTrigger]: { readonly [M in Mode]: typeof BaseContext } }

function contextClass(trigger: HookTrigger, can: readonly Ability[]): typeof BaseContext {
  class TriggerContext extends BaseContext {}
  for (const fact of specOf(trigger).carries) {
    Object.defineProperty(TriggerContext.prototype, fact, {
      enumerable: true,
      get(this: BaseContext): unknown {
        return BaseContext.draftOf(this).facts[fact]
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
function inferring(HookInference: typeof BaseContext): typeof BaseContext {
  Object.defineProperty(HookInference.prototype, 'infer', {
    value(this: BaseContext, asked: InferOptions): Promise<unknown> {
      return BaseContext.infer(this, asked)
    },
  })
  return HookInference
}

/** Around a call nothing is given back, so what a hook has spent is counted when it says so. */
function spendingAtOnce(Around: typeof BaseContext): typeof BaseContext {
  Object.defineProperty(Around.prototype, 'spend', {
    value(this: BaseContext, usage: Partial<TokenUsage>): void {
      BaseContext.hostOf(this).spend(toTokens(usage))
    },
  })
  return Around
}

/** Observers see how long hooks and tools took: they can change nothing, so nothing can depend on it. */
function withTimes(Watched: typeof BaseContext): typeof BaseContext {
  Object.defineProperty(Watched.prototype, 'durationMs', {
    get(this: BaseContext): unknown {
      return BaseContext.draftOf(this).facts['durationMs']
    },
  })
  Object.defineProperty(Watched.prototype, 'ledger', {
    get(this: BaseContext): unknown {
      const { watchedLedger, ledger } = BaseContext.hostOf(this)
      return watchedLedger ?? ledger
    },
  })
  return Watched
}
