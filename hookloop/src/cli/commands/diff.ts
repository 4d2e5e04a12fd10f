import { diffRuns } from '../../sessions/replay/diff-runs.ts'
import { formatDiff } from '../../sessions/replay/format-diff.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { storeOptions } from '../options.ts'
import { loadSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { printJson } from '../terminal/json.ts'
import { printable } from '../terminal/printable.ts'

type DiffFlags = StoreFlags & { readonly exitCode?: boolean }

export const command: CommandDefinition = {
  description: 'Compare two sessions, and print where they diverge.',
  examples: ['hookloop diff k53u-6qg8 m2xd-4hpa', 'hookloop diff k53u m2xd --exit-code'],
  configure: (command) =>
    storeOptions(command)
      .argument('<session>', 'session id or prefix')
      .argument('<other>', 'id or prefix of the other session')
      .option('--exit-code', 'exit with 1 if they differ'),
  run: diff,
}

function diff(first: string, second: string, flags: DiffFlags, cli: CliContext): Promise<ExitCode> {
  return withStore(flags, cli, async ({ store }) => {
    const found = diffRuns((await loadSession(store, first)).stored, (await loadSession(store, second)).stored)
    if (flags.json === true) printJson(cli.out, found)
    else cli.out.write(`${printable(formatDiff(found))}\n`)
    return flags.exitCode === true && !found.same ? exitCodes.failed : exitCodes.completed
  })
}
