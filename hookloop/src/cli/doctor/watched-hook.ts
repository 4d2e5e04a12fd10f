import { SUBAGENT_KEY } from '../../agent/subagents/child-run.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import { messageOf } from '../../errors.ts'
import { action, checkedOutcome, type Action } from '../../hooks/action.ts'
import { BaseContext } from '../../hooks/base-context.ts'
import { guard, hook, observe, type Hook } from '../../hooks/hook.ts'

/** How long a hook may take with a canary, and how often it may take longer before it is not run any more. */
export const PATIENCE = { ms: 10_000, times: 2 }

/** What whoever asks another model than a canary is told. */
export const NOT_ASKED = 'No model is asked while canaries fly.'

/** What is seen of one hook while canaries fly. */
export class Sightings {
  readonly #insideOnly: boolean
  /** How often it fired, by trigger. */
  readonly fired = new Map<string, number>()
  /** The calls it was asked about before they were made. */
  readonly judged = new Set<string>()
  readonly failures: string[] = []
  /** Whether its `when` held for any of them. */
  whenHeld = false
  /** How often what it stands for has run. */
  ran = 0
  /** It was not waited for to the end. */
  isSlow = false

  /** `insideOnly`: what an agent sees that works for another, and how it ends. */
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

  /** How often it fired at some triggers. */
  at(triggers: readonly string[]): number {
    return triggers.reduce((sum, trigger) => sum + (this.fired.get(trigger) ?? 0), 0)
  }
}

/** Ids are told apart within one conversation only. */
function callOf(ctx: BaseContext): string {
  const { id } = BaseContext.draftOf(ctx).facts['toolCall'] as ToolCall
  return `${ctx.state.agentId} ${id}`
}

/** Whom a hook has kept waiting, over all flights. */
export type Waiting = { late: number }

type Watching = {
  readonly seen: Sightings
  readonly waiting: Waiting
  /** Whether it comes from a file: then `when` is noted and not heeded, because a canary has none of what it may ask for. */
  readonly isOfFile: boolean
  /** How often what it stands for has run so far. */
  readonly ran?: (() => number) | undefined
}

type Loose = (on: readonly string[], handler: unknown, options: object) => Hook

/**
 * The same hook, really run, with somebody who watches. What a guard or a hook of a file decides is dropped, so that every
 * event it is for comes by; and so is its failure, which is noted.
 */
export function watched(of: Hook, watching: Watching): Hook {
  const { name, priority, tool, when, timeoutMs, onFailure, stream, effect, mode, triggers } = of
  const { seen, isOfFile } = watching
  const noting = when && ((ctx: never): boolean => (when(ctx) ? (seen.whenHeld = true) : isOfFile))
  const make = { guard, transform: hook, observe }[mode] as unknown as Loose
  const handler = of.action === undefined ? watchedHandler(of, watching) : watchedAction(of.action, watching)
  return make(triggers, handler, {
    name,
    priority,
    ...(tool !== undefined && { tool }),
    ...(noting !== undefined && { when: noting }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(onFailure !== undefined && { onFailure }),
    ...(stream !== undefined && { stream }),
    ...(effect && { effect }),
  })
}

function watchedAction(made: Action, { seen, waiting, ran = () => 0 }: Watching): Action {
  return action({
    ...made,
    async perform(ctx, how) {
      seen.note(ctx)
      if (waiting.late >= PATIENCE.times) {
        seen.isSlow = true
        return {}
      }
      const late = AbortSignal.timeout(PATIENCE.ms)
      const before = ran()
      try {
        const outcome = await made.perform(ctx, { ...how, signal: AbortSignal.any([how.signal, late]) })
        checkedOutcome(outcome, ctx.trigger, how.mode)
      } catch (thrown) {
        if (how.signal.aborted) throw thrown
        const isOfOwnModel = messageOf(thrown).includes(NOT_ASKED) // an agent of its own, that asks nobody here
        if (!isOfOwnModel && !late.aborted) seen.failures.push(messageOf(thrown))
      } finally {
        if (seen.isCounted(ctx)) seen.ran += ran() - before
        if (late.aborted) {
          seen.isSlow = true
          waiting.late++
        }
      }
      return {}
    },
  })
}

/** A function of an agent: what it changes stays, because others of its kind may build on that. */
function watchedHandler({ handle, mode, triggers }: Hook, { seen }: Watching): unknown {
  if (triggers.some((trigger) => trigger.startsWith('around'))) {
    return (ctx: BaseContext, next: unknown) => {
      seen.note(ctx)
      return handle(ctx as never, next as never)
    }
  }
  return async (ctx: BaseContext): Promise<unknown> => {
    seen.note(ctx)
    try {
      const returned = await handle(ctx as never, undefined as never)
      return mode === 'transform' ? returned : ctx
    } catch (thrown) {
      seen.failures.push(messageOf(thrown))
      return ctx
    }
  }
}
