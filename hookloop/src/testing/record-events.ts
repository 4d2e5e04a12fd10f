import { checkArgument, checkNoOptions } from '../values/check-options.ts'
import type { AgentEvent } from '../state/event.ts'
import type { RunStream } from '../agent/run-stream.ts'
import type { Run } from '../agent/run.ts'

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
export async function recordEvents<O>(live: RunStream<AgentEvent, O>, ...more: []): Promise<EventRecorder<O>> {
  checkNoOptions('recordEvents', more)
  const isStream = typeof (Object(live) as Partial<RunStream<AgentEvent>>)[Symbol.asyncIterator] === 'function'
  checkArgument('recordEvents', ['live', live], isStream, 'a stream, such as agent.stream(input)')
  const events: AgentEvent[] = []
  for await (const event of live) events.push(event)
  return {
    run: await live.run,
    events,
    types: events.map((event) => event.type),
    of: (type) => events.filter((event): event is Extract<AgentEvent, { type: typeof type }> => event.type === type),
  }
}
