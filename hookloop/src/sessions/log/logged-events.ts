import type { AgentEvent, EmittedEvent, OwnEvent } from '../../state/event.ts'
import { canonicalText, type Json } from '../../state/json.ts'
import type { SessionStore } from '../stores/store.ts'

/**
 * What the log of a session has of an open run since its last checkpoint. A process that resumes the run repeats these events:
 * they are recognized by their content, because concurrent calls and observers may emit them in another order.
 */
export class LoggedEvents {
  /** The numbers of events that were not repeated yet, by content. */
  readonly #seqs = new Map<string, number[]>()
  /** The last event of each answer: a piece of it, if the process died while it was written. */
  readonly #answers = new Map<string, EmittedEvent>()
  readonly events: readonly AgentEvent[]

  constructor(events: readonly AgentEvent[]) {
    this.events = events
    for (const event of events) {
      const own = ownEvent(event)
      if (isPiece(own) || closesAnswer(own)) this.#answers.set(answerOf(event), event)
      if (isPiece(own)) continue
      const key = contentOf(event)
      const seqs = this.#seqs.get(key)
      if (seqs === undefined) this.#seqs.set(key, [event.seq])
      else seqs.push(event.seq)
    }
  }

  /**
   * The number that an event has in the log, if it has one. `superseded`: it is a piece of an answer that is complete in the
   * log.
   */
  find(event: EmittedEvent): number | 'superseded' | undefined {
    const own = ownEvent(event)
    if (isPiece(own))
      return ownEvent(this.#answers.get(answerOf(event)))?.type === 'responded' ? 'superseded' : undefined
    return isNewEachTime(own) ? undefined : this.#seqs.get(contentOf(event))?.shift()
  }

  /** Events that retract the answers that were being written. */
  retractions(at: number): readonly EmittedEvent[] {
    return [...this.#answers.values()].flatMap((last): readonly EmittedEvent[] => {
      const own = ownEvent(last)
      if (!isPiece(own)) return []
      const why = 'the process ended while the answer was written'
      const retracted: OwnEvent = { type: 'retracted', step: own.step, at, why }
      this.#answers.set(answerOf(last), retracted)
      return last.type === 'subagent'
        ? [{ type: 'subagent', path: last.path, event: retracted, step: last.step, at }]
        : [retracted]
    })
  }
}

/** The id of the run of the last event; empty if there is no event. */
export async function readLastRun(store: SessionStore, session: string, last: number): Promise<string> {
  if (last > 0) for await (const { run } of store.watch(session, { after: last - 1, follow: false })) return run
  return ''
}

const BLOCK = 256

/** Reads what the log has of an open run since its last checkpoint: behind the step before, if there is one. */
export async function readLogged(
  store: SessionStore,
  of: { readonly session: string; readonly last: number; readonly stepCount: number | undefined; readonly run: string },
): Promise<LoggedEvents | undefined> {
  const { session, last, stepCount = 0, run } = of
  if (last === 0) return undefined
  const isBefore = (event: AgentEvent): boolean =>
    event.run !== run || (event.type === 'stepFinished' && event.step === stepCount - 1)
  for (let size = BLOCK; ; size *= 4) {
    const after = Math.max(0, last - size)
    const events: AgentEvent[] = []
    for await (const event of store.watch(session, { after, follow: false })) events.push(event)
    const start = events.findLastIndex(isBefore) + 1
    if (start > 0 || after === 0) return start === events.length ? undefined : new LoggedEvents(events.slice(start))
  }
}

function ownEvent(event: EmittedEvent): OwnEvent
function ownEvent(event: EmittedEvent | undefined): OwnEvent | undefined
function ownEvent(event: EmittedEvent | undefined): OwnEvent | undefined {
  return event?.type === 'subagent' ? event.event : event
}

/** A run may resume several times, and a tool that runs again reports its progress again. */
function isNewEachTime({ type }: OwnEvent): boolean {
  return type === 'resumed' || type === 'toolProgress'
}

function isPiece({ type }: OwnEvent): boolean {
  return type === 'text' || type === 'reasoning' || type === 'toolCallDelta'
}

function closesAnswer({ type }: OwnEvent): boolean {
  return type === 'responded' || type === 'retracted'
}

/** The agent and the step whose answer an event is about. */
function answerOf(event: EmittedEvent): string {
  return event.type === 'subagent' ? JSON.stringify([event.path, event.event.step]) : String(event.step)
}

/** An event without what differs when it is repeated: its place, times and durations. */
function contentOf(event: EmittedEvent): string {
  const { seq: _seq, session: _session, run: _run, ...rest } = event as AgentEvent
  const content = rest.type === 'subagent' ? { ...rest, at: 0, event: timeless(rest.event) } : timeless(rest)
  return canonicalText(JSON.parse(JSON.stringify(content)) as Json)
}

function timeless(event: OwnEvent): OwnEvent {
  switch (event.type) {
    case 'hook':
      return { ...event, at: 0, entry: { ...event.entry, durationMs: 0 } }
    case 'toolFinished': {
      const { durationMs: _took, call, ...rest } = event
      return { ...rest, at: 0, call: { ...call, args: {} } } // hooks that have changed may prepare the same call in another way
    }
    case 'finished':
      return { ...event, at: 0, record: { ...event.record, at: 0 } }
    default:
      return { ...event, at: 0 }
  }
}
