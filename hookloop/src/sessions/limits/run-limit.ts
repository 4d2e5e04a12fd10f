import type { Capability } from '../../core/agent/capability.ts'
import type { AgentState } from '../../core/state/agent-state.ts'
import { guard } from '../../core/hooks/hook.ts'
import { onLeave, type Effects } from '../../core/effects/effects.ts'
import { AgentError } from '../../errors.ts'
import { checkLimit, hostOf, keyFor, withWait, type LimitOptions } from './limit-waits.ts'
import { Slots, type Taken } from './slots.ts'

/**
 * Options of `runLimit`.
 *
 * @interface
 */
export type RunLimitOptions = LimitOptions<AgentState> & {
  /** How many runs with the same key may run at once. */
  readonly maxRuns: number
  /** After this time, a run whose process died no longer counts. Default 30,000. */
  readonly leaseMs?: number
}

/**
 * Limits how many runs run at once, over all processes that share a store: per user, per tenant, or in total. A run that finds
 * no place waits, and stops if it finds none in time. A suspended run does not count; a resumed one counts once.
 *
 * @example
 * const perUser = runLimit({ store, key: (state) => `user ${state.metadata.user}`, maxRuns: 3 })
 * createAgent({ model, store, use: [perUser] })
 */
export function runLimit(options: RunLimitOptions): Capability {
  const { store, maxRuns, key = 'all', maxWaitMs = 60_000, leaseMs = 30_000, name = 'runLimit' } = options
  checkLimit('runLimit', options, ['maxRuns', 'leaseMs'])
  const slots = new Slots({ store, max: maxRuns, leaseMs })
  const nameOf = (state: AgentState): string => `${name} ${keyFor('runLimit', key, state)}`
  /** The slot of a run has its id, so a process that resumes it takes over the same one. */
  const take = async (state: AgentState, { run: id, signal }: Effects): Promise<Taken> =>
    slots.take(nameOf(state), { id, maxWaitMs, signal })
  const full = (state: AgentState, used: number): string =>
    `The limit "${nameOf(state)}" is reached: ${used} of at most ${maxRuns} runs`

  const admit = guard(
    'beforeExecution',
    async (ctx) => {
      const { effects } = hostOf(ctx)
      const taken = await take(ctx.state, effects)
      if ('used' in taken) {
        const value = { value: taken.used, limit: maxRuns }
        return ctx.stop(`${full(ctx.state, taken.used)}. None ended within ${maxWaitMs} ms.`, { value })
      }
      onLeave(effects, taken.release)
      return withWait(ctx, taken.waitedMs, full(ctx.state, maxRuns))
    },
    {
      name,
      effect: true, // a replay does not wait
      timeoutMs: maxWaitMs + 60_000,
      when: (ctx) => hostOf(ctx).ancestors === undefined, // a subagent is part of its run
    },
  )
  return {
    name,
    hooks: [admit],
    async beforeResume(state, effects) {
      const taken = await take(state, effects)
      if ('release' in taken) return onLeave(effects, taken.release)
      const message = `${full(state, taken.used)}. The run was not changed. Resume it later.`
      throw new AgentError('SESSION_BUSY', message, { value: nameOf(state) })
    },
    notes: [`At most ${maxRuns} runs at once with the same key, in all processes.`],
  }
}
