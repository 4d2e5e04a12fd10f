import { AgentState } from '../state/agent-state.ts'
import { hashJson, toJson, type Json } from '../../values/json.ts'
import type { Effects } from '../effects/effects.ts'
import type { ActionRun } from './action.ts'
import { BaseContext, type Draft } from './base-context.ts'
import { checkedOutcome, outcomeJson } from './check-outcome.ts'
import type { Invocation } from './invocation.ts'
import { applyOutcome, toOutcome } from './outcome.ts'
import type { PlannedHook } from './hook-plans.ts'

/** Runs a hook with `effect: true` or an action. Its outcome is recorded as JSON, and the run continues with that JSON. */
export async function performHook(invocation: Invocation, hook: PlannedHook, ctx: BaseContext): Promise<Performed> {
  const before = invocation.draft
  const apply = (outcome: Json): Draft => applyOutcome(before, checkedOutcome(outcome, invocation.trigger, hook.mode))
  const known = invocation.performed?.get(hook.name)
  if (known !== undefined) return { draft: { ...apply(known), spent: undefined } } // counted already
  if (hook.action?.asks === true) {
    return { draft: apply(await outcomeOfAction(hook, ctx)) }
  }
  const input = describe(before)
  const key = invocation.keyFor('hook', hook.name, hashJson(input))
  // In a scope: a hook that has timed out continues in the background and must not move the clock of the run.
  const scope = invocation.host.effects.scope()
  const effect = { key, input: () => input }
  const outcome = await scope.perform<Json>(effect, async () => {
    if (hook.action !== undefined) return outcomeOfAction(hook, ctx)
    const returned = await hook.handle(ctx as never, undefined as never)
    return toJson(toOutcome(before, BaseContext.accept(returned, invocation)))
  })
  invocation.performed ??= new Map()
  invocation.performed.set(hook.name, outcome)
  return { draft: apply(outcome), scope }
}

export type Performed = { readonly draft: Draft; readonly scope?: Effects }

/** The draft of a hook that was awaited. The run takes over the time of its scope. */
export function joinPerformed(invocation: Invocation, { draft, scope }: Performed): Draft {
  if (scope !== undefined) invocation.host.effects.join(scope)
  return draft
}

async function outcomeOfAction({ handle, mode, timeoutMs }: PlannedHook, ctx: BaseContext): Promise<Json> {
  const run: ActionRun = { mode, signal: ctx.signal, timeoutMs }
  return outcomeJson(await handle(ctx as never, run as never), mode)
}

/**
 * A short description of what a recorded hook received: the number of messages and a hash of the rest. Durations are left
 * out, because they differ from run to run.
 */
function describe({ state, facts }: Draft): Json {
  const { request: _request, messages: _messages, durationMs: _ms, ...rest } = facts
  return { messages: AgentState.fieldsOf(state).messages.length, facts: hashJson(toJson(rest)) }
}
