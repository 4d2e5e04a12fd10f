import { isJsonObject, parseExactly, type Json, type JsonObject } from '../values/json.ts'
import { AgentError, type ErrorCode } from '../errors.ts'

/** An answer that is not a success. Its message is for the client. */
export class HttpError extends Error {
  readonly status: number
  readonly headers: { readonly [name: string]: string }

  constructor(status: number, message: string, headers: { readonly [name: string]: string } = {}) {
    super(message)
    this.status = status
    this.headers = headers
  }
}

const common = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

export function jsonResponse(body: unknown): Response {
  return Response.json(body, { headers: common })
}

export function emptyResponse(): Response {
  return new Response(null, { status: 204, headers: common })
}

/** What a client may know about each failure of a session. All others are 500, without a message. */
const known: { readonly [code in ErrorCode]?: readonly [status: number, message: string] } = {
  ANSWER_EXPIRED: [409, 'The question has expired. It can only be blocked.'],
  ANSWER_INVALID: [400, 'The answer is not valid for this question.'],
  ANSWER_UNKNOWN: [409, 'The chat does not wait for an answer to this question.'],
  ANSWER_USED: [409, 'The question was already answered.'],
  APPROVAL_MISMATCH: [409, 'The arguments of the call have changed. Reload the page.'],
  INPUT_INVALID: [400, 'The message must have text or files.'],
  SESSION_BUSY: [409, 'An answer is being written. Wait for it, or stop it.'],
  SESSION_ID_INVALID: [400, 'The id of the chat is not valid.'],
  SESSION_UNKNOWN: [404, 'There is no such chat.'],
  STATE_SUSPENDED: [409, 'The chat waits for an answer to a question.'],
}

/** What a client may know about something that was thrown. Errors that are not for clients are reported. */
export function toHttpError(thrown: unknown, report: (error: unknown) => void): HttpError {
  if (thrown instanceof HttpError) return thrown
  const code = thrown instanceof AgentError ? thrown.code : undefined
  const [status, message] = (code && known[code]) ?? [500, 'The server has failed.']
  if (status === 500) report(thrown)
  return new HttpError(status, message, code === undefined ? {} : { 'x-hookloop-error': code })
}

/** The response for something that was thrown, as plain text: `useChat` shows the body of an error as its message. */
export function errorResponse(thrown: unknown, report: (error: unknown) => void): Response {
  const { status, message, headers } = toHttpError(thrown, report)
  const type = { 'content-type': 'text/plain; charset=utf-8' }
  return new Response(message, { status, headers: { ...common, ...type, ...headers } })
}

/** Reads a JSON object. A form cannot send JSON, so a page of another site cannot send a request in the name of a user. */
export async function readJson(request: Request, maxBytes: number): Promise<JsonObject> {
  const [type] = (request.headers.get('content-type') ?? '').split(';')
  if (type!.trim().toLowerCase() !== 'application/json')
    throw new HttpError(415, 'The request must be application/json.')
  const text = await readText(request, maxBytes)
  let value: Json
  try {
    value = parseExactly(text) as Json // an approver's arguments must not be rounded
  } catch {
    throw new HttpError(400, 'The request is not valid JSON.')
  }
  if (isJsonObject(value)) return value
  throw new HttpError(400, 'The request must be a JSON object.')
}

async function readText({ headers, body }: Request, maxBytes: number): Promise<string> {
  const tooLarge = new HttpError(413, `The request has more than ${maxBytes} bytes.`)
  if (Number(headers.get('content-length') ?? 0) > maxBytes) throw tooLarge
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let [bytes, text] = [0, '']
  try {
    for await (const chunk of body ?? []) {
      bytes += chunk.byteLength
      if (bytes > maxBytes) throw tooLarge // leaving the loop cancels the body
      text += decoder.decode(chunk, { stream: true })
    }
    return text + decoder.decode()
  } catch (thrown) {
    throw thrown === tooLarge ? thrown : new HttpError(400, 'The request cannot be read as UTF-8.')
  }
}
