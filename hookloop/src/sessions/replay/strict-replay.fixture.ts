import assert from 'node:assert/strict'
import type { Agent } from '../../core/agent/agent.ts'
import type { SessionStore } from '../stores/store.ts'
import { replay, type ReplayReport } from './replay.ts'

/** Replays the last run of a session strictly: the same agent decides the same, over the recorded results. */
export async function strictReplay(agent: Agent<unknown>, store: SessionStore, session: string): Promise<ReplayReport> {
  const report = await replay((await store.read(session))!, { agent })
  assert.deepEqual([report.record.status, report.record.message, report.differences], ['complete', undefined, []])
  return report
}
