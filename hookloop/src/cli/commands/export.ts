import { readFile, writeFile } from 'node:fs/promises'
import { text as readText } from 'node:stream/consumers'
import { messageOf } from '../../errors.ts'
import { exportSession, importSession } from '../../sessions/session/export-session.ts'
import { checkSessionId } from '../../sessions/stores/store.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { findSession } from '../sessions/find-session.ts'
import type { Place } from '../cli-context.ts'
import { sealPattern } from '../run/session-options.ts'
import { existingStore, storeFor, type StoreFlags } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'

export type ExportFlags = StoreFlags & {
  readonly json?: boolean
  readonly output?: string
  readonly force?: boolean
  /** Patterns; `false` for `--no-redact`. */
  readonly redact?: readonly string[] | false
}
export type ImportFlags = StoreFlags & { readonly json?: boolean; readonly as?: string }

/** `hookloop export`: a session as one file, without what looks like a secret. */
export async function exportTo(given: string | undefined, flags: ExportFlags, place: Place): Promise<ExitCode> {
  const { store } = await existingStore(flags, place.env)
  try {
    const session = await findSession(store, given)
    const redact = flags.redact === false ? false : [...(flags.redact ?? []).map(toRule), sealPattern]
    const text = await exportSession(store, session, { redact })
    if (flags.output === undefined) place.out.write(text)
    else await writeTo(flags.output, text, flags.force === true)
    if (flags.output === undefined) return exitCodes.completed
    if (flags.json === true) place.out.write(`${JSON.stringify({ session, file: flags.output })}\n`)
    else place.err.write(`Wrote ${session} to ${flags.output}.\n`)
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** `hookloop import`: puts an exported session into the store. Its id goes to stdout. */
export async function importFrom(file: string, flags: ImportFlags, place: Place): Promise<ExitCode> {
  const opened = await storeFor(flags, place.env)
  if (opened === undefined) throw new UsageError('There is no store to import into. Name one with --store.')
  const { store } = opened
  try {
    const text = file === '-' ? await readText(place.stdin) : await readExport(file)
    const as = flags.as ?? idIn(text)
    if (as !== undefined && (await store.read(as)) !== undefined) {
      throw new UsageError(`There is a session ${as} already. Import it under another name: --as NAME`)
    }
    const session = await importSession(store, text, as === undefined ? {} : { as })
    place.out.write(flags.json === true ? `${JSON.stringify({ session })}\n` : `${session}\n`)
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** A text as it is, or a regular expression between slashes. */
function toRule(given: string): RegExp | string {
  const [, source, flags = ''] = /^\/(.+)\/([a-z]*)$/s.exec(given) ?? []
  if (source === undefined) {
    if (given === '') throw new UsageError('--redact: it needs something to take out.')
    return given
  }
  try {
    return new RegExp(source, flags)
  } catch (thrown) {
    throw new UsageError(`--redact ${given}: ${messageOf(thrown)}`)
  }
}

async function writeTo(file: string, text: string, isForced: boolean): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600, flag: isForced ? 'w' : 'wx' })
  } catch (thrown) {
    const isThere = (thrown as NodeJS.ErrnoException).code === 'EEXIST'
    throw new UsageError(isThere ? `${file} is there already. --force writes over it.` : messageOf(thrown))
  }
}

/** What the session was called, if it says so; whether it is one is for others to judge. */
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
    throw new UsageError(isMissing ? `${file}: there is no such file.` : messageOf(thrown))
  }
}
