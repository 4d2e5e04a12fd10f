import type { AgentEvent } from '../core/state/event.ts'
import type { RunStream } from '../core/agent/run-stream.ts'
import type { Run } from '../core/agent/run.ts'

/** A run with its events, as `recordEvents` returns it. */
export type EventRecorder<O> = {
  readonly run: Run<O>
  readonly events: readonly AgentEvent[]
  /** The events of one type. */
  readonly of: <T extends AgentEvent['type']>(type: T) => readonly Extract<AgentEvent, { type: T }>[]
  /** The types of all events, in order. */
  readonly types: readonly AgentEvent['type'][]
}

/**
 * Reads a stream to its end and returns the run with its events.
 *
 * @example
 * const { run, of, types } = await recordEvents(agent.stream('Hello.'))
 * assert.equal(run.status, 'completed')
 * assert.deepEqual(of('toolStarted').map(({ call }) => call.name), ['search'])
 */
export async function recordEvents<O>(live: RunStream<AgentEvent, O>): Promise<EventRecorder<O>> {
  const events: AgentEvent[] = []
  for await (const event of live) events.push(event)
  return {
    run: await live.run,
    events,
    types: events.map((event) => event.type),
    of: (type) => events.filter((event): event is Extract<AgentEvent, { type: typeof type }> => event.type === type),
  }
}
