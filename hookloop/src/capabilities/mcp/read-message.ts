import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import { endOfString, isJsonObject, quoteInexactNumbers } from '../../state/json.ts'
import type { Sdk } from './load-sdk.ts'

/** Parsing a message takes up to a microsecond for each value in it, so one with more of them is not parsed. */
const MAX_VALUES = 250_000
const MAX_DEPTH = 2_000

/** The complete result of a response, and its text, in fields of the copy that the SDK gets. */
const RESULT = Symbol('result')
const TEXT = Symbol('text')

/**
 * The message in a JSON text, bounded for the SDK. One that is not valid is undefined, unless it answers a request: then it is
 * an error response that says why.
 */
export function readMessage(
  sdk: Sdk,
  text: string,
  onerror: (error: Error) => void = () => undefined,
): JSONRPCMessage | undefined {
  const { problem, id } = scan(text)
  const invalid = (why: string): JSONRPCMessage | undefined => (id === undefined ? undefined : missingResponse(id, why))
  if (problem !== undefined) return invalid(`its response ${problem}`)
  try {
    const message = boundMessage(withKnownFields(JSON.parse(text)), text)
    sdk.parseJSONRPCMessage(message)
    return message
  } catch (thrown) {
    onerror(thrown as Error)
    return invalid('its response is not valid')
  }
}

/** The valid messages in a text: one, or a list of them, which servers of 2025-03 may send. */
export function readMessages(sdk: Sdk, text: string): readonly JSONRPCMessage[] {
  if (!/^\s*\[/.test(text)) return [readMessage(sdk, text) ?? []].flat()
  if (scan(text).problem !== undefined) return []
  try {
    const all = (JSON.parse(text) as readonly unknown[]).slice(0, MAX_BATCH)
    return all.flatMap((each) => readMessage(sdk, JSON.stringify(each)) ?? [])
  } catch {
    return []
  }
}

const MAX_BATCH = 1_000
const [QUOTE, COMMA, LIST, LIST_END, OBJECT, OBJECT_END] = [34, 44, 91, 93, 123, 125]
/** A number or a string that can be parsed: what is not JSON must not throw here. */
const ID = /"id"\s*:\s*(-?(?:0|[1-9]\d{0,14})\b|"[^"\\\p{Cc}]{0,100}")/uy
const METHOD = /"method"\s*:/y

/** Why a message must not be parsed, and the id of the request that it answers. */
function scan(text: string): { readonly problem: string | undefined; readonly id: string | number | undefined } {
  let [values, depth, deepest] = [1, 0, 0]
  let id: string | number | undefined
  let isRequest = false
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        if (depth === 1) {
          ID.lastIndex = METHOD.lastIndex = at
          const found = ID.exec(text)?.[1]
          if (found !== undefined) id = JSON.parse(found) as string | number
          isRequest ||= METHOD.test(text)
        }
        at = endOfString(text, at)
        break
      case COMMA:
        values++
        break
      case LIST:
      case OBJECT:
        values++
        deepest = Math.max(deepest, ++depth)
        break
      case LIST_END:
      case OBJECT_END:
        depth--
    }
  }
  const tooDeep = deepest > MAX_DEPTH ? `is nested more than ${MAX_DEPTH} levels deep` : undefined
  const problem = values > MAX_VALUES ? `has more than ${MAX_VALUES} values` : tooDeep
  return { problem, id: isRequest ? undefined : id }
}

const FIELDS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error']

function withKnownFields(parsed: unknown): JSONRPCMessage {
  if (!isJsonObject(parsed)) throw new TypeError('It is not an object.')
  const known = FIELDS.flatMap((field) => (Object.hasOwn(parsed, field) ? [[field, parsed[field]]] : []))
  return Object.fromEntries(known) as JSONRPCMessage
}

/** So many values of a message reach the SDK. Its validation takes up to 70 µs and 4 KB for each. */
const MAX_CHECKED_VALUES = 1_000
const MAX_CHECKED_DEPTH = 16

/**
 * The message with the values that the SDK itself needs, because validating a list of a million invalid values would block
 * this process for a minute. It needs no list of objects. The code that uses a result gets it from `completeResult`, and
 * checks it.
 */
function boundMessage<M extends JSONRPCMessage>(message: M, text: string): M {
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
      if (name === '__proto__') continue // it would become the prototype of the copy
      fields[name] = copy((value as { [name: string]: unknown })[name], depth + 1)
    }
    return fields
  }
  const bounded = copy(body, 0)
  const isResult = part === 'result' && isJsonObject(bounded)
  return { ...message, [part]: isResult ? { ...bounded, [RESULT]: body, [TEXT]: text } : bounded }
}

type Complete = { readonly [RESULT]?: unknown; readonly [TEXT]?: string }

/** What the server answered, from the result that the SDK returned. */
export function completeResult(result: unknown): unknown {
  return (result as Complete | null)?.[RESULT] ?? result
}

/** The same with integers that JavaScript would round, and numbers that are too large for it, as strings. */
export function exactResult(result: unknown): unknown {
  const text = (result as Complete | null)?.[TEXT]
  const exact = text === undefined ? text : quoteInexactNumbers(text)
  return exact === undefined || exact === text
    ? completeResult(result)
    : (JSON.parse(exact) as { readonly result: unknown }).result
}

/** An error response in place of one that did not arrive or cannot be read. */
export function missingResponse(id: string | number, why: string): JSONRPCMessage {
  return { jsonrpc: '2.0', id, error: { code: MISSING_RESPONSE, message: why } }
}

/** The error code of such a response, from the range that the protocol leaves free. */
export const MISSING_RESPONSE = -32_099
