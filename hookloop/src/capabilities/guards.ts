import type { Budget, Capability } from '../agent/capability.ts'
import type { StopReason } from '../state/continuation.ts'
import { isFinishReason, type FinishReason, type LanguageModel } from '../state/inference.ts'
import { totalTokens } from '../state/usage.ts'
import { AgentError } from '../errors.ts'
import type { GuardContext } from '../hooks/context.ts'
import { BaseContext } from '../hooks/base-context.ts'
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

type Limited = 'beforeStep' | 'beforeInference' | 'beforeToolUse'

/** How one number is limited: where it is looked at, what it is, and what is said when it is too high. */
type Limit = {
  readonly on: readonly Limited[]
  readonly reason: StopReason
  readonly value: (ctx: GuardContext<Limited>) => number
  readonly words: (value: number, max: number) => string
  /** Says why the value cannot be known, if it cannot: a limit that never applies is worse than none. */
  readonly blind?: (ctx: GuardContext<Limited>) => string | undefined
  /** Whether the value counts what is about to happen, and so may be as high as the limit. */
  readonly inclusive?: true
}

const limits = {
  maxSteps: {
    on: ['beforeStep'],
    reason: 'stepsLimit',
    value: (ctx) => ctx.state.stepCount,
    words: (value, max) => `Step limit reached: ${value}/${max}.`,
  },
  maxTokens: {
    on: ['beforeStep', 'beforeInference'],
    reason: 'tokenLimit',
    value: (ctx) => totalTokens(ctx.spent),
    words: (value, max) => `Token limit reached: ${value}/${max}.`,
  },
  maxTimeMs: {
    on: ['beforeStep', 'beforeInference', 'beforeToolUse'],
    reason: 'timeLimit',
    value: (ctx) => BaseContext.workedMs(ctx as unknown as BaseContext),
    words: (value, max) => `Time limit reached: ${value}/${max} ms.`,
  },
  maxCost: {
    on: ['beforeStep', 'beforeInference'],
    reason: 'costLimit',
    value: (ctx) => ctx.spent.costUsd,
    words: (value, max) => `Cost limit reached: ${value}/${max} USD.`,
    blind: (ctx) => ('request' in ctx && !isPriced(ctx.request.model) ? unpriced(ctx.request.model) : undefined),
  },
  maxToolCalls: {
    on: ['beforeToolUse'],
    reason: 'toolCallLimit',
    value: (ctx) => ctx.spent.toolCalls,
    words: (value, max) => `Tool call limit reached: call ${value} of at most ${max}.`,
    inclusive: true,
  },
} as const satisfies { readonly [name: string]: Limit }

const PRIORITY = 200

/**
 * Limits as guards, each checked before the call that would break it. In every agent with these defaults; an agent that
 * brings its own `guards` has those instead.
 */
export function guards(options: Limits = {}): Capability {
  const chosen = withDefaults(options)
  const hooks: Hook[] = []
  for (const name of Object.keys(limits) as (keyof typeof limits)[]) {
    const max = chosen[name]
    if (isSet(name, max)) hooks.push(limitGuard(name, max))
  }
  if (isReasons(chosen.finishReasons)) hooks.push(finishReasonGuard(chosen.finishReasons))
  return { name: 'guards', hooks, budget: budgetOf(chosen), notes: [describe(options)] }
}

/** What subagents that work at the same time have to share. */
function budgetOf({ maxTokens, maxCost, maxToolCalls }: Limits): Budget {
  return {
    ...(isSet('maxTokens', maxTokens) && { tokens: maxTokens }),
    ...(isSet('maxCost', maxCost) && { costUsd: maxCost }),
    ...(isSet('maxToolCalls', maxToolCalls) && { toolCalls: maxToolCalls }),
  }
}

function limitGuard(name: keyof typeof limits, max: number): Hook {
  const { on, reason, value, words, blind, inclusive }: Limit = limits[name]
  return guard(
    on,
    (ctx) => {
      const unknown = blind?.(ctx)
      if (unknown !== undefined) return ctx.stop(unknown, { reason })
      const now = value(ctx)
      if (now < max && name === 'maxTimeMs' && 'within' in ctx) return ctx.within(max - now)
      if (inclusive === true ? now <= max : now < max) return ctx
      return ctx.stop(words(now, max), { reason, value: { value: now, limit: max } })
    },
    { name: `guards.${name}`, priority: PRIORITY },
  )
}

function isPriced({ cost = 'unknown' }: LanguageModel): boolean {
  return cost !== 'unknown'
}

function unpriced({ provider, modelId }: LanguageModel): string {
  const price = `prices: { '${provider}/${modelId}': { input, output } }`
  return `"maxCost" cannot be kept: no price is known for ${provider}/${modelId}. Give createAgent({ ${price} }), or take the limit away.`
}

function finishReasonGuard(reasons: readonly FinishReason[]): Hook {
  return guard(
    'afterInference',
    (ctx) => {
      const { finishReason } = ctx.response
      if (!reasons.includes(finishReason)) return ctx
      return ctx.stop(`The model ended with "${finishReason}".`, { reason: 'finishReason', value: finishReason })
    },
    { name: 'guards.finishReasons', priority: -PRIORITY, stream: 'after' },
  )
}

const names: readonly string[] = [...Object.keys(limits), 'finishReasons']

/** `undefined` is not `null`: an option that got lost on its way must not take a limit away. */
function withDefaults(options: Limits): Limits {
  const unknown = Object.keys(options).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `guards: there is no limit "${unknown}". Known: ${names.join(', ')}.`,
      {
        value: unknown,
      },
    )
  }
  const given = Object.entries(options).filter(([, limit]) => limit !== undefined)
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

function describe(options: Limits): string {
  const words = Object.entries(withDefaults(options)).map(([name, limit]) => {
    const isDefault = options[name as keyof Limits] === undefined
    const text = Array.isArray(limit) ? limit.join(' ') || 'none' : String(limit ?? 'none')
    return `${name}: ${text}${isDefault ? ' (default)' : ''}`
  })
  return `Limits: ${words.join(', ')}.`
}
