import type { Capability } from '../../agent/capability.ts'
import { checkOptions, definedOptions, invalidOption } from '../../agent/check-options.ts'
import { COMPACT_KEY, type AgentState } from '../../state/agent-state.ts'
import type { ModelSource } from '../../state/inference.ts'
import type { Message } from '../../state/message.ts'
import type { CompactOptions } from '../../hooks/compaction.ts'
import { hook, type Hook } from '../../hooks/hook.ts'
import { keptIn, measured, withKept, type Kept } from './kept-counts.ts'
import { Scale } from './scale.ts'
import { summaryBy } from './summary-by.ts'

export type SummarizationOptions = {
  /** Tokens of the latest messages that stay as they are. */
  readonly maxMessageTokens?: number
  /** Tokens that may gather in front of them before they are summed up, all at once. */
  readonly maxBufferTokens?: number
  /** Tokens of the summary. */
  readonly maxSummaryTokens?: number
  /** The model that writes it. Without it, that of the conversation. */
  readonly model?: ModelSource
  /** What a summary is to hold, in place of our own words. */
  readonly instructions?: string
  /** Messages that stay word for word. Always the same answer for the same message. */
  readonly pin?: (message: Message) => boolean
  /** How many tokens a message has, by a tokenizer of yours. Without it, it is guessed from its length. */
  readonly countTokens?: (message: Message) => number
  /** Writes the summary in place of a model. */
  readonly summarize?: CompactOptions['summarize']
}

export const summarizationPolicy = Object.freeze({
  maxMessageTokens: 4_096,
  maxBufferTokens: 8_192,
  maxSummaryTokens: 512,
  model: undefined,
  instructions: undefined,
  pin: undefined,
  countTokens: undefined,
  summarize: undefined,
})

type Policy = Required<Pick<SummarizationOptions, 'maxMessageTokens' | 'maxBufferTokens' | 'maxSummaryTokens'>> &
  SummarizationOptions

/**
 * Puts a summary in the place of the beginning of a conversation that has grown too long: rarely and in big bites,
 * because whatever changes there is a cache that the provider cannot use. If it fails, the run goes on without it.
 */
export function summarization(options: SummarizationOptions = {}): Capability {
  const policy = checked(options)
  const { maxMessageTokens, maxBufferTokens, maxSummaryTokens, model } = policy
  const scale = new Scale(policy)
  return {
    name: 'summarization',
    hooks: [compactHook(policy, scale), countHook(scale), doneHook(), overflowHook()],
    ...(model !== undefined && { models: [model] }),
    notes: [
      `Summarization: beyond ${maxMessageTokens + maxBufferTokens} tokens of messages, down to ${maxMessageTokens} and a summary of ${maxSummaryTokens}.`,
    ],
  }
}

function checked(options: SummarizationOptions): Policy {
  checkOptions('summarization', options, Object.keys(summarizationPolicy))
  const { model, instructions, pin, countTokens, summarize, ...sizes } = definedOptions(options)
  const policy = { ...summarizationPolicy, ...sizes }
  for (const name of ['maxMessageTokens', 'maxBufferTokens', 'maxSummaryTokens'] as const) {
    if (!Number.isSafeInteger(policy[name]) || policy[name] < 1)
      throw invalidOption('summarization', `"${name}" must be a whole number from 1 up`, policy[name])
  }
  if (instructions !== undefined && (typeof instructions !== 'string' || instructions === ''))
    throw invalidOption('summarization', '"instructions" must be a text', instructions)
  for (const [name, value] of Object.entries({ pin, countTokens, summarize })) {
    if (value !== undefined && typeof value !== 'function')
      throw invalidOption('summarization', `"${name}" must be a function`, value)
  }
  if (summarize !== undefined && (model !== undefined || instructions !== undefined))
    throw invalidOption('summarization', '"summarize" takes the place of "model" and "instructions"', options)
  return definedOptions({ ...policy, model, instructions, pin, countTokens, summarize }) as Policy
}

/** Asks for a summary when it is time. Last, so that it sees what other hooks have added. */
function compactHook(policy: Policy, scale: Scale): Hook {
  const { maxMessageTokens, maxBufferTokens, pin } = policy
  const summarize = policy.summarize ?? summaryBy(policy)
  return hook(
    'beforeStep',
    (ctx) => {
      const { state } = ctx
      const kept = keptIn(state)
      const tokens = measured(state, kept, scale)
      const requested = state.metadata[COMPACT_KEY] === true
      const forced = requested || kept.overflowed === true
      const isTime = tokens > maxMessageTokens + maxBufferTokens && tokens >= (kept.notBefore ?? 0)
      if (!forced && !isTime) return ctx
      const budget = forced ? Math.min(maxMessageTokens, tokens / 2) : maxMessageTokens
      const { keep, going } = scale.part(state.messages, { tokens, budget })
      const heard = ctx.withState((each) => each.withoutMetadata(COMPACT_KEY))
      if (forced && keep === state.messages.length) return heard
      // A bite that is too small would cost the provider's cache and win nothing.
      if (!forced && going < maxBufferTokens / 2) return ctx
      const begun = heard.withState((each) => begin(each, { kept, tokens, maxBufferTokens }))
      return begun.compact({ keep, summarize, requested, ...(pin !== undefined && { pin }) })
    },
    { name: 'summarization.compact', priority: -300, onFailure: 'continue' },
  )
}

/** Should it fail, the next try comes when so much more was said, and twice as much after each further failure. */
function begin(
  state: AgentState,
  { kept, tokens, maxBufferTokens }: { kept: Kept; tokens: number; maxBufferTokens: number },
): AgentState {
  const tries = Math.min((kept.tries ?? 0) + 1, 20)
  const notBefore = Math.round(tokens + (maxBufferTokens / 4) * 2 ** (tries - 1))
  return withKept(state, { ...kept, tries, notBefore })
}

/** Finds out, once, what a call has beyond its messages; and that the model takes the conversation again. */
function countHook(scale: Scale): Hook {
  return hook(
    'afterInference',
    (ctx) => {
      const { overflowed, ...kept } = keptIn(ctx.state)
      const { inputTokens } = ctx.response.usage
      const isNew = kept.fixed === undefined && inputTokens > 0
      if (!isNew && overflowed === undefined) return ctx
      const fixed = isNew ? Math.max(0, Math.round(inputTokens - scale.sum(ctx.request.messages).all)) : kept.fixed
      return ctx.withState((state) => withKept(state, { ...kept, ...(fixed !== undefined && { fixed }) }))
    },
    { name: 'summarization.count', priority: -300, stream: 'after', onFailure: 'continue' },
  )
}

/** It worked: failures are counted from nothing again. */
function doneHook(): Hook {
  return hook(
    'afterCompaction',
    (ctx) => {
      const { fixed, overflowed } = keptIn(ctx.state)
      return ctx.withState((state) =>
        withKept(state, { ...(fixed !== undefined && { fixed }), ...(overflowed !== undefined && { overflowed }) }),
      )
    },
    { name: 'summarization.done' },
  )
}

/** A conversation that the model does not take is summed up and sent again, once. */
function overflowHook(): Hook {
  return hook(
    'onError',
    (ctx) => {
      const kept = keptIn(ctx.state)
      if (ctx.error.code !== 'MODEL_CONTEXT_OVERFLOW' || kept.overflowed === true) return ctx
      return ctx.withState((state) => withKept(state, { ...kept, overflowed: true })).ignore()
    },
    { name: 'summarization.overflow', priority: 100 },
  )
}
