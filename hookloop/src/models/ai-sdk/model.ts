import type { LanguageModelV4 } from '@ai-sdk/provider'
import type { AiSdkModel, LanguageModel, ModelCall, ModelReply, ModelRequest } from '../../state/inference.ts'
import type { TokenUsage } from '../../state/usage.ts'
import { costOf, priceOf, type Price, type Prices } from '../prices.ts'
import { toCallOptions } from './call-options.ts'
import { CallDeadline } from './call-deadline.ts'
import { toModelFailure } from './failure.ts'
import { toReply } from './reply.ts'
import { withoutKeys } from './secrets.ts'
import { cancel, readStream } from './stream.ts'
import { structuredOutputOf } from './structured-output.ts'
import { ToolNames } from './tool-names.ts'

/** A language model of the AI SDK behind our port. */
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
  /** Gives the model when it is first asked. */
  readonly load: () => AiSdkModel | Promise<AiSdkModel>
}

/**
 * Our port over a model that may still have to be loaded: `doStream` when somebody listens, `doGenerate` otherwise, and
 * the same reply either way. It never retries, and every failure leaves it classified.
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
        const reply = await withoutKeys(await ask(model, request, { deadline, onDelta: call.onDelta }), model)
        return price === undefined
          ? reply
          : { ...reply, usage: { ...reply.usage, costUsd: costOf(reply.usage, price) } }
      } catch (thrown) {
        call.signal.throwIfAborted() // whoever cancelled knows why
        throw await toModelFailure(deadline.expired ?? thrown, { provider, modelId, model })
      } finally {
        deadline.clear()
      }
    },
  })
}

/** 'openai.responses' and 'openai.chat' are both OpenAI. */
export function familyOf({ provider }: AiSdkModel): string {
  return provider.split('.')[0]!
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
type Asking = { readonly deadline: CallDeadline; readonly onDelta: ModelCall['onDelta'] }

async function ask(model: AiSdkModel, request: ModelRequest, { deadline, onDelta }: Asking): Promise<Reply> {
  const names = new ToolNames(request.tools)
  const { options, warnings } = toCallOptions(model, request, names)
  // The versions differ in what goes in and comes out, not in how they are called.
  const v4 = model as unknown as LanguageModelV4
  const call = { ...options, abortSignal: deadline.signal }
  const asked = { request, names, warnings }
  if (onDelta === undefined) return toReply(await deadline.within(v4.doGenerate(call)), asked)
  deadline.touch() // only a stream can be silent: an answer in one piece takes the time it takes
  const opening = Promise.resolve(v4.doStream(call))
  const { stream } = await deadline.within(opening).catch((thrown: unknown) => {
    opening.then(
      (late) => cancel(late?.stream, thrown),
      () => undefined,
    ) // nobody will read it
    throw thrown
  })
  return toReply(await deadline.within(readStream(stream, { deadline, onDelta, names })), asked)
}
