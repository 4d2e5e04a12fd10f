import { AgentError } from '../index.ts'
import type { SessionStore, StoredSession } from '../sessions/index.ts'
import { ALL_PIECES, newStore, storeCopy } from './stores.fixture.ts'
import { mortalStore, type MortalOptions } from './crashing-store.fixture.ts'
import {
  finish,
  inTime,
  lastRun,
  send,
  SESSION,
  textOf,
  untilDeath,
  type AnswerKind,
  type Life,
} from './drive.fixture.ts'
import { checkEnded, checkReplay, checkSame, checkSeen, endOf, leftBehind, stateOf } from './invariants.fixture.ts'
import { FAIL, type Spec } from './specs.fixture.ts'
import { differencesOf, summaryOf, type Summary } from './summary.fixture.ts'
import { World, type Facts } from './world.fixture.ts'

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
  /** What has happened before several scenarios go on in different ways. */
  readonly pasts: Map<string, Past>
  /** What a process has found that was started after a crash, and the conversations after which another message was sent. */
  readonly found: Set<string>
  readonly continued: Set<string>
  /** The ends of forks whose process does not die, by their variant. */
  readonly forks: Map<string, Summary | undefined>
}

type Past = {
  readonly facts: Facts
  readonly stored: StoredSession | undefined
  /** What a process finds that is started now. */
  readonly found: string
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
    await checkEnded(life)
    await checkSame(life)
    await checkReplay(life)
    await goOn(life, { continued: new Set() })
    nextEnd = await endOf(life)
  })
  const shared = { pasts: new Map(), found: new Set<string>(), continued: new Set<string>(), forks: new Map() }
  const violations = [...new Set(world.violations)]
  return { end, nextEnd, lines, asked, askedAtOnce, suspensions, violations, ...shared }
}

/** What is thrown where nothing died is a violation. */
export async function attempt(world: World, work: () => Promise<unknown>): Promise<void> {
  try {
    await inTime(work())
  } catch (thrown) {
    world.violate(`threw ${textOf(thrown).replaceAll(/"[^"]*#[^"]*"/g, '"…"')}`) // without the id of a question
  }
}

/** How the process dies, and the end that its run must have (default: as if it had not died). */
type Crash = {
  readonly options?: MortalOptions
  /** Whether the agent is the first one again after two crashes. */
  readonly isUndone?: boolean
  readonly end?: (reference: Reference, life: Life) => Summary | undefined
}

/** The process works in this way and dies, once, twice or not at all. Then it leads to the same end, unless the agent changes. */
export const crashOf =
  (way: Partial<Life> = {}, { options, isUndone = false, end = (reference) => reference.end }: Crash = {}): Kind =>
  async (place) => {
    const { scenario, reference, world } = place
    const { at, variant: change } = scenario
    const [first, second] = at.split(',').map(Number)
    const life = { ...place.life, ...way }
    let next = { ...life, change }
    if (await dying(place, { at: first, life, options, next: second === undefined ? next : undefined })) return
    if (second !== undefined) {
      await die(next, finish, { at: second })
      if (isUndone) next = { ...life, change: 'undone' }
      if (isKnown(place, next, await foundBy(next))) return
    }
    await attempt(world, async () => {
      await finish(next)
      await conclude(next, change === 'none' ? end(reference, life) : undefined)
      if (change === 'none') await checkReplay(next)
      if (world.violations.length === 0) await goOn(next, reference)
    })
  }

/** One of several questions is answered at a time. Other calls may end first, so the trace may have another order. */
const partial = (answered: 'first' | 'last'): Kind =>
  crashOf(
    { answered },
    {
      end({ end }, { spec }) {
        const { trace: _order, ...comparable } = end ?? {}
        return end === undefined || spec.hooks.includes('budget') ? undefined : comparable // it decides by what has ended before
      },
    },
  )

/**
 * What several scenarios have in common: it happens once, and the others go on from there. Returns true, and does nothing, if the
 * life `next` has gone on from there before.
 */
export async function shared(place: Place, what: string, happen: () => Promise<void>, next?: Life): Promise<boolean> {
  const { world, store } = place.life
  const { pasts } = place.reference
  const past = pasts.get(what)
  if (past === undefined) {
    await happen()
    const found = await foundBy(place.life)
    pasts.set(what, { facts: world.facts(), stored: await store.read(SESSION, { pieces: ALL_PIECES }), found })
    return next !== undefined && isKnown(place, next, found)
  }
  if (next !== undefined && isKnown(place, next, past.found)) return true
  await world.follow(past.facts)
  if (past.stored !== undefined) await storeCopy(store, SESSION, past.stored)
  return false
}

/** What a process finds that is started now, but for times: the records of the session, and what has happened in the world. */
async function foundBy({ world, store }: Life): Promise<string> {
  const { lines = [] } = (await store.read(SESSION)) ?? {}
  const records = lines.map((line) => line.replaceAll(/"(?:at|sum|durationMs|waitedMs)":[^,}]+/g, ''))
  const { executions, answers, recorded, observed, violations } = world
  const tools = executions.map(({ process: _process, ...execution }) => execution)
  return JSON.stringify([records, tools, answers, recorded, [...observed], violations])
}

/** Whether the same agent has found the same before: then all happens again that has happened then. */
function isKnown({ reference, world }: Place, life: Life, what: string): boolean {
  const { found } = reference
  world.isKnown = found.size === found.add(`${JSON.stringify(wayOf(life))} ${what}`).size
  return world.isKnown
}

/** Where the process dies (default: where the scenario says), how, how its agent works, and how the next one does. */
type Dying = {
  readonly at?: number | undefined
  readonly life?: Life
  readonly options?: MortalOptions | undefined
  readonly next?: Life | undefined
}

/**
 * A message is sent, and the process dies, or it does not if the scenario does not say where. Returns true if the next process
 * has found the same before.
 */
export async function dying(place: Place, { at, life = place.life, options = {}, next }: Dying = {}): Promise<boolean> {
  const { kind, at: where, variant } = place.scenario
  if (where === '-') {
    await attempt(life.world, () => send(life, 'go'))
    return false
  }
  const line = at ?? Number(where)
  const name = JSON.stringify([line, wayOf(life), options, kind === 'expiry' ? variant : ''])
  const happen = async (): Promise<void> => {
    const work = async (mine: Life): Promise<void> => {
      await send(mine, 'go')
      await finish(mine)
    }
    await die(life, work, { at: line, ...options })
  }
  return shared(place, name, happen, next)
}

/** How the agent works, as text. */
function wayOf({ world: _world, spec: _spec, store: _store, ...way }: Life): unknown {
  return way
}

/** Works in a process until it dies. */
async function die(
  life: Life,
  work: (mine: Life) => Promise<void>,
  { at, ...options }: MortalOptions & { readonly at: number },
): Promise<void> {
  const mortal = mortalStore(life.store, at, options)
  await untilDeath(mortal, life.world, () => work({ ...life, store: mortal }))
  await leftBehind(life)
}

/** The run has ended: the invariants, and the end that it must have, if any. */
export async function conclude(life: Life, end: Summary | undefined): Promise<void> {
  await checkEnded(life)
  if (life.change === 'none' || life.change === 'tool-added') await checkSame(life)
  else if (life.change !== 'hooks-removed') await checkSeen(life)
  checkEnd(life, end, await endOf(life))
}

/** Of what is expected, as far as it is. A model that fails at its first attempt does so in each process. */
export function checkEnd(
  { world, spec }: Pick<Life, 'world' | 'spec'>,
  expected: Summary | undefined,
  got: Summary | undefined,
): void {
  if (expected === undefined || got === undefined || spec.script.includes(FAIL)) return
  const compared = Object.fromEntries(Object.keys(expected).map((name) => [name, got[name]]))
  const found = differencesOf(expected, compared)
  for (const difference of found) world.tell(() => `  ${difference}`)
  if (found.length > 0) world.violate('another end than without a fault')
}

/** Another message, whatever has happened before. After the same conversation, nothing is left of what has happened. */
export async function goOn(life: Life, { continued }: Pick<Reference, 'continued'>): Promise<void> {
  const { messages, metadata } = summaryOf(await stateOf(life))
  const end = JSON.stringify([messages, metadata])
  if (continued.has(end)) return
  continued.add(end)
  await send(life, 'again')
  await finish(life, 'again')
  await checkEnded(life)
}

/**
 * The process stalls, two others take over at once, and then the first wakes up. If it has stored nothing, both send its message
 * as one request: a slow store may serve one of them when the other has ended, and without the id they would be two messages.
 */
const takeover: Kind = async ({ scenario, reference, life, world, store }) => {
  const stalling = mortalStore(store, Number(scenario.at), { stalls: true })
  const first = refusable(async () => {
    const mine = { ...life, store: stalling }
    await send(mine, 'go')
    await finish(mine)
  })
  await Promise.race([stalling.failed, first])
  await stalling.unlock()
  world.isDisturbed = true
  await leftBehind(life)
  world.pauseMs = 0 // the others work at the same time
  await attempt(world, async () => {
    const other = (await lastRun(life)) === undefined ? { ...life, turn: 'turn-1' } : life
    const ends = await Promise.all([refusable(() => finish(other)), refusable(() => finish(other))])
    for (const end of ends) if (!refusals.has(end)) world.violate(`a process that takes over ended with ${end}`)
    await finish(life)
    const before = world.executions.length
    stalling.wake()
    const end = await first
    if (world.executions.length > before) world.violate('a process that has lost its session executes a tool')
    if (!refusals.has(end)) world.violate(`the process that has lost its session ended with ${end}`)
    await conclude(life, reference.end)
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
  crash: crashOf(),
  'two-crashes': crashOf(),
  'roll-back': crashOf({}, { isUndone: true }),
  unheard: crashOf({}, { options: { isUnheard: true } }),
  'slow-store': crashOf({}, { options: { isSlow: true } }),
  takeover,
  live: crashOf({ approver: 'live' }),
  passed: crashOf({ approver: 'passed' }),
  stream: crashOf({ streams: true }),
  drain: crashOf({ drains: true }),
  'partial-first': partial('first'),
  'partial-last': partial('last'),
}
