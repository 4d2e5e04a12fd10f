import type { Agent } from '../plugin.ts'
import { listHooks } from '../hook-files/list-hooks.ts'
import { TrustStore } from '../hook-files/trust/trust-store.ts'
import { readRuns } from '../sessions/log/read-runs.ts'
import type { SessionStore } from '../sessions/stores/store.ts'
import type { StoredRun } from '../sessions/index.ts'
import type { HookCounts, HooksReport } from './api.types.ts'
import { codeOf, joinPlaces } from './cells.ts'

const MAX_SESSIONS = 50
const MAX_LATEST = 5

/** The hooks in force, and what they did in the latest sessions. No hook is run. */
export async function hooksReport(
  store: SessionStore,
  { dir, agent }: { readonly dir: string; readonly agent: Agent<unknown> | undefined },
): Promise<HooksReport> {
  const { hooks: files, problems } = listHooks({ dir, trust: new TrustStore() })
  const runs: StoredRun[] = []
  for (const { id, problem } of await store.list({ limit: MAX_SESSIONS })) {
    if (problem === undefined) runs.push(...(await readRuns(store, id).catch(() => []))) // damaged, or deleted since
  }
  return { files, agent: agent?.describe().hooks ?? [], problems, counts: countsOf(runs), runs: runs.length }
}

type Counting = { -readonly [K in keyof HookCounts]: HookCounts[K] } & { latest: HookCounts['latest'][number][] }

const counted: { readonly [code: string]: 'blocked' | 'asked' | 'changed' | 'stopped' | 'failed' } = {
  x: 'blocked',
  '?': 'asked',
  '~': 'changed',
  s: 'stopped',
  '!': 'failed',
}

/** What each hook did in these runs, which are the latest first. */
function countsOf(runs: readonly StoredRun[]): readonly HookCounts[] {
  const hooks = new Map<string, Counting>()
  for (const run of runs) {
    const judged = new Set<string>()
    for (const entry of run.ledger) {
      if (entry.mode === 'loop') continue
      const { hook, shadow = false } = entry
      const key = JSON.stringify([hook, shadow])
      const place = JSON.stringify([key, entry.trigger, entry.step, entry.call, entry.path])
      if (entry.call !== undefined && judged.has(place)) continue // a call is judged again when its run resumes
      judged.add(place)
      const counts = hooks.get(key) ?? { hook, shadow, ...nothing, latest: [] }
      hooks.set(key, counts)
      const code = codeOf(entry)
      const what = counted[code]
      counts.definedAt = joinPlaces(counts.definedAt, entry.definedAt)
      if (what !== undefined) counts[what]++
      if (code === '-' || entry.bookkeeping === true || counts.latest.length === MAX_LATEST) continue
      const text = entry.error ?? entry.message ?? ''
      counts.latest.push({ session: run.session, run: run.index, decision: entry.decision ?? 'changed', text })
    }
  }
  return [...hooks.values()]
}

const nothing = { blocked: 0, asked: 0, changed: 0, stopped: 0, failed: 0 }
