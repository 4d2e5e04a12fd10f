// A Restate server for the tests of one file, from a package that only `npm test` installs.
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { freePort } from '../../system/network/free-port.fixture.ts'

const binary = globSync(
  join(
    import.meta.dirname,
    `../../../../scripts/engine/node_modules/@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`,
  ),
)[0]

/** Why tests on Restate cannot run here. */
export const noRestate = binary === undefined ? 'There is no Restate server: npm test installs it.' : false

export type RestateServer = {
  readonly ingress: string
  readonly admin: string
  readonly pid: number
  /** Ends the server as kill -9 does, and starts it again. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export async function startRestate(env: { readonly [name: string]: string } = {}): Promise<RestateServer> {
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-restate-'))
  const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()]
  const start = (): Promise<ChildProcess> => launch(folder, { ingress, admin, node }, env)
  let server = await start()
  process.once('exit', () => server.kill('SIGKILL'))
  return {
    ingress: `http://127.0.0.1:${ingress}`,
    admin: `http://127.0.0.1:${admin}`,
    get pid() {
      return server.pid!
    },
    async kill() {
      await end(server, 'SIGKILL')
      server = await start()
    },
    async stop() {
      await end(server, 'SIGKILL')
      if (existsSync(folder)) rmSync(folder, { recursive: true, force: true })
    },
  }
}

type Ports = { readonly ingress: number; readonly admin: number; readonly node: number }

async function launch(folder: string, ports: Ports, env: { readonly [name: string]: string }): Promise<ChildProcess> {
  const options = [
    '--base-dir',
    folder,
    '--no-logo',
    '--node-name',
    'n1',
    '--listen-mode',
    'tcp',
    '--bind-ip',
    '127.0.0.1',
  ]
  const server = spawn(binary!, options, {
    env: {
      ...process.env,
      RESTATE_INGRESS__BIND_PORT: String(ports.ingress),
      RESTATE_ADMIN__BIND_PORT: String(ports.admin),
      RESTATE_BIND_PORT: String(ports.node),
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_LOG_FILTER: 'error',
      // Each turn has a connection of its own, so that the workers of one port share the turns. The default is 128.
      RESTATE_WORKER__INVOKER__HTTP2_STREAMS_PER_CONNECTION_LIMIT: '1',
      // A worker that does not answer is dead. The defaults are 40 and 20 seconds.
      RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL: '2s',
      RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT: '3s',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [server.stdout, server.stderr]) stream.on('data', (text) => (said += String(text)))
  for (let attempt = 0; attempt < 3_000; attempt++) {
    const isReady = await fetch(`http://127.0.0.1:${ports.ingress}/restate/health`).then(
      ({ ok }) => ok,
      () => false,
    )
    if (isReady) return server
    if (server.exitCode !== null) break
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  server.kill('SIGKILL')
  throw new Error(`Restate did not start: ${said}`)
}

async function end(server: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  server.kill(signal)
  await once(server, 'exit')
}
