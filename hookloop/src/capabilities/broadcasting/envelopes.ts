import { toJson, type Json } from '../../data/json.ts'
import type { ToolCall, ToolExecution } from '../../data/tool-call.ts'
import type { ObserveContext } from '../../hooks/context.ts'
import type { PlainTrigger } from '../../hooks/triggers.ts'

export type Preset = 'minimal' | 'standard' | 'debug'
/** What happened: a type and what there is to say about it. */
export type News = { readonly type: string; readonly payload: { readonly [name: string]: Json } }

type Telling<T extends PlainTrigger> = {
  readonly [K in T]: (ctx: ObserveContext<K>, maxChars: number) => readonly News[]
}

/** How an execution goes: nothing of what was said. */
const minimal = {
  beforeExecution: ({ state }) => [{ type: 'execution.started', payload: { number: state.executionCount } }],
  onPause: ({ pending }) => [
    {
      type: 'execution.suspended',
      payload: { pending: pending.map(({ id, toolCall, message }) => ({ id, tool: toolCall.name, message })) },
    },
  ],
  onResume: ({ answers }) => [{ type: 'execution.resumed', payload: { answered: Object.keys(answers) } }],
  onError: ({ error }) => [{ type: 'error', payload: { ...error } }],
  afterExecution: ({ state }) => {
    const final = state.execution?.final
    if (final === undefined) return []
    const { status, reason, by, message } = final
    const { steps, usage } = state.execution!
    return [{ type: 'execution.finished', payload: { status, reason, by, message, steps: steps.length, usage } }]
  },
} satisfies Partial<Telling<PlainTrigger>>

/** Steps and calls as well, with what the model said, and without what went into tools and came out of them. */
const standard = {
  ...minimal,
  beforeStep: ({ state }) => [{ type: 'step.started', payload: { step: state.stepCount } }],
  beforeToolUse: ({ toolCall }) => [{ type: 'tool.requested', payload: named(toolCall) }],
  afterToolUse: ({ toolCall, toolExecution, durationMs }) => [
    { type: 'tool.finished', payload: { ...named(toolCall), ...ended(toolExecution, durationMs) } },
  ],
  afterStep: ({ step }, maxChars) => [
    {
      type: 'step.finished',
      payload: { step: step.index, type: step.type, text: short(step.text, maxChars), usage: step.usage },
    },
  ],
} satisfies Partial<Telling<PlainTrigger>>

/** Everything that somebody who looks for a mistake wants to see. */
const debug = {
  ...standard,
  beforeInference: ({ request }) => [
    {
      type: 'inference.started',
      payload: {
        model: `${request.model.provider}/${request.model.modelId}`,
        messages: request.messages.length,
        tools: [...request.tools],
      },
    },
  ],
  afterInference: ({ response }, maxChars) => [
    {
      type: 'inference.finished',
      payload: { text: short(response.text, maxChars), finishReason: response.finishReason, usage: response.usage },
    },
  ],
  beforeToolUse: ({ toolCall }, maxChars) => [
    { type: 'tool.requested', payload: { ...named(toolCall), args: preview(toolCall.args, maxChars) } },
  ],
  afterToolUse: ({ toolCall, toolExecution, durationMs }, maxChars) => [
    {
      type: 'tool.finished',
      payload: {
        ...named(toolCall),
        ...ended(toolExecution, durationMs),
        output: preview(toolExecution.output, maxChars),
      },
    },
  ],
  afterStep: (ctx, maxChars) => [...decisions(ctx, maxChars), ...standard.afterStep(ctx, maxChars)],
} satisfies Partial<Telling<PlainTrigger>>

type AnyTelling = { readonly [trigger: string]: (ctx: never, maxChars: number) => readonly News[] }

export const presets: { readonly [P in Preset]: AnyTelling } = { minimal, standard, debug }

function named({ id, name }: ToolCall): { readonly callId: string; readonly name: string } {
  return { callId: id, name }
}

function ended({ status, by }: ToolExecution, durationMs: number | undefined): { readonly [name: string]: Json } {
  return { status, ...(by !== undefined && { by }), ...(durationMs !== undefined && { durationMs }) }
}

/** What hooks decided and changed in a step, and where they failed. */
function decisions({ ledger, step }: ObserveContext<'afterStep'>, maxChars: number): readonly News[] {
  const told = ledger.filter(
    (entry) => entry.step === step.index && (entry.decision ?? entry.changes ?? entry.error) !== undefined,
  )
  return told.map((entry) => ({ type: 'hook', payload: { entry: preview(entry, maxChars) } }))
}

function short(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`
}

/** A value as it is, or the beginning of its text where it is long. */
function preview(value: unknown, maxChars: number): Json {
  const json = toJson(value)
  const text = JSON.stringify(json)
  return text.length <= maxChars ? json : { preview: short(text, maxChars), chars: text.length }
}
