import { checkOptions, invalidOption } from '../agent/check-options.ts'
import { isJsonObject } from '../state/json.ts'
import { AgentError, messageOf } from '../errors.ts'
import { action, type Action } from '../hooks/action.ts'
import { PostTimeout, postJson } from '../system/network/post-json.ts'
import { eventText } from './event.ts'
import { readOutcome } from './outcome.ts'

export type HttpOptions = {
  readonly url: string
  /** `$NAME` and `${NAME}` stand for variables of the environment, which must be listed. */
  readonly headers?: { readonly [name: string]: string }
  /** The variables that headers may name. */
  readonly allowedEnvVars?: readonly string[]
  /** Whether an address of this machine or its network may be asked. */
  readonly allowPrivate?: boolean
  /** Whether it is told whole conversations, where there is one, and not only their length and their last message. */
  readonly conversation?: boolean
  /** Bytes of the answer that are read; a longer one is a failure. */
  readonly maxOutputBytes?: number
}

export const httpDefaults = Object.freeze({
  timeoutMs: 30_000,
  maxOutputBytes: 65_536,
  allowPrivate: false,
  conversation: false,
})

/**
 * Posts the event as JSON, and reads the answer as an outcome. An empty answer is no opinion. A status other than 2xx,
 * a redirect among them, or an answer that is no outcome: it has failed, which is a no of a guard.
 */
export function http(options: HttpOptions): Action {
  checkHttpOptions(options)
  const { url, headers = {}, allowedEnvVars = [] } = options
  const { maxOutputBytes, allowPrivate, conversation } = { ...httpDefaults, ...options }
  const { origin, pathname } = new URL(url) // what is asked for may hold a secret
  const label = `http:${origin}${pathname}`
  return action({
    kind: 'http',
    label,
    async perform(ctx, { signal, timeoutMs = httpDefaults.timeoutMs }) {
      const posted = await postJson(url, eventText(ctx, { conversation }), {
        headers: headersFrom(headers, allowedEnvVars),
        timeoutMs,
        signal,
        maxBytes: maxOutputBytes,
        allowPrivate,
      }).catch((error: unknown) => {
        const code = error instanceof PostTimeout ? 'HOOK_TIMED_OUT' : 'HOOK_FAILED'
        throw new AgentError(code, `"${label}": ${messageOf(error)}.`, { cause: error })
      })
      if (posted.status < 200 || posted.status > 299) {
        throw new AgentError('HOOK_FAILED', `"${label}" answered with status ${posted.status}.`)
      }
      return readOutcome(posted.text.trim() === '' ? {} : parsed(posted.text, label), ctx, new URL(url).host)
    },
  })
}

const names = ['url', 'headers', 'allowedEnvVars', 'allowPrivate', 'conversation', 'maxOutputBytes']
/** What is ours to say about a request. */
const ownHeaders = /^(?:host|connection|content-length|content-type|transfer-encoding|upgrade|expect|te|trailer)$/i

/** They may come from a file. */
function checkHttpOptions(options: HttpOptions): void {
  checkOptions('http', options, names)
  const { url, headers = {}, allowedEnvVars = [], allowPrivate = false, conversation = false } = options
  const { maxOutputBytes = 1 } = options
  const refuse = (why: string, value: unknown): never => {
    throw invalidOption('http', why, value)
  }
  if (typeof url !== 'string' || !URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    refuse('"url" must be an address that begins with http: or https:', url)
  }
  if (/[\p{Cc}\\]/u.test(url)) refuse('"url" has characters that others may read otherwise', url)
  if (new URL(url).username !== '' || new URL(url).password !== '') {
    refuse('"url" must not name a user; say who asks in a header', new URL(url).host)
  }
  if (!Array.isArray(allowedEnvVars) || !allowedEnvVars.every((each) => typeof each === 'string')) {
    refuse('"allowedEnvVars" must be a list of names', allowedEnvVars)
  }
  if (!isJsonObject(headers)) refuse('"headers" must be names and their texts', headers)
  for (const [name, text] of Object.entries(headers as { [name: string]: unknown })) {
    checkHeader(name, text, allowedEnvVars)
  }
  if (typeof allowPrivate !== 'boolean') refuse('"allowPrivate" must be true or false', allowPrivate)
  if (typeof conversation !== 'boolean') refuse('"conversation" must be true or false', conversation)
  if (!Number.isSafeInteger(maxOutputBytes) || maxOutputBytes < 1) {
    refuse('"maxOutputBytes" must be a whole number from 1 up', maxOutputBytes)
  }
}

function checkHeader(name: string, text: unknown, allowed: readonly string[]): void {
  if (typeof text !== 'string') throw invalidOption('http', `the header "${name}" must be a text`, text)
  if (ownHeaders.test(name)) throw invalidOption('http', `the header "${name}" is not for hooks to say`, name)
  const { validateHeaderName, validateHeaderValue } = process.getBuiltinModule('node:http') // loaded where it is needed
  try {
    validateHeaderName(name)
    validateHeaderValue(name, text)
  } catch (error) {
    throw invalidOption('http', `the header ${JSON.stringify(name)} cannot be sent: ${messageOf(error)}`, name)
  }
  const stray = [...text.matchAll(variable)]
    .map(([, braced, bare]) => (braced ?? bare)!)
    .find((each) => !allowed.includes(each))
  if (stray !== undefined) {
    throw invalidOption('http', `the header "${name}" names ${stray}, which is not among "allowedEnvVars"`, stray)
  }
}

const variable = /\$(?:\{(\w+)\}|(\w+))/g

/** Headers with their variables. One that is not listed, or not set, is empty, and none can begin another header. */
export function headersFrom(
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

function parsed(text: string, label: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new AgentError('HOOK_OUTCOME_INVALID', `"${label}" answered with something that is not JSON.`)
  }
}
