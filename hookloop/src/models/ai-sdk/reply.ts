import type { LanguageModelV4Content } from '@ai-sdk/provider'
import { isFinishReason, type FinishReason, type ModelReply, type ModelRequest } from '../../core/state/inference.ts'
import { isJsonObject, toJson, type JsonObject } from '../../values/json.ts'
import type { FilePart, Part } from '../../core/state/message.ts'
import { toTokens, type TokenUsage } from '../../core/state/usage.ts'
import { AgentError } from '../../errors.ts'
import { estimateInput, estimateTokens, USAGE_ESTIMATED } from '../../core/model/estimate-usage.ts'
import { readArguments } from './arguments.ts'
import type { ToolNames } from './tool-names.ts'

export type AnswerPart = LanguageModelV4Content

/** The reply of a model of any version of the specification, as far as it is used here. */
export type Answer = {
  readonly content: readonly AnswerPart[]
  readonly finishReason: string | { readonly unified: string; readonly raw: string | undefined } | undefined
  readonly usage: unknown
  readonly warnings?: readonly unknown[]
  readonly response?: { readonly modelId?: string | undefined }
}

/** Converts a reply to plain values. */
export function toReply(
  answer: Answer,
  { request, names, warnings }: Asked,
): ModelReply & { usage: Omit<TokenUsage, 'costUsd'> } {
  const notes = [...warnings, ...(answer.warnings ?? []).map(wordWarning)]
  const content = answer.content.flatMap((part) => toParts(part, { names, notes }))
  const usage = usageOf(answer.usage)
  if (usage.inputTokens === undefined || usage.outputTokens === undefined) {
    notes.push(USAGE_ESTIMATED)
  }
  const finishReason = finishReasonOf(answer, content)
  const modelId = answer.response?.modelId
  if (content.length === 0 && isNoReply(answer.finishReason)) {
    const raw = typeof answer.finishReason === 'object' ? (answer.finishReason.raw ?? '') : ''
    throw new AgentError('MODEL_REPLY_INVALID', `The model ended without a reply. ${raw}`.trim())
  }
  return {
    content,
    finishReason,
    usage: {
      ...usage,
      inputTokens: usage.inputTokens ?? estimateInput(request),
      outputTokens: usage.outputTokens ?? estimateTokens(content),
    },
    ...(modelId !== undefined && { modelId }),
    ...(notes.length > 0 && { warnings: notes }),
  }
}

/** The request, and the warnings it caused. */
export type Asked = {
  readonly request: Pick<ModelRequest, 'system' | 'messages'>
  readonly names: ToolNames
  readonly warnings: readonly string[]
}

/** Whether the finish reason is an error, or missing. */
function isNoReply(reason: Answer['finishReason']): boolean {
  if (typeof reason !== 'object') return reason === 'error' || reason === 'unknown'
  return reason.unified === 'error' || (reason.unified === 'other' && reason.raw === undefined)
}

type Context = { readonly names: ToolNames; readonly notes: string[] }

function toParts(part: AnswerPart, { names, notes }: Context): readonly Part[] {
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, ...optionsOf(part) }]
    case 'reasoning': {
      const options = optionsOf(part)
      // Encrypted reasoning has no text, and must be sent back all the same.
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
        notes.push(`The provider ran its own tool "${part.toolName}", which hooks cannot see. It is left out.`)
        return []
      }
      const { input, repaired } = readArguments(part.input)
      const toolName = names.own(part.toolName)
      // An unknown name is text of the model, which hooks have not judged yet.
      if (repaired !== undefined) {
        notes.push(
          `The arguments for ${names.has(part.toolName) ? toolName : 'an unknown tool'} were repaired: ${repaired}.`,
        )
      }
      return [{ type: 'tool-call', toolCallId: part.toolCallId ?? '', toolName, input, ...optionsOf(part) }]
    }
    default:
      return [] // sources, custom parts and results of the provider's own tools: an agent does not use them
  }
}

/** What the provider expects back with the part: a signature, an id. */
function optionsOf({ providerMetadata }: { readonly providerMetadata?: unknown }): { providerOptions?: JsonObject } {
  if (!isJsonObject(providerMetadata)) return {}
  return { providerOptions: toJson(providerMetadata) as JsonObject }
}

function toFile(part: Extract<AnswerPart, { type: 'file' }>): FilePart | undefined {
  const { mediaType } = part
  const data: unknown = part.data // V2 and V3 have the bytes themselves
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
  // Some providers report `stop` although the model calls tools.
  const calls = content.some((part) => part.type === 'tool-call')
  return calls && (reason === 'stop' || reason === 'other') ? 'tool-calls' : reason
}

type NestedUsage = {
  readonly inputTokens?: { readonly total?: number; readonly cacheRead?: number; readonly cacheWrite?: number } | number
  readonly outputTokens?: { readonly total?: number; readonly reasoning?: number } | number
  readonly cachedInputTokens?: number
  readonly reasoningTokens?: number
}

/** Usage without cost, which prices determine. A count that is not reported or not a number is undefined. */
function usageOf(usage: unknown): Omit<TokenUsage, 'costUsd' | Side> & { readonly [S in Side]: number | undefined } {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = (usage ?? {}) as NestedUsage
  const input = typeof inputTokens === 'object' ? inputTokens : { total: inputTokens, cacheRead: cachedInputTokens }
  const output = typeof outputTokens === 'object' ? outputTokens : { total: outputTokens, reasoning: reasoningTokens }
  const { costUsd: _unknown, ...tokens } = toTokens({
    cachedInputTokens: input?.cacheRead,
    cacheWriteTokens: (input as { cacheWrite?: number } | undefined)?.cacheWrite,
    reasoningTokens: output?.reasoning,
  })
  return { ...tokens, inputTokens: counted(input?.total), outputTokens: counted(output?.total) }
}

type Side = 'inputTokens' | 'outputTokens'

function counted(total: unknown): number | undefined {
  return typeof total === 'number' && total >= 0 && total <= Number.MAX_SAFE_INTEGER ? total : undefined
}

function wordWarning(warning: unknown): string {
  const { type, feature, setting, details, message } = (warning ?? {}) as { [key: string]: string | undefined }
  const what = feature ?? setting
  const words = details ?? message
  if (what === undefined) return words ?? 'The provider returned a warning without a message.'
  return `${what}: ${type ?? 'warning'}${words === undefined ? '' : `, ${words}`}`
}
