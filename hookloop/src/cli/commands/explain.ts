import { explanationWords } from '../../agent/explain/explain.ts'
import { explanation, type Explainable, type Explanation } from '../../agent/explain/explanation.ts'
import { pendingOf } from '../../agent/run.ts'
import type { FinalRecord } from '../../state/execution.ts'
import type { SessionSnapshot } from '../../sessions/log/read-session.ts'
import { sessionUnknown } from '../../sessions/stores/store.ts'
import { count, tokens } from '../terminal/amounts.ts'
import { shortId } from '../sessions/approval-ids.ts'
import { exitCodes, type ExitCode } from '../exit-codes.ts'
import { findSession, readKept } from '../sessions/find-session.ts'
import type { Way } from '../run/next-steps.ts'
import type { Place } from '../cli-context.ts'
import { printable } from '../terminal/printable.ts'
import { existingStore, type StoreFlags } from '../sessions/open-store.ts'

export type ExplainFlags = StoreFlags & { readonly json?: boolean }

/** `hookloop explain`: who decided what in the latest run of a session, and why. */
export async function explainSession(given: string | undefined, flags: ExplainFlags, place: Place): Promise<ExitCode> {
  const { store, flags: more } = await existingStore(flags, place.env)
  try {
    const session = await findSession(store, given)
    const kept = await readKept(store, session)
    if (kept === undefined) throw sessionUnknown(session)
    const run = latestRun(kept)
    const way = { session, command: place.command, flags: more }
    const data = run === undefined ? unfinished(kept, way) : { ...explanation(run), ...wayOn(run, way) }
    const words = run === undefined ? unfinishedWords(data as Unfinished) : explanationWords(data as Explanation)
    place.out.write(
      flags.json === true ? `${JSON.stringify({ session, ...data }, undefined, 2)}\n` : `${printable(words)}\n`,
    )
    return exitCodes.completed
  } finally {
    await store.close()
  }
}

/** The latest run as far as it takes to explain it. Nothing if it has not ended. */
function latestRun(kept: SessionSnapshot): Explainable | undefined {
  const { state, ledger, records } = kept
  const last = records.findLast((record) => record.type === 'state')
  if (state === undefined || last === undefined || kept.open?.phase === 'input') return undefined
  if (last.phase === 'inputBlocked') return { status: 'stopped', state, ledger, final: refusal(kept, last.at) }
  const { execution } = state
  if (execution?.status === 'suspended') return { status: 'suspended', state, ledger, pending: pendingOf(state) }
  return execution?.final === undefined
    ? undefined
    : { status: execution.final.status, state, ledger, final: execution.final }
}

/** How an input ended that opened no execution: only the ledger says so. */
function refusal({ ledger }: SessionSnapshot, at: number): FinalRecord {
  const by = ledger.findLast(({ decision, error }) => decision?.includes('block') === true || error !== undefined)
  return {
    status: by?.error === undefined ? 'stopped' : 'failed',
    reason: by?.error === undefined ? 'inputBlocked' : 'errorForbade',
    by: by?.hook ?? 'hookloop',
    message: by?.error ?? by?.message ?? 'The input was refused.',
    votes: [],
    at,
  }
}

/** What to type to go on; where nothing can be typed, what the agent would need. */
function wayOn(run: Explainable, { session, command, flags }: Way): Pick<Explanation, 'wayOn'> | undefined {
  if (run.status !== 'suspended') return undefined
  const answers = run.pending.map((approval) => `${command} approve ${shortId(approval, run.pending)}${flags}`)
  return { wayOn: [...answers, `${command} resume ${session}${flags}`].join(', then ') }
}

type Unfinished = {
  readonly status: 'idle' | 'running'
  readonly spent: Explanation['spent'] | null
  readonly wayOn: string
}

function unfinished({ open, state }: SessionSnapshot, { session, command, flags }: Way): Unfinished {
  const spent = state?.execution?.usage ?? null
  if (open === undefined) return { status: 'idle', spent, wayOn: `${command} chat --session ${session}${flags}` }
  return { status: 'running', spent, wayOn: `${command} resume ${session}${flags}` }
}

function unfinishedWords({ status, spent, wayOn: way }: Unfinished): string {
  const what =
    status === 'idle' ? 'Nothing was run yet.' : 'The run has not ended: it is under way, or its process is gone.'
  const amounts = spent === null ? [] : [`  spent        ${count(spent.steps, 'step')}, ${tokens(spent)}`]
  return [what, ...amounts, `  to go on     ${way}`].join('\n')
}
