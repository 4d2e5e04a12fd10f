import { messageOf } from '../../errors.ts'
import { cleanText, redactMessage } from './clean-text.ts'
import { MISSING_RESPONSE, type McpTransport } from './transport.ts'

/** What a server did instead of answering, as text that follows its name, and whether the request may have had an effect. */
export type Failure = { readonly text: string; readonly mayHaveActed: boolean }

export function describeFailure(thrown: unknown, transport: McpTransport, secrets: readonly string[]): Failure {
  const { code, status } = readError(thrown)
  const { message, network } = messagesOf(thrown, secrets)
  const acted = (text: string): Failure => ({ text, mayHaveActed: true })
  const rejected = (text: string): Failure => ({ text, mayHaveActed: false })
  if (transport.ended !== undefined) return acted(`has disconnected: ${redactMessage(transport.ended, secrets)}`)
  if (status === 401 || status === 403) return rejected(`answered ${status}: it does not accept the credentials`)
  if (isSessionLost(thrown, transport))
    return rejected('no longer knows the session. The next call starts a new session')
  if (status !== undefined) return acted(`answered ${status}${message === '' ? '' : `: ${message}`}`)
  if (network !== undefined)
    return network.wasReached ? acted(`closed the connection: ${message}`) : rejected(`cannot be reached: ${message}`)
  switch (code) {
    case 'CONNECTION_CLOSED':
      return acted('has disconnected: the connection was closed')
    case 'REQUEST_TIMEOUT':
      return acted('did not answer in time')
    case 'INVALID_RESULT':
      return acted(`sent an invalid result: ${cleanText(message.replace(/\s+/g, ' '), MAX_DETAIL)}`)
    case 'CAPABILITY_NOT_SUPPORTED':
      return acted('requested a feature that this client does not have, such as sampling or elicitation')
    case MISSING_RESPONSE:
      return acted(`did not answer: ${message}`)
    default:
      return typeof code === 'number'
        ? rejected(`returned an error: ${message} (${code})`)
        : acted(`failed: ${message}`)
  }
}

/** What the SDK writes before the actual message. */
const PREFIX = /^(Version negotiation (probe )?failed: |Error POSTing to endpoint: )+/
const REPEATED_STATUS = /^the server answered the probe with HTTP \d+$/
const NOT_REACHED = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|CERT_|DEPTH_|SELF_SIGNED|ERR_TLS)/
/** Messages of a schema validator are long. */
const MAX_DETAIL = 300

/** The message of an error, or of its cause if the network failed. */
function messagesOf(
  thrown: unknown,
  secrets: readonly string[],
): { readonly message: string; readonly network?: { readonly wasReached: boolean } } {
  const chain = causesOf(thrown)
  const redacted = (each: unknown): string => redactMessage(messageOf(each), secrets).replace(/[.\s]+$/, '')
  if (chain.some((each) => messageOf(each) === 'fetch failed' || messageOf(each) === 'terminated')) {
    const codes = chain.map((each) => String((each as { code?: unknown }).code))
    return { message: redacted(chain.at(-1)), network: { wasReached: !codes.some((each) => NOT_REACHED.test(each)) } }
  }
  return { message: redacted(thrown).replace(PREFIX, '').replace(REPEATED_STATUS, '') }
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

/** Whether the server no longer knows the session, so that the connection is of no more use. */
export function isSessionLost(thrown: unknown, transport: McpTransport): boolean {
  return readError(thrown).status === 404 && transport.sessionId !== undefined
}

function readError(thrown: unknown): { readonly code: unknown; readonly status: number | undefined } {
  const { code, data, status } = (thrown ?? {}) as { code?: unknown; data?: { status?: unknown }; status?: unknown }
  const found = [status, data?.status].find((each) => typeof each === 'number')
  return { code, status: found }
}
