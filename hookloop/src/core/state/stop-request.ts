import { AgentError } from '../../errors.ts'
import { isJsonObject } from '../../values/json.ts'

/** Who asked to stop a run, why, and when. */
export type StopRequest = {
  /** The user or the program that asked, for the record. */
  readonly by?: string
  readonly reason?: string
  /** When it was requested, in milliseconds since 1970. */
  readonly at: number
}

/** What a final record says of a run that was stopped on request. */
export function stopText({ by, reason }: StopRequest): string {
  const who = `The run was stopped on request${by === undefined ? '' : ` of ${by}`}`
  return reason === undefined ? `${who}.` : `${who}: ${reason}`
}

/** The error that the signal of a run aborts with when it is stopped on request. */
export function stopError(request: StopRequest): AgentError {
  return new AgentError('RUN_CANCELLED', stopText(request), { value: request })
}

/** The request that a signal was aborted with, if that is why. */
export function toRequestedStop(reason: unknown): StopRequest | undefined {
  if (!(reason instanceof AgentError) || reason.code !== 'RUN_CANCELLED') return undefined
  return toStopRequest(reason.value)
}

/** A request that was stored. Undefined if it is not one. */
export function toStopRequest(value: unknown): StopRequest | undefined {
  if (!isJsonObject(value)) return undefined
  const { by, reason, at } = value
  if (typeof at !== 'number') return undefined
  return { ...(typeof by === 'string' && { by }), ...(typeof reason === 'string' && { reason }), at }
}
