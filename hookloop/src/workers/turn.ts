import type { Message } from '../plugin.ts'
import type { Approval, FinalRecord, Run } from '../index.ts'
import type { ErrorCode } from '../errors.ts'
import type { JsonObject } from '../values/json.ts'

/** What a worker is asked to do: to take a message, or to resume a run. As JSON, so that any queue can carry it. */
export type Turn = {
  readonly session: string
  /** The id of the turn: the same turn is the same run. */
  readonly turn: string
  /** Which agent of the worker takes a new session, by its key in `agents`. Default: the only one. */
  readonly agent?: string
  /** The message. Without it, a run that was suspended or interrupted is resumed. */
  readonly input?: string | Message
  readonly metadata?: JsonObject
  readonly onNewInput?: 'reject' | 'block'
  readonly deltas?: boolean
  /** Questions that expire until this time have expired, whatever the clock of the worker says. */
  readonly expiredAt?: number
  /** When it was sent, by the clock of the sender. */
  readonly sentAt?: number
}

/** How a turn ended: its run has ended or waits for an answer. */
export type TurnResult = {
  readonly status: Run['status']
  readonly text: string
  readonly final?: FinalRecord
  /** Questions that wait for an answer, if the status is `suspended`. */
  readonly pending: readonly Approval[]
}

/** A turn that could not start, for example because the session waits for an answer. */
export type RejectedTurn = { readonly status: 'rejected'; readonly code: ErrorCode; readonly message: string }

/** The turn that blocks the first question of a result that expires, and in how many milliseconds it is due. */
export function expiryOf(
  { session, turn }: Pick<Turn, 'session' | 'turn'>,
  result: TurnResult | RejectedTurn,
): { readonly due: Turn; readonly delayMs: (now: number) => number } | undefined {
  const pending = result.status === 'suspended' ? result.pending : []
  const [first] = pending
    .flatMap(({ expiresAt, expiresInMs = Infinity }) => (expiresAt === undefined ? [] : [{ expiresAt, expiresInMs }]))
    .toSorted((a, b) => a.expiresAt - b.expiresAt)
  if (first === undefined) return undefined
  // The clock of the worker that asked may be ahead of this one, so it is due no later than if it had been asked now.
  const delayMs = (now: number): number => Math.max(1, Math.min(first.expiresAt - now, first.expiresInMs))
  return { due: { session, turn: `${turn}/expiry`, expiredAt: first.expiresAt }, delayMs }
}
