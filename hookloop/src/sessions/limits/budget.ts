import type { Capability } from '../../agent/capability.ts'
import { isBilled } from '../../agent/model/send-request.ts'
import { estimateStarted, estimateUsage } from '../../agent/model/estimate-usage.ts'
import type { AgentState } from '../../state/agent-state.ts'
import { invalidOption } from '../../state/check-options.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { totalTokens, type TokenUsage } from '../../state/usage.ts'
import { guard, hook, inherited } from '../../hooks/hook.ts'
import type { SessionStore } from '../stores/store.ts'
import { checkLimit, hostOf, keyFor } from './limit-waits.ts'

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
  /** The name in the ledger and in the store. Two budgets in one agent need different names. Default `budget`. */
  readonly name?: string
}

type Amounts = { readonly costUsd: number; readonly tokens: number }
type Reserved = Amounts & { readonly until: number }
type Account = Amounts & { readonly period: number; readonly reserved: { readonly [id: string]: Reserved } }

/** The reservation of a process that died ends after this time. A model call takes at most as long by default. */
const RESERVED_MS = 900_000
/** After this time it is forgotten that a call was not settled: a run that is resumed later does not count that call. */
const REMEMBERED_MS = 7 * 86_400_000
const nothing: Amounts = { costUsd: 0, tokens: 0 }

/**
 * A budget that several runs share, in one or more processes: of a conversation, a user, a tenant. A model call, also of a
 * subagent or a hook, starts only if what was spent, what other calls have reserved, and an estimate of this call are within the
 * limits. The run stops otherwise.
 *
 * @example
 * const perUser = budget({ store, key: (state) => `user ${state.metadata.user}`, maxCost: 5, perMs: 86_400_000 })
 * createAgent({ model, store, use: [perUser] })
 */
export function budget(options: BudgetOptions): Capability {
  const { store, key, maxCost, maxTokens, perMs, name = 'budget' } = options ?? {}
  checkLimit('budget', options, { maxCost: 0, maxTokens: 0, perMs: 0 })
  for (const [option, value] of Object.entries({ maxCost, maxTokens, perMs }))
    if (value !== undefined && !(Number.isFinite(value) && value > 0))
      throw invalidOption('budget', `"${option}" must be a number above 0`, value)
  if (maxCost === undefined && maxTokens === undefined)
    throw invalidOption('budget', 'it needs "maxCost" or "maxTokens"', options)
  const max = { costUsd: maxCost ?? Infinity, tokens: maxTokens ?? Infinity }
  const nameOf = (ctx: Called): string => {
    const conversation = hostOf(ctx).conversation ?? ctx.state.agentId // a subagent has a conversation of its own
    const of = keyFor('budget', key ?? `conversation ${conversation}`, ctx.state)
    return `${name} ${of}`
  }
  const change = (ctx: Called, work: (account: Account, now: number) => Account): Promise<Json> =>
    store.update(nameOf(ctx), (value, now = Date.now()) => work(currentAccount(value, now, perMs), now))

  const reserve = guard(
    'beforeInference',
    async (ctx) => {
      const { model } = ctx.request
      if (maxCost !== undefined && (model.cost ?? 'unknown') === 'unknown')
        return ctx.stop(`The budget cannot be checked: the price of ${model.provider}/${model.modelId} is unknown.`, {
          reason: 'costLimit',
        })
      const wanted = amountsOf(estimateUsage(ctx.request))
      const id = callId(ctx)
      let problem: string | undefined
      await change(ctx, (account, now) => {
        const { [id]: _own, ...others } = account.reserved
        const active = Object.values(others).filter(({ until }) => until > now)
        problem = exceeded(sumOf([account, ...active]), wanted, max)
        if (problem !== undefined) return account
        return { ...account, reserved: { ...others, [id]: { ...wanted, until: now + RESERVED_MS } } }
      })
      if (problem === undefined) return ctx
      const why = `The ${nameOf(ctx)} is used up: ${problem}.`
      return ctx.stop(why, { reason: problem.includes('USD') ? 'costLimit' : 'tokenLimit', value: { ...wanted } })
    },
    { name: `${name}.reserve`, priority: 190, effect: true, timeoutMs: 30_000 },
  )
  const settled = new Set<string>()
  /**
   * Replaces the reservation by what was spent. Without a reservation, the call is counted already: by a process that died
   * before it had stored the answer.
   */
  const settle = async (ctx: Called, spent: Amounts): Promise<void> => {
    const id = callId(ctx)
    settled.add(id)
    await change(ctx, (account) => {
      const { [id]: own, ...reserved } = account.reserved
      return own === undefined ? account : { ...account, ...sumOf([account, spent]), reserved }
    })
  }
  const count = hook(
    'aroundInference',
    async (ctx, next) => {
      let spent = nothing
      try {
        const response = await next()
        spent = amountsOf(response.usage)
        return response
      } catch (thrown) {
        if (ctx.signal.aborted || isBilled(thrown)) spent = amountsOf(estimateStarted(ctx.request, 0))
        throw thrown
      } finally {
        await settle(ctx, spent)
      }
    },
    { name: `${name}.count`, priority: -900 }, // each attempt of `retry` and `fallback`
  )
  const release = hook(
    'aroundInference',
    async (ctx, next) => {
      try {
        return await next()
      } finally {
        if (!settled.delete(callId(ctx))) await settle(ctx, nothing).then(() => settled.delete(callId(ctx)))
      }
    },
    { name: `${name}.release`, priority: 200 }, // around `cacheResponses`: an answer may need no call
  )
  return { name, hooks: [reserve, inherited(count), inherited(release)], notes: [describe(options)] }
}

type Called = { readonly state: AgentState }

/** The same for all hooks of a model call, and for the process that resumes the run. */
function callId(ctx: Called): string {
  const { effects, step } = hostOf(ctx)
  return `${effects.run}/${step}`
}

/** The account in the current period. Reservations that have expired no longer count, but say that a call is not settled. */
function currentAccount(value: Json | undefined, now: number, perMs: number | undefined): Account {
  const period = perMs === undefined ? 0 : Math.floor(now / perMs)
  const stored = isJsonObject(value) ? (value as JsonObject & Account) : undefined
  const spent = stored?.period === period ? stored : nothing
  const reserved = Object.entries(stored?.reserved ?? {}).filter(([, { until }]) => until + REMEMBERED_MS > now)
  return { period, costUsd: spent.costUsd, tokens: spent.tokens, reserved: Object.fromEntries(reserved) }
}

function amountsOf(usage: TokenUsage): Amounts {
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
