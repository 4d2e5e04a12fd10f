import { checkKnown, invalidOption } from '../agent/options.ts'
import { AgentError, messageOf } from '../errors.ts'
import { action, type Action } from '../hooks/action.ts'
import { postJson } from '../machine/post-json.ts'
import { eventFor } from './event.ts'
import { readOutcome } from './outcome.ts'

export type HttpOptions = {
  readonly url: string
  /** `$NAME` and `${NAME}` stand for variables of the environment, if they are listed. */
  readonly headers?: { readonly [name: string]: string }
  /** The variables that headers may name. */
  readonly allowedEnvVars?: readonly string[]
  /** Whether an address of this machine or its network may be asked. */
  readonly allowPrivate?: boolean
  readonly maxOutputBytes?: number
}

export const httpPolicy = Object.freeze({ timeoutMs: 30_000, maxOutputBytes: 65_536, allowPrivate: false })

/**
 * Posts the event as JSON, and reads the answer as an outcome. An empty answer is no opinion. A status other than 2xx,
 * a redirect among them, or an answer that is no outcome: it has failed, which is a no of a guard.
 */
export function http(options: HttpOptions): Action {
  checkKnown('http', options, ['url', 'headers', 'allowedEnvVars', 'allowPrivate', 'maxOutputBytes'])
  const { url, headers = {}, allowedEnvVars = [] } = options
  const { maxOutputBytes, allowPrivate } = { ...httpPolicy, ...options }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw invalidOption('http', '"url" must be an address that begins with http: or https:', url)
  }
  const { origin, pathname } = new URL(url) // what is asked for may hold a secret
  const label = `http:${origin}${pathname}`
  return action({
    kind: 'http',
    label,
    async perform(ctx, { signal, timeoutMs = httpPolicy.timeoutMs }) {
      const posted = await postJson(url, JSON.stringify(eventFor(ctx)), {
        headers: headersFrom(headers, allowedEnvVars),
        timeoutMs,
        signal,
        maxBytes: maxOutputBytes,
        allowInner: allowPrivate,
      }).catch((error: unknown) => {
        const isLate = messageOf(error).startsWith('no answer within')
        throw new AgentError(isLate ? 'HOOK_TIMED_OUT' : 'HOOK_FAILED', `"${label}": ${messageOf(error)}.`)
      })
      if (posted.status < 200 || posted.status > 299) {
        throw new AgentError('HOOK_FAILED', `"${label}" answered with status ${posted.status}.`)
      }
      return readOutcome(posted.text.trim() === '' ? {} : parsed(posted.text, label), ctx, label)
    },
  })
}

/** Headers with their variables. One that is not listed, or not set, is empty. */
export function headersFrom(
  headers: { readonly [name: string]: string },
  allowed: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): { readonly [name: string]: string } {
  const value = (name: string): string => (allowed.includes(name) ? (env[name] ?? '') : '')
  return Object.fromEntries(
    Object.entries(headers).map(([name, text]) => [
      name,
      text.replace(/\$(?:\{(\w+)\}|(\w+))/g, (_all, braced: string | undefined, bare: string | undefined) =>
        value((braced ?? bare)!).replace(/[\r\n]/g, ''),
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
