import {
  hook,
  messageList,
  metadataKeys,
  type AgentState,
  type Capability,
  type CompactOptions,
  type Hook,
  type Message,
  type ModelSource,
} from '../../plugin.ts'
import { invalidOption, readOptions, type Filled } from '../../values/check-options.ts'
import { isJsonObject, type Json } from '../../values/json.ts'
import { TokenCounter } from './token-counter.ts'
import { summarizeWithModel } from './summarize-with-model.ts'

/** Options of `summarization`. */
export type SummarizationOptions = {
  /** Tokens of the latest messages that are kept unchanged. Default 4,096. */
  readonly maxMessageTokens?: number
  /** Tokens of older messages that accumulate before they are summarized, all at once. Default 8,192. */
  readonly maxBufferTokens?: number
  /** Tokens of the summary. Default 512. */
  readonly maxSummaryTokens?: number
  /** The model that writes the summary. Default: the model of the conversation. */
  readonly model?: ModelSource
  /** The system prompt for the summary. Default: a general one. */
  readonly instructions?: string
  /** Messages that are never summarized. Must be deterministic. Default none. */
  readonly pin?: (message: Message) => boolean
  /** Counts the tokens of a message with your tokenizer. Default: an estimate from its length. */
  readonly countTokens?: (message: Message) => number
  /** Writes the summary instead of a model. Default: a model writes it. */
  readonly summarize?: CompactOptions['summarize']
}

export const summarizationDefaults = Object.freeze({
  maxMessageTokens: 4_096,
  maxBufferTokens: 8_192,
  maxSummaryTokens: 512,
  model: undefined,
  instructions: undefined,
  pin: undefined,
  countTokens: undefined,
  summarize: undefined,
})

type Policy = Filled<SummarizationOptions, typeof summarizationDefaults>

/**
 * Replaces the start of a long conversation by a summary: rarely and in large parts, because each change invalidates the
 * provider's prompt cache. If it fails, the run continues with the full conversation.
 *
 * @example
 * createAgent({ model, use: [summarization({ model: 'anthropic/claude-haiku-4-5', maxMessageTokens: 8_192 })] })
 */
export function summarization(options: SummarizationOptions = {}): Capability {
  const policy = readOptions('summarization', options, summarizationDefaults)
  check(policy)
  const { maxMessageTokens, maxBufferTokens, maxSummaryTokens, model } = policy
  const counter = new TokenCounter(policy)
  return {
    name: 'summarization',
    hooks: [compactHook(policy, counter), countHook(counter), doneHook(), overflowHook()],
    ...(model !== undefined && { models: [model] }),
    notes: [
      `Summarization: beyond ${maxMessageTokens + maxBufferTokens} tokens of messages, down to ${maxMessageTokens} and a summary of ${maxSummaryTokens}.`,
    ],
  }
}

function check({ model, instructions, summarize }: Policy): void {
  if (summarize !== undefined && (model !== undefined || instructions !== undefined))
    throw invalidOption('summarization', '"summarize" cannot be combined with "model" or "instructions"', summarize)
}

/** Requests a summary when the conversation is too long. Runs last, so that it sees what other hooks have added. */
function compactHook(policy: Policy, counter: TokenCounter): Hook {
  const { maxMessageTokens, maxBufferTokens, pin } = policy
  const summarize = policy.summarize ?? summarizeWithModel(policy)
  return hook(
    'beforeStep',
    (ctx) => {
      const { state } = ctx
      const messages = messageList(state)
      const stored = storedIn(state)
      const tokens = countTokens(state, stored, counter)
      const requested = state.metadata[metadataKeys.compact] === true
      const forced = requested || stored.overflowed === true
      const isTime = tokens > maxMessageTokens + maxBufferTokens && tokens >= (stored.notBefore ?? 0)
      if (!forced && !isTime) return ctx
      const budget = forced ? Math.min(maxMessageTokens, tokens / 2) : maxMessageTokens
      const { keep, going } = counter.split(messages, { tokens, budget })
      const accepted = ctx.withState((each) => each.withoutMetadata(metadataKeys.compact))
      if (forced && keep === messages.length) return accepted
      // Too small a part would invalidate the prompt cache and gain nothing.
      if (!forced && going < maxBufferTokens / 2) return ctx
      const started = accepted.withState((each) => countAttempt(each, { stored, tokens, maxBufferTokens }))
      return started.compact({ keep, summarize, requested, ...(pin !== undefined && { pin }) })
    },
    { name: 'summarization.compact', bookkeeping: true, priority: -300, onFailure: 'continue' },
  )
}

/** If it fails, the next attempt waits until the conversation has grown, twice as much after each further failure. */
function countAttempt(
  state: AgentState,
  { stored, tokens, maxBufferTokens }: { stored: Stored; tokens: number; maxBufferTokens: number },
): AgentState {
  const tries = Math.min((stored.tries ?? 0) + 1, 20)
  const notBefore = Math.round(tokens + (maxBufferTokens / 4) * 2 ** (tries - 1))
  return store(state, { ...stored, tries, notBefore })
}

/** Measures once how many tokens a call has besides its messages, and notes that the model accepts the conversation again. */
function countHook(counter: TokenCounter): Hook {
  return hook(
    'afterInference',
    (ctx) => {
      const { overflowed, ...stored } = storedIn(ctx.state)
      const { inputTokens } = ctx.response.usage
      const isNew = stored.fixed === undefined && inputTokens > 0
      if (!isNew && overflowed === undefined) return ctx
      const fixed = isNew
        ? Math.max(0, Math.round(inputTokens - counter.sum(messageList(ctx.request)).all))
        : stored.fixed
      return ctx.withState((state) => store(state, { ...stored, ...(fixed !== undefined && { fixed }) }))
    },
    { name: 'summarization.count', bookkeeping: true, priority: -300, stream: 'after', onFailure: 'continue' },
  )
}

/** After a successful summary, failures are counted from 0 again. */
function doneHook(): Hook {
  return hook(
    'afterCompaction',
    (ctx) => {
      const { fixed, overflowed } = storedIn(ctx.state)
      return ctx.withState((state) =>
        store(state, { ...(fixed !== undefined && { fixed }), ...(overflowed !== undefined && { overflowed }) }),
      )
    },
    { name: 'summarization.done', bookkeeping: true },
  )
}

/** A conversation that is too long for the model is summarized and sent again, once. */
function overflowHook(): Hook {
  return hook(
    'onError',
    (ctx) => {
      const stored = storedIn(ctx.state)
      if (ctx.error.code !== 'MODEL_CONTEXT_OVERFLOW' || stored.overflowed === true) return ctx
      return ctx.withState((state) => store(state, { ...stored, overflowed: true })).ignore()
    },
    { name: 'summarization.overflow', bookkeeping: true, priority: 100 },
  )
}

export const SUMMARIZATION_KEY = 'hookloop.summarization'

/** What is stored in the state's metadata. Nothing here changes with every step. */
type Stored = {
  /** Tokens of a call besides its messages: the system prompt and the tools. */
  readonly fixed?: number
  /** Failed attempts. */
  readonly tries?: number
  /** The number of tokens that the conversation must have before the next attempt. */
  readonly notBefore?: number
  /** The last request was too long for the model. */
  readonly overflowed?: true
}

function storedIn({ metadata }: AgentState): Stored {
  const stored: Json | undefined = metadata[SUMMARIZATION_KEY]
  return isJsonObject(stored) ? stored : {}
}

function store(state: AgentState, stored: Stored): AgentState {
  return state.withMetadata(SUMMARIZATION_KEY, stored)
}

/**
 * The number of tokens of a conversation: what the provider counted in the last step, and an estimate of what was added
 * since. All of it is estimated if there is no step yet, the provider does not count, or the conversation was replaced.
 */
function countTokens(state: AgentState, { fixed }: Stored, counter: TokenCounter): number {
  const { lastStep } = state
  const messages = messageList(state)
  if (lastStep === undefined) return counter.sum(messages).all
  const { inputTokens, outputTokens, reasoningTokens } = lastStep.usage
  const seen = lastStep.messageCount + 1 // and the answer
  if (inputTokens === 0 || fixed === undefined || seen > messages.length) return counter.sum(messages).all
  const counted = Math.max(0, inputTokens - fixed) + Math.max(0, outputTokens - reasoningTokens)
  return messages.slice(seen).reduce((sum, message) => sum + counter.count(message), counted)
}
