import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { test } from 'node:test'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { liveEffects } from '../effects/effects.ts'
import { guard, hook } from '../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import type { JsonObject } from '../../values/json.ts'
import type { SavedRun } from '../state/saved-run.ts'
import type { Approval } from '../state/tool-call.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent/agent.ts'
import type { Run } from '../agent/run.ts'
import { tool, type ToolRun } from '../agent/tool.ts'
import { answersIn, isAsked, worlds, wrongs, type Doing, type Story, type World } from './cancel-worlds.fixture.ts'

// Every world of one to three calls, with every decision and every answer; then each of them again, cancelled at each of its
// points: at every trigger, and before and after every effect. Nothing is sampled. Crashes are in `src/small-world`.

/** A run from its input to its end, through all its suspensions. */
type Life = {
  readonly world: World
  /** The point at which it is cancelled. */
  readonly at: number | undefined
  readonly doings: Doing[]
  readonly endings: { suspended: number; last: number }
  points: number
  round: number
  saved: string | undefined
  pending: readonly Approval[]
  doneBefore: readonly number[]
  answered: readonly number[]
  cancelledAt: string | undefined
  modelCallsAfterCancel: number
  cancel: AbortController
}

function newLife(world: World): Life {
  return {
    world,
    at: undefined,
    doings: [],
    endings: { suspended: 0, last: 0 },
    points: 0,
    round: 0,
    saved: undefined,
    pending: [],
    doneBefore: [],
    answered: [],
    cancelledAt: undefined,
    modelCallsAfterCancel: 0,
    cancel: new AbortController(),
  }
}

/** A copy from some point on, to be cancelled at another one. */
function copyOf(life: Life, at?: number): Life {
  return { ...life, at, doings: [...life.doings], endings: { ...life.endings } }
}

const lives = new AsyncLocalStorage<Life>()
const here = (): Life => lives.getStore()!

/** A point at which the run may be cancelled. */
function pass(name: string): void {
  const life = here()
  if (++life.points !== life.at) return
  life.cancelledAt = name
  life.cancel.abort('struck')
}

const passing = hook(
  [
    'onUserInput',
    'beforeExecution',
    'beforeStep',
    'beforeInference',
    'afterInference',
    'afterToolUse',
    'afterStep',
    'onStop',
    'onPause',
    'onResume',
    'afterExecution',
  ],
  (ctx) => {
    if (ctx.trigger === 'afterExecution') here().endings.last++
    pass(ctx.trigger)
    return ctx
  },
)

const verdict = guard('beforeToolUse', (ctx) => {
  pass('beforeToolUse')
  const fate = here().world.calls[ctx.toolCall.args['n'] as number]!
  if (fate === 'blocked') return ctx.block('Never.')
  return isAsked(fate) ? ctx.ask('May I?') : ctx
})

async function act(args: JsonObject, { idempotencyKey: key }: ToolRun): Promise<string> {
  const { answered: answers, doneBefore, cancelledAt, doings } = here()
  const [call, text] = [args['n'] as number, args['text'] as string]
  const doing = { call, text, key, answers, doneBefore, afterCancel: cancelledAt !== undefined, had: false }
  doings.push(doing)
  pass('before the effect')
  doing.had = true
  pass('after the effect')
  return text
}

function agentFor({ calls, concurrent }: World): Agent {
  const asked = { toolCalls: calls.map((_, n) => ({ name: 'act', args: { n, text: `original ${n}` } })) }
  const model = scriptedModel(async ({ messages }) => {
    const life = here()
    if (life.cancelledAt !== undefined) life.modelCallsAfterCancel++
    pass('before the model')
    await Promise.resolve()
    pass('after the model')
    return messages.at(-1)?.role === 'tool' ? 'Done.' : asked
  })
  const acting = tool({ name: 'act', description: 'Acts.', input: { type: 'object' }, concurrent, execute: act })
  return createAgent({ model, use: [passing, verdict, acting, approval('suspend')] })
}

/** Runs a world to its end, with all its answers. */
async function liveThrough(agent: Agent, life: Life, onSaved?: () => void): Promise<Story> {
  for (;;) {
    const run = await lives.run(life, () => goOn(life, agent))
    if (run.status !== 'suspended') return tell(life, run)
    keep(life, run)
    onSaved?.()
  }
}

async function goOn(life: Life, agent: Agent): Promise<Run> {
  life.cancel = new AbortController()
  const options = { signal: life.cancel.signal, effects: liveEffects({ clock: fakeClock(), id: 'world' }) }
  if (life.saved === undefined) return agent.run('Go.', options)
  const given = answersIn(life.world, life.round, life.pending)
  life.answered = [...life.answered, ...given.keys()]
  const answers = Object.fromEntries(
    life.pending.flatMap(({ id, toolCall }) => {
      const answer = given.get(toolCall.args['n'] as number)
      return answer === undefined ? [] : [[id, answer]]
    }),
  )
  return agent.resume(JSON.parse(life.saved) as SavedRun, { ...options, answers })
}

function keep(life: Life, run: Extract<Run, { status: 'suspended' }>): void {
  life.saved = JSON.stringify(run)
  life.pending = run.pending
  life.round++
  life.doneBefore = life.doings.map(({ call }) => call)
  life.endings.suspended += life.endings.last
  if (life.round > 3) throw new Error('a world is suspended for ever')
}

function tell(life: Life, run: Exclude<Run, { status: 'suspended' }>): Story {
  const { execution, messages } = run.state
  return {
    ...life,
    status: run.status,
    final: run.final,
    execution,
    messages: [...messages],
  }
}

type Explored = { readonly stories: number; readonly wrong: readonly string[] }

/** Explores all worlds, each cancelled at each of its points. Returns the number of stories and their problems. */
async function explore(): Promise<Explored> {
  const wrong: string[] = []
  let stories = 0
  const look = (story: Story): void => {
    stories++
    for (const each of wrongs(story)) wrong.push(`${wordWorld(story)}: ${each}`)
  }
  for (const world of worlds) {
    const agent = agentFor(world)
    const whole = newLife(world)
    const moments = [copyOf(whole)]
    look(await liveThrough(agent, whole, () => moments.push(copyOf(whole))))
    // Up to the last saved point before the cancel, everything is as without it.
    for (let at = 1; at <= whole.points; at++)
      look(
        await liveThrough(
          agent,
          copyOf(
            moments.findLast(({ points }) => points < at)!,
            at,
          ),
        ),
      )
  }
  return { stories, wrong }
}

function wordWorld({ world, at, cancelledAt }: Story): string {
  const how = at === undefined ? '' : `, cancelled at point ${at} ${cancelledAt ?? ''}`
  return `${world.calls.join(', ')}${world.concurrent ? ' together' : ''}${how}`
}

if (isMainThread) {
  test('in every small world, cancelled at any point or never, no call runs twice or unapproved, no answer is lost, and there is one final record', async () => {
    const { stories, wrong } = await inThread()
    assert.deepEqual([wrong.length, wrong.slice(0, 10), stories > 20 * worlds.length], [0, [], true])
  })
} else {
  parentPort!.postMessage(await explore(), [])
}

/** In its own thread, because promises are many times slower where the test runner tracks each of them. */
async function inThread(): Promise<Explored> {
  const thread = new Worker(new URL(import.meta.url))
  const [explored] = (await once(thread, 'message')) as [Explored]
  return explored
}
