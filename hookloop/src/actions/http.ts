import { checkOptions, invalidOption } from '../values/check-options.ts'
import { AgentError, messageOf, clause } from '../errors.ts'
import { action, type Action } from '../plugin.ts'
import { PostTimeout, postJson } from '../system/network/post-json.ts'
import { eventText } from './event.ts'
import { actionFailed, parseAnswer, readOutcome } from './outcome.ts'

/** Options of `http`. */
export type HttpOptions = {
  /** The URL that the event is posted to. */
  readonly url: string
  /** Headers of the request. `$NAME` and `${NAME}` are replaced by environment variables listed in `allowedEnvVars`. Default none. */
  readonly headers?: { readonly [name: string]: string }
  /** The environment variables that headers may contain. Default none. */
  readonly allowedEnvVars?: readonly string[]
  /** Allows addresses of this machine and its network. Default: false. */
  readonly allowPrivate?: boolean
  /** Whether the event contains the complete conversation instead of its length and last message. Default: false. */
  readonly conversation?: boolean
  /** Maximum size of the response. Default: 65,536 bytes. A longer response is a failure. */
  readonly maxOutputBytes?: number
}

const TIMEOUT_MS = 30_000
const MAX_OUTPUT_BYTES = 65_536

/**
 * Posts the event as JSON, and reads the response as an `ActionOutcome`. An empty response is no opinion. A status other
 * than 2xx, redirects included, or a response that is not an outcome is a failure. Guards fail closed.
 *
 * @example
 * observe('afterToolUse', http({ url: 'https://audit.example/events' }))
 */
export function http(options: HttpOptions): Action {
  checkHttpOptions(options)
  const { url, headers = {}, allowedEnvVars = [], allowPrivate = false, conversation = false } = options
  const { host } = new URL(url) // the path and the query may contain a secret
  const label = `http:${host}`
  return action({
    kind: 'http',
    label,
    limitsItself: true,
    async perform(ctx, { signal, timeoutMs = TIMEOUT_MS }) {
      const { status, text } = await postJson(url, eventText(ctx, { conversation }), {
        headers: expandHeaders(headers, allowedEnvVars),
        timeoutMs,
        signal,
        maxBytes: options.maxOutputBytes ?? MAX_OUTPUT_BYTES,
        allowPrivate,
      }).catch((error: unknown) => {
        const code = error instanceof PostTimeout ? 'HOOK_TIMED_OUT' : 'HOOK_FAILED'
        throw new AgentError(code, `"${label}": ${clause(messageOf(error))}.`, { cause: error })
      })
      if (status < 200 || status > 299) throw actionFailed(label, `responded with status ${status}`)
      return readOutcome(parseAnswer(text, label), ctx, host)
    },
  })
}

const names = ['url', 'headers', 'allowedEnvVars', 'allowPrivate', 'conversation', 'maxOutputBytes']

/** Headers that the request sets itself. */
const reservedHeaders = /^(?:host|connection|content-length|content-type|transfer-encoding|upgrade|expect|te|trailer)$/i

function checkHttpOptions(options: HttpOptions): void {
  checkOptions('http', options, names)
  const { url, headers = {}, allowedEnvVars = [] } = options
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw invalidOption('http', '"url" must be a URL that starts with http:// or https://', url)
  }
  if (/[\p{Cc}\\]/u.test(url)) throw invalidOption('http', '"url" must not contain control characters or "\\"', url)
  const { username, password, host } = new URL(url)
  if (username !== '' || password !== '') {
    throw invalidOption('http', '"url" must not contain a user name or password; use a header', host)
  }
  for (const [name, text] of Object.entries(headers)) checkHeader(name, text, allowedEnvVars)
}

function checkHeader(name: string, text: string, allowed: readonly string[]): void {
  if (reservedHeaders.test(name)) throw invalidOption('http', `the header "${name}" cannot be set`, name)
  const { validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http') // loaded only if needed
  try {
    validateHeaderName(name)
    validateHeaderValue(name, text)
  } catch (error) {
    throw invalidOption('http', `the header ${JSON.stringify(name)} cannot be sent: ${messageOf(error)}`, name)
  }
  const denied = [...text.matchAll(variable)]
    .map(([, braced, bare]) => (braced ?? bare)!)
    .find((each) => !allowed.includes(each))
  if (denied !== undefined) {
    throw invalidOption('http', `the header "${name}" contains ${denied}, which is not in "allowedEnvVars"`, denied)
  }
}

const variable = /\$(?:\{(\w+)\}|(\w+))/g

/**
 * Headers with their variables replaced. A variable that is not allowed or not set is empty, and no value can start
 * another header.
 */
export function expandHeaders(
  headers: { readonly [name: string]: string },
  allowed: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): { readonly [name: string]: string } {
  const value = (name: string): string => (allowed.includes(name) ? (env[name] ?? '') : '')
  return Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [
      name,
      text.replace(variable, (_all, braced: string | undefined, bare: string | undefined) =>
        value((braced ?? bare)!).replace(/[\r\n\0]/g, ''),
      ),
    ]),
  )
}
