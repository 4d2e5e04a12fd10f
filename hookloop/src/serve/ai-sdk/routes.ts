import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { Answers } from '../../index.ts'
import { denial, type Chat, type Following } from '../chat.ts'
import { emptyResponse, HttpError, jsonResponse, toHttpError } from '../http.ts'
import type { Route, UserRequest } from '../route.ts'
import { sseResponse, type SseEvent } from '../sse.ts'
import { checkTurnId } from '../turns.ts'
import { ChunkMapper } from './to-chunks.ts'
import type { UiChunk } from './ui-chunk.ts'
import { fromUserParts, toUiMessages } from './ui-message.ts'

/** The UI message stream of the AI SDK, version 1: what `useChat` with its default transport uses. */
export const aiSdkRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: 'chat',
    handle: async (request) => {
      const body = await request.body()
      const chat = request.chat(body['id'])
      return chunkResponse(request, chat, await take(request, chat, body))
    },
  },
  {
    method: 'GET',
    path: 'chat/:id/stream',
    handle: async (request, id) => {
      const chat = request.chat(id)
      const following = await chat.reconnect(lastEventId(request.request)?.[0])
      return following === undefined ? emptyResponse() : chunkResponse(request, chat, following)
    },
  },
  {
    method: 'GET',
    path: 'chat/:id',
    handle: async (request, id) => {
      const chat = request.chat(id)
      return jsonResponse(toUiMessages(await chat.events(), chat.isAllowed))
    },
  },
]

/** Does what the page asks for. Only the message that is new is read: the rest of the conversation is in the session. */
async function take({ metadata }: UserRequest, chat: Chat, body: JsonObject): Promise<Following> {
  const { trigger, messageId, message: single, messages = [single ?? null] } = body
  const all = Array.isArray(messages) ? messages.filter(isJsonObject) : []
  const last = all.find(({ id }) => id !== undefined && id === messageId) ?? all.at(-1)
  const parts = last?.['parts']
  if (last === undefined || !Array.isArray(parts)) throw new HttpError(400, 'The request has no message with parts.')
  if (trigger === 'regenerate-message') {
    const again = await chat.regenerate(messageId, last['id'])
    if (again !== undefined) return again // else the message has never arrived
  }
  if (last['role'] === 'assistant') return chat.answer(answersIn(parts))
  const message = last['role'] === 'user' ? fromUserParts(parts) : undefined
  if (message === undefined)
    throw new HttpError(400, 'A message must be of the user, with text and files (https: or data:).')
  const turn = checkTurnId(last['id'] ?? crypto.randomUUID())
  return chat.send(message, { turn, metadata: await metadata() })
}

/** The answers in the parts of a message. */
function answersIn(parts: readonly Json[]): Answers {
  const answers = parts.flatMap((part) => {
    const { state, approval } = isJsonObject(part) ? part : {}
    if (state !== 'approval-responded' || !isJsonObject(approval ?? null)) return []
    const { id, approved, reason } = approval as JsonObject
    if (typeof id !== 'string' || typeof approved !== 'boolean') return []
    return [[id, approved ? 'allow' : denial(reason)] as const]
  })
  if (answers.length > 0) return Object.fromEntries(answers)
  throw new HttpError(400, 'The message of the assistant has no answer to a question.')
}

function chunkResponse(request: UserRequest, chat: Chat, following: Following): Response {
  const events = (signal: AbortSignal): AsyncGenerator<SseEvent> => sseEvents(request, { chat, following, signal })
  const headers = { 'x-vercel-ai-ui-message-stream': 'v1' }
  return sseResponse(request.request, events, { ...request.stream, headers })
}

type Streamed = { readonly chat: Chat; readonly following: Following; readonly signal: AbortSignal }

async function* sseEvents(
  { request, stream, report }: UserRequest,
  { chat, following, signal }: Streamed,
): AsyncGenerator<SseEvent<UiChunk | '[DONE]'>> {
  const mapper = new ChunkMapper({ showHooks: stream.showHooks, mayAnswer: chat.isAllowed })
  const [lastSeq, lastPlace] = lastEventId(request) ?? [following.sentUntil ?? 0, Infinity]
  let isOver = false
  try {
    for await (const event of chat.follow(following, signal)) {
      for (const [i, chunk] of mapper.map(event).entries()) {
        const isSent = event.seq < lastSeq || (event.seq === lastSeq && i <= lastPlace)
        if (!isSent) yield { id: `${event.seq}.${i}`, data: chunk }
        isOver = chunk.type === 'finish'
      }
    }
    if (!isOver) yield { data: { type: 'finish', finishReason: 'other', messageMetadata: { status: 'running' } } }
  } catch (thrown) {
    yield { data: { type: 'error', errorText: toHttpError(thrown, report).message } }
  }
  yield { data: '[DONE]' }
}

/** The last chunk that a client has received: the number of its event, and its place among the chunks of that. */
function lastEventId({ headers }: Request): readonly [seq: number, place: number] | undefined {
  const [, seq, place] = /^(\d{1,15})\.(\d{1,6})$/.exec(headers.get('last-event-id') ?? '') ?? []
  return seq === undefined ? undefined : [Number(seq), Number(place)]
}
