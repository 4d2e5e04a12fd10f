import { SUBAGENT_KEY } from '../../state/agent-state.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import { messageOf } from '../../errors.ts'
import { defined } from '../../hook-files/defined.ts'
import { action, type Action } from '../../hooks/action.ts'
import { checkedOutcome, outcomeJson } from '../../hooks/check-outcome.ts'
import { BaseContext } from '../../hooks/base-context.ts'
import { guard, hook, observe, type Hook } from '../../hooks/hook.ts'

/** How long a hook may take in a probe run, and how often it may time out before it is skipped. */
export const TIMEOUT = { ms: 10_000, times: 2 }

/** The error for calls to any model but the probe model. */
export const NO_MODEL_CALLS = 'Probe runs call no model.'

/** What one hook did in a probe run. */
export class HookActivity {
  readonly #insideOnly: boolean
  /** How often it fired, by trigger. */
  readonly fired = new Map<string, number>()
  /** The calls it judged before they were made. */
  readonly judged = new Set<string>()
  readonly failures: string[] = []
  /** Whether its `when` was true at least once. */
  whenHeld = false
  /** How often its handler ran. */
  ran = 0
  /** It timed out. */
  isSlow = false

  /** `insideOnly`: only what happens in a subagent, and how it ends. */
  constructor(insideOnly: boolean) {
    this.#insideOnly = insideOnly
  }

  note(ctx: BaseContext): void {
    const { trigger } = ctx
    if (!this.isCounted(ctx)) return
    this.fired.set(trigger, (this.fired.get(trigger) ?? 0) + 1)
    if (trigger === 'beforeToolUse') this.judged.add(callOf(ctx))
  }

  isCounted({ trigger, state }: BaseContext): boolean {
    return !this.#insideOnly || trigger === 'onSubagentStop' || state.metadata[SUBAGENT_KEY] !== undefined
  }

  /** How often it fired on these triggers. */
  at(triggers: readonly string[]): number {
    return triggers.reduce((sum, trigger) => sum + (this.fired.get(trigger) ?? 0), 0)
  }
}

/** Ids of calls are unique within one conversation only. */
function callOf(ctx: BaseContext): string {
  const { id } = BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall
  return `${ctx.state.agentId} ${id}`
}

/** How often a hook timed out, over all probe runs. */
export type Timeouts = { count: number }

type Watching = {
  readonly activity: HookActivity
  readonly timeouts: Timeouts
  /** Whether it is from a file: then `when` is evaluated but does not skip it, because a probe run lacks the data it tests. */
  readonly isFromFile: boolean
  /** How often its handler has run so far. */
  readonly ran?: (() => number) | undefined
}

/** `guard`, `hook` or `observe`, for triggers that are not known here. */
export type MakeHook = (on: readonly string[], handler: unknown, options: object) => Hook

/**
 * The same hook, really run, with its activity recorded. What a guard or a hook from a file decides is discarded, so that the
 * run continues through every event; so is its failure, which is recorded.
 */
export function watched(of: Hook, watching: Watching): Hook {
  const { name, priority, tool, when, timeoutMs, onFailure, stream, effect, mode, triggers } = of
  const { activity, isFromFile } = watching
  const recordedWhen = when && ((ctx: never): boolean => (when(ctx) ? (activity.whenHeld = true) : isFromFile))
  const make = { guard, transform: hook, observe }[mode] as unknown as MakeHook
  const handler = of.action === undefined ? watchedHandler(of, watching) : watchedAction(of.action, watching)
  return make(triggers, handler, {
    name,
    priority,
    ...defined({ tool, when: recordedWhen, timeoutMs, onFailure, stream }),
    ...(effect && { effect }),
  })
}

function watchedAction(made: Action, { activity, timeouts, ran = () => 0 }: Watching): Action {
  return action({
    ...made,
    async perform(ctx, how) {
      activity.note(ctx)
      if (timeouts.count >= TIMEOUT.times) {
        activity.isSlow = true
        return {}
      }
      const late = AbortSignal.timeout(TIMEOUT.ms)
      const before = ran()
      try {
        const outcome = await made.perform(ctx, { ...how, signal: AbortSignal.any([how.signal, late]) })
        checkedOutcome(outcomeJson(outcome, how.mode), ctx.trigger, how.mode)
      } catch (thrown) {
        if (how.signal.aborted) throw thrown
        const isOwnModel = messageOf(thrown).includes(NO_MODEL_CALLS) // its own agent calls another model
        if (!isOwnModel && !late.aborted) activity.failures.push(messageOf(thrown))
      } finally {
        if (activity.isCounted(ctx)) activity.ran += ran() - before
        if (late.aborted) {
          activity.isSlow = true
          timeouts.count++
        }
      }
      return {}
    },
  })
}

/** A function of an agent: its changes are applied, because other hooks of the agent may depend on them. */
function watchedHandler({ handle, mode, triggers }: Hook, { activity }: Watching): unknown {
  if (triggers.some((trigger) => trigger.startsWith('around'))) {
    return (ctx: BaseContext, next: unknown) => {
      activity.note(ctx)
      return handle(ctx as never, next as never)
    }
  }
  return async (ctx: BaseContext): Promise<unknown> => {
    activity.note(ctx)
    try {
      const returned = await handle(ctx as never, undefined as never)
      return mode === 'transform' ? returned : ctx
    } catch (thrown) {
      activity.failures.push(messageOf(thrown))
      return ctx
    }
  }
}
