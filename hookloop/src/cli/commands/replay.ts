import type { Capability } from '../../core/agent/capability.ts'
import { isHook, type Hook } from '../../core/hooks/hook.ts'
import { replay } from '../../sessions/replay/replay.ts'
import { formatReplay } from '../../sessions/replay/format-replay.ts'
import { readRuns } from '../../sessions/log/read-runs.ts'
import { sessionUnknown, type SessionStore } from '../../sessions/stores/store.ts'
import { createCliAgent } from '../agents/create-cli-agent.ts'
import { loadDefault } from '../agents/load-agent.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { agentOptions, collect, hooksOptions, jsonOption, wholeNumber } from '../options.ts'
import type { CommandFlags } from '../run/prepare-run.ts'
import { restoreOptions } from '../run/session-options.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore } from '../sessions/open-store.ts'
import { printJson } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'
import { UsageError } from '../usage-error.ts'

type ReplayFlags = Omit<CommandFlags, 'hooks'> & {
  /** False: without the hooks in files of this project. */
  readonly hooks?: readonly string[] | false
  readonly without?: readonly string[]
  /** Counted from 1. */
  readonly run?: number
  readonly exitCode?: boolean
}

const hooksText = 'module with hooks to add; can be repeated'

export const command: CommandDefinition = {
  description:
    'Replay a stored run with other hooks, and print which decisions would differ. No model and no tool is called.',
  examples: ['hookloop replay k53u --hooks stricter.ts', 'hookloop replay k53u --without no-push --exit-code'],
  configure: (command) =>
    hooksOptions(jsonOption(agentOptions(command)).option('--hooks <file>', hooksText, collect))
      .argument('<session>', 'session id or prefix')
      .option('--without <hook>', 'name of a hook to leave out; can be repeated', collect)
      .option('--run <n>', 'which run of the session, counted from 1 (default: the last)', wholeNumber)
      .option('--exit-code', 'exit with 1 if any decision would differ, or if the run is of another agent'),
  run: replaySession,
}

function replaySession(given: string, flags: ReplayFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async ({ store }) => {
    const { id: session, saved } = await loadSession(store, given)
    const stored = await store.read(session)
    if (stored === undefined) throw sessionUnknown(session)
    await checkRun(store, session, flags.run)
    const { hooks, ...others } = flags
    const restored = restoreOptions(others, { session, saved }, cli)
    const { agent } = await createCliAgent({ ...restored, hooks: hooks !== false }, cli)
    const { run: _run, ...report } = await replay(stored, {
      agent,
      hooks: await loadHooks(hooks || []),
      ...(flags.without !== undefined && { without: flags.without }),
      ...(flags.run !== undefined && { run: flags.run - 1 }),
    })
    if (flags.json === true) printJson(cli.out, { session, ...report })
    else cli.out.write(`${printable(formatReplay(report))}\n`)
    const isAsRecorded = report.differences.length === 0 && report.record.status !== 'diverged'
    return flags.exitCode === true && !isAsRecorded ? exitCodes.failed : exitCodes.completed
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
    const given: readonly unknown[] = Array.isArray(exported) ? exported : [exported]
    if (!given.every(hasHooks)) {
      throw new UsageError(`--hooks ${file}: its default export must be a hook, a capability, or a list of them.`)
    }
    loaded.push(...given)
  }
  return loaded
}

function hasHooks(value: unknown): value is Hook | Capability {
  return isHook(value) || Array.isArray((value as Partial<Capability> | null | undefined)?.hooks)
}
