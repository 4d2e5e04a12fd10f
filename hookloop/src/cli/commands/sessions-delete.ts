import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { storeOptions } from '../options.ts'
import { findSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { jsonText } from '../terminal/json.ts'

export const command: CommandDefinition = {
  description: 'Delete sessions permanently. If one of them is not found, none is deleted.',
  examples: ['hookloop sessions delete k53u-6qg8 m2xd'],
  configure: (command) => storeOptions(command).argument('<session...>', 'session ids or prefixes'),
  run: deleteSessions,
}

function deleteSessions(given: readonly string[], flags: StoreFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store }) => {
    const ids = new Set<string>()
    for (const each of given) ids.add(await findSession(store, each))
    for (const id of ids) {
      await store.delete(id)
      if (flags.json !== true) cli.err.write(`Deleted ${id}.\n`)
    }
    if (flags.json === true) cli.out.write(`${jsonText({ deleted: [...ids] })}\n`)
  })
}
