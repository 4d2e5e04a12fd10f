import {
  isFinishReason,
  toBilledResponse,
  type InferenceRequest,
  type InferenceResponse,
  type ModelRequest,
  type ToolDescription,
} from '../../state/inference.ts'
import { isJsonObject, toJson } from '../../state/json.ts'
import { areReplyParts } from '../../state/message.ts'
import { noTokens, toTokens, type TokenUsage } from '../../state/usage.ts'
import { AgentError } from '../../errors.ts'
import type { OpenAnswer } from './stream.ts'
import { askOnce, type Question } from './send-request.ts'
import type { RunContext } from '../loop/run-context.ts'
import type { ModelCallPlan } from './model-call-record.ts'

type Attempt = { readonly request: InferenceRequest; readonly signal: AbortSignal; readonly number: number }

// Not async where nothing is streamed: this is waited for in every step, and each frame is kept until the model answers.

/** Asks the model of a step once, and lets its answer be seen while it is written. */
export function askModel(run: RunContext, call: ModelCallPlan, attempt: Attempt): Promise<InferenceResponse> {
  const answer = call.stream?.open()
  return answer === undefined ? ask(run, call, attempt) : askStreaming(run, call, { ...attempt, answer })
}

async function askStreaming(
  run: RunContext,
  call: ModelCallPlan,
  { answer, ...attempt }: Attempt & { readonly answer: OpenAnswer },
): Promise<InferenceResponse> {
  try {
    return await ask(run, call, attempt, answer.write)
  } finally {
    const looking = attempt.signal.aborted ? undefined : answer.settled()
    if (looking !== undefined) await run.outstanding.abortable(looking).catch(() => undefined)
  }
}

function ask(
  run: RunContext,
  { limit }: ModelCallPlan,
  { request, signal, number }: Attempt,
  onDelta?: Question['onDelta'],
): Promise<InferenceResponse> {
  const { model } = request
  try {
    return askOnce(run, { model, request: toModelRequest(run, request), signal, limit, number, onDelta })
  } catch (thrown) {
    return Promise.reject(thrown) // a hook has offered a tool that is not there
  }
}

function toModelRequest(run: RunContext, request: InferenceRequest): ModelRequest {
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

function describeTool(run: RunContext, name: string): ToolDescription {
  const found = run.parts.descriptions.get(name)
  if (found !== undefined) return found
  throw new AgentError('HOOK_FAILED', `A hook offered the model a tool "${name}" that the agent does not have.`, {
    value: name,
  })
}

/** What an around hook returned, if it is a response: from `next`, or its own. */
export function toCheckedResponse(value: unknown): InferenceResponse | undefined {
  if (!isJsonObject(value) || !Array.isArray(value['content'])) return undefined
  const content = toJson(value['content'])
  if (!Array.isArray(content) || !areReplyParts(content)) return undefined
  const finishReason = value['finishReason']
  return toBilledResponse({
    content,
    finishReason: isFinishReason(finishReason) ? finishReason : 'stop',
    usage: toTokens((value['usage'] ?? noTokens) as Partial<TokenUsage>),
    ...(typeof value['modelId'] === 'string' && { modelId: value['modelId'] }),
    ...(Array.isArray(value['warnings']) && { warnings: Object.freeze(value['warnings'].map(String)) }),
  })
}
