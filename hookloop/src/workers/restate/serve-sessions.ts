import type { LoggerTransport, ObjectContext } from '@restatedev/restate-sdk'
import type { Http2Server, ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { AgentError, messageOf } from '../../errors.ts'
import { checkArgument, checkOptions, optionNames } from '../../values/check-options.ts'
import { TurnDriver, type SessionWorker, type WorkerOptions } from '../turn-driver.ts'
import { expiryOf, type RejectedTurn, type Turn, type TurnResult } from '../turn.ts'
import { HANDLER, SERVICE, unreachable, type Continued } from './protocol.ts'

/**
 * Options of `serveSessions`.
 *
 * @interface
 */
export type ServeSessionsOptions = WorkerOptions & {
  /** The port that Restate calls. Several workers of one Linux machine can share it. Default 9080. */
  readonly port?: number
  /** The address to listen on. Default: all. */
  readonly host?: string
  /** The address of the admin API of Restate: the worker registers itself there. Default: it is registered by hand. */
  readonly admin?: string
  /** How Restate reaches the worker, for `admin`. Default `http://localhost:<port>`. */
  readonly address?: string
  /** The name of the service in Restate. Default `hookloop`. */
  readonly service?: string
  /** Public keys of Restate, such as `publickeyv1_…`: calls that none of them has signed are rejected. Default: all calls are accepted. */
  readonly identityKeys?: readonly string[]
  /** Receives warnings and errors of the SDK of Restate. Default: it writes to the console. */
  readonly onLog?: (entry: RestateLog) => void
}

/** A message of the SDK of Restate. */
export type RestateLog = {
  readonly level: 'warn' | 'error'
  readonly message: string
  /** The session and the invocation that it is about. */
  readonly session?: string
  readonly invocation?: string
}

/** A worker of Restate. */
export interface RestateWorker extends SessionWorker {
  readonly port: number
}

/** Restate would otherwise end an attempt that is quiet for this long, such as one with a slow tool. */
const QUIET_MS = 24 * 3_600_000

/** A turn is tried until it has a result: a pause would need an operator. */
const retryPolicy = { initialInterval: 50, maxInterval: 2_000, exponentiationFactor: 2, maxAttempts: 1_000_000_000 }

/** Of what a turn does. */
const retries = { initialRetryInterval: 50, maxRetryInterval: 2_000 }

/**
 * Serves sessions as a worker of Restate: it drives the turns that `fleet` sends, one at a time per session. Restate calls any
 * worker again if one dies; the session in the store has what has happened.
 *
 * @example
 * const worker = await serveSessions({ agent, port: 9080 })
 * process.once('SIGTERM', () => void worker.close())
 */
export async function serveSessions(options: ServeSessionsOptions): Promise<RestateWorker> {
  checkOptions('serveSessions', options, optionsOfWorker)
  const { port = 9080, host, service = SERVICE, identityKeys, onLog } = options
  if (identityKeys !== undefined) checkKeys(identityKeys)
  const driver = new TurnDriver('serveSessions', options)
  const { endpoint, object, handlers, rpc, CancelledError } = await loadSdk()
  const connections = new Set<ServerHttp2Session>()

  const drive = async (context: ObjectContext, turn: Turn): Promise<TurnResult | RejectedTurn | Continued> => {
    const cancelled = new AbortController()
    const self = context.objectSendClient<SessionObject>({ name: service }, context.key)
    let running: Promise<TurnResult | RejectedTurn | 'drained'> | undefined
    const work = (): Promise<TurnResult | RejectedTurn | 'drained'> =>
      (running = driver.drive(turn, cancelled.signal).catch(drainedOr))
    const driven = await context.run('drive', work, retries).catch(async (thrown: unknown) => {
      if (!(thrown instanceof CancelledError)) throw thrown
      cancelled.abort()
      await running?.catch(() => undefined)
      return work() // how the run has ended
    })
    if (driven === 'drained') {
      // A new invocation, because this one stays with the version of the workers that has begun it.
      const idempotencyKey = context.rand.uuidv4() // Restate keeps the results of invocations that have one
      return { continuedAs: await self[HANDLER](turn, rpc.sendOpts({ idempotencyKey })).invocationId }
    }
    const expiry = expiryOf(turn, driven)
    if (expiry !== undefined) {
      // The SDK adds the delay to the clock of this worker, and Restate compares the sum with its own.
      const delayMs = async (): Promise<number> => expiry.delayMs(Date.now()) + (await driver.clockOffsetMs())
      const delay = Math.max(0, Math.round(await context.run('delay', delayMs, retries)))
      self[HANDLER](expiry.due, rpc.sendOpts({ delay }))
    }
    return driven
  }

  /** While this worker drains, or if it cannot reach the store, Restate has to call another one. */
  const drainedOr = (thrown: unknown): 'drained' => {
    const code = thrown instanceof AgentError ? thrown.code : undefined
    if (driver.isDraining && code === 'SESSION_BUSY') return 'drained'
    if (code === 'STORE_FAILED') leave()
    throw thrown
  }

  /** Restate calls again on a new connection, which may lead to another worker. What the old ones carry may end. */
  const leave = (): void => {
    for (const connection of connections) connection.close()
  }

  const sessions = object({
    name: service,
    handlers: {
      [HANDLER]: handlers.object.exclusive((context: ObjectContext, turn: Turn) =>
        drive(context, { ...turn, session: context.key }),
      ),
    },
    options: { inactivityTimeout: QUIET_MS, abortTimeout: QUIET_MS, retryPolicy },
  })
  const served = endpoint().bind(sessions)
  if (onLog !== undefined) served.setLogger(toLogger(onLog))
  if (identityKeys !== undefined) served.withIdentityV1(...identityKeys)
  const server = process.getBuiltinModule('node:http2').createServer(served.http2Handler())
  server.on('session', (connection) => {
    connections.add(connection)
    connection.once('close', () => connections.delete(connection))
    closeWhenIdle(connection)
  })
  const bound = await listen(server, { port, host })
  const { admin, address = `http://localhost:${bound}` } = options
  if (admin !== undefined) await register(admin, address).catch(closeAndThrow(server))
  const worker = driver.worker({
    // Not the admin API: turns come without it, and Restate knows whether it reaches the worker.
    check: async () => undefined,
    close: async () => {
      const ended = new Promise((resolve) => server.close(resolve))
      leave()
      await ended
    },
  })
  return Object.assign(worker, { port: bound })
}

/** Otherwise Restate would use it again for the next turn, and a worker that has started since would get none. */
function closeWhenIdle(connection: ServerHttp2Session): void {
  let open = 0
  connection.on('stream', (stream) => {
    open += 1
    stream.once('close', () => {
      open -= 1
      if (open === 0) connection.close()
    })
  })
}

const optionsOfWorker = optionNames<ServeSessionsOptions>({
  agent: true,
  agents: true,
  onTurn: true,
  port: true,
  host: true,
  admin: true,
  address: true,
  service: true,
  identityKeys: true,
  onLog: true,
})

/** What the SDK says again when it repeats an invocation is left out, and so is the start and end of each, which `onTurn` reports. */
function toLogger(onLog: (entry: RestateLog) => void): LoggerTransport {
  return ({ level, replaying, context }, ...parts) => {
    if (replaying || !isShown(level)) return
    const message = parts
      .map((part) => (part instanceof Error ? messageOf(part) : String(part)))
      .join(' ')
      .trim()
    const { key: session, invocationId: invocation } = context ?? {}
    onLog({
      level,
      message,
      ...(session !== undefined && { session }),
      ...(invocation !== undefined && { invocation }),
    })
  }
}

function isShown(level: string): level is RestateLog['level'] {
  return level === 'warn' || level === 'error'
}

/** 32 bytes in base 58. */
const KEY = /^publickeyv1_[1-9A-HJ-NP-Za-km-z]{32,44}$/

/** With an empty list, every call would be accepted. */
function checkKeys(keys: unknown): void {
  const areKeys = Array.isArray(keys) && keys.every((key) => typeof key === 'string' && KEY.test(key))
  checkArgument(
    'serveSessions',
    ['identityKeys', keys],
    areKeys && keys.length > 0,
    'public keys of Restate: publickeyv1_…',
  )
}

/** Several processes can listen on one port, where the system can do that: it distributes the connections. */
async function listen(
  server: Http2Server,
  where: { readonly port: number; readonly host?: string | undefined },
): Promise<number> {
  const reusePort = where.port !== 0 && process.platform === 'linux'
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ ...where, reusePort }, resolve)
  })
  return (server.address() as AddressInfo).port
}

const REGISTER_MS = 30_000

/** Registers the worker with Restate. An address that is known already is looked at again. */
async function register(admin: string, uri: string): Promise<void> {
  const body = JSON.stringify({ uri, force: true })
  const headers = { 'content-type': 'application/json' }
  const signal = AbortSignal.timeout(REGISTER_MS)
  const request = fetch(new URL('/deployments', admin), { method: 'POST', headers, body, signal })
  const response = await request.catch((error: unknown) => {
    throw unreachable(new URL(admin).host, error)
  })
  if (response.ok) return
  const why = `Restate at ${admin} does not accept the worker ${uri}: ${await response.text()}`
  throw new AgentError('AGENT_INVALID_OPTION', why, { value: uri })
}

/** A worker that is not registered does not keep its process alive. */
function closeAndThrow(server: Http2Server): (thrown: unknown) => never {
  return (thrown) => {
    server.close()
    throw thrown
  }
}

type SessionObject = { [HANDLER]: (context: ObjectContext, turn: Turn) => Promise<unknown> }

async function loadSdk(): Promise<typeof import('@restatedev/restate-sdk')> {
  try {
    return await import('@restatedev/restate-sdk')
  } catch (error) {
    throw new AgentError(
      'AGENT_INVALID_OPTION',
      `serveSessions needs a package: npm install @restatedev/restate-sdk (${messageOf(error)})`,
      { value: '@restatedev/restate-sdk', cause: error },
    )
  }
}
