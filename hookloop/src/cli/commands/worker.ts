import { createServer, type Server } from 'node:http'
import { AgentError, messageOf, clause } from '../../errors.ts'
import { checkReachable, type SessionWorker } from '../../workers/turn-driver.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { TurnReport } from '../../workers/turn-driver.ts'
import { workerHealth } from '../../workers/worker-health.ts'
import { createCliAgent } from '../agents/create-cli-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { collect, hooksOptions, portNumber, wholeNumber } from '../options.ts'
import { fileHooks, type HooksFlags } from '../run/file-hooks.ts'
import { listen } from '../serve/listen.ts'
import { openStore } from '../sessions/open-store.ts'
import { interruptible } from '../terminal/interruption.ts'
import { UsageError } from '../usage-error.ts'
import { agentFiles, checkNames, sharedStore, withStore, type Agents } from '../worker/load-agents.ts'
import { passwordsIn, workerLog, type WorkerEvent } from '../worker/worker-log.ts'

type WorkerFlags = HooksFlags & {
  readonly agent?: readonly string[]
  readonly model?: string
  /** True: without a value. */
  readonly postgres?: string | true
  readonly restate?: string
  readonly store?: string
  readonly maxRuns?: number
  readonly port?: number
  readonly host?: string
  readonly address?: string
  readonly identityKey?: readonly string[]
  readonly healthPort?: number
}

export const command: CommandDefinition = {
  description:
    'Run the sessions of a fleet: drive the turns that clients send, with other workers, on Postgres alone or on Restate. ' +
    'SIGTERM and Ctrl-C drain it: runs are suspended at the end of their steps, and other workers continue them. ' +
    'On a terminal it logs lines of text, otherwise lines of JSON.',
  examples: [
    'DATABASE_URL=postgres://localhost/app hookloop worker agent.ts --postgres',
    'hookloop worker support.ts coder.ts --postgres postgres://localhost/app --health-port 8081',
    'hookloop worker agent.ts --restate http://localhost:9070 --store postgres://localhost/app',
  ],
  notes:
    'Exit codes: 0 drained, 1 the store or the engine cannot be reached at start, 2 the command line or an agent file is\n' +
    'wrong, 130 or 143 ended by a second Ctrl-C or SIGTERM. See the guide "More than one machine".',
  configure: (command) =>
    hooksOptions(
      command
        .argument('[agents...]', 'agent modules; the key of each is the name of its file')
        .option('-a, --agent <key=file>', 'agent module with this key; can be repeated', collect)
        .option('-m, --model <name>', 'provider/model (default: the models of the agents, or HOOKLOOP_MODEL)')
        .option('--postgres [url]', 'the database with the queue (default: DATABASE_URL)')
        .option('--restate <url>', 'the admin API of Restate, where the worker registers itself')
        .option(
          '--store <where>',
          'session store (default: that of the agents, or the database of --postgres, or HOOKLOOP_STORE)',
        )
        .option('--max-runs <n>', 'runs at a time, with --postgres (default: 10)', wholeNumber)
        .option('-p, --port <number>', 'port that Restate calls (default: 9080)', portNumber)
        .option('--address <url>', 'how Restate reaches this worker (default: http://localhost:<port>)')
        .option(
          '--identity-key <key>',
          'public key of Restate: reject calls that it has not signed; can be repeated',
          collect,
        )
        .option('--health-port <number>', 'port for GET /healthz and /readyz (default: none)', portNumber)
        .option('--host <address>', 'address that the ports listen on (default: all)')
        .option('--json', 'log lines of JSON, also on a terminal'),
    ),
  run: worker,
}

export async function worker(files: readonly string[], flags: WorkerFlags, cli: CliContext): Promise<ExitCode> {
  const { env, out } = cli
  const engine = engineOf(flags, env['DATABASE_URL'])
  const named = agentFiles(files, flags.agent)
  const secrets = passwordsIn([engine.url, flags.store, env['DATABASE_URL'], env['HOOKLOOP_STORE']])
  const log = workerLog({ json: flags.json, secrets }, cli)

  let running: SessionWorker | undefined
  const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<void>()
  const interruption = interruptible(
    out,
    () => {
      log({ event: 'draining', running: running?.running ?? 0 })
      interrupt()
    },
    () => log({ event: 'abandoned', running: running?.running ?? 0 }),
  )
  const { promise: ready, resolve: setReady } = Promise.withResolvers<SessionWorker>()
  const health = createHealthServer(ready, log)
  let close: (() => Promise<void>) | undefined
  try {
    if (flags.healthPort !== undefined) {
      const isTaken = `--health-port ${flags.healthPort} is in use. Choose another one, or 0 for a free one.`
      const port = await listen(health, { port: flags.healthPort, host: flags.host }, isTaken)
      log({ event: 'health', port })
    }
    const loaded = await loadAgents(named, flags, cli)
    const store = await reach('The session store', storeFor(loaded, engine, { flags, env }))
    close = () => store.close()
    await reach('The session store', checkReachable(store))
    const agents = withStore(loaded, store)
    const metrics = await metricsOf(store)
    const onTurn = (report: TurnReport): void => {
      const { type, ...more } = report
      log({ event: type, ...more })
      metrics?.onTurn(report)
    }
    const started = await reach(engine.shown, serve(engine, { agents, onTurn, log }, flags))
    running = started.worker
    setReady(running)
    log({ event: 'ready', engine: engine.name, agents: Object.keys(agents), ...started.at })
    await interrupted
    await running.close()
    await metrics?.flush()
    log({ event: 'stopped' })
    return exitCodes.completed
  } catch (thrown) {
    if (!(thrown instanceof Unreachable)) throw thrown
    log({ event: 'failed', error: { message: thrown.message } })
    return exitCodes.failed
  } finally {
    interruption.dispose()
    health.close()
    health.closeAllConnections()
    await close?.()
  }
}

type EngineChoice = { readonly name: 'postgres' | 'restate'; readonly url: string; readonly shown: string }

function engineOf(flags: WorkerFlags, databaseUrl: string | undefined): EngineChoice {
  const { postgres, restate, port, address, identityKey, maxRuns } = flags
  if ((postgres === undefined) === (restate === undefined))
    throw new UsageError('Name one engine: --postgres postgres://… or --restate http://…')
  if (restate !== undefined) {
    if (maxRuns !== undefined)
      throw new UsageError('--max-runs is for --postgres: Restate distributes the runs itself.')
    const isUrl = URL.canParse(restate) && /^https?:$/.test(new URL(restate).protocol)
    if (!isUrl || new URL(restate).password !== '')
      throw new UsageError('--restate must be the address of the admin API, such as http://localhost:9070')
    return { name: 'restate', url: restate, shown: `Restate at ${new URL(restate).origin}` }
  }
  if (port !== undefined || address !== undefined || identityKey !== undefined)
    throw new UsageError(
      '--port, --address and --identity-key are for --restate: workers on Postgres are not called by others.',
    )
  const url = postgres === true ? (databaseUrl ?? '') : postgres!
  if (url === '') throw new UsageError('--postgres needs the address of a database, or the variable DATABASE_URL.')
  if (!/^postgres(ql)?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError(`${postgres === true ? 'DATABASE_URL' : '--postgres'} must be a URL such as postgres://…`)
  const { host, pathname } = new URL(url)
  return { name: 'postgres', url, shown: `The database ${host}${pathname}` }
}

async function loadAgents(
  files: readonly (readonly [key: string, file: string])[],
  flags: WorkerFlags,
  cli: CliContext,
): Promise<Agents> {
  const hooks = await fileHooks(flags, cli) // once: it warns about what it leaves out
  const agents: { [key: string]: Agents[string] } = {}
  for (const [key, agent] of files) agents[key] = (await createCliAgent({ ...flags, agent }, cli, { hooks })).agent
  checkNames(agents)
  return agents
}

/** `--store`, else the store of the agents, else the database of `--postgres`, else HOOKLOOP_STORE. */
async function storeFor(
  agents: Agents,
  { name, url }: EngineChoice,
  { flags, env }: { readonly flags: WorkerFlags; readonly env: CliContext['env'] },
): Promise<SessionStore> {
  const own = flags.store === undefined ? sharedStore(agents) : undefined
  if (own !== undefined) return own
  const where = flags.store ?? (name === 'postgres' ? url : env['HOOKLOOP_STORE'])
  if (where === undefined || where === '' || where === 'none')
    throw new UsageError('--restate needs a store that all workers share, such as --store postgres://…')
  return (await openStore({ store: where }, env))!.store
}

type Started = { readonly worker: SessionWorker; readonly at: { readonly port?: number } }

async function serve(
  { name, url }: EngineChoice,
  {
    log,
    ...common
  }: {
    readonly agents: Agents
    readonly onTurn: (report: TurnReport) => void
    readonly log: (event: WorkerEvent) => void
  },
  { maxRuns, port, host, address, identityKey }: WorkerFlags,
): Promise<Started> {
  if (name === 'postgres') {
    const { serveSessions } = await import('../../workers/postgres/serve-sessions.ts')
    const given = { ...common, connectionString: url, ...(maxRuns !== undefined && { maxRuns }) }
    return { worker: await serveSessions(given), at: {} }
  }
  const { serveSessions } = await import('../../workers/restate/serve-sessions.ts')
  const started = await serveSessions({
    ...common,
    admin: url,
    onLog: (entry) => log({ event: 'restate', ...entry }),
    ...(port !== undefined && { port }),
    ...(host !== undefined && { host }),
    ...(address !== undefined && { address }),
    ...(identityKey !== undefined && { identityKeys: identityKey }),
  })
  return { worker: started, at: { port: started.port } }
}

type Metrics = { readonly onTurn: (report: TurnReport) => void; readonly flush: () => Promise<void> }

const FLUSH_MS = 5_000

/** Metrics for the provider that the process has registered. None without OpenTelemetry. */
async function metricsOf(store: SessionStore): Promise<Metrics | undefined> {
  try {
    const { metrics } = await import('@opentelemetry/api')
    const { workerMetrics } = await import('../../tracing/worker-metrics.ts')
    const provider = metrics.getMeterProvider() as { forceFlush?: (options: object) => Promise<void> }
    const flush = async (): Promise<void> => provider.forceFlush?.({ timeoutMillis: FLUSH_MS }).catch(() => undefined)
    return { onTurn: workerMetrics({ store }), flush }
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw thrown
  }
}

/** A server, a database or a port that the worker needs at start cannot be used. */
class Unreachable extends Error {}

/** Says what could not be reached, and what to do. What the command line has to change is thrown as it is. */
async function reach<T>(what: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (thrown) {
    const isFailure = thrown instanceof AgentError && thrown.code === 'STORE_FAILED'
    if (thrown instanceof UsageError || (thrown instanceof AgentError && !isFailure)) throw thrown
    if (isFailure && thrown.message.includes('npm install')) throw thrown
    const problem = isFailure ? thrown.message : `${what} cannot be used: ${messageOf(deepest(thrown))}`
    throw new Unreachable(`${clause(problem)}. Check the address, and that the server runs and accepts this worker.`)
  }
}

/** Node hides why a connection failed behind "fetch failed" and errors without a message. */
function deepest(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown
  const inner = thrown instanceof AggregateError ? (thrown.errors[0] as unknown) : thrown.cause
  return inner === undefined ? thrown : deepest(inner)
}

/** Probes are short, so a slow or silent client is disconnected soon. */
const PROBE_MS = 5_000
const MAX_PROBES = 64

function createHealthServer(ready: Promise<SessionWorker>, log: (event: WorkerEvent) => void): Server {
  const onError = (error: unknown): void => log({ event: 'unreachable', error: { message: messageOf(deepest(error)) } })
  const limits = { headersTimeout: PROBE_MS, requestTimeout: PROBE_MS, connectionsCheckingInterval: 1_000 }
  const server = createServer(limits, workerHealth(ready, { onError }))
  server.maxConnections = MAX_PROBES
  return server
}
