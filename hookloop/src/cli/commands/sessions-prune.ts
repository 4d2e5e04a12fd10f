import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { duration, filterOptions, storeOptions, toFilter, type FilterFlags } from '../options.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { count } from '../terminal/amounts.ts'
import { jsonText } from '../terminal/json.ts'
import { pruneSessions } from '../../sessions/stores/list-sessions.ts'

export const command: CommandDefinition = {
  description: 'Delete sessions that were not used for some time.',
  examples: ['hookloop sessions prune --older-than 30d', 'hookloop sessions prune --older-than 12h --user ann --json'],
  notes: 'Sessions that are suspended or interrupted stay unless --status names them. Sessions in use always stay.',
  configure: (command) =>
    filterOptions(storeOptions(command)).requiredOption(
      '--older-than <duration>',
      'delete what was last used longer ago: a number and m, h, d or w',
      duration,
    ),
  run: prune,
}

function prune(flags: StoreFlags & FilterFlags & { readonly olderThan: number }, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store }) => {
    const deleted = await pruneSessions(store, { olderThan: flags.olderThan, ...toFilter(flags) })
    if (flags.json === true) cli.out.write(`${jsonText({ deleted })}\n`)
    else cli.err.write(`Deleted ${count(deleted.length, 'session')}.\n`)
  })
}
