import type { InferenceRequest } from '../data/inference.ts'
import { hashJson, hashText, toJson, type Json } from '../data/json.ts'
import type { Message } from '../data/message.ts'

/** A request, short: a fingerprint of the conversation that costs only what is new in it. */
export function fingerprintRequest(request: InferenceRequest): Json {
  const { model, messages, ...rest } = request
  return {
    model: `${model.provider}/${model.modelId}`,
    messages: messages.length,
    conversation: messages.fold(fingerprints, '', fingerprint),
    rest: hashJson(toJson(rest)),
  }
}

const fingerprints = new WeakMap<readonly Message[], { readonly value: string }>()

function fingerprint(sum: string, message: Message): string {
  return hashText(sum, JSON.stringify(message))
}
