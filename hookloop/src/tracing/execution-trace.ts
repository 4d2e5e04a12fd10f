import {
  context as contexts,
  trace as traces,
  type Attributes,
  type Context,
  type Span,
  type SpanContext,
  type Tracer,
} from '@opentelemetry/api'
import type { ErrorRecord, ExecutionStatus } from '../state/execution.ts'
import type { List } from '../state/list.ts'
import type { LedgerEntry } from '../state/ledger.ts'
import type { Message } from '../state/message.ts'
import type { Usage } from '../state/usage.ts'
import type { ObserveContext } from '../hooks/context.ts'
import type { HookTrigger, PlainTrigger } from '../hooks/triggers.ts'
import { inputContent, outputContent, systemContent } from './content.ts'
import { attributes, operations, OTHER_ERROR } from './conventions.ts'
import { modelFacts, spentBetween, usageFacts } from './facts.ts'
import { addHookSpan, isShown, type HooksShown } from './hook-spans.ts'
import { layOut, type Noted, type Reading } from './hook-times.ts'
import { InferenceTrace, type Answered } from './inference-trace.ts'
import type { Instruments } from './instruments.ts'
import { Spans } from './spans.ts'
import { ToolTrace } from './tool-trace.ts'

/** The name of the tracing hook, which is not traced itself. */
export const TRACING = 'tracing'

export type TraceOptions = {
  readonly tracer: Tracer
  readonly instruments: Instruments
  readonly content: boolean
  readonly hooks: HooksShown
  readonly agentName: string | undefined
}

type Seen<T extends PlainTrigger = PlainTrigger> = ObserveContext<T>
type OpenSpan = { readonly span: Span; readonly context: Context }

/** Hooks at these triggers belong to a step; those at the others to the execution. */
const ofStep: ReadonlySet<string> = new Set<HookTrigger>([
  'beforeInference',
  'aroundInference',
  'afterInference',
  'beforeToolUse',
  'aroundToolUse',
  'onSubagentStop',
  'afterToolUse',
  'afterStep',
])

/**
 * The spans of one execution, from its start or resumption to its end or suspension. Only the span of the execution is open
 * during it. The others are created afterwards, with the times at which they started and ended, so that a forbidden step or
 * request leaves no span.
 */
export class ExecutionTrace {
  readonly agentId: string
  readonly #spans: Spans
  readonly #instruments: Instruments
  readonly #shown: HooksShown
  readonly #own: Attributes
  readonly #execution: OpenSpan
  readonly #inference: InferenceTrace
  readonly #tools: ToolTrace
  /** Added to `performance.now()`: a monotonic clock for the whole execution. */
  readonly #origin = Date.now() - performance.now()
  readonly #startedAt: number
  readonly #spentBefore: Usage
  /** How many ledger entries have been read. */
  #seen: number
  #step: OpenSpan | undefined
  #stepIndex: number
  /** When the step started or, if none is open, when the next one would have. */
  #stepFrom: number | undefined
  #lastError: string | undefined
  #hasModel = false

  constructor(
    { tracer, instruments, content, hooks, agentName: ownName }: TraceOptions,
    ctx: Seen,
    { earlier, inside }: { readonly earlier?: SpanContext | undefined; readonly inside?: Context | undefined } = {},
  ) {
    const agentName = subagentName(ctx) ?? ownName
    const { state, ledger, trigger, spent } = ctx
    const isStart = trigger === 'beforeExecution' || trigger === 'onUserInput'
    this.agentId = state.agentId
    this.#spans = new Spans(tracer, content)
    this.#instruments = instruments
    this.#shown = hooks
    this.#inference = new InferenceTrace(this.#spans, instruments)
    this.#tools = new ToolTrace(this.#spans, instruments)
    this.#own = agentName === undefined ? {} : { [attributes.agentName]: agentName }
    this.#spentBefore = spent
    this.#stepIndex = state.stepCount
    this.#seen = isStart ? 0 : startOf(trigger, ledger)
    const { from, now } = layOut(ledger.slice(this.#seen).filter(isTraced), this.#now())
    this.#startedAt = from
    this.#stepFrom = isStart ? undefined : now
    const parent = inside ?? contexts.active()
    const span = this.#spans.start([operations.agent, agentName], {
      at: from,
      parent,
      facts: {
        [attributes.operation]: operations.agent,
        ...this.#own,
        [attributes.agentId]: state.agentId,
        [attributes.conversation]: state.agentId,
        ...(trigger !== 'onUserInput' && { [attributes.execution]: state.execution!.id }),
      },
      ...(earlier !== undefined && { links: [{ context: earlier }] }),
    })
    this.#execution = { span, context: traces.setSpan(parent, span) }
    if (isStart)
      this.#spans.addContent(span, () => ({ ...systemContent(state.systemPrompt), ...inputContent(inputOf(ctx)) }))
  }

  get spanContext(): SpanContext {
    return this.#execution.span.spanContext()
  }

  /** The parent context for subagents called in this step. */
  get forSubagents(): Context {
    return this.#inStep()
  }

  /** A trigger that only has hook spans. */
  hooksOnly(ctx: Seen): void {
    this.#addHookSpans(this.#read(ctx))
  }

  /** The span of the step is opened by the first event in it: until then the step can be forbidden. */
  beforeStep(ctx: Seen<'beforeStep'>): void {
    const reading = this.#read(ctx)
    this.#stepFrom = reading.now
    this.#stepIndex = ctx.state.stepCount
    this.#lastError = undefined // the run continues
    this.#addHookSpans(reading)
  }

  beforeInference(ctx: Seen<'beforeInference'>): void {
    const reading = this.#read(ctx)
    this.#tools.offer(ctx.request.tools)
    this.#inference.start(ctx, reading.now)
    this.#addHookSpans(reading)
  }

  afterInference(ctx: Seen<'afterInference'>): void {
    const reading = this.#read(ctx)
    this.#endInference(ctx, reading, { response: ctx.response })
    this.#addHookSpans(reading)
  }

  beforeToolUse(ctx: Seen<'beforeToolUse'>): void {
    const reading = this.#read(ctx)
    this.#tools.start(ctx, reading.now)
    this.#addHookSpans(reading)
  }

  afterToolUse(ctx: Seen<'afterToolUse'>): void {
    const reading = this.#read(ctx)
    this.#tools.end(ctx, reading, this.#inStep())
    this.#addHookSpans(reading)
  }

  onError(ctx: Seen<'onError'>): void {
    const reading = this.#read(ctx)
    this.#lastError = ctx.error.code
    if (ctx.during === 'aroundInference') this.#endInference(ctx, reading, { error: ctx.error })
    this.#addHookSpans(reading)
  }

  afterStep(ctx: Seen<'afterStep'>): void {
    const { index, type, errors } = ctx.step
    const reading = this.#read(ctx)
    const error = errors.at(-1)
    this.#stepIndex = index
    this.#stepFrom ??= reading.from
    this.#endInference(ctx, reading, { error: errors.findLast(isOfModel) ?? interrupted })
    this.#inStep()
    this.#addHookSpans(reading)
    const { span } = this.#step!
    span.setAttribute(attributes.stepType, type)
    if (type === 'error' && error !== undefined) this.#spans.fail(span, error)
    this.#lastError = error?.code ?? this.#lastError
    this.#endStep(reading.now)
  }

  /** A suspended run ends its spans: how long it waits and where it resumes is unknown. */
  onPause(ctx: Seen<'onPause'>): void {
    const reading = this.#read(ctx)
    this.#addHookSpans(reading)
    this.#endStep(reading.now)
    this.#execution.span.setAttribute(attributes.pending, ctx.pending.length)
    this.#end(ctx, reading.now, { status: 'suspended' })
  }

  afterExecution(ctx: Seen<'afterExecution'>): void {
    const { status, reason, by, message } = ctx.state.execution!.final!
    const reading = this.#read(ctx)
    this.#addHookSpans(reading)
    this.#endStep(reading.now)
    const { span } = this.#execution
    span.setAttributes({ [attributes.stopReason]: reason, [attributes.stopBy]: by })
    this.#spans.addContent(span, () => ({ [attributes.stopMessage]: message, ...finalAnswer(ctx) }))
    const code = status === 'failed' ? (this.#lastError ?? OTHER_ERROR) : undefined
    if (code !== undefined) this.#spans.fail(span, { code, message })
    this.#end(ctx, reading.now, { status, ...(code !== undefined && { code }) })
  }

  /** A blocked input: there was no execution, so this is its only span. */
  inputBlocked(ctx: Seen<'onUserInput'>, by: string): void {
    const reading = this.#read(ctx)
    this.#addHookSpans(reading)
    this.#execution.span.setAttributes({ [attributes.stopReason]: 'inputBlocked', [attributes.stopBy]: by })
    this.#end(ctx, reading.now, { status: 'stopped' })
  }

  #now(): number {
    return this.#origin + performance.now()
  }

  #read({ ledger }: Seen): Reading {
    const now = this.#now()
    const entries = ledger.slice(this.#seen).filter(isTraced)
    this.#seen = ledger.length
    return layOut(entries, now)
  }

  #endInference({ state }: Seen, reading: Reading, answered: Answered): void {
    const { request } = this.#inference
    if (request === undefined) return
    if (!this.#hasModel) this.#execution.span.setAttributes(modelFacts(request))
    this.#hasModel = true
    const facts = { ...this.#own, [attributes.conversation]: state.agentId }
    this.#inference.end(answered, reading, { parent: this.#inStep(), facts })
  }

  #inStep(): Context {
    this.#step ??= this.#openStep()
    return this.#step.context
  }

  #openStep(): OpenSpan {
    const parent = this.#execution.context
    const facts = { [attributes.step]: this.#stepIndex }
    const span = this.#spans.start(['step', `${this.#stepIndex + 1}`], {
      at: this.#stepFrom ?? this.#now(),
      parent,
      facts,
    })
    return { span, context: traces.setSpan(parent, span) }
  }

  #endStep(now: number): void {
    this.#step?.span.end(now)
    this.#step = undefined
    this.#stepFrom = undefined
  }

  #addHookSpans({ hooks }: Reading): void {
    if (!this.#execution.span.isRecording()) return
    for (const hook of hooks) {
      if (isShown(hook.entry, this.#shown)) addHookSpan(this.#spans, hook, this.#placeOf(hook.entry))
    }
  }

  #placeOf({ trigger, step }: Noted): Context {
    const isInStep = trigger === 'onError' ? this.#step !== undefined : ofStep.has(trigger) && this.#isAt(step)
    return isInStep ? this.#inStep() : this.#execution.context
  }

  #isAt(step: number): boolean {
    return this.#stepFrom !== undefined && step === this.#stepIndex
  }

  #end(
    { spent }: Seen,
    now: number,
    { status, code }: { readonly status: ExecutionStatus; readonly code?: string },
  ): void {
    const { span } = this.#execution
    const own = spentBetween(this.#spentBefore, spent)
    span.setAttributes({
      [attributes.status]: status,
      [attributes.steps]: own.steps,
      [attributes.toolCalls]: own.toolCalls,
      ...usageFacts(own),
    })
    span.end(now)
    this.#instruments.took('execution', now - this.#startedAt, {
      ...this.#own,
      [attributes.status]: status,
      ...(code !== undefined && { [attributes.errorType]: code }),
    })
  }
}

const interrupted = { code: 'RUN_CANCELLED', message: 'The call was interrupted.' }

function isOfModel({ during }: ErrorRecord): boolean {
  return during === 'aroundInference'
}

/** Not the tracing hook, and not about a subagent, which has its own trace. */
function isTraced({ hook, path, trigger, mode }: LedgerEntry): boolean {
  return hook !== TRACING && path === undefined && !(trigger === 'onSubagentStop' && mode === 'loop')
}

/** The name of a subagent, if this is one. */
function subagentName({ state }: Seen): string | undefined {
  const who = state.metadata['hookloop.subagent'] as { readonly name?: string } | undefined
  return state.parentId === undefined ? undefined : who?.name
}

/** The index of the first entry of this trigger. Entries from before a suspension precede it. */
function startOf(trigger: string, ledger: List<LedgerEntry>): number {
  let start = ledger.length
  while (start > 0 && ledger.at(start - 1)!.trigger === trigger) start--
  return start
}

function inputOf(ctx: Seen): readonly Message[] {
  const input = ctx.trigger === 'onUserInput' ? ctx.input : ctx.state.messages.at(-1)
  return input === undefined ? [] : [input]
}

function finalAnswer({ state: { execution, lastStep } }: Seen): Attributes {
  if (execution?.status !== 'completed' || lastStep === undefined) return {}
  return outputContent({ content: [{ type: 'text', text: lastStep.text }], finishReason: lastStep.finishReason })
}
