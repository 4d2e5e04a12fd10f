import * as z from 'zod'
import type { JsonObject } from '../../values/json.ts'
import type { AroundContext, GuardContext, HookContext, ObserveContext } from './context.ts'
import { guard, hook, observe } from './hook.ts'
import type { AroundTrigger, GuardTrigger, PlainTrigger } from './triggers.ts'

// Tests for the compiler: who may ask a model, and what comes of it. Nothing here ever runs.

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Holds<T extends true> = T
type Infers<C> = C extends C ? ('infer' extends keyof C ? true : false) : never

export type WhoMayAsk = [
  Holds<Infers<HookContext<PlainTrigger>>>,
  Holds<Infers<GuardContext<Exclude<GuardTrigger, 'beforeInference'>>>>,
  Holds<Same<Infers<GuardContext<'beforeInference'>>, false>>,
  Holds<Same<Infers<ObserveContext<PlainTrigger>>, false>>,
  Holds<Same<Infers<AroundContext<AroundTrigger>>, false>>,
]

hook('beforeStep', async (ctx) => {
  const { text, usage, finishReason, modelId } = await ctx.infer({ prompt: 'Why?' })
  const told: [string, number, string, string | undefined] = [text, usage.inputTokens, finishReason, modelId]
  return ctx.withState((state) => state.withMetadata('told', JSON.stringify(told)))
})

hook('onStop', async (ctx) => {
  const { output, text } = await ctx.infer({ prompt: text0, output: z.object({ good: z.boolean() }) })
  const good: boolean = output.good
  // @ts-expect-error: there is no such field
  void output.bad
  return good ? ctx : ctx.requestContinuation(text)
})

guard('afterInference', async (ctx) => {
  const { output } = await ctx.infer({ prompt: 'Polite?', output: { type: 'object', properties: {} } })
  const plain: JsonObject = output
  return plain['polite'] === true ? ctx : ctx.block()
})

// @ts-expect-error: without a schema there is no output
hook('beforeStep', async (ctx) => ((await ctx.infer({ prompt: 'Why?' })).output === 1 ? ctx : ctx.stop('no')))

// @ts-expect-error: a guard that judges calls of models makes none
guard('beforeInference', async (ctx) => ((await ctx.infer({ prompt: 'Why?' })).text === '' ? ctx : ctx.stop('no')))

// @ts-expect-error: an observer cannot call a model
observe('beforeStep', (ctx) => ctx.infer({ prompt: 'Why?' }))

// @ts-expect-error: around a call, it is next() that asks
hook('aroundInference', async (ctx, next) => (await ctx.infer({ prompt: 'Why?' }), next()))

// @ts-expect-error: an unknown option
hook('beforeStep', (ctx) => ctx.infer({ promt: 'Why?' }).then(() => ctx))

declare const text0: string
