import { BoundedMap } from '../values/bounded-map.ts'
import type { AgentEvent, Message } from '../plugin.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import { HttpError } from './http.ts'
import { openReader, type EventReader } from '../sessions/log/watch-session.ts'

/** A turn of a chat: a message, and the run that answers it. */
export type Turn = {
  readonly run: string
  /** The id that the page gave the message. */
  turn?: string | undefined
  message?: Message
  /** The number of the event before its first one. */
  readonly after: number
  /** The number of its last question, or 0. */
  asked: number
  /** How it ended, if it has. */
  status?: string
}

/** The turns of a session, without those that were rewound. */
export class TurnList {
  turns: readonly Turn[] = []
  /** Every run of the session. */
  readonly runs = new Set<string>()
  /** The number of the last event. */
  last = 0

  add(event: AgentEvent): void {
    if (event.seq <= this.last) return // two requests may read the same events
    this.last = event.seq
    this.runs.add(event.run)
    if (event.type === 'rewound') {
      this.turns = this.turns.filter(({ run }) => !event.runs.includes(run))
      return
    }
    if (this.turns.at(-1)?.run !== event.run)
      this.turns = [...this.turns, { run: event.run, after: event.seq - 1, asked: 0 }]
    const turn = this.turns.at(-1)!
    if (event.type === 'input') Object.assign(turn, { message: event.message, turn: event.turn })
    else if (event.type === 'suspended') turn.asked = event.seq
    else if (event.type === 'finished') turn.status = event.record.status
  }
}

type Known = { readonly createdAt: number; readonly list: TurnList; reading: Promise<EventReader | undefined> }

const stores = new WeakMap<SessionStore, BoundedMap<string, Known>>()

/**
 * The turns of a session. Each event is read once, as long as the process remembers the session. `createdAt` tells whether it
 * is still the same one.
 */
export async function readTurns(
  store: SessionStore,
  session: string,
  createdAt: number | undefined,
): Promise<TurnList> {
  if (createdAt === undefined) return new TurnList()
  const sessions = stores.get(store) ?? new BoundedMap<string, Known>()
  stores.set(store, sessions)
  const before = sessions.get(session)
  const known: Known =
    before?.createdAt === createdAt ? before : { createdAt, list: new TurnList(), reading: Promise.resolve(undefined) }
  sessions.set(session, known)
  const { list } = known
  const reading = known.reading.then(async (earlier) => {
    const reader = earlier ?? (await openReader(store, session))
    while (await addPage(list, reader)) continue
    return reader
  })
  known.reading = reading.catch(() => undefined)
  await reading
  return list
}

/** Returns whether there is more. */
async function addPage(list: TurnList, reader: EventReader | undefined): Promise<boolean> {
  const page = await reader?.read(list.last)
  if (page === undefined || page === 'deleted') return false
  for (const event of page.events) list.add(event)
  return page.hasMore
}

/** The id of the message of a turn, also if the message did not come from a page. */
export function turnId({ run, turn }: Pick<Turn, 'run' | 'turn'>): string {
  return turn ?? `${run}/input`
}

const MAX_TURN_CHARS = 256

/** The id that a page gave a message. */
export function checkTurnId(id: unknown): string {
  if (typeof id === 'string' && id !== '' && id.length <= MAX_TURN_CHARS) return id
  throw new HttpError(400, `The id of a message must be a text of 1 to ${MAX_TURN_CHARS} characters.`)
}
