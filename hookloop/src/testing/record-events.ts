import type { AgentEvent } from '../state/event.ts'
import type { RunStream } from '../agent/run-stream.ts'
import type { Run } from '../agent/run.ts'

/** A run with its events, as `recordEvents` returns it. */
export type EventRecorder<O> = {
  readonly run: Run<O>
  readonly events: readonly AgentEvent[]
  /** The events of one type, typed as such. */
  readonly of: <T extends AgentEvent['type']>(type: T) => readonly Extract<AgentEvent, { type: T }>[]
  /** The order of things, as a list of types. */
  readonly types: readonly AgentEvent['type'][]
}

/** Reads a stream to its end: `const { run, of } = await recordEvents(agent.stream('…'))`. */
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
