import type { AgentEvent, Answer } from '../../plugin.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { Answers } from '../../index.ts'
import { denial, type Chat, type Following } from '../chat.ts'
import { HttpError, toHttpError } from '../http.ts'
import type { Route, UserRequest } from '../route.ts'
import { sseResponse, type SseEvent } from '../sse.ts'
import { checkTurnId } from '../turns.ts'
import type { AgUiEnd, AgUiEvent } from './event.ts'
import { fromUserContent, isCorrection, toAgUiMessages, toSnapshots } from './messages.ts'
import { AgUiMapper } from './to-events.ts'

/** AG-UI, version 1: what `HttpAgent` of `@ag-ui/client`, and so CopilotKit, uses. */
export const agUiRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: 'ag-ui',
    handle: async (request) => {
      const input = await request.body()
      const { runId } = input
      const chat = request.chat(input['threadId'])
      if (typeof runId !== 'string' || runId.length > MAX_RUN_CHARS)
        throw new HttpError(400, `The id of a run must be a text of at most ${MAX_RUN_CHARS} characters.`)
      const taken = await take(request, chat, input)
      const events = (signal: AbortSignal) => sseEvents(request, { chat, runId, signal, ...taken })
      return sseResponse(request.request, events, request.stream)
    },
  },
]

const MAX_RUN_CHARS = 256
const PROTOCOL_VERSION = '1.0'

type Taken = {
  readonly following: Following | undefined
  /** Whether the page wants the conversation. */
  readonly isLoad?: boolean
}

/**
 * Does what the page asks for: answers questions, sends the last message, or loads the conversation. The rest of the messages,
 * the state, the tools and the context of the page are not read.
 */
async function take({ metadata }: UserRequest, chat: Chat, { resume, messages }: JsonObject): Promise<Taken> {
  if (Array.isArray(resume) && resume.length > 0) return { following: await chat.answer(answersIn(resume)) }
  const last = Array.isArray(messages) ? (messages.at(-1) ?? null) : null
  if (!isJsonObject(last) || last['role'] !== 'user') return { following: await chat.reconnect(), isLoad: true }
  const message = fromUserContent(last['content'])
  if (message === undefined) throw new HttpError(400, 'A message must have text or media (https: or data).')
  const turn = checkTurnId(last['id'])
  return { following: await chat.send(message, { turn, metadata: await metadata() }) }
}

function answersIn(resume: readonly Json[]): Answers {
  const answers = new Map<string, Answer>()
  for (const entry of resume) {
    const { interruptId, status, payload } = isJsonObject(entry) ? entry : {}
    const answer = status === 'cancelled' ? denial(undefined) : status === 'resolved' ? toAnswer(payload) : undefined
    if (typeof interruptId !== 'string' || answer === undefined || answers.has(interruptId))
      throw new HttpError(
        400,
        'An answer is { interruptId, status: "cancelled" }, or "resolved" with payload: { approved, editedArgs, reason }.',
      )
    answers.set(interruptId, answer)
  }
  return Object.fromEntries(answers)
}

function toAnswer(payload: Json | undefined): Answer | undefined {
  const { approved, editedArgs, reason } = isJsonObject(payload ?? null) ? (payload as JsonObject) : {}
  if (approved === false) return denial(reason)
  if (approved !== true) return undefined
  if (editedArgs === undefined) return 'allow'
  return isJsonObject(editedArgs) ? { allow: editedArgs } : undefined
}

type Streamed = Taken & { readonly chat: Chat; readonly runId: string; readonly signal: AbortSignal }

async function* sseEvents(request: UserRequest, streamed: Streamed): AsyncGenerator<SseEvent> {
  for await (const data of agUiEvents(request, streamed)) yield { data }
}

async function* agUiEvents(
  { stream: { showHooks }, report }: UserRequest,
  { chat, runId, signal, following, isLoad = false }: Streamed,
): AsyncGenerator<AgUiEvent> {
  const place = { threadId: chat.id, runId }
  yield { type: 'RUN_STARTED', ...place, protocolVersion: PROTOCOL_VERSION }
  try {
    const mapper = new AgUiMapper({ showHooks, mayAnswer: chat.isAllowed })
    // The mapper needs what the client has of the turn.
    const hasSome = isLoad || following?.sentUntil !== undefined
    const events = hasSome ? await chat.events(isLoad ? 0 : following?.after) : []
    const sentUntil = isLoad ? (events.at(-1)?.seq ?? 0) : (following?.sentUntil ?? 0)
    const sent = events.filter(({ seq }) => seq <= sentUntil)
    for (const event of sent) mapper.map(event)
    if (isLoad) yield { type: 'MESSAGES_SNAPSHOT', messages: toAgUiMessages(sent) }
    const isOver = isLoad && (following === undefined || mapper.end !== undefined)
    if (!isOver) yield* mapper.opened()
    if (!isOver && following !== undefined)
      for await (const event of chat.follow({ ...following, after: Math.max(following.after, sentUntil) }, signal))
        for (const each of mapper.map(event)) {
          yield each
          if (isCorrection(each)) yield* toSnapshots(each, await eventsUntil(chat, event.seq))
        }
    const end = isOver ? loadedEnd(mapper.end) : (mapper.end ?? stillRuns)
    yield 'outcome' in end ? { type: 'RUN_FINISHED', ...place, ...end } : { type: 'RUN_ERROR', ...end }
  } catch (thrown) {
    yield { type: 'RUN_ERROR', message: toHttpError(thrown, report).message }
  }
}

const stillRuns: AgUiEnd = {
  message: 'The stream has ended before the run. Load the conversation to continue.',
  code: 'STREAM_ENDED',
}

/** Loading a conversation does not fail because its last run has. */
function loadedEnd(end: AgUiEnd | undefined): AgUiEnd {
  return end !== undefined && 'outcome' in end && end.outcome.type === 'interrupt'
    ? end
    : { outcome: { type: 'success' } }
}

async function eventsUntil(chat: Chat, last: number): Promise<readonly AgentEvent[]> {
  return (await chat.events()).filter(({ seq }) => seq <= last)
}
