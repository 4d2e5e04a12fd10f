// What `fleet` and `serveSessions` call each other in Restate.

export const SERVICE = 'hookloop'

/** The handler of the virtual object of a session. */
export const HANDLER = 'drive'

/** A worker drained: the turn continues as the invocation with this id. */
export type Continued = { readonly continuedAs: string }
