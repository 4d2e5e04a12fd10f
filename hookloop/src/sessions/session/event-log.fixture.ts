import assert from 'node:assert/strict'
import type { AgentEvent, OwnEvent } from '../../core/state/event.ts'
import type { SessionStore } from '../stores/store.ts'
import { watchSession } from '../log/watch-session.ts'

/** All events that a session has now. */
export async function eventsIn(store: SessionStore, id: string): Promise<readonly AgentEvent[]> {
  const events: AgentEvent[] = []
  for await (const event of watchSession(store, id, { follow: false })) events.push(event)
  return events
}

/**
 * Throws unless the events have increasing numbers, and tell one story, whatever was interrupted. If the agent
 * has changed, the result of a call may be another one after the run was resumed.
 */
export function checkStory(events: readonly AgentEvent[], { isChanged = false } = {}): void {
  for (const [i, { seq }] of events.entries()) assert.ok(i === 0 || seq > events[i - 1]!.seq, `event ${seq}`)
  const happened = new Map<string, number>()
  const texts = new Map<string, string>()
  const running = new Map<string, boolean>()
  for (const event of events) {
    const agent = `${event.run} ${event.type === 'subagent' ? JSON.stringify(event.path) : ''}`
    const own = event.type === 'subagent' ? event.event : event
    const step = `${agent} ${own.step}`
    if (isChanged && event.type === 'resumed') happened.clear()
    const once = onceOf(own)
    if (once !== undefined) {
      const key = `${agent} ${once}`
      happened.set(key, (happened.get(key) ?? 0) + 1)
      assert.equal(happened.get(key), 1, `${key} happened twice (event ${event.seq})`)
    }
    if (own.type === 'text') texts.set(step, (texts.get(step) ?? '') + own.delta)
    if (own.type === 'retracted') texts.delete(step)
    if (own.type === 'responded') {
      const shown = texts.get(step)
      if (shown !== undefined) assert.equal(shown, own.text, `event ${event.seq}`)
      texts.delete(step)
    }
    if (event.type === 'input' || event.type === 'resumed') running.set(event.run, true)
    if (event.type === 'toolStarted' || event.type === 'text' || event.type === 'responded')
      assert.equal(running.get(event.run), true, `event ${event.seq} happened in a run that had ended`)
    if (event.type === 'finished' || event.type === 'suspended') running.set(event.run, false)
  }
  assert.deepEqual([...texts], [], 'pieces of an answer without the answer')
}

/** What happens at most once in the run of an agent. */
function onceOf(event: OwnEvent): string | undefined {
  switch (event.type) {
    case 'input':
    case 'started':
    case 'finished':
      return event.type
    case 'responded': // a changed agent may use another text
      return `${event.type} ${event.step} ${event.text}`
    case 'stepStarted':
    case 'stepFinished':
      return `${event.type} ${event.step}`
    case 'toolFinished':
      return `${event.type} ${event.step} ${event.call.id}`
    case 'asked':
      return `${event.type} ${event.approval.id}`
    case 'answered':
      return `${event.type} ${event.approval}`
    default:
      return undefined
  }
}
