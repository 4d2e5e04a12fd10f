import type { Message } from '../index.ts'
import { canonical, type World } from './world.fixture.ts'

/** Every call has exactly one result, in the message right after the one that requests it. */
export function checkConversation(world: World, messages: readonly Message[]): void {
  const seen = new Set<string>()
  for (const [at, message] of messages.entries()) {
    const asked = message.content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    if (asked.length === 0) continue
    const next = messages.slice(at + 1, at + 2)
    if (canonical(resultsIn(next)) !== canonical(asked))
      world.violate('a message with calls is not followed by their results')
    for (const id of asked) {
      if (seen.has(id)) world.violate('two calls of the conversation have the same id')
      seen.add(id)
    }
  }
}

/** The ids of the calls whose results are in these messages. */
export function resultsIn(messages: readonly Message[]): readonly string[] {
  return messages.flatMap(({ content }) =>
    content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])),
  )
}
