import { AgentError, type Agent, type Approval, type Run, type SavedRun } from '../index.ts'
import { liveEffects } from '../sessions/replay/index.ts'
import { forkSession, listPoints, rewindSession } from '../sessions/index.ts'
import { newStore } from './stores.fixture.ts'
import { agentOf } from './agents.fixture.ts'
import { askedIn, mortalStore, recordsOf } from './crashing-store.fixture.ts'
import {
  answerFor,
  finish,
  lastRun,
  openQuestions,
  send,
  SESSION,
  storeAnswer,
  untilDeath,
  type Life,
} from './drive.fixture.ts'
import { checkConversation } from './conversation.fixture.ts'
import { checkEnded, endOf } from './invariants.fixture.ts'
import { attempt, checkEnd, conclude, dying, shared, type Kind, type Place } from './kinds.fixture.ts'
import { summaryOf, type Summary } from './summary.fixture.ts'
import { World, type Answer } from './world.fixture.ts'

// What may happen to a session besides a crash: it is rewound or forked, its approvals expire, a run is saved elsewhere.

const MAX_ROUNDS = 40

/** A run without a session is saved as JSON each time it waits, and the agent changes in round `at`. */
const saved: Kind = async ({ scenario, reference, world }) => {
  const { spec, answers: kind, at, variant: change } = scenario
  const effects = liveEffects({ clock: world.clock, id: 'r1' })
  const agentIn = async (round: number): Promise<Agent> => {
    const process = await world.nextProcess(() => false)
    return agentOf(process, spec, round >= Number(at) ? change : 'none')
  }
  await attempt(world, async () => {
    let run: Run = await (await agentIn(0)).run('go', { effects })
    for (let round = 1; run.status === 'suspended'; round++) {
      if (round > MAX_ROUNDS) return world.violate('the run never ends')
      if (run.pending.length === 0) world.violate('suspended without a question')
      const answers: Record<string, Answer> = {}
      for (const question of run.pending) {
        const answer = answerFor(kind, question)
        world.answered(question, answer)
        answers[question.id] = answer
      }
      const from = JSON.parse(JSON.stringify(run)) as SavedRun
      run = await (await agentIn(round)).resume(from, { answers, acceptMissing: true, effects })
    }
    checkConversation(world, [...run.state.messages])
    if (run.final.status !== run.status) world.violate(`a run is ${run.status} and has ended as ${run.final.status}`)
    if (change === 'none') checkEnd({ world, spec }, reference.end, summaryOf(run.state))
  })
}

const EXPIRES_IN_MS = 1_000_000

/**
 * `in-time`: an answer counts also if the run is resumed much later. `late`: what has expired can only be blocked. `downtime`: it
 * takes long until another process continues: what was asked before is blocked, and what is asked then has not expired.
 */
const expiry: Kind = async (place) => {
  const { scenario, reference, life, world } = place
  const expire = (): Promise<void> => world.clock.advance(2 * EXPIRES_IN_MS)
  const mine: Life = {
    ...life,
    expiresInMs: EXPIRES_IN_MS,
    ...(scenario.variant === 'in-time' && { afterAnswers: expire }),
    ...(scenario.variant === 'late' && { beforeAnswers: (open, at) => expire().then(() => checkExpired(at, open)) }),
  }
  await dying(place, { life: mine })
  await attempt(world, async () => {
    const isLate = scenario.variant === 'downtime'
    const late = isLate ? await askedIn(life.store, SESSION) : new Set()
    if (isLate) await expire()
    let hasExpired = false
    const next: Life = { ...mine, hasExpired: ({ id }) => late.has(id) && (hasExpired = true) }
    await finish(next)
    await conclude(next, hasExpired ? undefined : reference.end)
  })
}

async function checkExpired(life: Life, open: readonly Approval[]): Promise<void> {
  for (const question of open) {
    const code = await storeAnswer(life, question, 'allow').then(
      () => 'nothing',
      (thrown: unknown) => {
        if (thrown instanceof AgentError) return thrown.code
        throw thrown // the process has died
      },
    )
    if (code !== 'ANSWER_EXPIRED') life.world.violate(`an answer that came too late is rejected with ${code}`)
  }
}

/** The session goes back to before its last message was answered, from its end or while it waits, and answers it again. */
const rewind: Kind = async (place) => {
  const { scenario, reference, life, world, store } = place
  await shared(place, `rewind ${scenario.variant}`, () =>
    attempt(world, async () => {
      await send(life, 'go')
      await finish(life)
      await send(life, 'again')
      if (scenario.variant === 'ended') await finish(life, 'again')
    }),
  )
  const mortal = mortalStore(store, scenario.at === '-' ? Infinity : Number(scenario.at))
  await untilDeath(mortal, world, async () => {
    await goBack({ ...life, store: mortal })
    await finish({ ...life, store: mortal }, 'again')
  })
  await attempt(world, async () => {
    // Whether it was rewound before the process died is not visible if the run had not ended before.
    if (mortal.isDead() && (await lastRun(life))?.final !== undefined) await goBack(life)
    await finish(life, 'again')
    await checkEnded(life, { runs: false })
    const { trace, messages, metadata, final } = reference.nextEnd ?? {}
    checkEnd(life, reference.nextEnd && { trace, messages, metadata, final }, await endOf(life))
  })
}

/** The approvals of what is left behind are gone. */
async function goBack(life: Life): Promise<void> {
  await rewindSession(life.store, SESSION)
  if ((await openQuestions(life)).length > 0) life.world.violate('a session that was rewound has open questions')
}

/** Another session starts from this one, and goes on to the same end whether its process dies or not. */
const fork: Kind = async (place) => {
  const { scenario, reference } = place
  const { forks } = reference
  const end = await forked(place)
  if (scenario.at === '-') forks.set(scenario.variant, end)
  else {
    const [otherWorld, store] = [new World(), await newStore()]
    const life = { ...place.life, world: otherWorld, store }
    const other = { ...place, scenario: { ...scenario, at: '-' }, world: otherWorld, store, life }
    if (!forks.has(scenario.variant)) forks.set(scenario.variant, await forked(other))
    checkEnd(place.life, forks.get(scenario.variant), end)
  }
}

/** Returns the end of the other session. */
async function forked(place: Place): Promise<Summary | undefined> {
  const { scenario, reference, life, world, store } = place
  const { at, variant } = scenario
  let end: Summary | undefined
  await attempt(world, async () => {
    await shared(place, variant === 'waiting' ? 'fork while it waits' : 'fork', async () => {
      await send(life, 'go')
      if (variant !== 'waiting') await finish(life)
    })
    const before = (await recordsOf(store, SESSION)).length
    const mortal = mortalStore(store, at === '-' ? Infinity : Number(at))
    let branch: Life | undefined
    await untilDeath(mortal, world, async () => {
      branch = await branchOf({ ...life, store: mortal }, 'branch', variant)
      await finish(branch, 'again')
    })
    // A fork that was not acknowledged is made again, with another id.
    const mine = { ...(branch ?? (await branchOf(life, 'branch-again', variant))), store }
    await finish(mine, 'again')
    await checkEnded(mine, { costs: false })
    if ((await recordsOf(store, SESSION)).length !== before) world.violate('a session changes when it is forked')
    await finish(life)
    await checkEnded(life)
    checkEnd(life, reference.end, await endOf(life))
    end = await endOf(mine)
  })
  return end
}

async function branchOf(life: Life, as: string, variant: string): Promise<Life> {
  const [first] = await listPoints(life.store, SESSION)
  await forkSession(life.store, SESSION, {
    as,
    ...(variant === 'first-step' && first !== undefined && { at: first.seq }),
    ...(variant === 'message' && { message: 'Something else.' }),
  })
  return { ...life, session: as }
}

export const sessionKinds: { readonly [kind: string]: Kind } = { saved, expiry, rewind, fork }
