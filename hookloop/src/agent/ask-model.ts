import {
  isFinishReason,
  toResponse,
  type InferenceRequest,
  type InferenceResponse,
  type LanguageModel,
  type ModelReply,
  type ModelRequest,
  type ToolDescription,
} from '../data/inference.ts'
import { isJsonObject, toJson } from '../data/json.ts'
import { isReplyPart } from '../data/message.ts'
import { noTokens, toTokens, type TokenUsage } from '../data/usage.ts'
import { AgentError, toAgentError } from '../errors.ts'
import type { LiveRun } from './live-run.ts'
import { plainValue, type ModelCallPlan } from './model-call-record.ts'

/** Asks the model once, and tells whoever watches that it is asked and that it failed. */
export async function askModel(
  run: LiveRun,
  call: ModelCallPlan,
  { request, signal, number }: { request: InferenceRequest; signal: AbortSignal; number: number },
): Promise<InferenceResponse> {
  const answer = call.stream?.open()
  const asked = toModelRequest(run, request)
  const heeded = limitedSignal(run, call, signal)
  const { emit } = run.effects
  const place = emit && { step: run.step, attempt: number, model: nameOf(request.model) }
  emit?.({ type: 'inferenceStarted', ...place! })
  try {
    const how = answer === undefined ? { signal: heeded } : { signal: heeded, onDelta: answer.write }
    const reply = request.model.infer(asked, how)
    const given = await run.outstanding.abortable(
      run.deadline.within(reply instanceof Promise ? reply : Promise.resolve(reply)),
    )
    return toCheckedReply(given, request.model)
  } catch (thrown) {
    const { code, message } = toAgentError(thrown, 'MODEL_FAILED')
    if (!signal.aborted) emit?.({ type: 'inferenceFailed', ...place!, error: { code, message } })
    throw thrown
  } finally {
    const looking = signal.aborted ? undefined : answer?.settled()
    if (looking !== undefined) await run.outstanding.abortable(looking).catch(() => undefined)
  }
}

/** The signal a call heeds: that of the run, that of its attempt, and that of the time it has. */
function limitedSignal(run: LiveRun, { limit }: ModelCallPlan, signal: AbortSignal): AbortSignal {
  if (limit === undefined) return signal
  const limited = run.deadline.signalFor(limit) // aborts with the run as well
  return signal === run.signal ? limited : AbortSignal.any([signal, limited])
}

export function nameOf({ provider, modelId }: LanguageModel): string {
  return `${provider}/${modelId}`
}

function toModelRequest(run: LiveRun, request: InferenceRequest): ModelRequest {
  const { system, messages, tools, toolChoice, responseFormat, settings } = request
  const { toolNames, descriptionList } = run.parts
  return {
    system,
    messages,
    tools: tools === toolNames ? descriptionList : tools.map((name) => describeTool(run, name)),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(responseFormat !== undefined && { responseFormat }),
    ...(settings !== undefined && { settings }),
  }
}

function describeTool(run: LiveRun, name: string): ToolDescription {
  const found = run.parts.descriptions.get(name)
  if (found !== undefined) return found
  throw new AgentError('HOOK_FAILED', `A hook offered the model a tool "${name}" that the agent does not have.`, {
    value: name,
  })
}

function toCheckedReply(reply: ModelReply, model: LanguageModel): InferenceResponse {
  const content = Array.isArray(reply?.content) ? plainValue(reply.content).value : undefined
  if (!Array.isArray(content) || !content.every(isReplyPart) || !isFinishReason(reply.finishReason)) {
    throw new AgentError(
      'MODEL_REPLY_INVALID',
      'The model answered with something that is not a reply.',
      plainValue(reply),
    )
  }
  const { finishReason, modelId, warnings } = reply
  return toResponse({
    content,
    finishReason,
    usage: usageOf(reply, model),
    ...(typeof modelId === 'string' && { modelId }),
    ...(Array.isArray(warnings) && { warnings: Object.freeze(warnings.map(String)) }),
  })
}

function usageOf({ usage }: ModelReply, { cost }: LanguageModel): TokenUsage {
  const tokens = toTokens(usage ?? noTokens)
  if (typeof cost !== 'function' || usage?.costUsd !== undefined) return tokens
  const costUsd = cost(tokens)
  if (typeof costUsd === 'number' && costUsd >= 0 && costUsd < Infinity) return toTokens({ ...tokens, costUsd })
  // Counted as nothing, it would take every limit on cost away.
  throw new AgentError('MODEL_INVALID', 'The "cost" of the model gave no amount.', plainValue({ costUsd }))
}

/** What an around hook returned, if it is a response: from `next`, or its own. */
export function toCheckedResponse(value: unknown): InferenceResponse | undefined {
  if (!isJsonObject(value) || !Array.isArray(value['content'])) return undefined
  const content = toJson(value['content'])
  if (!Array.isArray(content) || !content.every(isReplyPart)) return undefined
  const finishReason = value['finishReason']
  return toResponse({
    content,
    finishReason: isFinishReason(finishReason) ? finishReason : 'stop',
    usage: toTokens((value['usage'] ?? noTokens) as Partial<TokenUsage>),
    ...(typeof value['modelId'] === 'string' && { modelId: value['modelId'] }),
    ...(Array.isArray(value['warnings']) && { warnings: Object.freeze(value['warnings'].map(String)) }),
  })
}
