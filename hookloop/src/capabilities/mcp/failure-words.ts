import { messageOf } from '../../errors.ts'
import { LOST } from './http-link.ts'
import type { Link } from './link.ts'
import { safeWords } from './words.ts'

/** What a server did instead of answering, in words that follow its name, and whether the request may have had an effect. */
export type Failure = { readonly words: string; readonly mayHaveActed: boolean }

export function failureOf(thrown: unknown, link: Link, secrets: readonly string[]): Failure {
  const { code, status } = readError(thrown)
  const message = safeWords(messageOf(thrown), secrets).replace(/[.\s]+$/, '')
  const acted = (words: string): Failure => ({ words, mayHaveActed: true })
  const refused = (words: string): Failure => ({ words, mayHaveActed: false })
  if (link.ended !== undefined) return acted(`is gone: ${safeWords(link.ended, secrets)}`)
  if (status === 401 || status === 403) return refused(`answered ${status}: it does not accept the credentials given`)
  if (isForgotten(thrown, link)) return refused('has forgotten the session, which is begun anew with the next call')
  if (status !== undefined) return acted(`answered ${status}: ${message}`)
  if (code === 'CONNECTION_CLOSED') return acted('is gone: the connection was closed')
  if (code === 'REQUEST_TIMEOUT') return acted('did not answer in time')
  if (code === 'INVALID_RESULT') return acted(`answered with something that cannot be read: ${message}`)
  if (message === LOST) return acted(`did not answer: ${LOST}`)
  if (typeof code === 'number') return refused(`refused: ${message} (${code})`)
  const { cause } = (thrown ?? {}) as { cause?: unknown }
  return acted(`failed: ${message}${cause === undefined ? '' : `, ${safeWords(messageOf(cause), secrets)}`}`)
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
