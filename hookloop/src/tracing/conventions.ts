import type { Attributes } from '@opentelemetry/api'
import type { InferenceRequest } from '../core/state/inference.ts'
import type { TokenUsage } from '../core/state/usage.ts'

// Every attribute and metric name. Those of the GenAI semantic conventions are from v1.41.0; they are still in
// development, so they are defined here and nowhere else.

/** Attributes of spans and measurements, with the names of the conventions where there is one. */
export const attributes = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentId: 'gen_ai.agent.id',
  conversation: 'gen_ai.conversation.id',
  outputType: 'gen_ai.output.type',
  requestModel: 'gen_ai.request.model',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  topK: 'gen_ai.request.top_k',
  maxTokens: 'gen_ai.request.max_tokens',
  stopSequences: 'gen_ai.request.stop_sequences',
  presencePenalty: 'gen_ai.request.presence_penalty',
  frequencyPenalty: 'gen_ai.request.frequency_penalty',
  seed: 'gen_ai.request.seed',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedInputTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  tokenType: 'gen_ai.token.type',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolCall: 'gen_ai.tool.call.id',
  errorType: 'error.type',
  spanKind: 'openinference.span.kind',

  system: 'gen_ai.system_instructions',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',

  cost: 'hookloop.cost_usd',
  execution: 'hookloop.execution.id',
  status: 'hookloop.execution.status',
  steps: 'hookloop.execution.steps',
  toolCalls: 'hookloop.execution.tool_calls',
  pending: 'hookloop.execution.pending',
  stopReason: 'hookloop.stop.reason',
  stopBy: 'hookloop.stop.by',
  stopMessage: 'hookloop.stop.message',
  step: 'hookloop.step.index',
  stepType: 'hookloop.step.type',
  answeredBy: 'hookloop.inference.by',
  toolStatus: 'hookloop.tool.status',
  toolBy: 'hookloop.tool.by',
  toolWithheld: 'hookloop.tool.withheld',
  toolTruncated: 'hookloop.tool.truncated',
  hook: 'hookloop.hook.name',
  hookMode: 'hookloop.hook.mode',
  hookTrigger: 'hookloop.hook.trigger',
  hookDecision: 'hookloop.hook.decision',
  hookChanges: 'hookloop.hook.changes',
  hookMessage: 'hookloop.hook.message',
} as const

export const operations = { agent: 'invoke_agent', chat: 'chat', tool: 'execute_tool' } as const

/** The kind of a span in the conventions of OpenInference, by the first word of its name. */
export const spanKinds = {
  [operations.agent]: 'AGENT',
  [operations.chat]: 'LLM',
  [operations.tool]: 'TOOL',
  hook: 'GUARDRAIL',
  step: 'CHAIN',
} as const

export const metricNames = {
  tokens: 'gen_ai.client.token.usage',
  duration: 'gen_ai.client.operation.duration',
  tool: 'hookloop.tool.duration',
  execution: 'hookloop.execution.duration',
} as const

export const workerMetricNames = {
  running: 'hookloop.worker.running',
  duration: 'hookloop.worker.turn.duration',
  lag: 'hookloop.worker.turn.lag',
  retries: 'hookloop.worker.retries',
  takeovers: 'hookloop.worker.takeovers',
  open: 'hookloop.sessions.open',
} as const

/** The error type for an error without a code. */
export const OTHER_ERROR = '_OTHER'

/** The provider name of the conventions; for an unknown provider, the first part of its own name. */
export function providerName(provider: string): string {
  return known.find(([own]) => own.test(provider))?.[1] ?? provider.split('.')[0]!
}

const known: readonly (readonly [RegExp, string])[] = [
  [/^(google[.-])?vertex\b/, 'gcp.vertex_ai'],
  [/^google\b/, 'gcp.gemini'],
  [/^azure\b/, 'azure.ai.openai'],
  [/^(amazon-)?bedrock\b/, 'aws.bedrock'],
  [/^mistral\b/, 'mistral_ai'],
  [/^xai\b/, 'x_ai'],
  [/^moonshotai\b/, 'moonshot_ai'],
  [/^watsonx\b/, 'ibm.watsonx.ai'],
]

/** The model of a call, for spans and measurements. */
export function modelFacts({ model }: InferenceRequest): Attributes {
  return { [attributes.provider]: providerName(model.provider), [attributes.requestModel]: model.modelId }
}

const numbers = ['temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed'] as const

/** The settings of a request. A setting whose type differs from the conventions is omitted. */
export function settingsFacts({ settings = {}, responseFormat }: InferenceRequest): Attributes {
  const facts: Attributes = {}
  for (const name of numbers) if (typeof settings[name] === 'number') facts[attributes[name]] = settings[name]
  if (typeof settings.maxOutputTokens === 'number') facts[attributes.maxTokens] = settings.maxOutputTokens
  if (Array.isArray(settings.stopSequences)) facts[attributes.stopSequences] = settings.stopSequences.map(String)
  if (responseFormat !== undefined) facts[attributes.outputType] = 'json'
  return facts
}

const details = ['cachedInputTokens', 'cacheWriteTokens', 'reasoningTokens'] as const

/** Zeros are omitted except for input and output tokens: a provider without a cache reports none. */
export function usageFacts(usage: TokenUsage): Attributes {
  const facts: Attributes = {
    [attributes.inputTokens]: usage.inputTokens,
    [attributes.outputTokens]: usage.outputTokens,
  }
  for (const name of details) if (usage[name] > 0) facts[attributes[name]] = usage[name]
  if (usage.costUsd > 0) facts[attributes.cost] = usage.costUsd
  return facts
}
