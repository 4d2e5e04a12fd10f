import { choiceOf, optionTypes } from '../values/option-types.ts'
import { trace, type Meter, type SpanContext, type Tracer } from '@opentelemetry/api'
import type { Capability } from '../core/agent/capability.ts'
import { BoundedMap } from '../values/bounded-map.ts'
import { checkOptions } from '../values/check-options.ts'
import type { ObserveContext } from '../core/hooks/context.ts'
import { observe } from '../core/hooks/hook.ts'
import { TRACING } from './hook-times.ts'
import { blockedBy, RunTrace, showsOwn, type HooksShown, type TraceOptions } from './run-trace.ts'
import { Instruments, Spans } from './telemetry.ts'

/** Options of `tracing`. */
export type TracingOptions = {
  /** Creates the spans. Default: the global tracer named "hookloop". */
  readonly tracer?: Tracer
  /** Creates the metrics. Default: the global meter named "hookloop". */
  readonly meter?: Meter
  /** Whether spans contain prompts, answers, arguments, results and messages of hooks and errors. Default false. */
  readonly content?: boolean
  /** Which hook invocations get a span: those that decided or changed something or failed, or none. Default `'decisions'`. */
  readonly hooks?: HooksShown
  /** The name of the agent in the names of spans. Default none. */
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

/** After all other observers, so that they are traced as well. */
const PRIORITY = -1000

/** How many suspended executions are remembered, so that a resumed one can link to its earlier span. */
const MAX_SUSPENDED = 1000

/**
 * Exports runs to OpenTelemetry as spans and metrics. It only observes: it changes and delays nothing, and an error of a
 * tracer is noted in the ledger.
 *
 * @example
 * createAgent({ model, use: [tracing({ agentName: 'support', content: true })] })
 */
export function tracing(options: TracingOptions = {}): Capability {
  checkOptions('tracing', options, {
    tracer: optionTypes.any,
    meter: optionTypes.any,
    content: [(value) => typeof value === 'boolean', 'true or false'],
    hooks: choiceOf('decisions', 'none'),
    agentName: optionTypes.any,
  })
  const { content = false, hooks = 'decisions', agentName, tracer = trace.getTracer('hookloop'), meter } = options
  const spans = new Spans(tracer, content)
  const live = new LiveTraces({ spans, instruments: new Instruments(meter), shown: hooks, agentName })
  return {
    name: TRACING,
    hooks: [observe(watched, (ctx) => live.see(ctx), { name: TRACING, priority: PRIORITY })],
    notes: [`Tracing: content ${content ? 'on' : 'off'}, hooks: ${hooks}.`],
  }
}

/** The traces of current executions. One agent serves many runs at once. */
class LiveTraces {
  readonly #options: TraceOptions
  /** By the signal of the run. Subagents have one of their own. */
  readonly #traces = new WeakMap<AbortSignal, RunTrace>()
  /** By the id of the agent, for its subagents. */
  readonly #parents = new Map<string, RunTrace>()
  readonly #suspended = new BoundedMap<string, SpanContext>(MAX_SUSPENDED)

  constructor(options: TraceOptions) {
    this.#options = options
  }

  see(ctx: Watched): void {
    const { trigger, signal } = ctx
    if (trigger === 'onUserInput') {
      // A blocked input never becomes an execution, so it gets its own span here.
      if (blockedBy(ctx) !== undefined) new RunTrace(this.#options, ctx).see(ctx)
      return
    }
    const execution = this.#traceOf(ctx)
    const isSuspended = trigger === 'onPause'
    if (isSuspended || trigger === 'afterExecution') {
      this.#traces.delete(signal)
      for (const { agentId, id, spanContext } of execution.family) {
        this.#parents.delete(agentId)
        if (isSuspended && id !== undefined) this.#suspended.set(id, spanContext)
      }
    }
    execution.see(ctx)
  }

  /** The trace of the execution; a new one if it starts, resumes, or was cancelled while being suspended. */
  #traceOf(ctx: Watched): RunTrace {
    const { signal, state } = ctx
    const found = this.#traces.get(signal) ?? this.#open(ctx)
    const id = showsOwn(ctx) ? state.execution?.id : undefined
    if (id === undefined || found.id !== undefined) return found
    found.identify(id, this.#suspended.get(id))
    this.#suspended.delete(id)
    return found
  }

  #open(ctx: Watched): RunTrace {
    const { agentId, parentId = '' } = ctx.state
    // The spans of a subagent are inside the step of its parent.
    const opened = new RunTrace(this.#options, ctx, this.#parents.get(parentId))
    this.#parents.set(agentId, opened)
    this.#traces.set(ctx.signal, opened)
    return opened
  }
}
