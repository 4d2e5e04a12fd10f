import { diffRuns } from '../../sessions/replay/diff-runs.ts'
import { formatDiff } from '../../sessions/replay/format-diff.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { storeOptions } from '../options.ts'
import { sessionUnknown, type StoredSession } from '../../sessions/stores/store.ts'
import { findSession } from '../sessions/find-session.ts'
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
    const read = async (given: string): Promise<StoredSession> => {
      const id = await findSession(store, given)
      const stored = await store.read(id)
      if (stored === undefined) throw sessionUnknown(id)
      return stored
    }
    const found = diffRuns(await read(first), await read(second))
    if (flags.json === true) printJson(cli.out, found)
    else cli.out.write(`${printable(formatDiff(found))}\n`)
    return flags.exitCode === true && !found.same ? exitCodes.failed : exitCodes.completed
  })
}
