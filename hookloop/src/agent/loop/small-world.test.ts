import assert from 'node:assert/strict'
import { AsyncLocalStorage } from 'node:async_hooks'
import { once } from 'node:events'
import { test } from 'node:test'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { approval } from '../../capabilities/approval.ts'
import { createAgent } from '../../create-agent.ts'
import { SAVED_VERSION } from '../../state/agent-state.ts'
import type { JsonObject } from '../../state/json.ts'
import type { SavedRun } from '../../state/saved-run.ts'
import type { Approval } from '../../state/tool-call.ts'
import { liveEffects } from '../../effects/effects.ts'
import { guard, hook } from '../../hooks/hook.ts'
import { scriptedModel } from '../../models/scripted.ts'
import { fakeClock } from '../../testing/fake-clock.ts'
import type { Agent } from '../agent.ts'
import type { Run } from '../run.ts'
import {
  answersIn,
  isAsked,
  worlds,
  wrongs,
  type Doing,
  type Fault,
  type Story,
  type World,
} from './small-world.fixture.ts'
import { tool, type ToolRun } from '../tool.ts'

// Every world of one to three calls, with every decision and every answer; then each of them again, cancelled or
// killed at each of its points. Nothing is sampled: of crashes that leave the same state, one is followed to its end.

/** What outlives the processes of one world. */
type Life = {
  readonly world: World
  readonly fault: Fault | undefined
  readonly doings: Doing[]
  readonly endings: { suspended: number; last: number }
  points: number
  crashes: number
  lineage: number
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
    fault: undefined,
    doings: [],
    endings: { suspended: 0, last: 0 },
    points: 0,
    crashes: 0,
    lineage: 0,
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

/** A copy from some point on, with a fault. */
function withFault(life: Life, fault?: Fault): Life {
  return { ...life, fault, doings: [...life.doings], endings: { ...life.endings } }
}

/** A process. After it is killed, everything that reaches a point waits forever. */
type Process = { readonly life: Life; readonly died: PromiseWithResolvers<undefined>; dead: boolean }

const processes = new AsyncLocalStorage<Process>()
const here = (): Process => processes.getStore()!

/** A point at which a fault may happen. */
function pass(name: string): void | Promise<never> {
  const process = here()
  const { life, died } = process
  if (process.dead) return forEver()
  if (++life.points !== life.fault?.at) return undefined
  if (life.fault.kind === 'cancel') {
    life.cancelledAt = name
    life.cancel.abort('struck')
    return undefined
  }
  process.dead = true
  died.resolve(undefined)
  return forEver()
}

function forEver(): Promise<never> {
  return new Promise(() => undefined)
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
    const { life, dead } = here()
    if (ctx.trigger === 'afterExecution' && !dead) life.endings.last++
    return pass(ctx.trigger) ?? ctx
  },
)

const verdict = guard('beforeToolUse', (ctx) => {
  const waiting = pass('beforeToolUse')
  if (waiting !== undefined) return waiting
  const fate = here().life.world.calls[ctx.toolCall.args['n'] as number]!
  if (fate === 'blocked') return ctx.block('Never.')
  return isAsked(fate) ? ctx.ask('May I?') : ctx
})

async function act(args: JsonObject, { idempotencyKey: key }: ToolRun): Promise<string> {
  const process = here()
  if (process.dead) return forEver()
  const { lineage, answered: answers, doneBefore, cancelledAt, doings } = process.life
  const [call, text] = [args['n'] as number, args['text'] as string]
  const doing = { call, text, key, lineage, answers, doneBefore, afterCancel: cancelledAt !== undefined, had: false }
  doings.push(doing)
  await pass('before the effect')
  if (process.dead) return forEver()
  doing.had = true
  await pass('after the effect')
  return text
}

function agentFor({ calls, concurrent }: World): Agent {
  const asked = { toolCalls: calls.map((_, n) => ({ name: 'act', args: { n, text: `original ${n}` } })) }
  const model = scriptedModel(async ({ messages }) => {
    const { life } = here()
    if (life.cancelledAt !== undefined) life.modelCallsAfterCancel++
    await pass('before the model')
    await pass('after the model')
    return messages.at(-1)?.role === 'tool' ? 'Done.' : asked
  })
  const acting = tool({ name: 'act', description: 'Acts.', input: { type: 'object' }, concurrent, execute: act })
  return createAgent({ model, use: [passing, verdict, acting, approval('suspend')] })
}

/** Callbacks during a life. */
type Teller = {
  onSaved?: () => void
  /** Returns true if the same state was explored before. */ onCrash?: () => boolean
}

/** Runs a world to its end, in as many processes as it takes. */
async function liveThrough(agent: Agent, life: Life, teller: Teller = {}): Promise<Story | undefined> {
  for (;;) {
    const process: Process = { life, died: Promise.withResolvers<undefined>(), dead: false }
    const running = processes.run(process, () => goOn(life, agent))
    const run = await Promise.race([running, process.died.promise])
    if (run === undefined) {
      life.crashes++
      if (life.saved === undefined) life.lineage++
      life.endings.last = 0
      if (teller.onCrash?.() === true) return undefined
    } else if (run.status === 'suspended') {
      keep(life, run)
      teller.onSaved?.()
    } else {
      return tell(life, run)
    }
  }
}

async function goOn(life: Life, agent: Agent): Promise<Run> {
  life.cancel = new AbortController()
  const effects = liveEffects({ clock: fakeClock(), id: `world-${life.lineage}` })
  const options = { signal: life.cancel.signal, effects }
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
  life.saved = JSON.stringify({ version: SAVED_VERSION, state: run.state }) // without the ledger, which decides nothing
  life.pending = run.pending
  life.round++
  const cursor = run.state.execution!.cursor!
  const calls = cursor.phase === 'tools' ? cursor.step.calls : []
  life.doneBefore = calls.flatMap(({ result }, n) => (result === undefined ? [] : [n]))
  life.endings.suspended += life.endings.last
  if (life.round > 3) throw new Error('a world is suspended for ever')
}

function tell(life: Life, run: Exclude<Run, { status: 'suspended' }>): Story {
  const { execution, messages } = run.state
  return {
    ...life,
    status: run.status,
    finals: [run.final, execution?.final],
    executions: execution?.steps.at(0)?.toolExecutions ?? [],
    messages: [...messages],
  }
}

type Explored = { readonly stories: number; readonly wrong: readonly string[] }

/** Explores all worlds, each with its faults. Returns the number of stories and their problems. */
async function explore(kind: Fault['kind']): Promise<Explored> {
  const wrong: string[] = []
  let stories = 0
  const look = (story: Story | undefined): void => {
    stories++
    if (story !== undefined) for (const each of wrongs(story)) wrong.push(`${wordWorld(story)}: ${each}`)
  }
  for (const world of worlds) {
    const agent = agentFor(world)
    const whole = newLife(world)
    const moments = [withFault(whole)]
    look(await liveThrough(agent, whole, { onSaved: () => moments.push(withFault(whole)) }))
    const wrecks = new Set<string>()
    for (let at = 1; at <= whole.points; at++) {
      // Up to the last saved point before the fault, everything is as without it.
      const life = withFault(
        moments.findLast(({ points }) => points < at)!,
        { kind, at },
      )
      look(await liveThrough(agent, life, { onCrash: () => isKnown(wrecks, life) }))
    }
  }
  return { stories, wrong }
}

/** A crash leaves the saved run and the executed effects. If both are equal, so is everything after it. */
function isKnown(wrecks: Set<string>, { round, doings }: Life): boolean {
  const wreck = JSON.stringify([round, doings])
  if (wrecks.has(wreck)) return true
  wrecks.add(wreck)
  return false
}

function wordWorld({ world, fault, cancelledAt }: Story): string {
  const how = fault === undefined ? '' : `, ${fault.kind} at point ${fault.at} ${cancelledAt ?? ''}`
  return `${world.calls.join(', ')}${world.concurrent ? ' together' : ''}${how}`
}

if (isMainThread) {
  const sentence = 'no call runs twice, none runs unapproved, no answer is lost, and there is one final record'
  const [cancelled, dead] = [inThread('cancel'), inThread('crash')] // at the same time

  test(`in every small world, cancelled at any point or never, ${sentence}`, async () => {
    const { stories, wrong } = await cancelled
    assert.deepEqual([wrong.length, wrong.slice(0, 10), stories > 20 * worlds.length], [0, [], true])
  })

  test(`in every small world, with the process killed at any point or never, ${sentence}`, async () => {
    const { stories, wrong } = await dead
    assert.deepEqual([wrong.length, wrong.slice(0, 10), stories > 20 * worlds.length], [0, [], true])
  })
} else {
  const explored = await explore(workerData as Fault['kind'])
  parentPort!.postMessage(explored, [])
}

/** In its own thread, because promises are many times slower where the test runner tracks each of them. */
async function inThread(kind: Fault['kind']): Promise<Explored> {
  const thread = new Worker(new URL(import.meta.url), { workerData: kind })
  const [explored] = (await once(thread, 'message')) as [Explored]
  return explored
}
