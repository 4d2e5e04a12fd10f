import { readFile } from 'node:fs/promises'
import { text as readText } from 'node:stream/consumers'
import { messageOf } from '../../errors.ts'
import { defined } from '../../hook-files/defined.ts'
import { importSession } from '../../sessions/session/export-session.ts'
import { checkSessionId } from '../../sessions/stores/store.ts'
import type { CliContext } from '../cli-context.ts'
import type { CommandDefinition } from '../command.ts'
import { storeOptions } from '../options.ts'
import { withStore, type StoreFlags } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'
import { jsonText } from '../terminal/json.ts'
import { exact } from '../terminal/printable.ts'

type ImportFlags = StoreFlags & { readonly as?: string }

export const command: CommandDefinition = {
  description: 'Import an exported session into the store, and print its id.',
  examples: ['hookloop import session.jsonl', 'hookloop import - --as copy < session.jsonl'],
  configure: (command) =>
    storeOptions(command)
      .argument('<file>', 'exported file, or "-" for stdin')
      .option('--as <id>', 'id of the imported session (default: its own)'),
  run: importCommand,
}

function importCommand(file: string, flags: ImportFlags, cli: CliContext): Promise<void> {
  return withStore({ ...flags, createStore: true }, cli, async ({ store }) => {
    const text = file === '-' ? await readText(cli.stdin) : await readExport(file)
    const as = flags.as ?? idIn(text)
    if (as !== undefined && (await store.read(as)) !== undefined) {
      throw new UsageError(`A session with the id ${as} already exists. Import it with another id: --as ID`)
    }
    const session = await importSession(store, text, defined({ as }))
    cli.out.write(flags.json === true ? `${jsonText({ session })}\n` : `${exact(session)}\n`)
  })
}

/** The id in the first line. importSession() reports what is wrong with the file. */
function idIn(text: string): string | undefined {
  try {
    const { id } = JSON.parse(text.slice(0, text.indexOf('\n'))) as { readonly id?: unknown }
    return typeof id === 'string' ? checkSessionId(id) : undefined
  } catch {
    return undefined
  }
}

async function readExport(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (thrown) {
    const isMissing = (thrown as NodeJS.ErrnoException).code === 'ENOENT'
    throw new UsageError(isMissing ? `File not found: ${file}` : `${file} cannot be read: ${messageOf(thrown)}`)
  }
}
