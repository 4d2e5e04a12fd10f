import { context as contexts, type Attributes, type Context, type SpanContext } from '@opentelemetry/api'
import type { ErrorRecord, ExecutionStatus } from '../core/state/execution.ts'
import type { LedgerEntry } from '../core/state/ledger.ts'
import type { Message } from '../core/state/message.ts'
import type { Usage } from '../core/state/usage.ts'
import type { ObserveContext } from '../core/hooks/context.ts'
import type { HookTrigger, PlainTrigger } from '../core/hooks/triggers.ts'
import { inputContent, outputContent, systemContent } from './content.ts'
import { attributes, operations, OTHER_ERROR } from './conventions.ts'
import { modelFacts, spentBetween, usageFacts } from './facts.ts'
import { addHookSpan, isShown, type HooksShown } from './hook-spans.ts'
import { layOut, type Noted, type Reading } from './hook-times.ts'
import { InferenceTrace, type Answered } from './inference-trace.ts'
import type { Instruments } from './instruments.ts'
import type { OpenSpan, Spans } from './spans.ts'
import { ToolTrace } from './tool-trace.ts'

/** The name of the tracing hook, which is not traced itself. */
export const TRACING = 'tracing'

export type TraceOptions = {
  readonly spans: Spans
  readonly instruments: Instruments
  readonly shown: HooksShown
  readonly agentName: string | undefined
}

type Seen<T extends PlainTrigger = PlainTrigger> = ObserveContext<T>

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
 * request leaves no span. What a resumed run only repeats is not observed, except for the hooks that run again.
 */
export class ExecutionTrace {
  readonly agentId: string
  /** The id of the execution, once it is known. */
  id: string | undefined
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
  readonly #parent: ExecutionTrace | undefined
  /** The traces of subagents that run now. */
  readonly #children = new Set<ExecutionTrace>()
  /** What had been spent when the first trigger after the start or the repetition was seen, and at the last one. */
  #spentBefore: Usage | undefined
  #spent: Usage
  /** How many ledger entries have been read. */
  #seen: number
  #step: OpenSpan | undefined
  #stepIndex: number
  /** When the step started or, if none is open, when the next one would have. */
  #stepFrom: number | undefined
  #lastError: string | undefined
  #hasModel = false

  constructor({ spans, instruments, shown, agentName: ownName }: TraceOptions, ctx: Seen, parent?: ExecutionTrace) {
    const agentName = subagentName(ctx) ?? ownName
    const { state, ledger, trigger, spent } = ctx
    const isStart = trigger === 'beforeExecution' || trigger === 'onUserInput'
    this.agentId = state.agentId
    this.#spans = spans
    this.#instruments = instruments
    this.#shown = shown
    this.#inference = new InferenceTrace(spans, instruments)
    this.#tools = new ToolTrace(spans, instruments)
    this.#own = agentName === undefined ? {} : { [attributes.agentName]: agentName }
    this.#spent = spent
    this.#stepIndex = showsOwn(ctx) ? state.stepCount : 0
    this.#seen = isStart ? 0 : startOf(trigger, ledger)
    const { from, now } = layOut(ledger.slice(this.#seen).filter(isTraced), this.#now())
    this.#startedAt = from
    this.#stepFrom = isStart ? undefined : now
    this.#parent = parent
    if (parent !== undefined) parent.#children.add(this)
    this.#execution = spans.open([operations.agent, agentName], {
      at: from,
      parent: parent === undefined ? contexts.active() : parent.#inStep().context,
      facts: {
        [attributes.operation]: operations.agent,
        ...this.#own,
        [attributes.agentId]: state.agentId,
        [attributes.conversation]: state.agentId,
      },
    })
    if (!isStart) return
    const content = () => ({ ...systemContent(state.systemPrompt), ...inputContent(inputOf(ctx)) })
    spans.addContent(this.#execution.span, content)
  }

  get spanContext(): SpanContext {
    return this.#execution.span.spanContext()
  }

  /** This trace, and those of the subagents that run now. */
  get family(): readonly ExecutionTrace[] {
    return [this, ...[...this.#children].flatMap((each) => each.family)]
  }

  /** Notes the id of the execution, and the span of its part before the suspension. */
  identify(id: string, earlier: SpanContext | undefined): void {
    const { span } = this.#execution
    this.id = id
    span.setAttribute(attributes.execution, id)
    if (earlier !== undefined) span.addLink({ context: earlier })
  }

  /** Adds what a trigger shows. The spans of its hooks belong to the step or execution that it may end. */
  see(ctx: Seen): void {
    const { trigger, spent } = ctx
    if (trigger !== 'onResume') this.#spentBefore ??= spent // what is repeated is billed in between
    if (trigger !== 'onPause') this.#spent = spent
    const reading = this.#read(ctx)
    this.#beforeHooks(ctx, reading)
    if (this.#execution.span.isRecording()) {
      for (const hook of reading.hooks) {
        if (isShown(hook.entry, this.#shown)) addHookSpan(this.#spans, hook, this.#placeOf(hook.entry))
      }
    }
    this.#afterHooks(ctx, reading.now)
  }

  #beforeHooks(ctx: Seen, reading: Reading): void {
    switch (ctx.trigger) {
      case 'beforeStep': // the first event in the step opens its span: until then the step can be forbidden
        this.#stepFrom = reading.now
        this.#stepIndex = ctx.state.stepCount
        this.#lastError = undefined // the run continues
        break
      case 'beforeInference':
        this.#tools.offer(ctx.request.tools)
        this.#inference.start(ctx, reading.now)
        break
      case 'afterInference':
        this.#endInference(ctx, reading, { response: ctx.response, durationMs: ctx.durationMs })
        break
      case 'beforeToolUse':
        this.#tools.start(ctx, reading.now)
        break
      case 'afterToolUse':
        this.#tools.end(ctx, reading, this.#inStep().context)
        break
      case 'onError':
        this.#lastError = ctx.error.code
        if (ctx.during === 'aroundInference') this.#endInference(ctx, reading, { error: ctx.error })
        break
      case 'afterStep':
        this.#stepIndex = ctx.step.index
        this.#stepFrom ??= reading.from
        this.#endInference(ctx, reading, { error: ctx.step.errors.findLast(isOfModel) ?? interrupted })
        this.#inStep()
        break
      default: // only its hooks are shown
    }
  }

  #afterHooks(ctx: Seen, now: number): void {
    const { span } = this.#execution
    switch (ctx.trigger) {
      case 'afterStep': {
        const { type, errors } = ctx.step
        const error = errors.at(-1)
        const step = this.#inStep().span
        step.setAttribute(attributes.stepType, type)
        if (type === 'error' && error !== undefined) this.#spans.fail(step, error)
        this.#lastError = error?.code ?? this.#lastError
        this.#endStep(now)
        break
      }
      case 'onPause': // a suspended run ends its spans: how long it waits and where it resumes is unknown
        span.setAttribute(attributes.pending, ctx.pending.length)
        for (const each of this.family.toReversed()) each.#end(now, { status: 'suspended' })
        break
      case 'afterExecution': {
        const { status, reason, by, message } = ctx.state.execution!.final!
        span.setAttributes({ [attributes.stopReason]: reason, [attributes.stopBy]: by })
        this.#spans.addContent(span, () => ({ [attributes.stopMessage]: message, ...finalAnswer(ctx) }))
        const code = status === 'failed' ? (this.#lastError ?? OTHER_ERROR) : undefined
        if (code !== undefined) this.#spans.fail(span, { code, message })
        this.#end(now, { status, code })
        break
      }
      case 'onUserInput': // a blocked input: there was no execution, so this is its only span
        span.setAttributes({ [attributes.stopReason]: 'inputBlocked', [attributes.stopBy]: blockedBy(ctx) })
        this.#end(now, { status: 'stopped' })
        break
      default:
    }
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
    this.#inference.end(answered, reading, { parent: this.#inStep().context, facts })
  }

  #inStep(): OpenSpan {
    return (this.#step ??= this.#spans.open(['step', `${this.#stepIndex + 1}`], {
      at: this.#stepFrom ?? this.#now(),
      parent: this.#execution.context,
      facts: { [attributes.step]: this.#stepIndex },
    }))
  }

  #endStep(now: number): void {
    this.#step?.span.end(now)
    this.#step = undefined
    this.#stepFrom = undefined
  }

  #placeOf({ trigger, step }: Noted): Context {
    const isCurrent = this.#stepFrom !== undefined && step === this.#stepIndex
    const isInStep = trigger === 'onError' ? this.#step !== undefined : ofStep.has(trigger) && isCurrent
    return (isInStep ? this.#inStep() : this.#execution).context
  }

  #end(now: number, { status, code }: { readonly status: ExecutionStatus; readonly code?: string | undefined }): void {
    this.#endStep(now)
    if (this.#parent !== undefined) this.#parent.#children.delete(this)
    const { span } = this.#execution
    const own = spentBetween(this.#spentBefore ?? this.#spent, this.#spent)
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

/**
 * Whether a trigger shows the execution of its run. Before the first checkpoint of a run, `onPause` and `onResume` show none,
 * or an earlier one of the conversation.
 */
export function showsOwn({ trigger, state: { execution } }: Seen): boolean {
  return (trigger !== 'onPause' && trigger !== 'onResume') || execution?.status === 'running'
}

/** The index of the first entry of this trigger. Entries from before a suspension precede it. */
function startOf(trigger: string, ledger: readonly LedgerEntry[]): number {
  let start = ledger.length
  while (start > 0 && ledger.at(start - 1)!.trigger === trigger) start--
  return start
}

/** The hook that blocked an input, if one did. */
export function blockedBy({ ledger }: Seen): string | undefined {
  return ledger.find(({ decision }) => decision === 'block')?.hook
}

function inputOf(ctx: Seen): readonly Message[] {
  const input = ctx.trigger === 'onUserInput' ? ctx.input : ctx.state.messages.at(-1)
  return input === undefined ? [] : [input]
}

function finalAnswer({ state: { execution, lastStep } }: Seen): Attributes {
  if (execution?.status !== 'completed' || lastStep === undefined) return {}
  return outputContent({ content: [{ type: 'text', text: lastStep.text }], finishReason: lastStep.finishReason })
}
