import { trace, type Context, type Meter, type SpanContext, type Tracer } from '@opentelemetry/api'
import type { Capability } from '../agent/capability.ts'
import { checkOptions, invalidOption } from '../agent/check-options.ts'
import type { ObserveContext } from '../hooks/context.ts'
import { observe } from '../hooks/hook.ts'
import { ExecutionTrace, TRACING, type TraceOptions } from './execution-trace.ts'
import type { HooksShown } from './hook-spans.ts'
import { Instruments } from './instruments.ts'

export type TracingOptions = {
  /** Makes the spans. Default: the one that OpenTelemetry has for "hookloop". */
  readonly tracer?: Tracer
  /** Makes the metrics. Default: the one that OpenTelemetry has for "hookloop". */
  readonly meter?: Meter
  /** Whether spans hold what was said: prompts, answers, arguments, results, the words of hooks and errors. Default false. */
  readonly content?: boolean
  /** Which firings of hooks get a span: those that decided, changed, failed or were slow, every one, or none. */
  readonly hooks?: HooksShown
  /** The name of the agent, in the name of its spans. */
  readonly agentName?: string
}

const watched = [
  'onUserInput',
  'beforeExecution',
  'beforeStep',
  'beforeInference',
  'afterInference',
  'beforeToolUse',
  'afterToolUse',
  'afterStep',
  'onStop',
  'onSubagentStop',
  'onPause',
  'onResume',
  'onError',
  'beforeCompaction',
  'afterCompaction',
  'afterExecution',
] as const

type Watched = ObserveContext<(typeof watched)[number]>

/** After all the other observers, so that what they did is seen as well. */
const PRIORITY = -1000

/** How many suspended executions are remembered, so that the one that goes on can point to them. */
const REMEMBERED = 1000

/**
 * Tells OpenTelemetry what a run does, as spans and metrics. It only observes: it changes nothing, delays nothing, and
 * a tracer that throws is a line in the ledger.
 */
export function tracing(options: TracingOptions = {}): Capability {
  const { content = false, hooks = 'decisions', agentName } = checked(options)
  const { tracer = trace.getTracer('hookloop'), meter } = options
  const live = new LiveTraces({ tracer, instruments: new Instruments(meter), content, hooks, agentName })
  return {
    name: TRACING,
    hooks: [observe(watched, (ctx) => live.see(ctx), { name: TRACING, priority: PRIORITY })],
    notes: [`Tracing: content ${content ? 'on' : 'off'}, hooks: ${hooks}.`],
  }
}

/** The executions that are under way. One agent serves many runs at once, and they must not mix. */
class LiveTraces {
  readonly #options: TraceOptions
  /** By the signal of the run, which every run has its own of unless it is given one, and the id of the execution. */
  readonly #traces = new WeakMap<AbortSignal, Map<string, ExecutionTrace>>()
  readonly #suspended = new Map<string, SpanContext>()

  constructor(options: TraceOptions) {
    this.#options = options
  }

  see(ctx: Watched): void {
    if (ctx.trigger === 'onUserInput') return this.#seeInput(ctx)
    if (ctx.state.execution === undefined) return
    const execution = this.#traceOf(ctx)
    switch (ctx.trigger) {
      case 'beforeStep':
        return execution.beforeStep(ctx)
      case 'beforeInference':
        return execution.beforeInference(ctx)
      case 'afterInference':
        return execution.afterInference(ctx)
      case 'beforeToolUse':
        return execution.beforeToolUse(ctx)
      case 'afterToolUse':
        return execution.afterToolUse(ctx)
      case 'afterStep':
        return execution.afterStep(ctx)
      case 'onError':
        return execution.onError(ctx)
      case 'onPause':
        this.#forget(ctx)
        this.#remember(ctx, execution.spanContext)
        return execution.onPause(ctx)
      case 'afterExecution':
        this.#forget(ctx)
        return execution.afterExecution(ctx)
      default:
        return execution.hooksOnly(ctx)
    }
  }

  /** An input that a hook blocks never becomes an execution; it is told here or nowhere. */
  #seeInput(ctx: ObserveContext<'onUserInput'>): void {
    const blocked = ctx.ledger.find(({ decision }) => decision === 'block')
    if (blocked !== undefined) new ExecutionTrace(this.#options, ctx).inputRefused(ctx, blocked.hook)
  }

  /** The trace of the execution; a new one if it begins, goes on, or was cancelled while it was being suspended. */
  #traceOf(ctx: Watched): ExecutionTrace {
    const { id } = ctx.state.execution!
    const known = this.#traces.get(ctx.signal)?.get(id)
    if (known !== undefined) return known
    const ofSignal = this.#traces.get(ctx.signal) ?? new Map<string, ExecutionTrace>()
    const earlier = this.#suspended.get(id)
    const opened = new ExecutionTrace(this.#options, ctx, { earlier, inside: this.#parentOf(ctx, ofSignal) })
    this.#suspended.delete(id)
    this.#traces.set(ctx.signal, ofSignal.set(id, opened))
    return opened
  }

  /** A subagent is traced inside the step of the agent that it works for. */
  #parentOf({ state }: Watched, ofSignal: ReadonlyMap<string, ExecutionTrace>): Context | undefined {
    const { parentId } = state
    if (parentId === undefined) return undefined
    return [...ofSignal.values()].find(({ agentId }) => agentId === parentId)?.forSubagents
  }

  #forget({ signal, state }: Watched): void {
    this.#traces.get(signal)?.delete(state.execution!.id)
  }

  #remember({ state }: Watched, span: SpanContext): void {
    const [oldest] = this.#suspended.keys()
    if (oldest !== undefined && this.#suspended.size >= REMEMBERED) this.#suspended.delete(oldest)
    this.#suspended.set(state.execution!.id, span)
  }
}

const names: readonly string[] = ['tracer', 'meter', 'content', 'hooks', 'agentName'] satisfies (keyof TracingOptions)[]

/** What would be misread is refused: `content: 'false'` must not turn content on. */
function checked(options: TracingOptions): TracingOptions {
  const { content, hooks, agentName } = options
  checkOptions('tracing', options, names)
  if (content !== undefined && typeof content !== 'boolean')
    throw invalidOption('tracing', '"content" is true or false', content)
  if (hooks !== undefined && !['decisions', 'all', 'none'].includes(hooks)) {
    throw invalidOption('tracing', `"hooks" is 'decisions', 'all' or 'none'`, hooks)
  }
  if (agentName !== undefined && typeof agentName !== 'string')
    throw invalidOption('tracing', '"agentName" is a text', agentName)
  return options
}
