import {
  guard,
  isFinishReason,
  totalTokens,
  type Budget,
  type Capability,
  type FinishReason,
  type GuardContext,
  type Hook,
  type LanguageModel,
  type StopReason,
} from '../plugin.ts'
import { checkOptions, definedOptions, invalidOption } from '../values/check-options.ts'

/** Options of `guards`: limits of one execution. An omitted limit has its default; `null` turns it off. */
export type Limits = {
  /** Steps. Default 50. */
  readonly maxSteps?: number | null
  /** Input and output tokens of all model calls; each call counts its whole prompt. Default 2,000,000. */
  readonly maxTokens?: number | null
  /** Run time in milliseconds, without the time spent waiting for approval. Default 1,800,000. */
  readonly maxTimeMs?: number | null
  /** Cost in US dollars. Default: no limit. */
  readonly maxCost?: number | null
  /** Tool calls of the model, including blocked ones. Default: no limit. */
  readonly maxToolCalls?: number | null
  /** Stops the run if the model ends with one of these finish reasons. Default none. */
  readonly finishReasons?: readonly FinishReason[] | null
}

/**
 * A coding session of 30 steps, whose prompt grows from 8,000 to 66,000 tokens, needs 1.1 million tokens and about ten
 * minutes. The defaults let it finish, and end a run that does not come to an end by itself.
 */
const defaultLimits = { maxSteps: 50, maxTokens: 2_000_000, maxTimeMs: 1_800_000 } as const

type Limited = 'beforeStep' | 'beforeInference' | 'beforeToolUse'

/** One limit: where it is checked, what is measured, and the message when it is exceeded. */
type Limit = {
  readonly on: readonly Limited[]
  readonly reason: StopReason
  readonly value: (ctx: GuardContext<Limited>) => number
  readonly message: (value: number, max: number) => string
  /** Why the value is unknown, if it is: the run stops, because a limit that never applies is worse than none. */
  readonly unknown?: (ctx: GuardContext<Limited>) => string | undefined
  /** Whether the value includes what is about to happen, and so may equal the limit. */
  readonly inclusive?: true
}

const limits = {
  maxSteps: {
    on: ['beforeStep'],
    reason: 'stepsLimit',
    value: (ctx) => ctx.state.stepCount,
    message: (value, max) => `Step limit reached: ${value}/${max}.`,
  },
  maxTokens: {
    on: ['beforeStep', 'beforeInference', 'beforeToolUse'],
    reason: 'tokenLimit',
    value: (ctx) => totalTokens(ctx.spent),
    message: (value, max) => `Token limit reached: ${value}/${max}.`,
  },
  maxTimeMs: {
    on: ['beforeStep', 'beforeInference', 'beforeToolUse'],
    reason: 'timeLimit',
    value: (ctx) => ctx.workedMs,
    message: (value, max) => `Time limit reached: ${value}/${max} ms.`,
  },
  maxCost: {
    on: ['beforeStep', 'beforeInference', 'beforeToolUse'],
    reason: 'costLimit',
    value: (ctx) => ctx.spent.costUsd,
    message: (value, max) => `Cost limit reached: ${value}/${max} USD.`,
    unknown: (ctx) => ('request' in ctx && !isPriced(ctx.request.model) ? unpriced(ctx.request.model) : undefined),
  },
  maxToolCalls: {
    on: ['beforeToolUse'],
    reason: 'toolCallLimit',
    value: (ctx) => ctx.spent.toolCalls,
    message: (value, max) => `Tool call limit reached: call ${value} of at most ${max}.`,
    inclusive: true,
  },
} as const satisfies { readonly [name: string]: Limit }

const PRIORITY = 200

/**
 * Limits of a run, each checked before the call that would exceed it. Every agent has them with their defaults; an agent
 * that uses `guards` has only the ones it sets, and the defaults for the others.
 *
 * @example
 * createAgent({ model, use: [guards({ maxSteps: 50, maxCost: 0.5, maxTokens: null })] })
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

/** The limits as data: sessions store them, and concurrent subagents share what is left. */
function budgetOf({ maxSteps, maxTokens, maxCost, maxToolCalls, maxTimeMs }: Limits): Budget {
  return {
    ...(isSet('maxSteps', maxSteps) && { steps: maxSteps }),
    ...(isSet('maxTokens', maxTokens) && { tokens: maxTokens }),
    ...(isSet('maxCost', maxCost) && { costUsd: maxCost }),
    ...(isSet('maxToolCalls', maxToolCalls) && { toolCalls: maxToolCalls }),
    ...(isSet('maxTimeMs', maxTimeMs) && { time: { ms: maxTimeMs, by: 'guards.maxTimeMs' } }),
  }
}

function limitGuard(name: keyof typeof limits, max: number): Hook {
  const { on, reason, value, message, unknown, inclusive }: Limit = limits[name]
  return guard(
    on,
    (ctx) => {
      const why = unknown?.(ctx)
      if (why !== undefined) return ctx.stop(why, { reason })
      const now = value(ctx)
      if (inclusive === true ? now <= max : now < max) return ctx
      return ctx.stop(message(now, max), { reason, value: { value: now, limit: max } })
    },
    { name: `guards.${name}`, priority: PRIORITY },
  )
}

function isPriced({ cost = 'unknown' }: LanguageModel): boolean {
  return cost !== 'unknown'
}

function unpriced({ provider, modelId }: LanguageModel): string {
  const price = `prices: { '${provider}/${modelId}': { input, output } }`
  return `"maxCost" cannot be checked: the price of ${provider}/${modelId} is unknown. Set createAgent({ ${price} }), or remove the limit.`
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

/** An undefined limit has its default; only `null` turns it off. */
function withDefaults(options: Limits): Limits {
  const names = [...Object.keys(limits), 'finishReasons']
  checkOptions('guards', options, names)
  return { ...defaultLimits, ...definedOptions(options) }
}

function isSet(name: keyof Limits, limit: number | null | undefined): limit is number {
  if (limit === null || limit === undefined || limit === Infinity) return false
  if (typeof limit === 'number' && limit >= 0) return true
  throw invalidOption('guards', `"${name}" must be a number, 0 or more, or null for no limit`, limit)
}

function isReasons(reasons: Limits['finishReasons']): reasons is readonly FinishReason[] {
  if (reasons === null || reasons === undefined) return false
  if (Array.isArray(reasons) && reasons.every(isFinishReason)) return reasons.length > 0
  throw invalidOption('guards', '"finishReasons" must be a list of finish reasons, or null', reasons)
}

function describe(options: Limits): string {
  const words = Object.entries(withDefaults(options)).map(([name, limit]) => {
    const isDefault = options[name as keyof Limits] === undefined
    const text = Array.isArray(limit) ? limit.join(' ') || 'none' : String(limit ?? 'none')
    return `${name}: ${text}${isDefault ? ' (default)' : ''}`
  })
  return `Limits: ${words.join(', ')}.`
}
