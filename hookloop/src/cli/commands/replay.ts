import type { Capability } from '../../agent/capability.ts'
import { approval } from '../../capabilities/approval.ts'
import type { Hook } from '../../hooks/hook.ts'
import { replay, type ReplayReport } from '../../sessions/replay/replay.ts'
import { formatReplay } from '../../sessions/replay/format-replay.ts'
import type { SessionSnapshot } from '../../sessions/log/read-session.ts'
import type { SessionRecord } from '../../sessions/log/session-records.ts'
import { sessionUnknown } from '../../sessions/stores/store.ts'
import { agentFor } from '../agents/create-cli-agent.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { findSession, readKept } from '../sessions/find-session.ts'
import { loadDefault } from '../agents/load-agent.ts'
import type { Place } from '../cli-context.ts'
import { withKnown, type CommandFlags } from '../run/prepare-run.ts'
import { printable } from '../terminal/printable.ts'
import { existingStore } from '../sessions/open-store.ts'
import { UsageError } from '../usage-error.ts'

export type ReplayFlags = CommandFlags & {
  readonly hooks?: readonly string[]
  readonly without?: readonly string[]
  /** Counted from 1. */
  readonly run?: number
  readonly exitCode?: boolean
}

/** `hookloop replay`: what other hooks would have decided in a run that is kept. No model and no tool is called. */
export async function replaySession(given: string, flags: ReplayFlags, place: Place): Promise<ExitCode> {
  const opened = await existingStore(flags, place.env)
  try {
    const session = await findSession(opened.store, given)
    const [kept, stored] = [await readKept(opened.store, session), await opened.store.read(session)]
    if (kept === undefined || stored === undefined) throw sessionUnknown(session)
    const records = recordsOf(kept, { session, run: flags.run })
    const { agent } = await agentFor(withKnown(flags, { place, keeping: { ...opened, session, kept } }), {
      ...place,
      ...(records.some(isAsked) ? { asks: neverAsked } : { waits: true }),
    })
    const report = await replay(stored, {
      agent,
      hooks: await hooksFrom(flags.hooks ?? []),
      ...(flags.without !== undefined && { without: flags.without }),
      ...(flags.run !== undefined && { run: flags.run - 1 }),
    })
    tell(report, { session, flags, place })
    return flags.exitCode === true && report.differences.length > 0 ? exitCodes.failed : exitCodes.completed
  } finally {
    await opened.store.close()
  }
}

/** The lines of one run. */
function recordsOf(
  { records }: SessionSnapshot,
  { session, run }: { readonly session: string; readonly run: number | undefined },
): readonly SessionRecord[] {
  const begins = records.flatMap(({ type }, i) => (type === 'input' ? [i] : []))
  const which = run ?? begins.length
  const begin = begins[which - 1]
  if (begin !== undefined) return records.slice(begin, begins[which])
  throw new UsageError(`There is no run ${which} of ${session}: it has ${begins.length}.`)
}

/** Whether somebody was asked while the run was waiting. Otherwise it was suspended until there were answers. */
function isAsked(record: SessionRecord): boolean {
  return record.type === 'begin' && record.kind === 'approval'
}

/** The record has the answers. */
const neverAsked = approval(() => 'suspend')

function tell(
  report: ReplayReport,
  { session, flags, place }: { readonly session: string; readonly flags: ReplayFlags; readonly place: Place },
): void {
  const words =
    flags.json === true ? JSON.stringify({ session, ...report }, undefined, 2) : printable(formatReplay(report))
  place.out.write(`${words}\n`)
}

/** What the files have as their default export: a hook, a capability, or a list of them. */
async function hooksFrom(files: readonly string[]): Promise<readonly (Hook | Capability)[]> {
  const loaded: (Hook | Capability)[] = []
  for (const file of files) {
    if (file.endsWith('.json')) throw new UsageError(`--hooks ${file}: hooks are written in modules, such as hooks.ts.`)
    const exported = await loadDefault(file, '--hooks')
    if (typeof exported !== 'object' || exported === null) {
      throw new UsageError(`--hooks ${file}: its default export must be a hook, a capability, or a list of them.`)
    }
    loaded.push(...((Array.isArray(exported) ? exported : [exported]) as readonly (Hook | Capability)[]))
  }
  return loaded
}
