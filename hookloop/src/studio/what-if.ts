import type { Agent, Capability, Hook } from '../plugin.ts'
import { decidedWords } from '../sessions/replay/format-replay.ts'
import type { ReplayPlace } from '../sessions/replay/compare-ledgers.ts'
import { hooksWith, replay, type ReplayReport } from '../sessions/replay/replay.ts'
import { forkSession } from '../sessions/session/fork-session.ts'
import { sessionOf } from '../sessions/session/session.ts'
import { sessionUnknown, type SessionStore } from '../sessions/stores/store.ts'
import type { StoredRun } from '../sessions/index.ts'
import type { WhatIfPlace, WhatIfReport } from './api.types.ts'
import type { Matrix } from './matrix.ts'

/** The hooks to judge with, or to run with. */
export type OtherHooks = {
  readonly agent: Agent<unknown>
  readonly hooks: readonly (Hook | Capability)[]
  readonly without: readonly string[]
}

/** Judges a recorded run with other hooks. No model and no tool is called. */
export async function judgeAgain(
  store: SessionStore,
  { run, matrix }: { readonly run: StoredRun; readonly matrix: Matrix },
  others: OtherHooks,
): Promise<WhatIfReport> {
  const stored = await store.read(run.session)
  if (stored === undefined) throw sessionUnknown(run.session)
  const { events, differences, divergesAt, unjudged, record } = await replay(stored, { ...others, run: run.index })
  return {
    events,
    differences: differences.map(({ was, would, divergence, ...place }) => ({
      ...placeIn(matrix, place),
      was: decidedWords(was),
      would: decidedWords(would),
      changes: would.flatMap(({ changes = [] }) => changes),
      divergence,
    })),
    divergesAt: divergesAt && { ...placeIn(matrix, divergesAt), why: divergesAt.why },
    unjudged,
    note: noteOn(record),
  }
}

function noteOn({ status, message = '' }: ReplayReport['record']): string | undefined {
  if (status === 'complete') return undefined
  const why = status === 'diverged' ? 'This agent differs from the one of the record' : 'The record has no end'
  return `${why}, so it was judged up to there. ${message}`.trim()
}

/** The row of an event. Where no hook had fired in the recorded run, that of the call or the step. */
function placeIn({ rows }: Matrix, { step, trigger, call, path }: ReplayPlace): WhatIfPlace {
  const within = JSON.stringify(path)
  const isThere = ({ entries }: Matrix['rows'][number]): boolean =>
    entries.some(
      (each) =>
        each.step === step &&
        each.trigger === trigger &&
        each.call === call?.id &&
        JSON.stringify(each.path) === within,
    )
  const start = path?.[0] ?? { step, call: call?.id } // of a subagent: the call that started it
  const found =
    rows.find(isThere) ??
    rows.find(
      ({ row }) => row.step === start.step && row.call === start.call && row.path === undefined && row.kind !== 'input',
    )
  return { step, trigger, row: found?.row.index ?? null, tool: call?.name }
}

/**
 * Runs the input of a recorded run again, with other hooks, in a fork of its session from before the run. Returns the id of the
 * fork when it exists, and its end.
 */
export async function runInFork(
  store: SessionStore,
  run: StoredRun,
  { agent, signal, ...others }: OtherHooks & { readonly signal: AbortSignal },
): Promise<{ readonly session: string; readonly ended: Promise<unknown> }> {
  const as = `${run.session.slice(0, 100).toWellFormed()}-${crypto.randomUUID().slice(0, 8)}`
  if (run.index > 0) await forkSession(store, run.session, { at: run.lines.first - 1, as })
  const session = sessionOf(store, agent, as, hooksWith(agent, others))
  const ended = session.send(run.input, { signal, ...(run.metadata !== undefined && { metadata: run.metadata }) })
  return { session: as, ended }
}
