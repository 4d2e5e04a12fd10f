import { type } from 'arktype'
import * as z from 'zod'
import { tool } from '../agent/tool.ts'
import type { AgentState } from '../state/agent-state.ts'
import type { Json } from '../../values/json.ts'
import type { GuardContext, HookContext, ObserveContext } from './context.ts'
import { guard, hook, observe } from './hook.ts'
import type { GuardTrigger, HookTrigger, PlainTrigger } from './triggers.ts'

// Tests for the compiler: what is not permitted at a trigger does not compile. Nothing here ever runs.

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Holds<T extends true> = T
/** What a context can do beyond what all hooks and guards can do. */
type Common = 'spend' | 'warn' | 'infer'
type Methods<C> = Exclude<{ [K in keyof C]-?: C[K] extends (...args: never[]) => unknown ? K : never }[keyof C], Common>
type Seen = 'durationMs' | 'trigger' | 'state' | 'spent' | 'now' | 'workedMs' | 'signal' | 'ledger'
type FactsOf<C> = Exclude<keyof C, Methods<C> | Common | Seen>

type Vote = 'stop' | 'requestContinuation' | 'allowStop' | 'allowContinuation'

type AHookMay = {
  onSessionStart: 'withState'
  onUserInput: 'withInput' | 'withState'
  beforeExecution: 'withState' | 'stop'
  beforeStep: 'withState' | 'compact' | Vote
  beforeInference: 'withRequest' | 'withState' | 'stop'
  afterInference: 'withResponse' | 'withState' | 'stop'
  beforeToolUse: 'withArgs' | 'withState' | 'stop'
  afterToolUse: 'withOutput' | 'withState' | 'stop'
  afterStep: 'withState' | Vote
  onStop: 'withState' | 'requestContinuation'
  onSubagentStop: 'withOutput' | 'withState' | 'requestContinuation'
  onPause: 'withState'
  onResume: 'withState'
  onError: 'withState' | 'stop' | 'retry' | 'ignore'
  beforeCompaction: 'withMessages' | 'withState'
  afterCompaction: 'withMessages' | 'withState'
  afterExecution: 'withState'
  onSessionEnd: 'withState'
}

type AGuardMay = {
  onUserInput: 'block' | 'ask'
  beforeExecution: 'stop'
  beforeStep: Vote | 'ask'
  beforeInference: 'stop' | 'within' | 'ask'
  afterInference: 'block' | 'stop'
  beforeToolUse: 'block' | 'ask' | 'allow' | 'stop'
  afterToolUse: 'block' | 'stop'
  afterStep: Vote
  onStop: 'requestContinuation' | 'stop' | 'ask'
  onSubagentStop: 'block' | 'requestContinuation'
  beforeCompaction: 'block'
  afterCompaction: 'block'
}

type Carried = {
  onSessionStart: 'sessionId' | 'source'
  onUserInput: 'input'
  beforeExecution: never
  beforeStep: never
  beforeInference: 'request'
  aroundInference: 'request'
  afterInference: 'request' | 'response'
  beforeToolUse: 'toolCall'
  aroundToolUse: 'toolCall'
  afterToolUse: 'toolCall' | 'toolExecution'
  afterStep: 'step'
  onStop: 'outcome' | 'continuations'
  onSubagentStop: 'subagent' | 'outcome' | 'output'
  onPause: 'pending'
  onResume: 'answers'
  onError: 'error' | 'during' | 'consecutiveFailures'
  beforeCompaction: 'messages' | 'requested'
  afterCompaction: 'messages' | 'requested' | 'summary'
  afterExecution: 'outcome'
  onSessionEnd: 'sessionId' | 'reason'
}

export type Table = [
  Holds<Same<AHookMay, { [T in PlainTrigger]: Methods<HookContext<T>> }>>,
  Holds<Same<AGuardMay, { [T in GuardTrigger]: Methods<GuardContext<T>> }>>,
  Holds<Same<{ [T in HookTrigger]: never }, { [T in HookTrigger]: Methods<ObserveContext<T>> }>>,
  Holds<Same<Carried, { [T in HookTrigger]: FactsOf<ObserveContext<T>> }>>,
  Holds<'spend' extends keyof HookContext<PlainTrigger> & keyof GuardContext<GuardTrigger> ? true : false>,
  Holds<'spend' extends keyof ObserveContext<HookTrigger> ? false : true>,
]

export function hooksMayNot(): void {
  // @ts-expect-error a session that starts is not a run to stop
  hook('onSessionStart', (ctx) => ctx.stop('x'))
  // @ts-expect-error a session that ends cannot continue
  hook('onSessionEnd', (ctx) => ctx.stop('x'))
  // @ts-expect-error a hook rewrites the input, a guard blocks it
  hook('onUserInput', (ctx) => ctx.block('x'))
  // @ts-expect-error there is no execution to stop yet
  hook('onUserInput', (ctx) => ctx.stop('x'))
  // @ts-expect-error votes to continue are counted at steps
  hook('beforeExecution', (ctx) => ctx.requestContinuation('x'))
  // @ts-expect-error the request comes later
  hook('beforeStep', (ctx) => ctx.withRequest({ system: 'x' }))
  // @ts-expect-error a step is forbidden with stop
  hook('beforeStep', (ctx) => ctx.block('x'))
  // @ts-expect-error there is no response yet
  hook('beforeInference', (ctx) => ctx.withResponse({ text: 'x' }))
  // @ts-expect-error a request has no system of numbers
  hook('beforeInference', (ctx) => ctx.withRequest({ system: 1 }))
  // @ts-expect-error a hook that changes the response does not judge it
  hook('afterInference', (ctx) => ctx.block('x'))
  // @ts-expect-error the request was sent
  hook('afterInference', (ctx) => ctx.withRequest({ system: 'x' }))
  // @ts-expect-error a transform cannot judge a value that may still change
  hook('beforeToolUse', (ctx) => ctx.block('x'))
  // @ts-expect-error a transform cannot judge a value that may still change
  hook('beforeToolUse', (ctx) => ctx.ask('x'))
  // @ts-expect-error a transform cannot judge a value that may still change
  hook('beforeToolUse', (ctx) => ctx.allow())
  // @ts-expect-error there is no output yet
  hook('beforeToolUse', (ctx) => ctx.withOutput('x'))
  // @ts-expect-error the call was made
  hook('afterToolUse', (ctx) => ctx.withArgs({}))
  // @ts-expect-error a hook that changes the output does not judge it
  hook('afterToolUse', (ctx) => ctx.block('x'))
  // @ts-expect-error the outputs of the step are settled
  hook('afterStep', (ctx) => ctx.withOutput('x'))
  // @ts-expect-error it stops already
  hook('onStop', (ctx) => ctx.stop('x'))
  // @ts-expect-error it stops already
  hook('onStop', (ctx) => ctx.allowStop('x'))
  // @ts-expect-error a hook that changes the child's output does not judge it
  hook('onSubagentStop', (ctx) => ctx.block('x'))
  // @ts-expect-error the child stops already
  hook('onSubagentStop', (ctx) => ctx.stop('x'))
  // @ts-expect-error a run that waits is not over
  hook('onPause', (ctx) => ctx.stop('x'))
  // @ts-expect-error the answers come from the approver
  hook('onResume', (ctx) => ctx.allow())
  // @ts-expect-error an error is recovered from or not; it asks for no step
  hook('onError', (ctx) => ctx.requestContinuation('x'))
  // @ts-expect-error a hook changes what is compacted, a guard prevents it
  hook('beforeCompaction', (ctx) => ctx.block('x'))
  // @ts-expect-error compaction does not end a run
  hook('afterCompaction', (ctx) => ctx.stop('x'))
  // @ts-expect-error the status is fixed
  hook('afterExecution', (ctx) => ctx.stop('x'))
  // @ts-expect-error the status is fixed
  hook('afterExecution', (ctx) => ctx.requestContinuation('x'))
}

export function aroundHooksMayNot(): void {
  // @ts-expect-error around is not a plain hook: it returns what next() gave
  hook('aroundInference', (ctx) => ctx)
  // @ts-expect-error what next() gave must be returned
  hook('aroundInference', async (_ctx, next) => void (await next()))
  // @ts-expect-error the request is changed through next()
  hook('aroundInference', (ctx, next) => next(ctx.withRequest({ system: 'x' })))
  // @ts-expect-error around hooks change the call, never the state
  hook('aroundInference', (ctx, next) => (ctx.withState((state: AgentState) => state), next()))
  // @ts-expect-error a substitute is a response
  hook('aroundInference', async () => ({ status: 'ok', output: 'x' }))
  // @ts-expect-error the tool call cannot be changed after the guards have judged it
  hook('aroundToolUse', (_ctx, next) => next({ args: {} }))
  // @ts-expect-error the tool call cannot be changed after the guards have judged it
  hook('aroundToolUse', (ctx, next) => (ctx.withArgs({}), next()))
  // @ts-expect-error a substitute is an execution
  hook('aroundToolUse', async () => 'x')
  // @ts-expect-error a substitute has a known status
  hook('aroundToolUse', async () => ({ status: 'fine', output: 'x' }))
  // @ts-expect-error mixed plain and around
  hook(['beforeStep', 'aroundInference'], (ctx) => ctx)
  // @ts-expect-error the two wrappers give different things
  hook(['aroundInference', 'aroundToolUse'], (_ctx, next) => next())
  // @ts-expect-error an around hook is a function
  hook('aroundInference', { handle: (_ctx, next) => next() })
}

export function guardsMayNot(): void {
  // @ts-expect-error a guard cannot change
  guard('onUserInput', (ctx) => ctx.withInput('x'))
  // @ts-expect-error input is blocked, not stopped
  guard('onUserInput', (ctx) => ctx.stop('x'))
  // @ts-expect-error a guard cannot change
  guard('beforeExecution', (ctx) => ctx.withState((state: AgentState) => state))
  // @ts-expect-error one way to say no
  guard('beforeExecution', (ctx) => ctx.block('x'))
  // @ts-expect-error a guard cannot change
  guard('beforeStep', (ctx) => ctx.withState((state: AgentState) => state))
  // @ts-expect-error one way to say no
  guard('beforeStep', (ctx) => ctx.block('x'))
  // @ts-expect-error beforeInference has one way to say no
  guard('beforeInference', (ctx) => ctx.block('x'))
  // @ts-expect-error a guard cannot change
  guard('beforeInference', (ctx) => ctx.withRequest({ system: 'x' }))
  // @ts-expect-error an answer cannot need approval
  guard('afterInference', (ctx) => ctx.ask('x'))
  // @ts-expect-error a guard cannot change
  guard('afterInference', (ctx) => ctx.withResponse({ text: 'x' }))
  // @ts-expect-error a guard cannot change
  guard('beforeToolUse', (ctx) => ctx.withArgs({}))
  // @ts-expect-error votes to continue are counted at steps
  guard('beforeToolUse', (ctx) => ctx.requestContinuation('x'))
  // @ts-expect-error a guard cannot change
  guard('afterToolUse', (ctx) => ctx.withOutput('x'))
  // @ts-expect-error it ran already
  guard('afterToolUse', (ctx) => ctx.ask('x'))
  // @ts-expect-error one way to say no
  guard('afterStep', (ctx) => ctx.block('x'))
  guard('onStop', (ctx) => ctx.stop('x'))
  // @ts-expect-error nothing can be blocked here
  guard('onStop', (ctx) => ctx.block('x'))
  // @ts-expect-error a guard cannot change
  guard('onSubagentStop', (ctx) => ctx.withOutput('x'))
  // @ts-expect-error a guard cannot change
  guard('beforeCompaction', (ctx) => ctx.withMessages([]))
  // @ts-expect-error a guard cannot change
  guard('afterCompaction', (ctx) => ctx.withMessages([]))
  // @ts-expect-error nothing to judge here
  guard('onSessionStart', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('onSessionEnd', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('aroundInference', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('aroundToolUse', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('onPause', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('onResume', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('onError', (ctx) => ctx)
  // @ts-expect-error nothing to judge here
  guard('afterExecution', (ctx) => ctx)
  // @ts-expect-error what is the same at all triggers of a guard is all it may do
  guard(['beforeStep', 'beforeToolUse'], (ctx) => ctx.block('x'))
}

export function observersMayNot(): void {
  // @ts-expect-error an observer can do nothing
  observe('beforeToolUse', (ctx) => ctx.block('x'))
  // @ts-expect-error an observer can do nothing
  observe('beforeStep', (ctx) => ctx.stop('x'))
  // @ts-expect-error an observer can do nothing
  observe('afterToolUse', (ctx) => ctx.withOutput('x'))
  // @ts-expect-error an observer can do nothing
  observe('onStop', (ctx) => ctx.requestContinuation('x'))
  // @ts-expect-error an observer can do nothing
  observe('onError', (ctx) => ctx.ignore())
  // @ts-expect-error an observer can do nothing
  observe('*', (ctx) => ctx.withState((state: AgentState) => state))
  // @ts-expect-error what only one trigger carries is there after a look at the trigger
  observe('*', (ctx) => ctx.toolCall)
  // @ts-expect-error observers see the lifecycle, not the wrappers
  observe('aroundInference', () => {})
  // @ts-expect-error observers see the lifecycle, not the wrappers
  observe(['beforeStep', 'aroundToolUse'], () => {})
  observe('*', (ctx) => (ctx.trigger === 'afterToolUse' ? ctx.toolExecution.status : ctx.now))
}

export function answersAreReturned(): void {
  // @ts-expect-error a guard must answer
  guard('beforeToolUse', (ctx) => {
    if (ctx.toolCall.name === 'rm') ctx.block('never')
  })
  // @ts-expect-error a guard must answer
  guard('beforeToolUse', async (ctx) => {
    ctx.block('never')
  })
  // @ts-expect-error a guard must answer on every way
  guard('beforeToolUse', (ctx) => (ctx.toolCall.name === 'rm' ? ctx.block('never') : undefined))
  // @ts-expect-error "yes" is not an answer
  guard('beforeToolUse', () => true)
  // @ts-expect-error a change that is not returned
  hook('afterToolUse', (ctx) => {
    ctx.withOutput('[redacted]')
  })
  // @ts-expect-error a state is not a context
  hook('beforeStep', (ctx) => ctx.state.withMetadata('a', 1))
  // @ts-expect-error a context of another trigger is foreign
  hook('beforeStep', (_ctx, other?: HookContext<'onPause'>) => other!)
  // @ts-expect-error an object must have a method handle
  guard('beforeStep', { check: (ctx: GuardContext<'beforeStep'>) => ctx })
  // @ts-expect-error the method handle must answer
  guard('beforeStep', { handle: (ctx: GuardContext<'beforeStep'>) => void ctx.stop('x') })
}

export function optionsMustMatter(): void {
  // @ts-expect-error a guard always fails closed
  guard('beforeStep', (ctx) => ctx, { onFailure: 'continue' })
  // @ts-expect-error an observer never matters
  observe('beforeStep', () => {}, { onFailure: 'continue' })
  // @ts-expect-error a failure is skipped or it blocks
  hook('beforeStep', (ctx) => ctx, { onFailure: 'ignore' })
  // @ts-expect-error an effect needs a name that is stable across deploys
  hook('onStop', (ctx) => ctx, { effect: true })
  // @ts-expect-error an effect needs a name that is stable across deploys
  guard('beforeStep', (ctx) => ctx, { effect: true, priority: 1 })
  // @ts-expect-error no tool at this trigger: the hook could never match
  guard('beforeStep', (ctx) => ctx, { tool: 'bash' })
  // @ts-expect-error no tool at one of the triggers
  guard(['beforeStep', 'beforeToolUse'], (ctx) => ctx, { tool: 'bash' })
  // @ts-expect-error a tool is a name, a pattern or the tool itself
  guard('beforeToolUse', (ctx) => ctx, { tool: ['bash'] })
  // @ts-expect-error only the response streams
  guard('beforeStep', (ctx) => ctx, { stream: 'hold' })
  // @ts-expect-error a matcher is a predicate
  guard('beforeStep', (ctx) => ctx, { when: 'always' })
  // @ts-expect-error a promise is always true
  guard('beforeStep', (ctx) => ctx, { when: async () => false })
  // @ts-expect-error priorities are numbers
  hook('beforeStep', (ctx) => ctx, { priority: 'high' })
  // @ts-expect-error unknown trigger
  observe('beforeLunch', () => {})
  // @ts-expect-error unknown trigger
  hook('beforeLunch', (ctx) => ctx)
  // @ts-expect-error unknown trigger among known ones
  guard(['beforeStep', 'beforeLunch'], (ctx) => ctx)
  // @ts-expect-error only observers watch everything
  hook('*', (ctx) => ctx)
  hook('onStop', (ctx) => ctx, { name: 'critic', effect: true })
  guard('afterInference', (ctx) => ctx, { stream: 'after' })
}

export function contextsCannotBeWrittenTo(): void {
  hook('beforeToolUse', (ctx) => {
    // @ts-expect-error a call is read-only
    ctx.toolCall.name = 'x'
    // @ts-expect-error arguments cannot be written in place
    ctx.toolCall.args['command'] = 'x'
    // @ts-expect-error the state is read-only
    ctx.state.metadata['role'] = 'admin'
    // @ts-expect-error the context is read-only
    ctx.trigger = 'beforeToolUse'
    return ctx
  })
  guard('onStop', (ctx) => {
    // @ts-expect-error an outcome is read-only
    ctx.outcome.shouldContinue = true
    return ctx
  })
}

export function aToolTypesItsArguments(): void {
  const cwd = z.string().default('.')
  const at = z.string().transform((text) => new Date(text))
  const input = z.object({ command: z.string(), cwd, at: at.optional() })
  const bash = tool({ name: 'bash', description: '', input, execute: (args) => args.cwd + args.at?.getTime() })
  const read = tool({ name: 'read', description: '', input: type({ path: 'string' }), execute: ({ path }) => path })
  const plain = tool({ name: 'plain', description: '', input: { type: 'object' }, execute: (args) => args['path'] })

  type Unless<T> = T extends true ? [] : [never]
  type Written = { command: string; cwd?: string | undefined; at?: string | undefined }
  type Parsed = { command: string; cwd: string; at?: Date | undefined }
  const isWritten = <A>(_args: A, ..._wrong: Unless<Same<A, Readonly<Written>>>): true => true
  const isParsed = <A>(_args: A, ..._wrong: Unless<Same<A, Readonly<Parsed>>>): true => true
  const isPath = (_args: Readonly<{ path: string }>): true => true
  const isJson = (_json: Json | undefined): true => true

  hook('beforeToolUse', (ctx) => (isWritten(ctx.toolCall.args), ctx), {
    tool: bash,
    when: (ctx) => isWritten(ctx.toolCall.args),
  })
  guard('beforeToolUse', (ctx) => (isParsed(ctx.toolCall.args), ctx), {
    tool: bash,
    when: (ctx) => isParsed(ctx.toolCall.args),
  })
  hook('aroundToolUse', (ctx, next) => (isParsed(ctx.toolCall.args), next()), {
    tool: bash,
    when: (ctx) => isParsed(ctx.toolCall.args),
  })
  observe('beforeToolUse', (ctx) => isParsed(ctx.toolCall.args), { tool: bash })
  hook('beforeToolUse', (ctx) => (isPath(ctx.toolCall.args), ctx), { tool: read })
  guard('beforeToolUse', (ctx) => (isJson(ctx.toolCall.args['path']), ctx), { tool: plain })
  guard('afterToolUse', (ctx) => (isJson(ctx.toolCall.args['cwd']), ctx), { tool: bash })
  hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'ls' }).withArgs({ ...ctx.toolCall.args, at: 'x' }), {
    tool: bash,
  })
  // @ts-expect-error arguments are the schema's input
  hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 1 }), { tool: bash })
  // @ts-expect-error a date is what the schema makes, not what it takes
  hook('beforeToolUse', (ctx) => ctx.withArgs({ command: 'ls', at: new Date() }), { tool: bash })
  // @ts-expect-error a required argument is missing
  hook('beforeToolUse', (ctx) => ctx.withArgs({}), { tool: read })
  // @ts-expect-error by name the arguments are JSON, not typed
  guard('beforeToolUse', (ctx) => (ctx.toolCall.args['command'].length > 1 ? ctx : ctx), { tool: 'bash' })
  // @ts-expect-error the record holds the JSON before parsing, whatever the tool
  guard('afterToolUse', (ctx) => (ctx.toolCall.args.command === '' ? ctx : ctx), { tool: bash })
  // @ts-expect-error typed arguments cannot be written in place either
  guard('beforeToolUse', (ctx) => ((ctx.toolCall.args.command = 'x'), ctx), { tool: bash })
}
