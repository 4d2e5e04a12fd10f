import { messageOf } from '../../errors.ts'
import { UNANSWERED, type Link } from './link.ts'
import { cleaned, safeWords } from './words.ts'

/** What a server did instead of answering, in words that follow its name, and whether the request may have had an effect. */
export type Failure = { readonly words: string; readonly mayHaveActed: boolean }

export function failureOf(thrown: unknown, link: Link, secrets: readonly string[]): Failure {
  const { code, status } = readError(thrown)
  const { message, network } = messagesOf(thrown, secrets)
  const acted = (words: string): Failure => ({ words, mayHaveActed: true })
  const refused = (words: string): Failure => ({ words, mayHaveActed: false })
  if (link.ended !== undefined) return acted(`is gone: ${safeWords(link.ended, secrets)}`)
  if (status === 401 || status === 403) return refused(`answered ${status}: it does not accept the credentials given`)
  if (isForgotten(thrown, link)) return refused('has forgotten the session, which is begun anew with the next call')
  if (status !== undefined) return acted(`answered ${status}${message === '' ? '' : `: ${message}`}`)
  if (network !== undefined)
    return network.wasReached ? acted(`broke off: ${message}`) : refused(`cannot be reached: ${message}`)
  switch (code) {
    case 'CONNECTION_CLOSED':
      return acted('is gone: the connection was closed')
    case 'REQUEST_TIMEOUT':
      return acted('did not answer in time')
    case 'INVALID_RESULT':
      return acted(`answered with something that cannot be read: ${short(message)}`)
    case 'CAPABILITY_NOT_SUPPORTED':
      return acted('wants something that it is not given here, such as a model or a person to ask')
    case UNANSWERED:
      return acted(`did not answer: ${message}`)
    default:
      return typeof code === 'number' ? refused(`refused: ${message} (${code})`) : acted(`failed: ${message}`)
  }
}

/** What the SDK puts in front of what happened. */
const PREFIX = /^(Version negotiation (probe )?failed: |Error POSTing to endpoint: )+/
const REPEATED_STATUS = /^the server answered the probe with HTTP \d+$/
const NOT_REACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|CERT_|DEPTH_|SELF_SIGNED|ERR_TLS)/

/** The words of an error, or of what was behind it when the network failed. */
function messagesOf(
  thrown: unknown,
  secrets: readonly string[],
): { readonly message: string; readonly network?: { readonly wasReached: boolean } } {
  const chain = causesOf(thrown)
  const words = (each: unknown): string => safeWords(messageOf(each), secrets).replace(/[.\s]+$/, '')
  if (chain.some((each) => messageOf(each) === 'fetch failed' || messageOf(each) === 'terminated')) {
    const codes = chain.map((each) => String((each as { code?: unknown }).code))
    return { message: words(chain.at(-1)), network: { wasReached: !codes.some((each) => NOT_REACHED.test(each)) } }
  }
  return { message: words(thrown).replace(PREFIX, '').replace(REPEATED_STATUS, '') }
}

function causesOf(thrown: unknown): readonly unknown[] {
  const chain = [thrown]
  for (let i = 0; i < 8; i++) {
    const { cause } = (chain.at(-1) ?? {}) as { cause?: unknown }
    if (cause === undefined || cause === null) break
    chain.push(cause)
  }
  return chain
}

const MAX_DETAIL = 300

/** What a schema has to say is long and of many lines. */
function short(message: string): string {
  return cleaned(message.replace(/\s+/g, ' '), MAX_DETAIL)
}

/** Whether a connection is of no use any more, though it has not said so: the server does not know the session. */
export function isForgotten(thrown: unknown, link: Link): boolean {
  return readError(thrown).status === 404 && link.sessionId !== undefined
}

function readError(thrown: unknown): { readonly code: unknown; readonly status: number | undefined } {
  const { code, data, status } = (thrown ?? {}) as { code?: unknown; data?: { status?: unknown }; status?: unknown }
  const found = [status, data?.status].find((each) => typeof each === 'number')
  return { code, status: found }
}
