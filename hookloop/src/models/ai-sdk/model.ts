import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { AiSdkModel, LanguageModel, ModelCall, ModelReply, ModelRequest } from '../../core/state/inference.ts'
import type { TokenUsage } from '../../core/state/usage.ts'
import type { Price, Prices } from '../price-list.ts'
import { costOf, priceOf } from '../prices.ts'
import { toCallOptions } from './call-options.ts'
import { CallDeadline } from './call-deadline.ts'
import { toModelFailure } from './failure.ts'
import { toReply } from './reply.ts'
import { redactReply } from './secrets.ts'
import { cancel, readStream } from './stream.ts'
import { ToolNames } from './tool-names.ts'

/** Adapts a language model of the AI SDK. */
export function fromAiSdk(model: AiSdkModel, prices: Prices | undefined): LanguageModel {
  const provider = familyOf(model)
  const price = priceOf(provider, model.modelId, prices)
  return toPort({
    provider,
    modelId: model.modelId,
    price,
    structuredOutput: structuredOutputOf(model),
    load: () => model,
  })
}

type Ported = {
  readonly provider: string
  readonly modelId: string
  readonly price: Price | undefined
  readonly structuredOutput: LanguageModel['structuredOutput']
  /** Loads the model when it is first called. */
  readonly load: () => AiSdkModel | Promise<AiSdkModel>
}

/**
 * Adapts a model that may still have to be loaded: `doStream` if the caller wants deltas, `doGenerate` otherwise, with the
 * same reply either way. It never retries, and every failure it throws is classified.
 */
export function toPort({ provider, modelId, price, structuredOutput, load }: Ported): LanguageModel {
  return Object.freeze({
    provider,
    modelId,
    ...(structuredOutput !== undefined && { structuredOutput }),
    cost: price === undefined ? ('unknown' as const) : (usage: TokenUsage) => costOf(usage, price),
    async infer(request: ModelRequest, call: ModelCall): Promise<ModelReply> {
      const deadline = new CallDeadline(call.signal, request.settings)
      let model: AiSdkModel | undefined
      try {
        model = await deadline.within(Promise.resolve(load()))
        const reply = await redactReply(await ask(model, request, { deadline, onDelta: call.onDelta }), model)
        return price === undefined
          ? reply
          : { ...reply, usage: { ...reply.usage, costUsd: costOf(reply.usage, price) } }
      } catch (thrown) {
        call.signal.throwIfAborted() // a cancellation is not a failure of the model
        throw await toModelFailure(deadline.expired ?? thrown, { provider, modelId, model })
      } finally {
        deadline.clear()
      }
    },
  })
}

/** The provider without its API: 'openai.responses' and 'openai.chat' are both 'openai'. */
export function familyOf({ provider }: AiSdkModel): string {
  return provider.split('.')[0]!
}

/** Families whose adapters enforce a JSON Schema, also while tools are offered. */
const native: ReadonlySet<string> = new Set(['openai', 'azure', 'anthropic', 'xai'])

/** Families that do so only without tools: with both they fail, or never call a tool. */
const nativeAlone: ReadonlySet<string> = new Set(['google', 'vertex', 'groq', 'ollama'])

/** How the provider enforces a schema. An unknown family does if its model says so. */
export function structuredOutputOf(model: Pick<AiSdkModel, 'provider'>): LanguageModel['structuredOutput'] {
  const [family = ''] = model.provider.split('.')
  if (nativeAlone.has(family)) return 'native-alone'
  if (native.has(family)) return 'native'
  const { supportsStructuredOutputs } = model as { supportsStructuredOutputs?: unknown }
  return supportsStructuredOutputs === true ? 'native' : undefined
}

export function isAiSdkModel(value: unknown): value is AiSdkModel {
  const model = value as Partial<AiSdkModel> | null | undefined
  return (
    typeof model === 'object' &&
    model !== null &&
    ['v2', 'v3', 'v4'].includes(model.specificationVersion as string) &&
    typeof model.doGenerate === 'function' &&
    typeof model.doStream === 'function'
  )
}

type Reply = ReturnType<typeof toReply>
type CallContext = { readonly deadline: CallDeadline; readonly onDelta: ModelCall['onDelta'] }

async function ask(model: AiSdkModel, request: ModelRequest, { deadline, onDelta }: CallContext): Promise<Reply> {
  const names = new ToolNames(request.tools)
  const { options, warnings } = toCallOptions(model, request, names)
  // The versions differ in their parameters and results, not in how they are called.
  const v4 = model as unknown as LanguageModelV4
  const call = { ...options, abortSignal: deadline.signal }
  const asked = { request, names, warnings }
  if (onDelta === undefined) return toReply(await deadline.within(v4.doGenerate(call)), asked)
  deadline.touch() // the idle timeout is for streams only
  const opening = Promise.resolve(v4.doStream(call))
  const { stream } = await deadline.within(opening).catch((thrown: unknown) => {
    opening.then(
      (late) => cancel(late?.stream, thrown),
      () => undefined,
    ) // no reader is left
    throw thrown
  })
  return toReply(await deadline.within(readStream(stream, { deadline, onDelta, names })), asked)
}
