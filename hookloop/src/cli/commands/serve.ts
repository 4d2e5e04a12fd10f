import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve as serveAgent } from '../../serve/serve.ts'
import { toNodeListener } from '../../serve/node-listener.ts'
import { agentRunner } from '../../serve/session-runner.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import { messageOf } from '../../errors.ts'
import { createCliAgent } from '../agents/create-cli-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { agentOptions, hooksOptions, jsonOption, portNumber } from '../options.ts'
import type { CommandFlags } from '../run/prepare-run.ts'
import { listen } from '../serve/listen.ts'
import { hasToken, localServer } from '../serve/local-server.ts'
import { openStore } from '../sessions/open-store.ts'
import { colorsFor } from '../terminal/colors.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'

type ServeFlags = CommandFlags & { readonly port: number; readonly host: string }

export const command: CommandDefinition = {
  description:
    'Serve an agent to a chat page in your browser, on this computer only. The address that is printed has a token; ' +
    'without it, nothing is answered. Chats are stored as sessions. Ctrl-C suspends runs after their current step; ' +
    'they continue when the chat is opened again.',
  examples: [
    'hookloop serve agent.ts',
    'hookloop serve agent.ts --port 0 --json',
    'hookloop serve --model ollama/llama3.2',
  ],
  notes:
    'For an application with users of its own, see the guide "Put your agent behind a web page" and hookloop/serve.',
  configure: (command) =>
    jsonOption(
      hooksOptions(
        agentOptions(
          command
            .argument('[agent]', 'module whose default export is an agent or the options of createAgent')
            .option('-p, --port <number>', 'port; 0 takes one that is free', portNumber, 3000)
            .option(
              '--host <address>',
              'address to listen on; others than this computer reach it only if you change it',
              '127.0.0.1',
            ),
        ),
      ),
    ),
  run: serve,
}

const USER = 'local'

export async function serve(file: string | undefined, given: ServeFlags, cli: CliContext): Promise<ExitCode> {
  const flags = { ...given, ...(file !== undefined && { agent: file }) }
  const { agent } = await createCliAgent(flags, cli)
  const store = (await openStore(flags, cli.env))?.store ?? memoryStore()
  const runner = agentRunner(agent, store)
  const log = logger(flags, cli)
  const token = randomBytes(16).toString('base64url')
  const api = serveAgent(runner, {
    user: (request) => (hasToken(request, token) ? USER : undefined),
    showHooks: true,
    onError: (error) => log({ event: 'error', message: messageOf(error) }),
  })
  const isLocal = localNames.includes(flags.host)
  const page = localServer(api, { hosts: () => (isLocal ? addresses(localNames, server) : undefined) })
  const server = createServer(
    toNodeListener(async (request) => {
      const response = await page(request)
      log({ event: 'request', method: request.method, path: new URL(request.url).pathname, status: response.status })
      return response
    }),
  )
  const { promise: interrupted, resolve: interrupt } = Promise.withResolvers<void>()
  const interruption = interruptible(cli.out, () => {
    log({ event: 'stopping' })
    interrupt()
  })
  try {
    await listen(server, flags, `Port ${flags.port} is in use. Use --port 0 for a free one.`)
    const [address] = addresses([flags.host], server)
    log({ event: 'listening', url: `http://${address}/#token=${token}`, isLocal })
    await interrupted
    server.close()
    await runner.close()
    server.closeAllConnections()
    log({ event: 'stopped' })
    return exitCodes.completed
  } finally {
    interruption.dispose()
    server.close()
    await store.close()
  }
}

const localNames: readonly string[] = ['127.0.0.1', 'localhost', '::1']

function addresses(names: readonly string[], server: Server): readonly string[] {
  const { port } = server.address() as AddressInfo
  return names.map((name) => new URL(`http://${name.includes(':') ? `[${name}]` : name}:${port}`).host)
}

type LogEntry =
  | { readonly event: 'listening'; readonly url: string; readonly isLocal: boolean }
  | { readonly event: 'request'; readonly method: string; readonly path: string; readonly status: number }
  | { readonly event: 'error'; readonly message: string }
  | { readonly event: 'stopping' | 'stopped' }

function logger({ json }: Pick<ServeFlags, 'json'>, { out, err, env }: CliContext): (entry: LogEntry) => void {
  const { dim, red } = colorsFor(err, env)
  if (json === true) return (entry) => out.write(`${jsonText({ at: Date.now(), ...entry })}\n`)
  return (entry) => err.write(`${lineOf(entry)}\n`)

  function lineOf(entry: LogEntry): string {
    switch (entry.event) {
      case 'listening':
        return `Open ${entry.url}\n${entry.isLocal ? 'Only this computer' : 'Every computer in your network'} can reach it, and only with this token. Ctrl-C stops it.`
      case 'request':
        return dim(printable(`${entry.method} ${entry.path} ${entry.status}`))
      case 'error':
        return `${red('error:')} ${printable(entry.message)}`
      case 'stopping':
        return 'Stopping after the current step. Ctrl-C again stops at once.'
      case 'stopped':
        return 'Stopped. Runs that were not complete continue when their chat is opened again.'
      default:
        return entry satisfies never
    }
  }
}
