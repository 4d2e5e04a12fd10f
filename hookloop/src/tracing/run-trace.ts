import { context as contexts, SpanKind, type Attributes, type SpanContext } from '@opentelemetry/api'
import type { ErrorRecord, ExecutionStatus } from '../core/state/execution.ts'
import type { InferenceRequest, InferenceResponse } from '../core/state/inference.ts'
import type { Message } from '../core/state/message.ts'
import { subtractUsage, type Usage } from '../core/state/usage.ts'
import type { ObserveContext } from '../core/hooks/context.ts'
import type { HookTrigger, PlainTrigger } from '../core/hooks/triggers.ts'
import { textOfJson } from '../values/json.ts'
import { inputContent, outputContent, systemContent } from './content.ts'
import { attributes, modelFacts, operations, OTHER_ERROR, settingsFacts, usageFacts } from './conventions.ts'
import { readLedger, substituteOf, type HookTime, type Noted, type Reading } from './hook-times.ts'
import type { Instruments, OpenSpan, Spans } from './telemetry.ts'

/** Which hook invocations get a span: those that decided or changed something or failed, or none. */
export type HooksShown = 'decisions' | 'none'

export type TraceOptions = {
  readonly spans: Spans
  readonly instruments: Instruments
  readonly shown: HooksShown
  readonly agentName: string | undefined
}

type Seen<T extends PlainTrigger = PlainTrigger> = ObserveContext<T>

type Answered = {
  readonly response?: InferenceResponse
  readonly durationMs?: number | undefined
  readonly error?: { readonly code: string; readonly message: string }
}

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
 * The spans of one execution, from its start or resumption to its end or suspension: a fold over what triggers show. Only the span
 * of the execution is open during it. The others are created afterwards, with the times at which they started and ended, so that a
 * forbidden step or request leaves no span. What a resumed run only repeats is not observed, except for the hooks that run again.
 */
export class RunTrace {
  readonly agentId: string
  /** The id of the execution, once it is known. */
  id: string | undefined
  readonly #options: TraceOptions
  readonly #own: Attributes
  readonly #execution: OpenSpan
  /** Added to `performance.now()`: a monotonic clock for the whole execution. */
  readonly #origin = Date.now() - performance.now()
  readonly #startedAt: number
  readonly #parent: RunTrace | undefined
  /** The traces of subagents that run now. */
  readonly #children = new Set<RunTrace>()
  /** What had been spent when the first trigger after the start or the repetition was seen, and at the last one. */
  #spentBefore: Usage | undefined
  #spent: Usage
  /** How many ledger entries have been read. */
  #seen: number
  #step: OpenSpan | undefined
  #stepIndex: number
  /** When the step started or, if none is open, when the next one would have. */
  #stepFrom: number | undefined
  /** The model call that has begun, with everything around it. */
  #asked: { readonly at: number; readonly request: InferenceRequest } | undefined
  /** The tools a model may call in this step, and when the last call was authorized: calls that run concurrently start then. */
  #offered: readonly string[] = []
  #authorizedAt: number
  #lastError: string | undefined
  #hasModel = false

  constructor(options: TraceOptions, ctx: Seen, parent?: RunTrace) {
    const { state, ledger, trigger, spent } = ctx
    const agentName = subagentName(ctx) ?? options.agentName
    const isStart = trigger === 'beforeExecution' || trigger === 'onUserInput'
    this.agentId = state.agentId
    this.#options = options
    this.#own = agentName === undefined ? {} : { [attributes.agentName]: agentName }
    this.#spent = spent
    this.#stepIndex = showsOwn(ctx) ? state.stepCount : 0
    this.#seen = isStart ? 0 : ledger.findLastIndex((entry) => entry.trigger !== trigger) + 1 // others are from before a suspension
    const { from, now } = readLedger(ledger.slice(this.#seen), this.#now())
    this.#startedAt = from
    this.#authorizedAt = now
    this.#stepFrom = isStart ? undefined : now
    this.#parent = parent
    if (parent !== undefined) parent.#children.add(this)
    this.#execution = options.spans.open([operations.agent, agentName], {
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
    options.spans.addContent(this.#execution.span, content)
  }

  get spanContext(): SpanContext {
    return this.#execution.span.spanContext()
  }

  /** This trace, and those of the subagents that run now. */
  get family(): readonly RunTrace[] {
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
    const { trigger, spent, ledger } = ctx
    if (trigger !== 'onResume') this.#spentBefore ??= spent // what is repeated is billed in between
    if (trigger !== 'onPause') this.#spent = spent
    const reading = readLedger(ledger.slice(this.#seen), this.#now())
    this.#seen = ledger.length
    this.#beforeHooks(ctx, reading)
    for (const hook of reading.hooks) if (this.#isShown(hook.entry)) this.#addHook(hook)
    this.#afterHooks(ctx, reading.now)
  }

  #beforeHooks(ctx: Seen, reading: Reading): void {
    switch (ctx.trigger) {
      case 'beforeStep': // the first event in the step opens its span: until then the step can be forbidden
        this.#stepFrom = reading.now
        this.#stepIndex = ctx.state.stepCount
        this.#lastError = undefined // the run continues
        break
      case 'beforeInference': {
        const { request, state, signal } = ctx
        const isForbidden = state.execution!.votes.some((vote) => vote.decision === 'forbidContinuation')
        this.#offered = request.tools
        this.#asked = isForbidden || signal.aborted ? undefined : { at: reading.now, request }
        break
      }
      case 'afterInference':
        this.#endInference(reading, { response: ctx.response, durationMs: ctx.durationMs })
        break
      case 'beforeToolUse':
        this.#authorizedAt = reading.now
        break
      case 'afterToolUse':
        this.#endTool(ctx, reading)
        break
      case 'onError':
        this.#lastError = ctx.error.code
        if (ctx.during === 'aroundInference') this.#endInference(reading, { error: ctx.error })
        break
      case 'afterStep':
        this.#stepIndex = ctx.step.index
        this.#stepFrom ??= reading.from
        this.#endInference(reading, { error: ctx.step.errors.findLast(isOfModel) ?? interrupted })
        this.#inStep()
        break
      default: // only its hooks are shown
    }
  }

  #afterHooks(ctx: Seen, now: number): void {
    const { spans } = this.#options
    const { span } = this.#execution
    switch (ctx.trigger) {
      case 'afterStep': {
        const { type, errors } = ctx.step
        const error = errors.at(-1)
        const step = this.#inStep().span
        step.setAttribute(attributes.stepType, type)
        if (type === 'error' && error !== undefined) spans.fail(step, error)
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
        spans.addContent(span, () => ({ [attributes.stopMessage]: message, ...finalAnswer(ctx) }))
        const code = status === 'failed' ? (this.#lastError ?? OTHER_ERROR) : undefined
        if (code !== undefined) spans.fail(span, { code, message })
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

  /** The call has succeeded or failed, if there was one. All attempts of around hooks are in one span. */
  #endInference(reading: Reading, { response, error, durationMs = Infinity }: Answered): void {
    if (this.#asked === undefined) return
    const { at, request } = this.#asked
    const { spans, instruments } = this.#options
    this.#asked = undefined
    if (!this.#hasModel) this.#execution.span.setAttributes(modelFacts(request))
    this.#hasModel = true
    const until = Math.max(at, Math.min(at + durationMs, reading.callEnded))
    const by = substituteOf(reading)
    const measured: Attributes = {
      [attributes.operation]: operations.chat,
      ...modelFacts(request),
      ...(response?.modelId !== undefined && { [attributes.responseModel]: response.modelId }),
    }
    spans.add([operations.chat, request.model.modelId], {
      at,
      until,
      parent: this.#inStep().context,
      facts: {
        ...measured,
        ...settingsFacts(request),
        ...this.#own,
        [attributes.conversation]: this.agentId,
        ...(response && { [attributes.finishReasons]: [response.finishReason] }),
        ...(by === undefined ? response && usageFacts(response.usage) : { [attributes.answeredBy]: by }),
      },
      kind: SpanKind.CLIENT,
      content: () => ({
        ...systemContent(request.system),
        ...inputContent(request.messages),
        ...(response && outputContent(response)),
      }),
      error,
    })
    if (by !== undefined) return // no model was called
    if (response !== undefined) instruments.spent(response.usage, measured)
    instruments.took('duration', until - at, { ...measured, ...(error && { [attributes.errorType]: error.code }) })
  }

  #endTool(ctx: Seen<'afterToolUse'>, reading: Reading): void {
    const { toolCall, toolExecution, durationMs } = ctx
    const { status, output, withheld, truncated, usage, by: decidedBy } = toolExecution
    const { callEnded } = reading
    const at = durationMs === undefined ? callEnded : Math.min(this.#authorizedAt, callEnded)
    const until = Math.min(at + (durationMs ?? 0), callEnded)
    const substitute = substituteOf(reading)
    const by = decidedBy ?? substitute
    const name = isKnown(ctx, this.#offered) ? toolCall.name : undefined
    const named = name === undefined ? {} : { [attributes.toolName]: name }
    this.#options.spans.add([operations.tool, name], {
      at,
      until,
      parent: this.#inStep().context,
      facts: {
        [attributes.operation]: operations.tool,
        [attributes.toolType]: 'function',
        [attributes.toolCall]: toolCall.id,
        ...named,
        ...(by !== undefined && { [attributes.toolBy]: by }),
        [attributes.toolStatus]: status,
        ...(withheld === true && { [attributes.toolWithheld]: true }),
        ...(truncated === true && { [attributes.toolTruncated]: true }),
        ...(usage !== undefined && usageFacts(usage)),
      },
      content: () => ({
        [attributes.toolArguments]: JSON.stringify(toolCall.args),
        [attributes.toolResult]: textOfJson(output),
      }),
      error: status === 'ok' ? undefined : { code: status, message: textOfJson(output) },
    })
    if (durationMs === undefined || substitute !== undefined) return
    this.#options.instruments.took('tool', until - at, {
      ...named,
      [attributes.toolStatus]: status,
      ...(status !== 'ok' && { [attributes.errorType]: status }),
    })
  }

  /** The outcome of a tool is in its own span. */
  #isShown({ mode, trigger, decision, changes, error }: Noted): boolean {
    if (this.#options.shown === 'none' || (mode === 'loop' && trigger === 'aroundToolUse')) return false
    return (decision !== undefined && decision !== 'skipped') || changes !== undefined || error !== undefined
  }

  #addHook({ entry, start, end }: HookTime): void {
    const { hook, mode, trigger, decision, changes, call, message, error, step } = entry
    const isCurrent = this.#stepFrom !== undefined && step === this.#stepIndex
    const isInStep = trigger === 'onError' ? this.#step !== undefined : ofStep.has(trigger) && isCurrent
    this.#options.spans.add(['hook', hook], {
      at: start,
      until: end,
      parent: (isInStep ? this.#inStep() : this.#execution).context,
      facts: {
        [attributes.hook]: hook,
        [attributes.hookMode]: mode,
        [attributes.hookTrigger]: trigger,
        ...(decision !== undefined && { [attributes.hookDecision]: decision }),
        ...(changes !== undefined && { [attributes.hookChanges]: changes.length }),
        ...(call !== undefined && { [attributes.toolCall]: call }),
      },
      content: () => (message === undefined ? {} : { [attributes.hookMessage]: message }),
      error: error === undefined ? undefined : { code: 'HOOK_FAILED', message: error },
    })
  }

  #now(): number {
    return this.#origin + performance.now()
  }

  #inStep(): OpenSpan {
    return (this.#step ??= this.#options.spans.open(['step', `${this.#stepIndex + 1}`], {
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

  #end(now: number, { status, code }: { readonly status: ExecutionStatus; readonly code?: string | undefined }): void {
    this.#endStep(now)
    if (this.#parent !== undefined) this.#parent.#children.delete(this)
    const { span } = this.#execution
    const own = subtractUsage(this.#spent, this.#spentBefore ?? this.#spent)
    span.setAttributes({
      [attributes.status]: status,
      [attributes.steps]: own.steps,
      [attributes.toolCalls]: own.toolCalls,
      ...usageFacts({ ...own, costUsd: Math.round(own.costUsd * 1e9) / 1e9 }), // sums of fractions are inexact
    })
    span.end(now)
    this.#options.instruments.took('execution', now - this.#startedAt, {
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

/**
 * Whether a tool exists. A name that the model invented is content, and there is no limit to them. A tool that was offered
 * earlier began its call, or waited for approval, in another process.
 */
function isKnown({ toolCall, toolExecution, durationMs }: Seen<'afterToolUse'>, offered: readonly string[]): boolean {
  const { rejected, withheld } = toolExecution
  return offered.includes(toolCall.name) || durationMs !== undefined || (rejected !== true && withheld !== true)
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
