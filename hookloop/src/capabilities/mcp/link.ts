import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'

/** A connection that can say why it ended. */
export type Link = Transport & {
  /** Why it ended, in words that can follow a colon; undefined while it is there, and when it was closed from here. */
  readonly ended: string | undefined
  /** The end of what the server wrote for people to read. */
  readonly complaints: string
  /** The process, if there is one and it was started. */
  readonly pid?: number | null
}

/** Answers a request in place of a server that did not, or not so that it could be understood. */
export function unanswered(id: string | number, why: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: UNANSWERED, message: why } }
}

/** The code of such an answer, out of those that are nobody's. */
export const UNANSWERED = -32_099
