import { hashJson, toJson, type Json } from '../state/json.ts'
import type { Effects } from '../effects/effects.ts'
import { checkedOutcome, type ActionRun } from './action.ts'
import { BaseContext, type Draft } from './base-context.ts'
import type { Invocation } from './invocation.ts'
import { applyOutcome, toOutcome, type HookOutcome } from './outcome.ts'
import type { StackedHook } from './stack.ts'

/** A hook with `effect: true` or an action: what it did is recorded as JSON, and what the run goes on with is made from that. */
export async function perform(firing: Invocation, hook: StackedHook, ctx: BaseContext): Promise<Performed> {
  const before = firing.draft
  const done = firing.performed?.get(hook.name)
  if (done !== undefined) return { draft: { ...applyOutcome(before, done), spent: undefined } } // it was counted then
  if (hook.action?.asks === true) {
    const outcome = await outcomeOfAction(firing, hook, { ctx, signal: firing.host.signal })
    return { draft: applyOutcome(before, outcome as HookOutcome) }
  }
  const key = firing.keyFor(hook.name)
  // In a scope, because a hook that ran out of time goes on without anybody waiting, and must not move the clock then.
  const scope = firing.host.effects.scope(key)
  const effect = { key, kind: 'hook', input: () => describe(before) } as const
  const outcome = (await scope.perform<Json>(effect, async (signal) => {
    if (hook.action !== undefined) return outcomeOfAction(firing, hook, { ctx, signal })
    const returned = await hook.handle(ctx as never, undefined as never)
    return toJson(toOutcome(before, BaseContext.accept(returned, firing)))
  })) as HookOutcome
  firing.performed ??= new Map()
  firing.performed.set(hook.name, outcome)
  return { draft: applyOutcome(before, outcome), scope }
}

async function outcomeOfAction(
  firing: Invocation,
  { handle, mode, timeoutMs }: StackedHook,
  { ctx, signal }: { readonly ctx: BaseContext; readonly signal: AbortSignal },
): Promise<Json> {
  const how: ActionRun = { mode, signal, timeoutMs }
  const outcome = (await handle(ctx as never, how as never)) as HookOutcome
  return toJson(checkedOutcome(outcome, firing.trigger, mode))
}

export type Performed = { readonly draft: Draft; readonly scope?: Effects }

export function performed(firing: Invocation, { draft, scope }: Performed): Draft {
  if (scope !== undefined) firing.host.effects.join(scope)
  return draft
}

/**
 * What a recorded hook was asked about, short: the number of messages and a fingerprint of the rest. How long a tool took
 * is for observers, and no two runs have it in common.
 */
function describe({ state, facts }: Draft): Json {
  const { request: _request, messages: _messages, durationMs: _ms, ...rest } = facts
  return { messages: state.messages.length, facts: hashJson(toJson(rest)) }
}

/** Whether what it does is an effect of the run. */
export function isPerformed({ effect, action }: StackedHook): boolean {
  return effect || action !== undefined
}
