import { diffRuns } from '../../sessions/replay/diff-runs.ts'
import { forkSession, listPoints, type SessionPoint } from '../../sessions/session/fork-session.ts'
import { formatDiff } from '../../sessions/replay/format-diff.ts'
import { sessionUnknown, type SessionStore, type StoredSession } from '../../sessions/stores/store.ts'
import { ago } from '../terminal/amounts.ts'
import { colorsFor } from '../terminal/colors.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { findSession } from '../sessions/find-session.ts'
import type { Place } from '../cli-context.ts'
import { oneLine, printable } from '../terminal/printable.ts'
import { existingStore, type StoreFlags } from '../sessions/open-store.ts'
import { table, type Cell } from '../terminal/table.ts'
import { UsageError } from '../usage-error.ts'

export type StepsFlags = StoreFlags & { readonly json?: boolean }
export type ForkFlags = StepsFlags & { readonly at?: number; readonly as?: string; readonly message?: string }

export type DiffFlags = StepsFlags & { readonly exitCode?: boolean }

const MAX_TEXT = 60
const MAX_CALLS = 40

/** `hookloop steps`: every step of a session, by the number that `fork --at` takes. */
export async function steps(given: string | undefined, flags: StepsFlags, place: Place): Promise<ExitCode> {
  const { store } = await existingStore(flags, place.env)
  try {
    const session = await findSession(store, given)
    const points = await listPoints(store, session)
    if (flags.json === true) place.out.write(`${JSON.stringify({ session, steps: points }, undefined, 2)}\n`)
    else if (points.length === 0) place.err.write(`${session} has no steps yet.\n`)
    else place.out.write(`${overview(points, place)}\n`)
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** `hookloop fork`: a new session that begins where another one was. Its id goes to stdout. */
export async function fork(given: string, { json, ...flags }: ForkFlags, place: Place): Promise<ExitCode> {
  const { store, flags: more } = await existingStore(flags, place.env)
  const { at, as, message } = flags
  try {
    const from = await findSession(store, given)
    if (as !== undefined && (await store.read(as)) !== undefined)
      throw new UsageError(`--as ${as}: there is one already.`)
    if (at !== undefined && !(await listPoints(store, from)).some(({ seq }) => seq === at)) {
      throw new UsageError(`--at ${at}: no step of ${from} has that number. ${place.command} steps ${from} lists them.`)
    }
    const session = await forkSession(store, from, {
      ...(at !== undefined && { at }),
      ...(as !== undefined && { as }),
      ...(message !== undefined && { message }),
    })
    if (json === true) place.out.write(`${JSON.stringify({ session, from, at: at ?? null })}\n`)
    else {
      place.out.write(`${session}\n`)
      const next = message === undefined ? `chat --session ${session}` : `resume ${session}`
      place.err.write(`Go on with: ${place.command} ${next}${more}\n`)
    }
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** `hookloop diff`: where two sessions part. */
export async function diff(given: readonly [string, string], flags: DiffFlags, place: Place): Promise<ExitCode> {
  const { store } = await existingStore(flags, place.env)
  try {
    const [a, b] = [await storedOf(store, given[0]), await storedOf(store, given[1])]
    const found = diffRuns(a, b)
    place.out.write(
      flags.json === true ? `${JSON.stringify(found, undefined, 2)}\n` : `${printable(formatDiff(found))}\n`,
    )
    return flags.exitCode === true && !found.same ? exitCodes.failed : exitCodes.completed
  } finally {
    await store.close()
  }
}

async function storedOf(store: SessionStore, given: string): Promise<StoredSession> {
  const id = await findSession(store, given)
  const stored = await store.read(id)
  if (stored === undefined) throw sessionUnknown(id)
  return stored
}

function overview(points: readonly SessionPoint[], { out, env }: Place): string {
  const { bold, dim } = colorsFor(out, env)
  const head = ['AT', 'RUN', 'STEP', 'WHEN', 'CALLS', 'TEXT'].map((text) => ({ text, paint: bold }))
  const rows = points.map(({ seq, execution, step, at, toolCalls, text }): readonly Cell[] => [
    { text: String(seq) },
    { text: String(execution + 1) },
    { text: String(step + 1) },
    { text: ago(Date.now() - at), paint: dim },
    { text: oneLine(toolCalls.map(callWords).join(', '), MAX_CALLS) },
    { text: oneLine(text, MAX_TEXT) },
  ])
  return table([head, ...rows])
}

function callWords({ name, status }: SessionPoint['toolCalls'][number]): string {
  return status === 'ok' ? name : `${name} (${status})`
}
