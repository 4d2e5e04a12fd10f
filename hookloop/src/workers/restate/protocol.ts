// What `fleet` and `serveSessions` call each other in Restate.

import { AgentError, messageOf } from '../../errors.ts'

export const SERVICE = 'hookloop'

/** The handler of the virtual object of a session. */
export const HANDLER = 'drive'

/** A worker drained: the turn continues as the invocation with this id. */
export type Continued = { readonly continuedAs: string }

/** An error of `fetch`, which hides why a connection failed. A host with several addresses fails with an error for each. */
export function unreachable(server: string, error: unknown): AgentError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  const why = cause instanceof AggregateError ? cause.errors.map(messageOf).join(', ') : messageOf(cause)
  return new AgentError('STORE_FAILED', `Restate at ${server} cannot be reached: ${why}`, { cause: error })
}
