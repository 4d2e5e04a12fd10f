import type { LanguageModelV4Content } from '@ai-sdk/provider'
import { isFinishReason, type FinishReason, type ModelReply } from '../../data/inference.ts'
import { isJsonObject, toJson, type JsonObject } from '../../data/json.ts'
import type { FilePart, Part } from '../../data/message.ts'
import { toTokens, type TokenUsage } from '../../data/usage.ts'
import { AgentError } from '../../errors.ts'
import { readArguments } from './arguments.ts'
import type { ToolNames } from './tool-names.ts'

export type AnswerPart = LanguageModelV4Content

/** What a model of any version of the specification answers, as far as it matters here. */
export type Answer = {
  readonly content: readonly AnswerPart[]
  readonly finishReason: string | { readonly unified: string; readonly raw: string | undefined }
  readonly usage: unknown
  readonly warnings?: readonly unknown[]
  readonly response?: { readonly modelId?: string | undefined }
}

/** The answer as our own plain values. */
export function toReply(
  answer: Answer,
  names: ToolNames,
  warnings: readonly string[],
): ModelReply & { usage: TokenUsage } {
  const told = [...warnings, ...(answer.warnings ?? []).map(wordWarning)]
  const content = answer.content.flatMap((part) => toParts(part, { names, told }))
  const finishReason = finishReasonOf(answer, content)
  const modelId = answer.response?.modelId
  if (finishReason === 'error' && content.length === 0) {
    const raw = typeof answer.finishReason === 'string' ? '' : (answer.finishReason.raw ?? '')
    throw new AgentError('MODEL_REPLY_INVALID', `The model ended with an error and no answer. ${raw}`.trim())
  }
  return {
    content,
    finishReason,
    usage: usageOf(answer.usage),
    ...(modelId !== undefined && { modelId }),
    ...(told.length > 0 && { warnings: told }),
  }
}

type Context = { readonly names: ToolNames; readonly told: string[] }

function toParts(part: AnswerPart, { names, told }: Context): readonly Part[] {
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, ...optionsOf(part) }]
    case 'reasoning': {
      const options = optionsOf(part)
      // A thought that the provider keeps to itself has no text, and must be sent back all the same.
      return part.text === '' && options.providerOptions === undefined
        ? []
        : [{ type: 'reasoning', text: part.text, ...options }]
    }
    case 'file': {
      const file = toFile(part)
      return file === undefined ? [] : [file]
    }
    case 'tool-call': {
      if (part.providerExecuted === true) {
        told.push(`The provider ran its own tool "${part.toolName}", which hooks cannot see; it is left out.`)
        return []
      }
      const { input, mended } = readArguments(part.input)
      const toolName = names.own(part.toolName)
      if (mended !== undefined) told.push(`The arguments for ${toolName} were mended: ${mended}.`)
      return [{ type: 'tool-call', toolCallId: part.toolCallId, toolName, input, ...optionsOf(part) }]
    }
    default:
      return [] // sources, custom parts and results of the provider's own tools: nothing an agent acts on
  }
}

/** What the provider wants to see again with the part: a signature, an id. */
function optionsOf({ providerMetadata }: { readonly providerMetadata?: unknown }): { providerOptions?: JsonObject } {
  if (!isJsonObject(providerMetadata)) return {}
  return { providerOptions: toJson(providerMetadata) as JsonObject }
}

function toFile(part: Extract<AnswerPart, { type: 'file' }>): FilePart | undefined {
  const { mediaType } = part
  const data: unknown = part.data // V2 and V3 give the bytes themselves
  const given =
    isJsonObject(data) && 'type' in data ? ((data as { data?: unknown; url?: unknown }).data ?? data['url']) : data
  if (given instanceof Uint8Array)
    return { type: 'file', mediaType, data: Buffer.from(given).toString('base64'), ...optionsOf(part) }
  const text = given instanceof URL ? given.href : given
  return typeof text === 'string' ? { type: 'file', mediaType, data: text, ...optionsOf(part) } : undefined
}

function finishReasonOf({ finishReason }: Answer, content: readonly Part[]): FinishReason {
  const given = typeof finishReason === 'string' ? finishReason : finishReason?.unified
  const reason = isFinishReason(given) && given !== 'withheld' ? given : 'other'
  // Some say `stop` although they call tools.
  const calls = content.some((part) => part.type === 'tool-call')
  return calls && (reason === 'stop' || reason === 'other') ? 'tool-calls' : reason
}

type NestedUsage = {
  readonly inputTokens?: { readonly total?: number; readonly cacheRead?: number; readonly cacheWrite?: number } | number
  readonly outputTokens?: { readonly total?: number; readonly reasoning?: number } | number
  readonly cachedInputTokens?: number
  readonly reasoningTokens?: number
}

function usageOf(usage: unknown): TokenUsage {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = (usage ?? {}) as NestedUsage
  const input = typeof inputTokens === 'object' ? inputTokens : { total: inputTokens, cacheRead: cachedInputTokens }
  const output = typeof outputTokens === 'object' ? outputTokens : { total: outputTokens, reasoning: reasoningTokens }
  return toTokens({
    inputTokens: input?.total,
    outputTokens: output?.total,
    cachedInputTokens: input?.cacheRead,
    cacheWriteTokens: (input as { cacheWrite?: number } | undefined)?.cacheWrite,
    reasoningTokens: output?.reasoning,
  })
}

function wordWarning(warning: unknown): string {
  const { type, feature, setting, details, message } = (warning ?? {}) as { [key: string]: string | undefined }
  const what = feature ?? setting
  const words = details ?? message
  if (what === undefined) return words ?? 'The provider gave a warning without words.'
  return `${what}: ${type ?? 'warning'}${words === undefined ? '' : `, ${words}`}`
}
