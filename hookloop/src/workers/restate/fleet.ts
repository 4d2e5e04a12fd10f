import { AgentError } from '../../errors.ts'
import { checkArgument, checkOptions } from '../../values/check-options.ts'
import { hashText } from '../../values/json.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { createFleet, type Fleet } from '../fleet.ts'
import type { RejectedTurn, TurnResult } from '../turn.ts'
import { HANDLER, SERVICE, unreachable, type Continued } from './protocol.ts'

/** Options of `fleet`. */
export type FleetOptions = {
  /** The address of the ingress of Restate, such as `http://localhost:8080`. */
  readonly ingress: string
  /** The store that the workers use. */
  readonly store: SessionStore
  /** Which agent of the workers takes new sessions, by its key in `agents`. Default: the only one. */
  readonly agent?: string
  /** The name of the service, as in `serveSessions`. Default `hookloop`. */
  readonly service?: string
  /** Headers of each request, for example of an API gateway. Default none. */
  readonly headers?: { readonly [name: string]: string }
}

/**
 * Sessions that workers on Restate run.
 *
 * @example
 * const sessions = fleet({ ingress: 'http://localhost:8080', store })
 * const sent = await sessions.send('build', 'Build it.', { turn: 'request-42' })
 * console.log((await sent.result()).status)
 */
export function fleet(options: FleetOptions): Fleet {
  checkOptions('fleet', options, ['ingress', 'store', 'agent', 'service', 'headers'])
  const { ingress, store, service = SERVICE, headers = {} } = options
  checkArgument('fleet', ['ingress', ingress], URL.canParse(ingress), 'the address of the ingress of Restate')
  const request = async (path: readonly string[], options: Requested = {}): Promise<unknown> => {
    const { body, key, signal } = options
    const dots = path.find((each) => each === '.' || each === '..')
    if (dots !== undefined) throw unaddressable(dots)
    const address = new URL(path.map(encodeURIComponent).join('/'), ingress.endsWith('/') ? ingress : `${ingress}/`)
    const { status, text } = await fetch(address, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...headers, 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    })
      .then(async (response) => ({ status: response.status, text: await response.text() }))
      .catch((error: unknown) => {
        signal?.throwIfAborted()
        throw unreachable(address.host, error)
      })
    if (status >= 200 && status < 300) return text === '' ? undefined : (JSON.parse(text) as unknown)
    const why = `Restate at ${address.host} answered ${address.pathname} ${status}: ${text}`
    throw new AgentError('STORE_FAILED', why, { value: status })
  }
  return createFleet({
    store,
    agent: options.agent,
    enqueue: async (turn) => {
      await request([service, turn.session, HANDLER, 'send'], { body: turn, key: keyOf(turn.turn) })
    },
    resultOf: async ({ session, turn }, signal) => {
      for (let place = [service, session, HANDLER, keyOf(turn)]; ;) {
        const path = ['restate', 'invocation', ...place, 'attach']
        const result = (await request(path, { signal })) as TurnResult | RejectedTurn | Continued
        if (!('continuedAs' in result)) return result
        place = [result.continuedAs]
      }
    },
  })
}

/** The id of a turn for Restate, which accepts few characters in the header and in the path of a request. */
function keyOf(turn: string): string {
  return /^\w[\w.:-]*$/.test(turn) ? turn : `hash-${hashText(turn)}`
}

function unaddressable(session: string): AgentError {
  const why = `A session on Restate cannot have the id "${session}", which means another place in the path of a URL.`
  return new AgentError('SESSION_ID_INVALID', why, { value: session })
}

type Requested = {
  readonly body?: object
  readonly key?: string
  readonly signal?: AbortSignal | undefined
}
