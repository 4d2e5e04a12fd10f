import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../../core/agent/agent.ts'
import type { RunOptions } from '../../core/agent/run-options.ts'
import type { Run } from '../../core/agent/run.ts'
import { tool, type Tool } from '../../core/agent/tool.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import type { Clock } from '../../core/effects/run-time.ts'
import { guard, hook } from '../../core/hooks/hook.ts'
import { scriptedModel, type ScriptedTurn } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import { RecordedSession } from './recorded-session.fixture.ts'
import { replay } from './replay.ts'

type Make = Partial<Parameters<typeof tool>[0]>
type Kind = 'hook' | 'guard'

const declare = (kind: Kind): typeof hook => (kind === 'hook' ? hook : (guard as unknown as typeof hook))
const make = (how: Make = {}): Tool =>
  tool({ name: 'work', description: 'Works.', input: { type: 'object' }, execute: () => 'worked', ...how })
const work: ScriptedTurn = { toolCalls: [{ name: 'work' }] }
const never = new Promise<never>(() => undefined)
/** A clock on which time limits are not real either. */
function inNoTime(): Clock {
  const clock = fakeClock({ auto: true })
  return { now: () => clock.now(), sleep: (...args) => clock.sleep(...args) }
}

/** A run and its replay must be equal in their states, and in their ledgers except for durations. */
async function assertReplays(build: () => Agent, how: RunOptions = {}): Promise<Run> {
  const session = new RecordedSession(build())
  const live = await session.run('hi', how)
  const { run, record } = await replay(await session.lines(), { agent: build() })
  assert.deepEqual(record, { status: 'complete' })
  assert.deepEqual(toldBy(run), toldBy(live))
  return live
}

function toldBy(run: Run): unknown {
  const told = JSON.parse(JSON.stringify(run)) as { ledger: { durationMs?: number }[] }
  for (const entry of told.ledger) delete entry.durationMs
  return told
}

for (const kind of ['hook', 'guard'] as const) {
  for (const trigger of ['beforeStep', 'beforeToolUse', 'afterToolUse', 'afterStep'] as const) {
    test(`a ${kind} at ${trigger} that was aborted by a cancel is aborted in the replay as well`, async () => {
      const controller = new AbortController()
      const stuck = declare(kind)(trigger, () => (controller.abort(), never), { name: 'stuck' })
      const build = (): Agent => createAgent({ model: scriptedModel([work, 'ok']), use: [make(), stuck] })
      const run = await assertReplays(build, { signal: controller.signal, effects: liveEffects({ clock: inNoTime() }) })
      assert.equal(run.status, 'cancelled')
    })
  }
}
