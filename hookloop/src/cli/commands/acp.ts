import { resolve } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { partsOf } from '../../core/agent/agent-parts.ts'
import { approval } from '../../capabilities/approval.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import { sessionPort } from '../../sessions/session/session.ts'
import { AcpAgent, type AcpOptions } from '../acp/acp-agent.ts'
import { createCliAgent } from '../agents/create-cli-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { agentOptions, hooksOptions, jsonOption } from '../options.ts'
import type { CommandFlags } from '../run/prepare-run.ts'
import { SESSION_OPTIONS_KEY, signedOptions } from '../run/session-options.ts'
import { withStore } from '../sessions/open-store.ts'
import { interruptible } from '../terminal/interruption.ts'
import { printable } from '../terminal/printable.ts'
import { redirectConsole } from '../terminal/redirect-console.ts'
import { UsageError } from '../usage-error.ts'
import { version } from '../version.ts'

export const command: CommandDefinition = {
  description:
    'Connect an editor to an agent, over stdin and stdout, with the Agent Client Protocol (ACP). ' +
    'The editor starts the command; it ends when stdin does.',
  examples: ['hookloop acp agent.ts', 'hookloop acp --model anthropic/claude-sonnet-5-5'],
  notes: 'It needs the package @agentclientprotocol/sdk. Everything but the protocol is printed to stderr.',
  configure: (command) =>
    hooksOptions(jsonOption(agentOptions(command))).argument('[agent]', 'module with the agent, like --agent'),
  run: acp,
}

async function acp(file: string | undefined, given: CommandFlags, cli: CliContext): Promise<ExitCode> {
  if (file !== undefined && given.agent !== undefined)
    throw new UsageError('Name the agent once: as an argument, or with --agent.')
  const agentFile = file ?? given.agent
  // The editor names the folder to work in later, so a path must not depend on it.
  const flags = { ...given, ...(agentFile !== undefined && { agent: resolve(agentFile) }) }
  const sdk = await import('@agentclientprotocol/sdk').catch((error: unknown) => {
    throw new UsageError('hookloop acp needs a package: npm install @agentclientprotocol/sdk', { cause: error })
  })
  const note = (text: string): void => void cli.err.write(`${printable(text)}\n`)
  const restoreConsole = redirectConsole(note) // before the agent file is loaded
  const stdout = protectStdout(cli, note)
  try {
    await withStore({ ...flags, createStore: true }, cli, async ({ store }) => {
      const agent = new AcpAgent({ sdk, store, version: version(), note, open: sessionOpener(store, flags, cli) })
      await connected(agent, { sdk, cli, protocol: stdout.protocol })
    })
    return exitCodes.completed
  } finally {
    stdout.restore()
    restoreConsole()
  }
}

/** Opens a session with an agent of its own, which asks the editor that the session belongs to. */
function sessionOpener(store: SessionStore, flags: CommandFlags, cli: CliContext): AcpOptions['open'] {
  return async (id, ask) => {
    const { agent } = await createCliAgent({ ...flags, json: true }, cli, { approver: approval(ask) })
    const metadata = { [SESSION_OPTIONS_KEY]: signedOptions(flags, cli.env) }
    return { session: sessionPort(store).session(partsOf(agent), id), metadata }
  }
}

/** Resolves when the editor has closed the connection, or the command was interrupted, and all turns have ended. */
async function connected(
  agent: AcpAgent,
  {
    sdk,
    cli,
    protocol,
  }: Pick<AcpOptions, 'sdk'> & { readonly cli: CliContext; readonly protocol: WritableStream<Uint8Array> },
): Promise<void> {
  const input = Readable.toWeb(cli.stdin) as ReadableStream<Uint8Array>
  const connection = agent.register(sdk.agent({ name: 'hookloop' })).connect(sdk.ndJsonStream(protocol, input))
  const interruption = interruptible(cli.err, () => undefined)
  interruption.signal.addEventListener('abort', () => connection.close())
  try {
    await connection.closed
  } finally {
    await agent.close()
    interruption.dispose()
  }
}

/** Only the protocol is written to stdout: what agent files and tools write there goes to stderr. */
function protectStdout({ out }: CliContext, note: (text: string) => void) {
  const write = out.write.bind(out)
  const protocol = Writable.toWeb(
    new Writable({ write: (bytes: Uint8Array, _encoding, done) => void write(bytes, done) }),
  ) as WritableStream<Uint8Array>
  out.write = ((text: string | Uint8Array, ...rest: readonly unknown[]) => {
    note(typeof text === 'string' ? text : Buffer.from(text).toString())
    const done = rest.at(-1)
    if (typeof done === 'function') (done as () => void)()
    return true
  }) as typeof out.write
  return { protocol, restore: () => void (out.write = write) }
}
