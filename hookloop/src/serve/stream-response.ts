import type { AgentEvent } from '../state/event.ts'
import type { Approval } from '../state/tool-call.ts'
import type { Chat } from './chat.ts'
import type { UserRequest } from './route.ts'
import { sseResponse, type SseEvent } from './sse.ts'

/** Streams events until they end, the client leaves, or one of both is idle for too long. */
export function streamResponse(
  { request, stream }: UserRequest,
  events: (signal: AbortSignal) => AsyncIterator<SseEvent>,
  headers: { readonly [name: string]: string } = {},
): Response {
  const ending = new AbortController()
  const end = (): void => ending.abort()
  request.signal.addEventListener('abort', end, { once: true })
  return sseResponse(events(ending.signal), { ...stream, onEnd: end, headers })
}

/** Notes which of the questions the user may answer. */
export async function addAllowed(allowed: Set<Approval>, chat: Chat, event: AgentEvent): Promise<void> {
  if (event.type !== 'suspended') return
  for (const approval of event.pending) if (await chat.mayAnswer(approval)) allowed.add(approval)
}
