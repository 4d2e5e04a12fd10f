import type { Capability } from '../../agent/capability.ts'
import type { Hook } from '../../hooks/hook.ts'
import { replay } from '../../sessions/replay/replay.ts'
import { formatReplay } from '../../sessions/replay/format-replay.ts'
import { readRuns } from '../../sessions/log/read-runs.ts'
import { sessionUnknown, type SessionStore } from '../../sessions/stores/store.ts'
import { createCliAgent } from '../agents/create-cli-agent.ts'
import { loadDefault } from '../agents/load-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { agentOptions, collect, jsonOption, wholeNumber } from '../options.ts'
import type { CommandFlags } from '../run/prepare-run.ts'
import { restoreOptions } from '../run/session-options.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore } from '../sessions/open-store.ts'
import { printJson } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'

type ReplayFlags = Omit<CommandFlags, 'hooks'> & {
  readonly hooks?: readonly string[]
  readonly without?: readonly string[]
  /** Counted from 1. */
  readonly run?: number
  readonly exitCode?: boolean
}

export const command: CommandDefinition = {
  description:
    'Replay a stored run with other hooks, and print which decisions would differ. No model and no tool is called.',
  examples: ['hookloop replay k53u --hooks stricter.ts', 'hookloop replay k53u --without no-push --exit-code'],
  configure: (command) =>
    jsonOption(agentOptions(command))
      .argument('<session>', 'session id or prefix')
      .option('--hooks <file>', 'module with hooks to add; can be repeated', collect)
      .option('--without <hook>', 'name of a hook to leave out; can be repeated', collect)
      .option('--run <n>', 'which run of the session, counted from 1 (default: the last)', wholeNumber)
      .option('--exit-code', 'exit with 1 if any decision would differ'),
  run: replaySession,
}

function replaySession(given: string, flags: ReplayFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async ({ store }) => {
    const { id: session, saved } = await loadSession(store, given)
    const stored = await store.read(session)
    if (stored === undefined) throw sessionUnknown(session)
    await checkRun(store, session, flags.run)
    const { agent } = await createCliAgent(restoreOptions(flags, { session, saved }, cli), { ...cli, canSuspend: true })
    const { run: _run, ...report } = await replay(stored, {
      agent,
      hooks: await loadHooks(flags.hooks ?? []),
      ...(flags.without !== undefined && { without: flags.without }),
      ...(flags.run !== undefined && { run: flags.run - 1 }),
    })
    if (flags.json === true) printJson(cli.out, { session, ...report })
    else cli.out.write(`${printable(formatReplay(report))}\n`)
    return flags.exitCode === true && report.differences.length > 0 ? exitCodes.failed : exitCodes.completed
  })
}

async function checkRun(store: SessionStore, session: string, which = -1): Promise<void> {
  const { length } = await readRuns(store, session)
  if (which === -1 || (which > 0 && which <= length)) return
  throw new UsageError(`--run ${which}: ${session} has only ${length} runs.`)
}

/** The default exports of the files: each is a hook, a capability, or a list of them. */
export async function loadHooks(files: readonly string[]): Promise<readonly (Hook | Capability)[]> {
  const loaded: (Hook | Capability)[] = []
  for (const file of files) {
    if (file.endsWith('.json')) throw new UsageError(`--hooks ${file} must be a module, such as hooks.ts.`)
    const exported = await loadDefault(file, '--hooks')
    if (typeof exported !== 'object' || exported === null) {
      throw new UsageError(`--hooks ${file}: its default export must be a hook, a capability, or a list of them.`)
    }
    loaded.push(...((Array.isArray(exported) ? exported : [exported]) as readonly (Hook | Capability)[]))
  }
  return loaded
}
