import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  calls,
  familyWorld,
  isAsked,
  look,
  plan,
  spawn,
  type World,
} from '../../core/subagents/family-world.fixture.ts'
import type { Run } from '../../core/agent/run.ts'
import { approval } from '../../capabilities/approval.ts'
import { guards } from '../../capabilities/guards.ts'
import { liveEffects } from '../../core/effects/effects.ts'
import { guard } from '../../core/hooks/hook.ts'
import { answerApproval, listApprovals } from './approvals.ts'
import { replay } from '../replay/replay.ts'
import { findSession } from './open-session.fixture.ts'
import { quietClock } from './eventful-run.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import type { SessionStore } from '../stores/store.ts'

// b works beside a and has another agent inside it, which asks; a asks as well, so that both wait at once.
const task = plan(
  calls(
    spawn('a', 'plain', calls(look('a1')), calls(look('a2', '?a')), 'A.'),
    spawn('b', 'plain', calls(spawn('c', 'plain', calls(look('c1'), look('c2', '?c')), 'C.'), look('b1')), 'B.'),
  ),
  calls(look('top')),
  'Done.',
)
const everything = ['?a', '?c', 'a1', 'b1', 'c1', 'top']

const ask = guard('beforeToolUse', (ctx) => (isAsked(ctx.toolCall.args) ? ctx.ask('Look?') : ctx), {
  name: 'ask',
  tool: 'look',
})

function worldIn(store: SessionStore, judged: string[] = []): World {
  const judge = guard('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.id), ctx), { name: 'judge' })
  return familyWorld({ store, use: [ask, judge, approval('suspend'), guards({ maxTimeMs: 60_000 })] })
}

/** What a process does that is started again until the run is over. */
async function drive({ agent }: World, store: SessionStore, id = 's'): Promise<Run | undefined> {
  for (;;) {
    const {
      open,
      hasInput,
      asked: [asked],
    } = await findSession(store, id)
    const effects = liveEffects({ id: 'r', clock: quietClock })
    if (!hasInput) {
      const run = await agent.run(task, { session: id, effects })
      if (run.status !== 'suspended') return run
      continue
    }
    if (open === undefined) return undefined
    if (asked !== undefined) await answerApproval(store, { session: id, approval: asked.id, answer: 'allow' })
    const run = await agent.resume(id, { effects })
    if (run.status !== 'suspended') return run
  }
}

test('the questions of subagents are in the list of the store, and are answered there by their id', async () => {
  const store = memoryStore()
  const { agent, looked } = worldIn(store)
  await agent.run(task, { session: 's' })
  const waiting = await listApprovals(store)
  assert.deepEqual(
    waiting.map(({ session, toolCall, path }) => [session, toolCall.id, path!.map(({ call }) => call)]),
    [
      ['s', 'a2', ['a']],
      ['s', 'c2', ['b', 'c']],
    ],
  )
  for (const { id } of waiting) await answerApproval(store, { session: 's', approval: id, answer: 'allow' })
  assert.deepEqual(await listApprovals(store), [])
  await assert.rejects(answerApproval(store, { session: 's', approval: waiting[0]!.id, answer: 'allow' }), {
    code: 'ANSWER_USED',
  })
  const run = await agent.resume('s')
  assert.deepEqual([run.status, looked.toSorted()], ['completed', everything])
})

test('a guard that is added in a replay judges the calls of the run and of its subagents', async () => {
  const store = memoryStore()
  await drive(worldIn(store), store)
  const judged: string[] = []
  const added = guard('beforeToolUse', (ctx) => (judged.push(ctx.toolCall.id), ctx), { name: 'added', tool: 'look' })
  await replay((await store.read('s'))!, { agent: worldIn(store).agent, hooks: [added] })
  assert.deepEqual([...new Set(judged)].toSorted(), ['a1', 'a2', 'b1', 'c1', 'c2', 'top'])
})
