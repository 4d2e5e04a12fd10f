import type { AgentEvent } from '../state/event.ts'
import type { Message } from '../state/message.ts'

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
export function turnsIn(events: Iterable<AgentEvent>): readonly Turn[] {
  let turns: Turn[] = []
  for (const event of events) {
    if (event.type === 'rewound') {
      turns = turns.filter(({ run }) => !event.runs.includes(run))
      continue
    }
    if (turns.at(-1)?.run !== event.run) turns.push({ run: event.run, after: event.seq - 1, asked: 0 })
    const turn = turns.at(-1)!
    if (event.type === 'input') Object.assign(turn, { message: event.message, turn: event.turn })
    else if (event.type === 'suspended') turn.asked = event.seq
    else if (event.type === 'finished') turn.status = event.record.status
  }
  return turns
}

/** The id of the message of a turn, also if the message did not come from a page. */
export function turnId({ run, turn }: Pick<Turn, 'run' | 'turn'>): string {
  return turn ?? `${run}/input`
}

/** Whether the message of a turn is to be answered again if it is sent again. */
export function hasFailed({ status }: Turn): boolean {
  return status === 'failed' || status === 'cancelled'
}
