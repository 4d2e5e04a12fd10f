import assert from 'node:assert/strict'
import { partsOf } from '../../core/agent/agent-parts.ts'
import type { Agent } from '../../core/agent/agent.ts'
import { inputFor } from '../../core/loop/drive.ts'
import type { RunOptions } from '../../core/agent/run-options.ts'
import type { Run } from '../../core/agent/run.ts'
import { historyOf } from '../log/history.fixture.ts'
import type { NumberedRecord } from '../log/session-records.ts'
import { runInSession } from '../session/run-session.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'
import { strictReplay } from './strict-replay.fixture.ts'

/** Runs an agent in a session of a store, also if it was created without one. */
export function runIn(
  store: SessionStore,
  agent: Agent<unknown>,
  input: string,
  options: RunOptions = {},
): Promise<Run> {
  const parts = partsOf(agent)
  return runInSession(store, { parts, input: inputFor(parts, input), options: { ...options, session: 's' } })
}

/** A run in a session and its records, which lead to its state if it has ended. */
export async function recordedRun(
  agent: Agent<unknown>,
  input: string,
  options: RunOptions = {},
): Promise<{ readonly run: Run; readonly store: SessionStore; readonly records: readonly NumberedRecord[] }> {
  const store = memoryStore()
  const run = await runIn(store, agent, input, options)
  const { state, records } = historyOf((await store.read('s'))!.lines)
  if (run.status !== 'suspended') assert.equal(JSON.stringify(state), JSON.stringify(run.state))
  return { run, store, records }
}

/** A run whose strict replay is complete: it decides the same over the recorded results, and does nothing itself. */
export async function replayedRun(agent: Agent<unknown>, input: string, options: RunOptions = {}): Promise<Run> {
  const { run, store } = await recordedRun(agent, input, options)
  await strictReplay(agent, store, 's')
  return run
}

/** A store that fails from its n-th write on. */
export function fullStore(from = 1): SessionStore {
  const inner = memoryStore()
  let writes = 0
  const open: SessionStore['open'] = async (id, options) => {
    const writer = await inner.open(id, options)
    const append: typeof writer.append = (...what) => {
      if (++writes >= from) throw new Error('disk full')
      return writer.append(...what)
    }
    return { ...writer, append }
  }
  return { ...inner, open }
}
