import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Agent } from '../../core/agent/agent.ts'
import { messageOf } from '../../errors.ts'
import type { StudioOptions } from '../../studio/context.ts'
import { loadPage } from '../../studio/page-html.ts'
import { startStudio } from '../../studio/studio.ts'
import { createCliAgent, type AgentFlags } from '../agents/create-cli-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { collect, portNumber, storeOptions } from '../options.ts'
import { version } from '../version.ts'
import { SESSION_OPTIONS_KEY, signaturePattern, signedFlags } from '../run/session-options.ts'
import { dataFolder, withStore, type OpenStore, type StoreFlags } from '../sessions/open-store.ts'
import { colorsFor } from '../terminal/colors.ts'
import { interruptible } from '../terminal/interruption.ts'
import { jsonText } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { userName } from './approve.ts'
import { loadHooks } from './replay.ts'

type StudioFlags = StoreFlags & {
  readonly hooks?: readonly string[]
  readonly port?: number
  readonly host?: string
  readonly open: boolean
}

export const command: CommandDefinition = {
  description:
    'Show sessions, runs and pending approvals in the browser, and what other hooks would have decided. ' +
    'The page is served to this machine only, under a URL with a secret. Ctrl-C ends it.',
  examples: [
    'hookloop studio',
    'hookloop studio --agent agent.ts --hooks stricter.ts',
    'hookloop studio --no-open --json',
  ],
  configure: (command) =>
    storeOptions(command)
      .option('--hooks <file>', 'module with hooks that "what if" can add; can be repeated', collect)
      .option('--port <n>', 'port (default: a free one)', portNumber)
      .option('--host <address>', 'address to listen at (default: 127.0.0.1, which only this machine reaches)')
      .option('--no-open', 'do not open the browser'),
  run: studio,
}

function studio(flags: StudioFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async (opened) => {
    const { out, err, env } = cli
    const { url, close } = await startStudio(await optionsOf(flags, opened, cli))
    const interruption = interruptible(out, () => undefined)
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    interruption.signal.addEventListener('abort', () => resolve())
    if (flags.json === true) out.write(`${jsonText({ url })}\n`)
    else {
      out.write(`${url}\n`)
      if (flags.host !== undefined && !/^(127\.|localhost$|::1$)/.test(flags.host))
        err.write(
          `${colorsFor(err, env).yellow('!')} Other machines can reach it, over a connection that is not encrypted.\n`,
        )
      err.write('The URL contains a secret: it opens your sessions. Ctrl-C ends the studio.\n')
    }
    const closeBrowser = flags.open && flags.json !== true && out.isTTY === true ? openBrowser(url, env) : undefined
    try {
      await ended
    } finally {
      interruption.dispose()
      closeBrowser?.()
      await close()
    }
    return exitCodes.completed
  })
}

async function optionsOf(
  flags: StudioFlags,
  { store, options, isDefault }: OpenStore,
  cli: CliContext,
): Promise<StudioOptions> {
  const { env, command, err } = cli
  const { agent: file, hooks: hookFiles = [], port, host } = flags
  await loadHooks(hookFiles) // a file that cannot be used is reported now
  const agentFor = async (agentFlags: AgentFlags): Promise<Agent<unknown>> =>
    (await createCliAgent(agentFlags, cli)).agent
  const known = file === undefined ? undefined : await agentFor({ agent: file })
  const name = known?.describe().name
  const named = name === undefined ? {} : { agent: { name, file: file! } }
  const flagsOf = (metadata: StoredMetadata): ReturnType<typeof signedFlags> =>
    file === undefined ? signedFlags(metadata?.[SESSION_OPTIONS_KEY], env) : { agent: file }
  return {
    store,
    port,
    host,
    page: loadPage,
    info: {
      version: version(),
      store: options.trim() || (isDefault ? join(dataFolder(env), 'sessions.db') : 'HOOKLOOP_STORE'),
      dir: process.cwd(),
      hookFiles,
      user: userName(),
      ...named,
    },
    agent: known,
    ...(file !== undefined && { liveAgent: () => agentFor({ agent: file }) }),
    canJudge: ({ agent, metadata }) => {
      if (name !== undefined)
        return agent === name || `The studio has the agent "${name}"; this is a run of "${agent}".`
      const stored = flagsOf(metadata)
      if (stored !== undefined && stored.agent === undefined) return true
      const known = stored?.agent === undefined ? '<file>' : shellQuote(stored.agent)
      return `To judge this run again, start the studio with its agent: ${command} studio --agent ${known}`
    },
    agentOf: ({ metadata }) => agentFor(flagsOf(metadata) ?? {}),
    loadHooks,
    redact: [signaturePattern],
    onError: (error) => void err.write(`${colorsFor(err, env).red('error:')} ${printable(messageOf(error))}\n`),
  }
}

type StoredMetadata = Parameters<StudioOptions['canJudge']>[0]['metadata']

/**
 * Opens the browser, if there is one. It gets the URL from a file that only this user can read: other users can see the
 * arguments of processes. Returns a function that deletes the file.
 */
function openBrowser(url: string, env: CliContext['env']): (() => void) | undefined {
  const { platform } = process
  if (platform === 'linux' && (env['DISPLAY'] ?? env['WAYLAND_DISPLAY']) === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'hookloop-studio-'))
  const file = join(folder, 'open.html')
  writeFileSync(file, `<!doctype html><meta http-equiv="refresh" content="0; url=${url}">`, { mode: 0o600 })
  const target = pathToFileURL(file).href
  const [program, ...args] =
    platform === 'darwin'
      ? ['open', target]
      : platform === 'win32'
        ? ['cmd', '/c', 'start', '""', target]
        : ['xdg-open', target]
  const child = spawn(program, args, { stdio: 'ignore', detached: true })
  child.on('error', () => undefined) // the URL was printed
  child.unref()
  return () => rmSync(folder, { recursive: true, force: true })
}
