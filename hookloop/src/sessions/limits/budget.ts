import type { Capability } from '../../core/agent/capability.ts'
import { isBilled } from '../../core/model/send-request.ts'
import { estimateStarted, estimateUsage } from '../../core/model/estimate-usage.ts'
import type { InferenceRequest } from '../../core/state/inference.ts'
import type { AgentState } from '../../core/state/agent-state.ts'
import { invalidOption } from '../../values/check-options.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { totalTokens, type TokenUsage } from '../../core/state/usage.ts'
import { guard, hook, inherited } from '../../core/hooks/hook.ts'
import { checkLimit, hostOf, keyFor, withWait, type LimitOptions } from './limit-waits.ts'
import { SharedCounter, type Attempt } from './shared-counter.ts'

/**
 * Options of `budget`. At least one limit is required.
 *
 * @interface
 */
export type BudgetOptions = LimitOptions<AgentState> & {
  /** Cost in US dollars. Default: no limit. */
  readonly maxCost?: number
  /** Input and output tokens. Default: no limit. */
  readonly maxTokens?: number
  /** The budget is renewed in each period of so many milliseconds since 1970. Default: never. */
  readonly perMs?: number
}

type Amounts = { readonly costUsd: number; readonly tokens: number }
type Reserved = Amounts & { readonly until: number }
type Account = Amounts & {
  readonly period: number
  readonly reserved: { readonly [id: string]: Reserved }
  /** The tokens of the longest of the last answers. */
  readonly answer?: number
}
type Attempted = { readonly spent: Amounts; readonly answer: number | undefined }
type Used = { readonly amounts: Amounts; readonly wanted: Amounts; readonly max: Amounts }

/** The reservation of a process that died ends after this time. A model call takes at most as long by default. */
const RESERVED_MS = 900_000
/** After this time it is forgotten that a call was not settled: a run that is resumed later does not count that call. */
const REMEMBERED_MS = 7 * 86_400_000
/** A long answer is forgotten little by little. */
const FORGET = 0.95
const nothing: Amounts = { costUsd: 0, tokens: 0 }

/**
 * A budget that several runs share, in one or more processes: of a conversation, a user, a tenant. A model call, also of a
 * subagent or a hook, starts only if what was spent, what other calls have reserved, and an estimate of this call are within the
 * limits. It waits for what others have reserved. The run stops if what is left after all of them is too little.
 *
 * @example
 * const perUser = budget({ store, key: (state) => `user ${state.metadata.user}`, maxCost: 5, perMs: 86_400_000 })
 * createAgent({ model, store, use: [perUser] })
 */
export function budget(options: BudgetOptions): Capability {
  const { store, key, maxCost, maxTokens, perMs, maxWaitMs = 60_000, name = 'budget' } = options
  checkLimit('budget', options, ['maxCost', 'maxTokens', 'perMs'])
  if (maxCost === undefined && maxTokens === undefined)
    throw invalidOption('budget', 'it needs "maxCost" or "maxTokens"', options)
  const max = { costUsd: maxCost ?? Infinity, tokens: maxTokens ?? Infinity }
  const counter = new SharedCounter(store)
  const nameOf = (ctx: Called): string => {
    const conversation = hostOf(ctx).conversation ?? ctx.state.agentId // a subagent has a conversation of its own
    return `${name} ${keyFor('budget', key ?? `conversation ${conversation}`, ctx.state)}`
  }

  const reserve = guard(
    'beforeInference',
    async (ctx) => {
      const { model } = ctx.request
      if (maxCost !== undefined && (model.cost ?? 'unknown') === 'unknown')
        return ctx.stop(`The budget cannot be checked: the price of ${model.provider}/${model.modelId} is unknown.`, {
          reason: 'costLimit',
        })
      const id = callId(ctx)
      const { waitedMs, full } = await counter.take(
        nameOf(ctx),
        (value, now): Attempt<Used> => {
          const account = currentAccount(value, now, perMs)
          const wanted = estimateOf(ctx.request, account)
          const { [id]: _own, ...others } = account.reserved
          const active = Object.values(others).filter(({ until }) => until > now)
          const amounts = sumOf([account, ...active])
          if (exceeded({ amounts, wanted, max }) !== undefined)
            return {
              full: { amounts, wanted, max },
              isFinal: exceeded({ amounts: account, wanted, max }) !== undefined,
            }
          return { value: { ...account, reserved: { ...others, [id]: { ...wanted, until: now + RESERVED_MS } } } }
        },
        { maxWaitMs, signal: ctx.signal },
      )
      if (full === undefined) return withWait(ctx, waitedMs, `the ${nameOf(ctx)} was reserved by other calls`)
      const { unit, problem } = exceeded(full)!
      return ctx.stop(`The ${nameOf(ctx)} is used up: ${problem}.`, {
        reason: unit === 'USD' ? 'costLimit' : 'tokenLimit',
        value: { ...full.wanted },
      })
    },
    { name: `${name}.reserve`, priority: 190, effect: true, timeoutMs: maxWaitMs + 30_000 },
  )
  const attempts = new Map<string, Attempted>()
  const note = (ctx: Called, usage: TokenUsage, answer?: number): void => {
    const { spent = nothing, answer: before } = attempts.get(callId(ctx)) ?? {}
    attempts.set(callId(ctx), { spent: sumOf([spent, amountsOf(usage)]), answer: answer ?? before })
  }
  const count = hook(
    'aroundInference',
    async (ctx, next) => {
      try {
        const response = await next()
        note(ctx, response.usage, response.usage.outputTokens)
        return response
      } catch (thrown) {
        if (ctx.signal.aborted || isBilled(thrown)) note(ctx, estimateStarted(ctx.request, 0))
        throw thrown
      }
    },
    { name: `${name}.count`, priority: -900 }, // each attempt, and no answer from a cache
  )
  const settle = hook(
    'aroundInference',
    async (ctx, next) => {
      const id = callId(ctx)
      try {
        return await next()
      } finally {
        const { spent = nothing, answer } = attempts.get(id) ?? {}
        attempts.delete(id)
        await counter.giveBack(nameOf(ctx), (value, now) => {
          const account = currentAccount(value, now, perMs)
          const { [id]: own, ...reserved } = account.reserved
          if (own === undefined) return account // counted by a process that died before it had stored the answer
          return { ...account, ...sumOf([account, spent]), reserved, ...longerOf(account, answer) }
        })
      }
    },
    { name: `${name}.settle`, priority: 200 }, // around `cacheResponses`: an answer may need no call
  )
  return { name, hooks: [reserve, inherited(count), inherited(settle)], notes: [describe(options)] }
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
  const { costUsd, tokens } = stored?.period === period ? stored : nothing
  const reserved = Object.entries(stored?.reserved ?? {}).filter(([, { until }]) => until + REMEMBERED_MS > now)
  const answer = stored?.answer === undefined ? {} : { answer: stored.answer }
  return { period, costUsd, tokens, reserved: Object.fromEntries(reserved), ...answer }
}

function longerOf({ answer: before = 0 }: Account, answer: number | undefined): Pick<Account, 'answer'> {
  return answer === undefined ? {} : { answer: Math.max(answer, Math.ceil(before * FORGET)) }
}

/** An estimate of a call. An answer without a limit is expected to be as long as the last ones. */
function estimateOf(request: InferenceRequest, { answer }: Account): Amounts {
  const maxOutputTokens = request.settings?.maxOutputTokens ?? answer
  if (maxOutputTokens === undefined) return amountsOf(estimateUsage(request))
  return amountsOf(estimateUsage({ ...request, settings: { ...request.settings, maxOutputTokens } }))
}

function amountsOf(usage: TokenUsage): Amounts {
  return { costUsd: usage.costUsd, tokens: totalTokens(usage) }
}

function sumOf(all: readonly Amounts[]): Amounts {
  return all.reduce((sum, each) => ({ costUsd: sum.costUsd + each.costUsd, tokens: sum.tokens + each.tokens }), nothing)
}

function exceeded({ amounts, wanted, max }: Used): { readonly unit: string; readonly problem: string } | undefined {
  const tooMuch = (used: number, more: number, of: number, unit: string) =>
    used + more <= of // false for NaN as well
      ? undefined
      : { unit, problem: `${used} of ${of} ${unit} are spent or reserved, and the call may need ${more}` }
  return (
    tooMuch(amounts.costUsd, wanted.costUsd, max.costUsd, 'USD') ??
    tooMuch(amounts.tokens, wanted.tokens, max.tokens, 'tokens')
  )
}

function describe({ maxCost, maxTokens, perMs }: BudgetOptions): string {
  const limits = [
    maxCost === undefined ? [] : `${maxCost} USD`,
    maxTokens === undefined ? [] : `${maxTokens} tokens`,
  ].flat()
  return `Budget: at most ${limits.join(' and ')}${perMs === undefined ? '' : ` per ${perMs} ms`}, shared by all runs with the same key.`
}
