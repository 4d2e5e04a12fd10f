import { AgentError } from '../index.ts'
import { isCancelled, mortalStore } from './crashing-store.fixture.ts'
import { finish, lastRun, openProcess, send, sendAgain, SESSION, storedRuns, untilDeath } from './drive.fixture.ts'
import { checkEnded } from './invariants.fixture.ts'
import { attempt, conclude, dying, goOn, type Kind } from './kinds.fixture.ts'

// How the work on a run ends besides a crash: it is cancelled or stopped, its process drains, there is new input, or the same
// request comes twice.

/** The run is cancelled when so many lines are stored, and its process may die soon after: another one knows of the cancel. */
const cancel: Kind = async ({ scenario, reference, life, world, store }) => {
  const controller = new AbortController()
  const begun = new Set<string>()
  let executed = Infinity
  const cancelling = mortalStore(store, scenario.variant === 'crash' ? Number(scenario.at) + 1 : Infinity, {
    async onStored(written) {
      if (written < Number(scenario.at) || controller.signal.aborted) return
      for (const run of await storedRuns(life))
        for (const { kind, ended, input } of run.calls)
          if (kind === 'tool' && ended === undefined) begun.add((input as { readonly name: string }).name)
      executed = world.executions.length
      world.tell(() => '  it is cancelled')
      controller.abort('enough')
    },
  })
  const mine = { ...life, store: cancelling, signal: controller.signal }
  await untilDeath(cancelling, world, async () => {
    await send(mine, 'go')
    await finish(mine)
  })
  const isKnown = !cancelling.isDead() || (await isCancelled(store, SESSION))
  await attempt(world, async () => {
    if (!isKnown) executed = Infinity
    await finish(life)
    for (const { tool } of world.executions.slice(executed))
      if (!begun.has(tool)) world.violate(`${tool} begins after a cancel`)
    await checkEnded(life)
    await goOn(life, reference)
  })
}

/** The process dies, and then the run is stopped from outside: nothing is executed any more. */
const stop: Kind = async (place) => {
  const { reference, life, world } = place
  await dying(place)
  await attempt(world, async () => {
    const isOpen = (await lastRun(life))?.final === undefined
    const executed = world.executions.length
    const { agent } = await openProcess(life)
    const isStopped = await agent.session(SESSION).stop({ by: 'ann' })
    if (isOpen && !isStopped) world.tell(() => '  there is nothing to stop')
    if (world.executions.length > executed) world.violate('a tool is executed after a stop')
    if (isStopped && (await lastRun(life))?.final === undefined) world.violate('a run that was stopped has not ended')
    await finish(life)
    await checkEnded(life)
    await goOn(life, reference)
  })
}

/** The same request is sent until its run has ended, and once more. */
const turn: Kind = async (place) => {
  const { reference, life, world } = place
  const mine = { ...life, turn: 'turn-1' }
  await dying(place, { life: mine })
  await attempt(world, async () => {
    await finish(mine)
    await conclude(mine, reference.end)
    const before = await lastRun(mine)
    if (before?.final?.reason === 'inputBlocked' || before?.status === 'failed') return // it may be sent again
    const executed = world.executions.length
    const again = await sendAgain(mine, 'go')
    if (again.status !== before?.status) world.violate(`a turn was ${before?.status} and is ${again.status}`)
    if (world.executions.length > executed) world.violate('a turn that is sent again executes a tool')
    await checkEnded(mine)
  })
}

/** The process dies, and a new message ends the run. */
const newInput: Kind = async (place) => {
  const { scenario, life, world } = place
  await dying(place)
  const next = { ...life, change: scenario.variant }
  await attempt(world, async () => {
    const isStored = (await lastRun(next)) !== undefined
    if (isStored) world.inputs++
    const executed = world.executions.length
    try {
      await sendAgain(next, 'again', { onNewInput: 'block' })
      if (isStored && world.executions.slice(executed).some(({ key }) => key.startsWith(`${SESSION}1`)))
        world.violate('a tool of the run before is executed after new input')
    } catch (thrown) {
      if (!(thrown instanceof AgentError) || thrown.code !== 'STATE_SUSPENDED') throw thrown
      world.inputs-- // a message that no run has read yet is answered first
      await finish(next)
      await send(next, 'again')
    }
    await finish(next, 'again')
    await checkEnded(next)
  })
}

export const endingKinds: { readonly [kind: string]: Kind } = { cancel, stop, turn, 'new-input': newInput }
