import type { AiSdkModel } from '../../core/state/inference.ts'
import { isJsonObject, type JsonObject } from '../../values/json.ts'
import { AgentError, messageOf, type ErrorCode } from '../../errors.ts'
import { parseJson } from './arguments.ts'
import { redactKeys } from './secrets.ts'

const MAX_MESSAGE_CHARS = 500

type Asked = { readonly provider: string; readonly modelId: string; readonly model: AiSdkModel | undefined }

/**
 * Classifies a failed call. This is the only place that does: the code says what kind of failure it is, the value what
 * may help. The message is the provider's, without keys; the request and the headers are dropped.
 */
export async function toModelFailure(thrown: unknown, { provider, modelId, model }: Asked): Promise<AgentError> {
  const failed = errorInBody(thrown) ?? thrown
  const code = classify(failed)
  const status = statusOf(failed)
  const retryAfterMs = retryAfterOf(thrown)
  const words = (await redactKeys(wordsOf(failed), model)).slice(0, MAX_MESSAGE_CHARS)
  const cause = new Error(words) // not the thrown error, which contains the request and may contain the key
  cause.name = await redactKeys(nameOf(thrown), model)
  const answered = status === undefined ? '' : ` answered ${status}`
  return new AgentError(code, `${provider}/${modelId}${answered}: ${words}${hintFor(code, provider, words)}`, {
    value: {
      provider,
      model: modelId,
      ...(status !== undefined && { status }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    },
    cause,
  })
}

/** An error in the body of a response whose status is a success, or was invented by the adapter. */
function errorInBody(thrown: unknown): JsonObject | undefined {
  const { responseBody } = fieldsOf(thrown)
  const isFine = (statusOf(thrown) ?? 0) < 400
  const body = typeof responseBody === 'string' && isFine ? parseJson(responseBody) : responseBody
  const error = isJsonObject(body) ? body['error'] : undefined
  return typeof error === 'string' ? { message: error } : isJsonObject(error) ? error : undefined
}

function classify(thrown: unknown): ErrorCode {
  if (thrown instanceof AgentError) return thrown.code
  if (/ended without a finish reason/i.test(wordsOf(thrown))) return 'MODEL_UNREACHABLE'
  const byName = codesByName.get(nameOf(thrown))
  if (byName !== undefined) return byName
  const status = statusOf(thrown)
  // The text of an unreadable reply is no evidence: it may be about anything.
  if (
    (status ?? 0) < 400 &&
    causesOf(thrown).some((cause) => codesByName.get(nameOf(cause)) === 'MODEL_REPLY_INVALID')
  ) {
    return 'MODEL_REPLY_INVALID'
  }
  const text = textOf(thrown)
  const byWords = codesByWords.find(([, pattern]) => pattern.test(text))?.[0]
  if (status !== undefined && status >= 400) return codeOfStatus(status, byWords)
  return byWords ?? (status === undefined ? 'MODEL_FAILED' : 'MODEL_REPLY_INVALID')
}

function codeOfStatus(status: number, byWords: ErrorCode | undefined): ErrorCode {
  if (status === 401 || status === 403) return byWords === 'MODEL_CONTENT_FILTERED' ? byWords : 'MODEL_UNAUTHORIZED'
  if (status === 402) return 'MODEL_UNAUTHORIZED'
  if (status === 408) return 'MODEL_TIMED_OUT'
  if (status === 413) return 'MODEL_CONTEXT_OVERFLOW'
  if (status === 429) return byWords === 'MODEL_UNAUTHORIZED' ? byWords : 'MODEL_RATE_LIMITED'
  if (status >= 500) return byWords === 'MODEL_CONTEXT_OVERFLOW' ? byWords : 'MODEL_OVERLOADED'
  return byWords === 'MODEL_CONTEXT_OVERFLOW' || byWords === 'MODEL_CONTENT_FILTERED' ? byWords : 'MODEL_REJECTED'
}

/** Errors of the AI SDK whose name says what they are. */
const codesByName: ReadonlyMap<string, ErrorCode> = new Map([
  ['AI_LoadAPIKeyError', 'MODEL_UNAUTHORIZED'],
  ['AI_UnsupportedFunctionalityError', 'MODEL_REJECTED'],
  ['AI_InvalidPromptError', 'MODEL_REJECTED'],
  ['AI_InvalidArgumentError', 'MODEL_REJECTED'],
  ['AI_NoSuchModelError', 'MODEL_REJECTED'],
  ['AI_LoadSettingError', 'MODEL_REJECTED'],
  ['AI_JSONParseError', 'MODEL_REPLY_INVALID'],
  ['AI_TypeValidationError', 'MODEL_REPLY_INVALID'],
  ['AI_InvalidResponseDataError', 'MODEL_REPLY_INVALID'],
  ['AI_EmptyResponseBodyError', 'MODEL_REPLY_INVALID'],
  ['AI_NoContentGeneratedError', 'MODEL_REPLY_INVALID'],
  ['TimeoutError', 'MODEL_TIMED_OUT'],
])

/** The message decides where the status is missing, as in a stream, or says too little. The first match wins. */
const codesByWords: readonly (readonly [ErrorCode, RegExp])[] = [
  [
    'MODEL_CONTEXT_OVERFLOW',
    /context.{0,3}(length|window|limit|size)|too (long|many tokens)|maximum (prompt|.{0,20}tokens)|token count.{0,30}exceed|prompt is too long|reduce the length/i,
  ],
  [
    'MODEL_CONTENT_FILTERED',
    /(content|usage).?(filter|polic)|safety (system|setting)|responsibleai|prohibited.?content|blocked by.{0,30}(safety|policy)/i,
  ],
  [
    'MODEL_UNAUTHORIZED',
    /insufficient.?(quota|credit|balance|funds)|billing|invalid.?api.?key|api.?key.{0,20}(missing|invalid|not valid)|unauthori[sz]ed|authentication/i,
  ],
  ['MODEL_RATE_LIMITED', /rate.?limit|too many requests|resource.?exhausted/i],
  [
    'MODEL_OVERLOADED',
    /overloaded|server.?error|internal error|service.?unavailable|temporarily unavailable|api_error/i,
  ],
  ['MODEL_REPLY_INVALID', /expected a normalized .{0,20}stream error/i],
  ['MODEL_TIMED_OUT', /timed.?out|timeout|deadline.?exceeded/i],
  [
    'MODEL_UNREACHABLE',
    /cannot connect|fetch failed|terminated|socket|ECONN|ENOTFOUND|EAI_AGAIN|EPIPE|network|other side closed/i,
  ],
]

/** The message and everything around it that may say what kind of failure it is. */
function textOf(thrown: unknown): string {
  const { responseBody, code, type } = fieldsOf(thrown)
  return [wordsOf(thrown), responseBody, code, type, nameOf(thrown), ...causesOf(thrown).map(wordsOf)]
    .filter((part) => typeof part === 'string')
    .join(' ')
    .slice(0, 10_000)
}

function wordsOf(thrown: unknown): string {
  let [current, depth] = [thrown, 0]
  for (; depth < 5; depth++) {
    const { message, error } = fieldsOf(current)
    if (typeof message === 'string' && message !== '') return message
    if (error === undefined) break
    current = error
  }
  return messageOf(current)
}

function statusOf(thrown: unknown): number | undefined {
  const { statusCode, code } = fieldsOf(thrown)
  const given = statusCode ?? code // an error in a stream may carry the status as its code
  return typeof given === 'number' && given >= 100 && given < 600 ? given : undefined
}

function nameOf(thrown: unknown): string {
  const { name } = fieldsOf(thrown)
  return typeof name === 'string' && /^\w{1,60}$/.test(name) ? name : 'Error' // never text from a server
}

function causesOf(thrown: unknown): readonly unknown[] {
  const causes: unknown[] = []
  for (let { cause } = fieldsOf(thrown); cause !== undefined && causes.length < 5; cause = fieldsOf(cause).cause) {
    causes.push(cause)
  }
  return causes
}

type Field =
  | 'message'
  | 'error'
  | 'name'
  | 'statusCode'
  | 'responseBody'
  | 'responseHeaders'
  | 'code'
  | 'type'
  | 'cause'

function fieldsOf(thrown: unknown): { readonly [K in Field]?: unknown } {
  return isJsonObject(thrown) ? thrown : {}
}

/** Not repeated if the provider named the variable already; Ollama has no keys. */
function hintFor(code: ErrorCode, provider: string, words: string): string {
  if (code !== 'MODEL_UNAUTHORIZED' || provider === 'ollama' || /_(KEY|TOKEN)/.test(words)) return ''
  return ` (Check that the API key of ${provider} is set and that the account has credit. \`hookloop models\` lists the keys that are set.)`
}

/** How long the provider asks to wait, in milliseconds: from the headers or, for Google, from the body. */
export function retryAfterOf(thrown: unknown): number | undefined {
  const { responseHeaders, responseBody } = fieldsOf(thrown)
  const headers = (responseHeaders ?? {}) as { readonly [name: string]: string | undefined }
  const milliseconds = Number.parseFloat(headers['retry-after-ms'] ?? '')
  if (milliseconds >= 0) return milliseconds
  const header = headers['retry-after']
  if (header !== undefined) {
    const seconds = Number(header)
    const ms = Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000
    if (Number.isFinite(ms)) return Math.max(0, Math.round(ms))
  }
  const delay = typeof responseBody === 'string' ? /"retryDelay"\s*:\s*"([\d.]+)s"/.exec(responseBody) : null
  return delay === null ? undefined : Math.round(Number(delay[1]) * 1_000)
}
