import { AgentError } from '../../errors.ts'
import type { AgentEvent } from '../../core/state/event.ts'
import type { SessionStore } from '../../sessions/stores/store.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { latestSessionArgument, storeOptions, wholeNumber } from '../options.ts'
import { findSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { colorsFor } from '../terminal/colors.ts'
import { jsonText } from '../terminal/json.ts'
import { exact, oneLine } from '../terminal/printable.ts'
import { watchSession } from '../../sessions/log/watch-session.ts'

type WatchFlags = StoreFlags & { readonly after?: number; readonly follow?: boolean }

export const command: CommandDefinition = {
  description: 'Follow the events of a session that runs in any process, until Ctrl-C.',
  examples: ['hookloop watch', 'hookloop watch k53u --after 120', 'hookloop watch k53u --json --no-follow'],
  configure: (command) =>
    storeOptions(latestSessionArgument(command))
      .option('--after <number>', 'only events after this number (default: 0, all events)', wholeNumber)
      .option('--no-follow', 'print the events that are stored, and exit'),
  run: watchCommand,
}

/** Events that are only of use as a stream: people get what they amount to with the event that follows. */
const pieces: ReadonlySet<string> = new Set(['text', 'reasoning', 'toolCallDelta', 'toolProgress'])
const MAX_CHARS = 100

function watchCommand(given: string | undefined, flags: WatchFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store }) => {
    const { after = 0, follow = true } = flags
    const session = follow ? await findOrAwait(store, given, cli) : await findSession(store, given)
    for await (const event of watchSession(store, session, { after, follow })) {
      if (flags.json === true) cli.out.write(`${jsonText(event)}\n`)
      else if (!pieces.has(event.type)) cli.out.write(`${eventLine(event, cli)}\n`)
    }
  })
}

/** A session that does not exist yet is waited for. */
async function findOrAwait(store: SessionStore, given: string | undefined, { err }: CliContext): Promise<string> {
  try {
    return await findSession(store, given)
  } catch (error) {
    if (given === undefined || !(error instanceof AgentError) || error.code !== 'SESSION_UNKNOWN') throw error
    err.write(`Waiting for the session ${exact(given)}. Press Ctrl-C to exit.\n`)
    return given
  }
}

function eventLine(event: AgentEvent, { out, env }: CliContext): string {
  // Only its number is checked: another program may have written it.
  const { seq, at, session: _session, run: _run, step, type, ...rest } = event as unknown as Record<string, unknown>
  const { bold, dim } = colorsFor(out, env)
  const time = new Date(typeof at === 'number' && Math.abs(at) < 8e15 ? at : 0).toISOString().slice(11, 23)
  const what = Object.keys(rest).length === 0 ? '' : `  ${dim(oneLine(jsonText(rest), MAX_CHARS))}`
  return `${String(seq).padStart(5)}  ${dim(time)}  ${dim(`step ${oneLine(String(step), 8)}`)}  ${bold(oneLine(String(type), 40))}${what}`
}
