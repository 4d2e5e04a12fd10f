import { messagesOf, withoutMessages, type InferenceRequest } from '../state/inference.ts'
import { hashJson, hashText, toJson, type Json } from '../../values/json.ts'
import type { FoldCache, List } from '../state/list.ts'
import type { Message } from '../state/message.ts'

/** A short description of a request. The hash of the conversation only costs what is new in it. */
export function fingerprintRequest(request: InferenceRequest): Json {
  const { model, ...rest } = withoutMessages(request)
  const messages = messagesOf(request)
  return {
    model: `${model.provider}/${model.modelId}`,
    messages: messages.length,
    hash: hashText(`${fingerprintConversation(messages)}${fingerprintRest(rest)}`),
  }
}

/** The fingerprint of a conversation. It only costs what is new in it. */
export function fingerprintConversation(messages: List<Message>): string {
  return messages.fold(fingerprints, '', fingerprint)
}

const fingerprints: FoldCache<Message, string> = new WeakMap()

function fingerprint(sum: string, message: Message): string {
  return hashText(`${sum}${JSON.stringify(message)}`)
}

type Rest = Omit<InferenceRequest, 'model' | 'messages'>

/** By the list of tools: most requests of a run only differ in their messages. */
const rests = new WeakMap<object, { readonly rest: Rest; readonly hash: string }>()

function fingerprintRest(rest: Rest): string {
  const known = rests.get(rest.tools)
  if (known !== undefined && isSame(known.rest, rest)) return known.hash
  const hash = hashJson(toJson(rest))
  rests.set(rest.tools, { rest, hash })
  return hash
}

/** Whether two requests have identical parts. */
function isSame(one: Rest, other: Rest): boolean {
  const keys = Object.keys(one) as (keyof Rest)[]
  return keys.length === Object.keys(other).length && keys.every((key) => one[key] === other[key])
}
