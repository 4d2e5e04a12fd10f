import { addedHooks, changes } from './changes.fixture.ts'
import { recordsOf } from './crashing-store.fixture.ts'
import { answerKinds, SESSION, type AnswerKind } from './drive.fixture.ts'
import { runKinds, referenceOf, type Kind, type Place, type Reference, type Scenario } from './kinds.fixture.ts'
import { endingKinds } from './ending-kinds.fixture.ts'
import { sessionKinds } from './session-kinds.fixture.ts'
import { specs, type Part, type Spec } from './specs.fixture.ts'
import { World } from './world.fixture.ts'
import { newStore, type StoreKind } from './stores.fixture.ts'

// All scenarios, and how one is run.

const WHOLE = 'whole'
const kinds: { readonly [kind: string]: Kind } = { ...runKinds, ...sessionKinds, ...endingKinds }
export const kindNames: readonly string[] = [WHOLE, ...Object.keys(kinds)]

/**
 * Of an agent with so many parts (tools, hooks, subagents), every how many-th place is run. What happens to a run meets one or two
 * parts at a time: every kind and change meets every record of the agents with one part. Agents with more parts are all the
 * combinations of a few, so what one of them leaves out, its neighbours meet: the places of each are others, and none leaves out
 * a kind, a change, or more than six records in a row.
 */
const EVERY = [1, 1, 3, 7]

/** The number of parts of an agent that do something. */
export function partsIn({ tools, hooks, child }: Part): number {
  const active = hooks.filter((hook) => hook !== 'trace' && hook !== 'pause-trace')
  return tools.length + active.length + (child === undefined ? 0 : 1 + partsIn(child))
}

function isChosen(spec: Spec, [kind, at, variant]: Where, store: StoreKind): boolean {
  const change = changes.indexOf(variant)
  if (store !== 'memory' && change > 0) return false // a database knows lines, locks and requests to stop, but no agents
  const records = String(at).split(',').map(Number).filter(Number.isFinite)
  const numbers = [specs.indexOf(spec), kindNames.indexOf(kind), change, ...records]
  const every = EVERY[Math.min(partsIn(spec), EVERY.length - 1)]!
  return kind === WHOLE || numbers.reduce((sum, number) => sum + number) % every === 0
}

/** The scenarios of one agent, in a fixed order, with the run that nothing happens to. */
export async function* scenariosOf(
  spec: Spec,
  kindsOfAnswers: readonly AnswerKind[] = answerKinds,
  store: StoreKind = 'memory',
): AsyncGenerator<{ scenario: Scenario; reference: Reference }> {
  let isAsked = JSON.stringify(spec).includes('"again"')
  for (const answers of kindsOfAnswers) {
    if (answers !== 'allow' && !isAsked) continue
    const reference = await referenceOf(spec, answers)
    isAsked ||= reference.asked > 0
    for (const where of placesOf(answers, reference, spec)) {
      const [kind, at, variant] = where
      if (isChosen(spec, where, store)) yield { scenario: { kind, spec, answers, at: String(at), variant }, reference }
    }
  }
}

type Where = readonly [kind: string, at: number | string, variant: string]

function* placesOf(answers: AnswerKind, reference: Reference, spec: Spec): Generator<Where> {
  yield [WHOLE, '-', 'none']
  yield* crashes(answers, reference, spec)
  yield* ways(reference, spec)
  yield* endings(answers, reference, spec)
  yield* ofSessions(answers, reference, spec)
}

/** Changes between two crashes, and those that are undone after the second one. */
const twice = ['none', 'transform', 'guard-asks', 'tool-removed'] as const
const undone = ['guard-blocks', 'guard-blocks-sub', 'stop-step', 'tool-removed', 'sub-removed'] as const

/** The process dies or stalls at each line, and the agent may have changed. */
function* crashes(answers: AnswerKind, { lines }: Reference, spec: Spec): Generator<Where> {
  for (const at of upTo(lines)) {
    for (const change of changesOf(spec))
      if (answers === 'allow' || change === 'none' || at % 2 === 1) yield ['crash', at, change]
    yield ['takeover', at, 'none']
    if (answers !== 'allow') continue
    for (let second = at % 3; second < lines - at + 2; second += 3) {
      for (const change of changesOf(spec, twice)) yield ['two-crashes', `${at},${second}`, change]
      for (const change of changesOf(spec, undone)) yield ['roll-back', `${at},${second}`, change]
    }
  }
  for (const kind of ['unheard', 'slow-store']) for (const at of upTo(lines + 1)) yield [kind, at, 'none']
}

/** The same agent in other ways, without and with a crash. */
function* ways({ lines, asked, askedAtOnce }: Reference, spec: Spec): Generator<Where> {
  const kindsOfWays = [
    'stream',
    'drain',
    'turn',
    ...(asked > 0 ? ['live', 'passed'] : []),
    ...(askedAtOnce > 1 ? ['partial-first', 'partial-last'] : []),
  ]
  for (const kind of kindsOfWays) for (const at of ['-', ...upTo(lines)]) yield [kind, at, 'none']
  if (asked === 0) return
  const deploys = changesOf(spec, ['guard-asks', 'guard-blocks', 'transform', 'schema', 'tool-removed'])
  for (const at of upTo(lines)) for (const change of deploys) yield ['live', at, change]
}

function* endings(answers: AnswerKind, { lines }: Reference, spec: Spec): Generator<Where> {
  if (answers !== 'allow') return // nothing is answered any more
  for (const at of upTo(lines)) {
    for (const variant of ['none', 'crash']) yield ['cancel', at, variant]
    yield ['stop', at, 'none']
    for (const change of changesOf(spec, ['none', 'guard-blocks', 'tool-removed', 'transform', 'stop-step', 'schema']))
      yield ['new-input', at, change]
  }
}

/** Of a crash while a session is rewound or forked, the first lines matter. */
const FIRST_LINES = 6

function* ofSessions(answers: AnswerKind, reference: Reference, spec: Spec): Generator<Where> {
  const { lines, asked, suspensions } = reference
  if (suspensions === 0) yield ['saved', 0, 'none']
  for (const round of upTo(suspensions + 1)) for (const change of changesOf(spec)) yield ['saved', round, change]
  if (asked > 0) {
    const variants = answers === 'block' ? ['in-time', 'late'] : ['in-time', 'downtime']
    for (const variant of variants) for (const at of ['-', ...upTo(lines)]) yield ['expiry', at, variant]
  }
  const waiting = asked > 0 ? ['waiting'] : []
  for (const at of ['-', 0, ...upTo(FIRST_LINES)]) {
    for (const variant of ['ended', ...waiting]) yield ['rewind', at, variant]
    for (const variant of ['end', 'first-step', 'message', ...waiting]) yield ['fork', at, variant]
  }
}

/** 1, 2 and so on, below a number. */
function upTo(end: number): readonly number[] {
  return Array.from({ length: Math.max(0, end - 1) }, (_, i) => i + 1)
}

/** The changes that change something of this agent. */
function changesOf(spec: Spec, among: readonly string[] = changes): readonly string[] {
  const text = JSON.stringify(spec)
  const needed: { readonly [change: string]: string } = {
    'not-idempotent': '"idempotent":true',
    'no-retry': '"retry',
    'guard-blocks-sub': '"child"',
    'sub-removed': '"child"',
    'child-tool-removed': '"child"',
  }
  return among.filter((change) => {
    const added = addedHooks[change]
    if (added !== undefined && spec.hooks.includes(added)) return false
    return needed[change] === undefined || text.includes(needed[change])
  })
}

const RECORD_CHARACTERS = 160

/** What was violated, and whether a part of the scenario was left out, because another one is the same from there on. */
export type Outcome = { readonly violations: readonly string[]; readonly isKnown: boolean }

export async function runScenario(
  scenario: Scenario,
  reference: Reference,
  tell?: (what: string) => void,
): Promise<Outcome> {
  const { kind, spec, answers } = scenario
  if (kind === WHOLE) {
    const { violations } = tell === undefined ? reference : await referenceOf(spec, answers, tell)
    return { violations, isKnown: false }
  }
  const [world, store] = [new World(tell), await newStore()]
  const place: Place = { scenario, reference, world, store, life: { world, spec, answers, change: 'none', store } }
  await kinds[kind]!(place)
  if (tell !== undefined)
    for (const record of await recordsOf(store, SESSION)) tell(JSON.stringify(record).slice(0, RECORD_CHARACTERS))
  return { violations: [...new Set(world.violations)], isKnown: world.isKnown }
}

/** The arguments of `run.fixture.ts`, for a shell. */
export function nameOf({ kind, spec, answers, at, variant }: Scenario): string {
  return [kind, /^[\w:,+-]+$/.test(spec.name) ? spec.name : `'${spec.name}'`, answers, at, variant].join(' ')
}

/** The scenario with this name. Throws if there is none. */
export function scenarioOf(given: readonly string[]): Scenario {
  const [kind = '', name = '', answers = 'allow', at = '-', variant = 'none'] = given
  const spec = specs.find((each) => each.name === name)
  const isAnswer = answerKinds.find((each) => each === answers)
  if (!kindNames.includes(kind)) throw new Error(`There is no kind "${kind}": ${kindNames.join(', ')}.`)
  if (spec === undefined) throw new Error(`There is no agent "${name}".`)
  if (isAnswer === undefined) throw new Error(`The answers are ${answerKinds.join(', ')}.`)
  return { kind, spec, answers: isAnswer, at, variant }
}
