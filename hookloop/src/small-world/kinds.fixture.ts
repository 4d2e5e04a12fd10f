import { AgentError } from '../index.ts'
import type { SessionStore } from '../sessions/stores/index.ts'
import { newStore } from './stores.fixture.ts'
import { mortalStore, stallingStore, type MortalOptions } from './crashing-store.fixture.ts'
import { finish, inTime, send, textOf, untilDeath, type AnswerKind, type Life } from './drive.fixture.ts'
import { checkEnded, checkReplay, checkSame, endOf, leftBehind, type Recorded } from './invariants.fixture.ts'
import { FAIL, type Spec } from './specs.fixture.ts'
import { differencesOf, type Summary } from './summary.fixture.ts'
import { World } from './world.fixture.ts'

// What may happen to a run between its input and its end: its process dies or stalls, the agent changes, answers are given
// in other ways. `session-kinds.fixture.ts` has what may happen to a session besides.

export type Scenario = {
  readonly kind: string
  readonly spec: Spec
  readonly answers: AnswerKind
  /** The line at which the process dies or stalls; of two processes, `3,2`; `-` if none does. */
  readonly at: string
  /** The change of the agent, or a variant of the kind. */
  readonly variant: string
}

/** The run of an agent that nothing happens to. */
export type Reference = {
  /** What its histories have in common. Undefined if it has none. */
  readonly end: Summary | undefined
  /** The same after another message. */
  readonly nextEnd: Summary | undefined
  /** How many lines it stores. */
  readonly lines: number
  /** How many questions are asked in all, and at once. */
  readonly asked: number
  readonly askedAtOnce: number
  /** How often the run is suspended. */
  readonly suspensions: number
  readonly violations: readonly string[]
}

export type Place = {
  readonly scenario: Scenario
  readonly reference: Reference
  readonly world: World
  readonly store: SessionStore
  /** The life of the agent that has not changed, in a store that does not fail. */
  readonly life: Life
}

export type Kind = (place: Place) => Promise<void>
export type Tell = (what: string) => void

/** Runs the agent without any fault: the scenario `whole`. The invariants hold, and the log can be replayed. */
export async function referenceOf(spec: Spec, answers: AnswerKind, tell?: Tell): Promise<Reference> {
  const [world, store] = [new World(tell), await newStore()]
  const counting = mortalStore(store)
  let [asked, askedAtOnce, rounds, suspensions, lines] = [0, 0, 0, 0, 0]
  let [end, nextEnd]: (Summary | undefined)[] = []
  const life: Life = {
    world,
    spec,
    answers,
    change: 'none',
    store: counting,
    async beforeAnswers(open) {
      askedAtOnce = Math.max(askedAtOnce, open.length)
      rounds++
    },
  }
  await attempt(world, async () => {
    await send(life, 'go')
    await finish(life)
    ;[lines, asked, suspensions] = [counting.written(), world.answers.length, rounds]
    end = await endOf(life)
    await checkEnded(life, [])
    await checkSame(life)
    await checkReplay(life)
    await goOn(life, [])
    nextEnd = await endOf(life)
  })
  return { end, nextEnd, lines, asked, askedAtOnce, suspensions, violations: [...new Set(world.violations)] }
}

/** What is thrown where nothing died is a violation. */
export async function attempt(world: World, work: () => Promise<void>): Promise<void> {
  try {
    await inTime(work())
  } catch (thrown) {
    world.violate(`threw ${textOf(thrown).replaceAll(/"[^"]*#[^"]*"/g, '"…"')}`) // without the id of a question
  }
}

/** The process dies once or twice, and the agent may have changed. */
const crash: Kind = async ({ scenario, reference, life, world }) => {
  const { at, variant: change } = scenario
  const [first, second] = at.split(',').map(Number)
  const recorded = [...(await dying(life, { at: first! }))]
  const next = { ...life, change }
  if (second !== undefined) recorded.push(...(await dying(next, { at: second, isStart: false })))
  await attempt(world, async () => {
    await finish(next)
    await conclude(next, recorded, change === 'none' ? reference.end : undefined)
    if (change === 'none') await checkReplay(next)
    if (world.violations.length === 0) await goOn(next, recorded)
  })
}

/** A process that may die works in another way, which leads to the same end, unless the agent changes then. */
const crashOf =
  (way: Partial<Life>): Kind =>
  async ({ scenario, reference, life, world }) => {
    const recorded = scenario.at === '-' ? [] : await dying({ ...life, ...way }, { at: Number(scenario.at) })
    const next = { ...life, ...way, change: scenario.variant }
    const isSame = scenario.variant === 'none'
    await attempt(world, async () => {
      if (scenario.at === '-') await send(next, 'go')
      await finish(next)
      await conclude(next, recorded, isSame ? reference.end : undefined)
      if (isSame) await checkReplay(next)
    })
  }

/** One of several questions is answered at a time. Other calls may end first, so the trace may have another order. */
const partial =
  (answered: 'first' | 'last'): Kind =>
  (place) => {
    const { end } = place.reference
    const decides = place.life.spec.hooks.includes('budget') // by what has ended before
    const { trace: _order, ...comparable } = end ?? {}
    return crashOf({ answered })({ ...place, reference: { ...place.reference, end: decides ? undefined : comparable } })
  }

/** The process dies in another way. */
const crashBy =
  (options: MortalOptions): Kind =>
  async ({ scenario, reference, life, world }) => {
    const recorded = await dying(life, { at: Number(scenario.at), ...options })
    await attempt(world, async () => {
      await finish(life)
      await conclude(life, recorded, reference.end)
      await checkReplay(life)
    })
  }

type Dying = MortalOptions & { readonly at: number; readonly isStart?: boolean }

/** Works in a process until it dies. Returns what it has left. */
export async function dying(life: Life, { at, isStart = true, ...options }: Dying): Promise<readonly Recorded[]> {
  const { world, store } = life
  const mortal = mortalStore(store, at, options)
  const mine = { ...life, store: mortal }
  await untilDeath(mortal, world, async () => {
    if (isStart) await send(mine, 'go')
    await finish(mine)
  })
  return leftBehind(life)
}

/** The run has ended: the invariants, and the end that it must have, if any. */
export async function conclude(life: Life, recorded: readonly Recorded[], end: Summary | undefined): Promise<void> {
  const { world, spec } = life
  await checkEnded(life, recorded)
  if (life.change === 'none') await checkSame(life)
  if (end !== undefined && !spec.script.includes(FAIL)) checkEnd(world, end, await endOf(life))
}

/** Of what is expected, as far as it is. */
export function checkEnd(world: World, expected: Summary | undefined, got: Summary | undefined): void {
  if (expected === undefined || got === undefined) return
  const compared = Object.fromEntries(Object.keys(expected).map((name) => [name, got[name]]))
  const found = differencesOf(expected, compared)
  for (const difference of found) world.tell(() => `  ${difference}`)
  if (found.length > 0) world.violate('another end than without a fault')
}

/** Another message, whatever has happened before. */
export async function goOn(life: Life, recorded: readonly Recorded[]): Promise<void> {
  await send(life, 'again')
  await finish(life, 'again')
  await checkEnded(life, recorded)
}

/** The process stalls, two others take over at once, and then the first wakes up. */
const takeover: Kind = async ({ scenario, reference, life, world, store }) => {
  const stalling = stallingStore(store, Number(scenario.at))
  const first = refusable(async () => {
    const mine = { ...life, store: stalling }
    await send(mine, 'go')
    await finish(mine)
  })
  await Promise.race([stalling.stalled, first])
  await stalling.takeOver()
  world.isDisturbed = true
  const recorded = await leftBehind(life)
  world.pauseMs = 0 // the others work at the same time
  await attempt(world, async () => {
    const ends = await Promise.all([refusable(() => finish(life)), refusable(() => finish(life))])
    for (const end of ends) if (!refusals.has(end)) world.violate(`a process that takes over ended with ${end}`)
    await finish(life)
    const before = world.executions.length
    stalling.wake()
    const end = await first
    if (world.executions.length > before) world.violate('a process that has lost its session executes a tool')
    if (!refusals.has(end)) world.violate(`the process that has lost its session ended with ${end}`)
    await conclude(life, recorded, reference.end)
    await checkReplay(life)
  })
}

/** How a process may end that another one has overtaken. */
const refusals: ReadonlySet<string> = new Set([
  'ended',
  'SESSION_FENCED',
  'SESSION_BUSY',
  'RESUME_NOT_SUSPENDED',
  'ANSWER_UNKNOWN',
  'ANSWER_USED',
  'STATE_SUSPENDED',
])

async function refusable(work: () => Promise<void>): Promise<string> {
  try {
    await work()
    return 'ended'
  } catch (thrown) {
    return thrown instanceof AgentError ? thrown.code : textOf(thrown)
  }
}

export const runKinds: { readonly [kind: string]: Kind } = {
  crash,
  'two-crashes': crash,
  unheard: crashBy({ isUnheard: true }),
  'slow-store': crashBy({ isSlow: true }),
  takeover,
  live: crashOf({ approver: 'live' }),
  passed: crashOf({ approver: 'passed' }),
  stream: crashOf({ streams: true }),
  'partial-first': partial('first'),
  'partial-last': partial('last'),
}
