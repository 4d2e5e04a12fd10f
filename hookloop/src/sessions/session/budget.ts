import type { Capability } from '../../agent/capability.ts'
import { estimateUsage } from '../../agent/model/estimate-usage.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { checkOptions, invalidOption } from '../../state/check-options.ts'
import type { InferenceRequest } from '../../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { totalTokens } from '../../state/usage.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { checkStore, type SessionStore } from '../stores/store.ts'

/** Options of `budget`. At least one limit is required. */
export type BudgetOptions = {
  /** Where the budget is counted, for all processes that use the store. */
  readonly store: SessionStore
  /** What has the budget: a text, such as the name of a tenant, or a function of the state. Default: the conversation. */
  readonly key?: string | ((state: AgentState) => string)
  /** Cost in US dollars. */
  readonly maxCost?: number
  /** Input and output tokens. */
  readonly maxTokens?: number
  /** The budget is renewed in each period of so many milliseconds since 1970. Default: never. */
  readonly perMs?: number
}

type Amounts = { readonly costUsd: number; readonly tokens: number }
type Reserved = Amounts & { readonly until: number }
type Account = Amounts & { readonly period: number; readonly reserved: { readonly [id: string]: Reserved } }

/** The reservation of a process that died ends after this time. A model call takes at most as long by default. */
const RESERVED_MS = 900_000
const nothing: Amounts = { costUsd: 0, tokens: 0 }

/**
 * A budget that several runs share, in one or more processes: of a conversation, a user, a tenant. A model call starts only if
 * what was spent, what other calls have reserved, and an estimate of this call are within the limits. The run stops otherwise.
 *
 * @example
 * const perUser = budget({ store, key: (state) => `user ${state.metadata.user}`, maxCost: 5, perMs: 86_400_000 })
 * createAgent({ model, store, use: [perUser] })
 */
export function budget(options: BudgetOptions): Capability {
  checkOptions('budget', options, ['store', 'key', 'maxCost', 'maxTokens', 'perMs'])
  const { store, key = (state: AgentState) => `conversation ${state.agentId}`, maxCost, maxTokens, perMs } = options
  checkStore('budget', store)
  for (const [name, value] of Object.entries({ maxCost, maxTokens, perMs }))
    if (value !== undefined && !(Number.isFinite(value) && value > 0))
      throw invalidOption('budget', `"${name}" must be a number above 0`, value)
  if (maxCost === undefined && maxTokens === undefined)
    throw invalidOption('budget', 'it needs "maxCost" or "maxTokens"', options)
  const max = { costUsd: maxCost ?? Infinity, tokens: maxTokens ?? Infinity }
  const nameOf = (state: AgentState): string => `budget ${typeof key === 'string' ? key : key(state)}`
  const change = (state: AgentState, now: number, work: (account: Account) => Account): Promise<Json> =>
    store.update(nameOf(state), (value) => work(currentAccount(value, now, perMs)))

  const reserve = guard(
    'beforeInference',
    async (ctx) => {
      const { model } = ctx.request
      if (maxCost !== undefined && (model.cost ?? 'unknown') === 'unknown')
        return ctx.stop(`The budget cannot be checked: the price of ${model.provider}/${model.modelId} is unknown.`, {
          reason: 'costLimit',
        })
      const wanted = estimated(ctx.request)
      const id = reservationId(ctx.state)
      let problem: string | undefined
      const now = Date.now()
      await change(ctx.state, now, (account) => {
        const { [id]: _own, ...others } = account.reserved
        problem = exceeded(sumOf([account, ...Object.values(others)]), wanted, max)
        if (problem !== undefined) return account
        return { ...account, reserved: { ...others, [id]: { ...wanted, until: now + RESERVED_MS } } }
      })
      if (problem === undefined) return ctx
      const why = `The ${nameOf(ctx.state)} is used up: ${problem}.`
      return ctx.stop(why, { reason: problem.includes('USD') ? 'costLimit' : 'tokenLimit' })
    },
    { name: 'budget.reserve', priority: 190, effect: true, timeoutMs: 30_000 },
  )
  const settle = hook(
    'aroundInference',
    async (ctx, next) => {
      let spent = nothing
      try {
        const response = await next()
        spent = { costUsd: response.usage.costUsd, tokens: totalTokens(response.usage) }
        return response
      } finally {
        const id = reservationId(ctx.state)
        await change(ctx.state, Date.now(), ({ reserved: { [id]: _own, ...reserved }, ...account }) => ({
          ...account,
          ...sumOf([account, spent]),
          reserved,
        }))
      }
    },
    { name: 'budget.settle', priority: 200 }, // around retries and fallbacks
  )
  return { name: 'budget', hooks: [reserve, settle], notes: [describe(options)] }
}

function reservationId({ execution, stepCount }: AgentState): string {
  return `${execution?.id ?? ''}/${stepCount}`
}

/** The account in the current period, without the reservations of processes that died. */
function currentAccount(value: Json | undefined, now: number, perMs: number | undefined): Account {
  const period = perMs === undefined ? 0 : Math.floor(now / perMs)
  const stored = isJsonObject(value) ? (value as JsonObject & Account) : undefined
  const spent = stored?.period === period ? stored : nothing
  const reserved = Object.entries(stored?.reserved ?? {}).filter(([, { until }]) => until > now)
  return { period, costUsd: spent.costUsd, tokens: spent.tokens, reserved: Object.fromEntries(reserved) }
}

function estimated(request: InferenceRequest): Amounts {
  const usage = estimateUsage(request)
  return { costUsd: usage.costUsd, tokens: totalTokens(usage) }
}

function sumOf(all: readonly Amounts[]): Amounts {
  return all.reduce((sum, each) => ({ costUsd: sum.costUsd + each.costUsd, tokens: sum.tokens + each.tokens }), nothing)
}

function exceeded(used: Amounts, wanted: Amounts, max: Amounts): string | undefined {
  if (used.costUsd + wanted.costUsd > max.costUsd)
    return `${used.costUsd} of ${max.costUsd} USD are spent or reserved, and the call may cost ${wanted.costUsd}`
  if (used.tokens + wanted.tokens > max.tokens)
    return `${used.tokens} of ${max.tokens} tokens are spent or reserved, and the call may need ${wanted.tokens}`
  return undefined
}

function describe({ maxCost, maxTokens, perMs }: BudgetOptions): string {
  const limits = [
    maxCost === undefined ? [] : `${maxCost} USD`,
    maxTokens === undefined ? [] : `${maxTokens} tokens`,
  ].flat()
  return `Budget: at most ${limits.join(' and ')}${perMs === undefined ? '' : ` per ${perMs} ms`}, shared by all runs with the same key.`
}
