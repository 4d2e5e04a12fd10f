import type { Capability } from '../agent/capability.ts'
import type { StopReason } from '../data/continuation.ts'
import { workedMs } from '../data/execution.ts'
import { isFinishReason, type FinishReason } from '../data/inference.ts'
import { totalTokens } from '../data/usage.ts'
import { AgentError } from '../errors.ts'
import { guard, type Hook } from '../hooks/hook.ts'

/** Limits on a run. Leave one out for its default, set it to `null` to have none. */
export type Limits = {
  /** Steps per execution. Default 20. */
  readonly maxSteps?: number | null
  /** Tokens in and out, over all model calls of the execution. Default 32,768. */
  readonly maxTokens?: number | null
  /** Milliseconds at work; waiting for a person does not count. Default 300,000. */
  readonly maxTimeMs?: number | null
  /** US dollars. No default. */
  readonly maxCost?: number | null
  /** Tool calls asked for, blocked ones included. No default. */
  readonly maxToolCalls?: number | null
  /** Ends the run when the model gives one of these finish reasons, whatever else it asks for. */
  readonly finishReasons?: readonly FinishReason[] | null
}

export const defaultLimits = { maxSteps: 20, maxTokens: 32_768, maxTimeMs: 300_000 } as const

const PRIORITY = 200
const names: readonly string[] = ['maxSteps', 'maxTokens', 'maxTimeMs', 'maxCost', 'maxToolCalls', 'finishReasons']

/**
 * Limits as guards, each checked before the call that would break it. In every agent with these defaults; an agent that
 * brings its own `guards` has those instead.
 */
export function guards(limits: Limits = {}): Capability {
  const { maxSteps, maxTokens, maxTimeMs, maxCost, maxToolCalls, finishReasons } = withDefaults(limits)
  const hooks: Hook[] = []
  if (isSet('maxSteps', maxSteps)) {
    hooks.push(
      guard(
        'beforeStep',
        (ctx) => {
          const steps = ctx.state.stepCount
          if (steps < maxSteps) return ctx
          return ctx.stop(`Step limit reached: ${steps}/${maxSteps}.`, over('stepsLimit', steps, maxSteps))
        },
        { name: 'guards.maxSteps', priority: PRIORITY },
      ),
    )
  }
  if (isSet('maxTokens', maxTokens)) {
    hooks.push(
      guard(
        ['beforeStep', 'beforeInference'],
        (ctx) => {
          const tokens = totalTokens(ctx.spent)
          if (tokens < maxTokens) return ctx
          return ctx.stop(`Token limit reached: ${tokens}/${maxTokens}.`, over('tokenLimit', tokens, maxTokens))
        },
        { name: 'guards.maxTokens', priority: PRIORITY },
      ),
    )
  }
  if (isSet('maxTimeMs', maxTimeMs)) {
    hooks.push(
      guard(
        ['beforeStep', 'beforeInference', 'beforeToolUse'],
        (ctx) => {
          const ms = ctx.state.execution === undefined ? 0 : workedMs(ctx.state.execution, ctx.now)
          if (ms < maxTimeMs) return ctx
          return ctx.stop(`Time limit reached: ${ms}/${maxTimeMs} ms.`, over('timeLimit', ms, maxTimeMs))
        },
        { name: 'guards.maxTimeMs', priority: PRIORITY },
      ),
    )
  }
  if (isSet('maxCost', maxCost)) {
    hooks.push(
      guard(
        ['beforeStep', 'beforeInference'],
        (ctx) => {
          const cost = ctx.spent.costUsd
          if (cost < maxCost) return ctx
          return ctx.stop(`Cost limit reached: ${cost}/${maxCost} USD.`, over('costLimit', cost, maxCost))
        },
        { name: 'guards.maxCost', priority: PRIORITY },
      ),
    )
  }
  if (isSet('maxToolCalls', maxToolCalls)) {
    hooks.push(
      guard(
        'beforeToolUse',
        (ctx) => {
          const calls = ctx.spent.toolCalls // this one included
          if (calls <= maxToolCalls) return ctx
          return ctx.stop(
            `Tool call limit reached: call ${calls} of at most ${maxToolCalls}.`,
            over('toolCallLimit', calls, maxToolCalls),
          )
        },
        { name: 'guards.maxToolCalls', priority: PRIORITY },
      ),
    )
  }
  if (isReasons(finishReasons)) {
    hooks.push(
      guard(
        'afterInference',
        (ctx) => {
          const { finishReason } = ctx.response
          if (!finishReasons.includes(finishReason)) return ctx
          return ctx.stop(`The model ended with "${finishReason}".`, { reason: 'finishReason', value: finishReason })
        },
        { name: 'guards.finishReasons', priority: -PRIORITY, stream: 'after' },
      ),
    )
  }
  return { name: 'guards', hooks, notes: [describe(limits)] }
}

/** `undefined` is not `null`: an option that got lost on its way must not take a limit away. */
function withDefaults(limits: Limits): Limits {
  const unknown = Object.keys(limits).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `guards: there is no limit "${unknown}". Known: ${names.join(', ')}.`,
      {
        value: unknown,
      },
    )
  }
  const given = Object.entries(limits).filter(([, limit]) => limit !== undefined)
  return { ...defaultLimits, ...(Object.fromEntries(given) as Limits) }
}

function isSet(name: keyof Limits, limit: number | null | undefined): limit is number {
  if (limit === null || limit === undefined || limit === Infinity) return false
  if (typeof limit === 'number' && limit >= 0) return true
  throw new AgentError('AGENT_INVALID_OPTION', `guards: "${name}" must be a number from 0 up, or null for no limit.`, {
    value: limit,
  })
}

function isReasons(reasons: Limits['finishReasons']): reasons is readonly FinishReason[] {
  if (reasons === null || reasons === undefined) return false
  if (Array.isArray(reasons) && reasons.every(isFinishReason)) return reasons.length > 0
  throw new AgentError('AGENT_INVALID_OPTION', 'guards: "finishReasons" must be a list of finish reasons, or null.', {
    value: reasons,
  })
}

function over(
  reason: StopReason,
  value: number,
  limit: number,
): { reason: StopReason; value: { value: number; limit: number } } {
  return { reason, value: { value, limit } }
}

function describe(limits: Limits): string {
  const words = Object.entries(withDefaults(limits)).map(([name, limit]) => {
    const isDefault = limits[name as keyof Limits] === undefined
    const text = Array.isArray(limit) ? limit.join(' ') || 'none' : String(limit ?? 'none')
    return `${name}: ${text}${isDefault ? ' (default)' : ''}`
  })
  return `Limits: ${words.join(', ')}.`
}
