// A program that exports what it gets from the library. It compiles with `declaration` only if every type has a name.
import {
  createAgent,
  explanation,
  hook,
  tool,
  type AgentOptions,
  type AroundContext,
  type contexts,
  type GuardContext,
  type HookContext,
  type LanguageModel,
  type ObserveContext,
} from 'hookloop'

declare const model: LanguageModel
export const options = { model, output: { type: 'object' } } satisfies AgentOptions
export const agent = createAgent({ model })
export const typed = createAgent(options)
export const described = agent.describe()
export const work = tool({ name: 'a', description: 'b', input: { type: 'object' }, execute: () => 1 })
export const made = hook('beforeToolUse', (ctx) => ctx)

export const run = await agent.run('x')
export const { state, ledger, warnings, final, reason } = run
export const pending = run.status === 'suspended' ? run.pending : []
export const { messages, execution, lastStep, usage } = state
export const [steps, hooks, continuations] = [execution?.steps, execution?.hooks, execution?.continuations]
export const [outcome, errors, results] = [lastStep?.outcome, lastStep?.errors, lastStep?.toolExecutions]
export const changes = ledger[0]?.changes
export const { decided, blocked, asked, changed, continued, subagents, shadows, votes } = explanation(run)
export const [events, states, session] = [agent.stream('x'), agent.iterate('x'), agent.session('x')]

export const beforeStep = (ctx: HookContext<'beforeStep'>) => [ctx.spent, ctx.infer({ prompt: 'x' })] as const
export const beforeToolUse = (ctx: GuardContext<'beforeToolUse'>) => [ctx.ledger, ctx.toolCall] as const
export const afterToolUse = (ctx: ObserveContext<'afterToolUse'>) => [ctx.toolExecution, ctx.ledger] as const
export const aroundInference = (ctx: AroundContext<'aroundInference'>) => ctx.request
export const onError = (ctx: HookContext<'onError'>) => ctx.error
export const onSubagentStop = (ctx: HookContext<'onSubagentStop'>) => [ctx.subagent, ctx.outcome] as const
export const stopped = (ctx: HookContext<'beforeStep'>): contexts.Stops => ctx.stop('x')
