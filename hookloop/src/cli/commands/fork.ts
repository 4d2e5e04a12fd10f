import { defined } from '../../hook-files/defined.ts'
import { forkSession } from '../../sessions/session/fork-session.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { storeOptions, wholeNumber } from '../options.ts'
import { selectingOptions } from '../run/session-options.ts'
import { findSession, loadIfPresent } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'
import { jsonText } from '../terminal/json.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { exact } from '../terminal/printable.ts'

type ForkFlags = StoreFlags & {
  readonly at?: number
  readonly as?: string
  readonly message?: string
}

export const command: CommandDefinition = {
  description: 'Start a new session from a copy of another one, and print its id. The other session does not change.',
  examples: ['hookloop fork k53u-6qg8', 'hookloop fork k53u --at 12 --message "Use SQLite instead"'],
  configure: (command) =>
    storeOptions(command)
      .argument('<session>', 'session id or prefix')
      .option('--at <n>', 'copy up to this step, by the number that `steps` prints (default: the end)', wholeNumber)
      .option('--as <id>', 'id of the new session (default: generated)')
      .option('--message <text>', 'replace the user message at that point; continue with `resume`'),
  run: fork,
}

function fork(given: string, flags: ForkFlags, cli: CliContext): Promise<void> {
  const { at, as, message } = flags
  return withStore(flags, cli, async ({ store, options }) => {
    const from = await findSession(store, given)
    if (as !== undefined && (await store.read(as)) !== undefined) {
      throw new UsageError(`--as ${as}: a session with this id already exists.`)
    }
    const session = await forkSession(store, from, defined({ at, as, message }))
    if (flags.json === true) cli.out.write(`${jsonText({ session, from, at: at ?? null })}\n`)
    else {
      cli.out.write(`${exact(session)}\n`)
      const next = message === undefined ? 'chat --session' : 'resume'
      const saved = await loadIfPresent(store, session)
      const selected = selectingOptions(options, flags, { saved, env: cli.env })
      cli.err.write(`Continue with: ${cli.command} ${next} ${shellQuote(session)}${selected}\n`)
    }
  })
}
