// One process works on a session until it dies, and another one with a changed agent ends it.
import assert from 'node:assert/strict'
import { historyOf, type History } from '../log/history.fixture.ts'
import { memoryStore } from '../stores/memory-store.ts'
import { changedAgent, effects, work } from './changed-agent.fixture.ts'
import { dyingStore, type Death } from './dying-store.fixture.ts'

type Ended = {
  readonly kept: History
  readonly done: readonly string[]
  /** What of it was done by the changed agent. */
  readonly later: readonly string[]
  /** The tools that a guard of the changed agent asked about. */
  readonly asked: readonly string[]
  readonly atDeath: History
}

/** One process works on the session until it dies; another one with a changed agent ends it. */
async function survive(death: Death, { before = [], after }: Deploy): Promise<Ended> {
  const inner = memoryStore()
  const done: string[] = []
  let isAlive = true
  const dying = dyingStore(inner, death)
  const note = (what: string): void => void (isAlive && done.push(what))
  await Promise.race([work(changedAgent(dying, { note }, before), dying), dying.died])
  isAlive = false
  const atDeath = historyOf((await inner.read('s'))?.lines ?? [], 's')
  const [later, asked]: [string[], string[]] = [[], []]
  const world = { note: (what: string) => later.push(what), noteAsked: (tool: string) => asked.push(tool) }
  await work(changedAgent(inner, world, after), inner)
  return { kept: historyOf((await inner.read('s'))!.lines, 's'), done: [...done, ...later], later, asked, atDeath }
}

/** What was done of an effect when the process died. */
type Begun = { readonly begun: readonly string[]; readonly ended: readonly string[] }

/** The effects that have begun in a session, and those of them that have a recorded end. */
function recordedEffects({ records }: History): Begun {
  const begun = new Map<string, string>()
  const ended: string[] = []
  for (const record of records) {
    if ((record.t !== 'begin' && record.t !== 'end') || record.key.kind !== 'tool') continue
    const id = `${JSON.stringify(record.path)} ${record.key.step} ${record.key.call}`
    if (record.t === 'begin') {
      const { name, args } = record.input as { name: string; args: { at?: string } }
      begun.set(id, args.at === undefined ? name : `${name} ${args.at}`)
    } else {
      ended.push(begun.get(id)!)
    }
  }
  return { begun: [...begun.values()], ended }
}

/** Changes after which the agent makes the same calls, unless they have begun. */
const harmless = new Set([
  'a tool is added',
  'a tool has another description',
  'the model is another one',
  'the settings of the model differ',
  'the instructions differ',
  'a hook that changes the request is added',
  'a hook that changes arguments is removed',
  'a hook with an effect is added',
  'a hook with an effect is removed',
  'a hook around calls is removed',
  'another hook around calls is added',
  'the hooks are in another order',
  'a guard is removed',
  'a capability is added',
  'tools no longer run at once',
  'the agent has another name',
])

function check({ kept, done, later, asked, atDeath }: Ended, { after }: Deploy): void {
  assert.equal(kept.open, undefined, 'the run has ended')
  if (kept.state!.execution === undefined) return assert.deepEqual(done, [], 'the input was blocked')
  const finals = kept.records.filter((record) => record.t === 'final')
  assert.equal(finals.length, 1, 'one final record')
  assert.notEqual(kept.state!.execution.final, undefined)
  const said = JSON.stringify(kept.state!.messages)
  const steps = kept.state!.execution.steps.slice()
  const isUnknown = /may have had an effect|outcome unknown/.test(said)
  const isLeft = said.includes('before it had finished') // a subagent that was stopped does not say what it had done
  if (after.includes('a guard that blocks every call is added')) assert.deepEqual(later, [], 'calls are blocked')
  if (after.includes('a guard that asks about every call is added'))
    for (const each of later)
      assert.ok(asked.includes(each.split(' ')[0]!), `the new guard did not ask about "${each}"`)
  for (const effect of effects) {
    if (effect === 'dig' && isLeft) continue
    const times = done.filter((each) => each === effect).length
    assert.ok(times <= 1, `"${effect}" was done ${times} times`)
    // The model receives the result of everything that was done, or that its outcome is not known.
    if (times === 1) assert.ok(said.includes(`did ${effect}`) || isUnknown, `"${effect}" is lost`)
  }
  const { begun, ended } = recordedEffects(atDeath)
  // What has not begun is run by the new agent.
  if (after.every((each) => harmless.has(each)))
    for (const effect of effects)
      if (!begun.includes(effect)) assert.ok(later.includes(effect), `"${effect}" had not begun, and was not done`)
  for (const effect of ended) {
    if (effect === 'dig' && isLeft) continue
    assert.ok(said.includes(`did ${effect}`), `the recorded result of "${effect}" is lost`)
  }
  const calls = steps.flatMap(({ toolCalls }) => toolCalls.map(({ id }) => id))
  assert.equal(new Set(calls).size, calls.length, 'no call is in the conversation twice')
}

/** How many writes the session of an agent takes. */
export async function countWrites(before: readonly string[] = []): Promise<number> {
  const store = dyingStore(memoryStore(), { at: Infinity, stored: true })
  await work(changedAgent(store, { note: () => undefined }, before), store)
  return store.writes()
}

/** What an agent is changed from, and what to. */
export type Deploy = { readonly before?: readonly string[]; readonly after: readonly string[] }

export async function checkAll(deploy: Deploy, deaths: readonly Death[]): Promise<void> {
  for (const death of deaths) {
    try {
      check(await survive(death, deploy), deploy)
    } catch (error) {
      throw new Error(`${deploy.after.join(' and ')}; killed at ${JSON.stringify(death)}`, { cause: error })
    }
  }
}
