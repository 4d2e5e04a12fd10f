import { messageOf } from '../../errors.ts'
import { memoryStore } from '../../sessions/stores/memory-store.ts'
import type { ExitCode } from '../exit-codes.ts'
import { readInput } from '../run/input.ts'
import { newSessionId, readKept } from '../sessions/find-session.ts'
import type { Place } from '../cli-context.ts'
import { note, prepare, type CommandFlags, type Keeping } from '../run/prepare-run.ts'
import { storeFor } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'
import { watch, type ShowFlags } from '../run/watch-run.ts'

export type RunFlags = CommandFlags & ShowFlags & { readonly file?: readonly string[]; readonly session?: string }

/** `hookloop run`: one run of one agent, seen as it happens, and kept unless told otherwise. */
export async function run(words: readonly string[], flags: RunFlags, place: Place): Promise<ExitCode> {
  const input = await readInput(words, { ...place, files: flags.file ?? [] })
  const keeping = await placeToKeep(flags, place)
  try {
    const { agent, person, metadata, way, shownAs } = await prepare(flags, { place, keeping: keeping ?? passing() })
    const session = agent.session(way.session)
    const { code, ended } = await watch(
      {
        start: (how) => session.stream(input, { metadata, ...how }),
        person,
        way: keeping && way,
        shownAs,
      },
      flags,
      place,
    )
    if (ended.status !== 'suspended') await session.end()
    return code
  } finally {
    await keeping?.store.close()
  }
}

/** A session that is gone with this process: its beginning and its end are hooks' business also where nothing is kept. */
function passing(): Keeping {
  return { store: memoryStore(), isDefault: true, flags: '', session: 'run', isPassing: true }
}

/** The session a run goes into. Where none can be kept and nobody has asked for it, the run is more important. */
async function placeToKeep(flags: RunFlags, place: Place): Promise<Keeping | undefined> {
  const opened = await storeFor(flags, place.env)
  if (opened === undefined) {
    if (flags.session === undefined) return undefined
    throw new UsageError('--session needs a store, and none is to be used.')
  }
  const { store } = opened
  try {
    if (flags.session === undefined) return { ...opened, session: await newSessionId(store) }
    return { ...opened, session: flags.session, kept: await readKept(store, flags.session) }
  } catch (thrown) {
    await store.close()
    if (!opened.isDefault || flags.session !== undefined) throw thrown
    note(`This run is not kept: ${messageOf(thrown)}`, flags, place)
    return undefined
  }
}
