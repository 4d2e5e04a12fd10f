import { defined } from '../../hook-files/defined.ts'
import { rewindSession } from '../../sessions/session/rewind-session.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { storeOptions, wholeNumber } from '../options.ts'
import { findSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { jsonText } from '../terminal/json.ts'
import { shellQuote } from '../terminal/shell-quote.ts'
import { exact } from '../terminal/printable.ts'

type RewindFlags = StoreFlags & { readonly at?: number; readonly message?: string }

export const command: CommandDefinition = {
  description:
    'Go back to an earlier step of a session, in place. Without --at, the last answer is dropped and `resume` regenerates it. ' +
    'What is dropped stays stored: it can be exported, replayed and forked from.',
  examples: ['hookloop rewind k53u && hookloop resume k53u', 'hookloop rewind k53u --at 12'],
  configure: (command) =>
    storeOptions(command)
      .argument('<session>', 'session id or prefix')
      .option('--at <n>', 'go back to this step, by the number that `steps` prints', wholeNumber)
      .option('--message <text>', 'replace the user message at that point; continue with `resume`'),
  run: rewind,
}

function rewind(given: string, flags: RewindFlags, cli: CliContext): Promise<void> {
  const { at, message } = flags
  return withStore(flags, cli, async ({ store, options }) => {
    const session = await findSession(store, given)
    await rewindSession(store, session, defined({ at, message }))
    if (flags.json === true) cli.out.write(`${jsonText({ session, at: at ?? null })}\n`)
    else {
      cli.out.write(`${exact(session)}\n`)
      const next = at === undefined || message !== undefined ? 'resume' : 'chat --session'
      cli.err.write(`Continue with: ${cli.command} ${next} ${shellQuote(session)}${options}\n`)
    }
  })
}
