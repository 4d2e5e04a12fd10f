import { writeFile } from 'node:fs/promises'
import { messageOf } from '../../errors.ts'
import { exportSession } from '../../sessions/session/export-session.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { collect, latestSessionArgument, storeOptions } from '../options.ts'
import { signaturePattern } from '../run/session-options.ts'
import { findSession } from '../sessions/find-session.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'
import { jsonText } from '../terminal/json.ts'
import { exact, printable } from '../terminal/printable.ts'

type ExportFlags = StoreFlags & {
  readonly output?: string
  readonly force?: boolean
  /** Patterns; `false` for `--no-redact`. */
  readonly redact?: readonly string[] | false
}

export const command: CommandDefinition = {
  description: 'Write a session as one file of JSON lines. Values that look like secrets are redacted.',
  examples: ['hookloop export k53u -o session.jsonl', 'hookloop export --redact "/acme-\\w+/i" > session.jsonl'],
  configure: (command) =>
    storeOptions(latestSessionArgument(command))
      .option('-o, --output <file>', 'output file (default: stdout)')
      .option('--force', 'overwrite an existing file')
      .option('--redact <pattern>', 'also redact this text or /regular expression/; can be repeated', collect)
      .option('--no-redact', 'redact nothing'),
  run: exportCommand,
}

function exportCommand(given: string | undefined, flags: ExportFlags, cli: CliContext): Promise<void> {
  return withStore(flags, cli, async ({ store }) => {
    const session = await findSession(store, given)
    const redact = flags.redact === false ? false : [...(flags.redact ?? []).map(toRule), signaturePattern]
    const text = await exportSession(store, session, { redact })
    if (flags.output === undefined) cli.out.write(text)
    else {
      await writeTo(flags.output, text, flags.force === true)
      if (flags.json === true) cli.out.write(`${jsonText({ session, file: flags.output })}\n`)
      else cli.err.write(`Exported ${exact(session)} to ${printable(flags.output)}.\n`)
    }
  })
}

/** A literal text, or a regular expression between slashes. */
function toRule(given: string): RegExp | string {
  const [, source, flags = ''] = /^\/(.+)\/([a-z]*)$/s.exec(given) ?? []
  if (source === undefined) {
    if (given === '') throw new UsageError('--redact must not be empty.')
    return given
  }
  try {
    return new RegExp(source, flags)
  } catch (thrown) {
    throw new UsageError(`--redact ${given}: ${messageOf(thrown)}`)
  }
}

export async function writeTo(file: string, text: string, isForced: boolean): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600, flag: isForced ? 'w' : 'wx' })
  } catch (thrown) {
    const exists = (thrown as NodeJS.ErrnoException).code === 'EEXIST'
    throw new UsageError(exists ? `${file} already exists. Overwrite it with --force.` : messageOf(thrown))
  }
}
