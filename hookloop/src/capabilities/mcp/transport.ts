import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { isJsonObject } from '../../state/json.ts'
import type { Sdk } from './load-sdk.ts'

/** A transport of the SDK that can say why it ended. */
export type McpTransport = Transport & {
  /** Why it ended, as text that can follow a colon; undefined while it is open, and after `close`. */
  readonly ended: string | undefined
  /** The end of what the server wrote to stderr. */
  readonly stderrText: string
  /** The process id, for a server that was started as a process. */
  readonly pid?: number | null
}

/** The complete result of a response, in a field of the copy that the SDK gets. */
const RESULT = Symbol('result')
/** So many values of a message reach the SDK. Its validation takes up to 70 µs and 4 KB for each. */
const MAX_CHECKED_VALUES = 1_000
const MAX_CHECKED_DEPTH = 16

/**
 * The message with the values that the SDK itself needs, because validating a list of a million invalid values would block
 * this process for a minute. It needs no list of objects. The code that uses a result gets it from `completeResult`, and
 * checks it.
 */
export function boundMessage<M extends JSONRPCMessage>(message: M): M {
  const part = 'method' in message ? 'params' : 'result' in message ? 'result' : 'error'
  const body = (message as { readonly [part: string]: unknown })[part]
  if (body === undefined) return message
  let left = MAX_CHECKED_VALUES
  const copy = (value: unknown, depth: number): unknown => {
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      const items = value.slice(0, Math.max(0, left))
      left -= items.length
      return items.some((each) => typeof each === 'object') ? [] : items
    }
    const fields: { [name: string]: unknown } = {}
    for (const name in value) {
      if (left-- <= 0 || depth === MAX_CHECKED_DEPTH) break
      fields[name] = copy((value as { [name: string]: unknown })[name], depth + 1)
    }
    return fields
  }
  const bounded = copy(body, 0)
  return { ...message, [part]: part === 'result' && isJsonObject(bounded) ? { ...bounded, [RESULT]: body } : bounded }
}

const FIELDS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']

/** A message with the fields of the protocol, and bounded, before the SDK validates it. Throws if it is not valid. */
export function readMessage(sdk: Sdk, parsed: unknown): JSONRPCMessage {
  if (!isJsonObject(parsed)) throw new TypeError('It is not an object.')
  const known = FIELDS.flatMap((field) => (Object.hasOwn(parsed, field) ? [[field, parsed[field]]] : []))
  const message = boundMessage(Object.fromEntries(known) as JSONRPCMessage)
  sdk.parseJSONRPCMessage(message)
  return message
}

/** What the server answered, from the result that the SDK returned. */
export function completeResult(result: unknown): unknown {
  return (result as { [RESULT]?: unknown } | null)?.[RESULT] ?? result
}

/** An error response in place of one that did not arrive or cannot be read. */
export function missingResponse(id: string | number, why: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: MISSING_RESPONSE, message: why } }
}

/** The error code of such a response, from the range that the protocol leaves free. */
export const MISSING_RESPONSE = -32_099

const BURST = 10_000
const PER_SECOND = 1_000

/**
 * Limits the messages of a server that are not responses. Responses are free, one for each request; an endless stream of other
 * messages would keep this process busy.
 */
export class MessageBudget {
  readonly #requested = new Set<unknown>()
  #left = BURST
  #since: number
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#since = now()
  }

  /** Remembers a request, which may be answered once. */
  sent(message: JSONRPCMessage): void {
    if ('id' in message && 'method' in message) this.#requested.add(message.id)
  }

  /** Counts a message, or a line that is not one. Returns false when there were too many. */
  received(message?: JSONRPCMessage): boolean {
    if (message !== undefined && !('method' in message) && this.#requested.delete(message.id)) return true
    const now = this.#now()
    this.#left = Math.min(BURST, this.#left + ((now - this.#since) / 1_000) * PER_SECOND)
    this.#since = now
    this.#left -= 1
    return this.#left >= 0
  }
}

export const FLOODED = 'it sent too many unsolicited messages'
