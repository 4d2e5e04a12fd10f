import {
  AgentError,
  type Agent,
  type AgentEvent,
  type AgentState,
  type Approval,
  type Run,
  type RunOptions,
  type RunStream,
} from '../index.ts'
import { liveEffects } from '../sessions/replay/index.ts'
import { answerApproval, listApprovals, type SessionStore, type StoredRun } from '../sessions/index.ts'
import { loadSession } from '../sessions/log/read-session.ts'
import { toStoredRun } from '../sessions/log/stored-run.ts'
import { agentOf, descriptionOf, type Making } from './agents.fixture.ts'
import type { MortalStore } from './crashing-store.fixture.ts'
import type { Spec } from './specs.fixture.ts'
import { canonical, type Answer, type Process, type World } from './world.fixture.ts'

// Works on a session as programs do: sends messages, answers questions, resumes runs, each time in another process.

export const SESSION = 's'
const MAX_ROUNDS = 40

export const answerKinds = ['allow', 'block', 'edit'] as const
export type AnswerKind = (typeof answerKinds)[number]

/** How one agent works on a session. */
export type Life = {
  readonly world: World
  readonly spec: Spec
  readonly change: string
  readonly answers: AnswerKind
  /** The store in which it works, which may die, and the one that stays. */
  readonly store: SessionStore | MortalStore
  readonly session?: string
  /** Answers at once, or later: stored with `answerApproval`, or passed to `resume`. Default `stored`. */
  readonly approver?: 'live' | 'stored' | 'passed'
  /** Which of several open questions are answered at a time. Default `all`. */
  readonly answered?: 'all' | 'first' | 'last'
  /** Whether it is read as a stream. */
  readonly streams?: boolean
  readonly expiresInMs?: number
  /** Whether a question can only be blocked. */
  readonly hasExpired?: (question: Approval) => boolean
  /** The id of the request: it is sent again instead of resuming its run. */
  readonly turn?: string
  /** Whether each process leaves the run at the end of its step. */
  readonly drains?: boolean
  /** Cancels the run. */
  readonly signal?: AbortSignal
  /** Called with the questions that are open, before they are answered, and when some are. */
  readonly beforeAnswers?: (open: readonly Approval[], life: Life) => Promise<void>
  readonly afterAnswers?: () => Promise<void>
}

export function answerFor(kind: AnswerKind, { trigger, interruptions, toolCall }: Approval): Answer {
  if (kind === 'block') return { block: 'Blocked.' }
  if (kind === 'allow' || trigger !== undefined || interruptions !== undefined) return 'allow'
  return { allow: { ...toolCall.args, i: 100 } }
}

export const isDead = (store: SessionStore | MortalStore): boolean => 'isDead' in store && store.isDead()
const sessionOf = ({ session = SESSION }: Life): string => session

/** Sends a message. The run may end, or wait for an answer. */
export async function send(life: Life, input: string): Promise<Run> {
  life.world.inputs++
  return sendAgain(life, input)
}

export async function sendAgain(life: Life, input: string, more: Pick<RunOptions, 'onNewInput'> = {}): Promise<Run> {
  const { world, streams = false, turn } = life
  const { agent } = await openProcess(life)
  const effects = liveEffects({ clock: world.clock, id: `${sessionOf(life)}${world.inputs}` })
  const options = {
    ...optionsOf(life),
    ...more,
    session: sessionOf(life),
    effects,
    ...(turn !== undefined && { turn }),
  }
  return watched(
    life,
    streams ? await read(world, agent.stream(input, options)) : await agent.run(input, { ...options, deltas: false }),
  )
}

function optionsOf({ drains, signal }: Life): Pick<RunOptions, 'drain' | 'signal'> {
  return { ...(drains === true && { drain: AbortSignal.abort() }), ...(signal !== undefined && { signal }) }
}

/** Works on the open run until it has ended: answers questions and resumes, each time in another process. */
export async function finish(life: Life, input = 'go'): Promise<void> {
  const { world, store } = life
  let run: Run | StoredRun | undefined = await lastRun(life)
  for (let round = 0; !isDead(store); round++) {
    if (round === MAX_ROUNDS) return world.violate('the run never ends')
    if (run === undefined) run = await sendAgain(life, input)
    else if (run.status === 'suspended' || run.status === 'running') run = await resume(life, input)
    else return
  }
}

async function resume(life: Life, input: string): Promise<Run> {
  const { world, store, approver = 'stored', streams = false, turn } = life
  const answers: Record<string, Answer> = {}
  const open = await openQuestions(life)
  await life.beforeAnswers?.(open, life)
  for (const question of answeredNow(open, life)) {
    const answer = answerFor(life.hasExpired?.(question) === true ? 'block' : life.answers, question)
    world.answered(question, answer)
    if (approver === 'passed') answers[question.id] = answer
    else await storeAnswer(life, question, answer)
    if (isDead(store)) throw new Error('The process has died.')
  }
  if (open.length > 0) await life.afterAnswers?.()
  if (turn !== undefined) return sendAgain(life, input)
  const { agent } = await openProcess(life)
  const effects = liveEffects({ clock: world.clock })
  const options = { ...optionsOf(life), acceptMissing: true, answers, effects } as const
  const session = sessionOf(life)
  return watched(
    life,
    streams
      ? await read(world, agent.resumeStream(session, options))
      : await agent.resume(session, { ...options, deltas: false }),
  )
}

export function storeAnswer(
  { world, store, session = SESSION }: Life,
  { id }: Approval,
  answer: Answer,
): Promise<void> {
  return answerApproval(store, { session, approval: id, answer, by: 'ann', now: world.clock.now() })
}

export async function openQuestions(life: Life): Promise<readonly Approval[]> {
  return (await listApprovals(life.store)).filter(({ session }) => session === sessionOf(life))
}

function answeredNow(open: readonly Approval[], { answered = 'all' }: Life): readonly Approval[] {
  if (answered === 'all') return open
  return answered === 'first' ? open.slice(0, 1) : open.slice(-1)
}

/** Another process with the agent. */
export async function openProcess(life: Life): Promise<{ readonly process: Process; readonly agent: Agent }> {
  const { world, spec, change, store } = life
  const process = await world.nextProcess(() => isDead(store))
  return { process, agent: agentOf(process, spec, change, makingOf(life)) }
}

export function makingOf({ store, answers, approver, expiresInMs }: Life): Making {
  const approve = approver === 'live' ? (question: Approval): Answer => answerFor(answers, question) : undefined
  return { store, approve, expiresInMs }
}

/** A run that waits is waiting for something, and the store lists the same questions. */
async function watched(life: Life, run: Run): Promise<Run> {
  const { world, store } = life
  world.tell(() => `  run: ${run.status} ${run.status === 'failed' ? run.error.message : (run.reason ?? '')}`)
  if (run.status !== 'suspended' || isDead(store)) return run
  for (const question of run.pending) world.asked(question, descriptionOf(life.change))
  if (run.pending.length === 0 && life.drains !== true) world.violate('suspended without a question')
  if (world.pauseMs === 0) return run // others work at the same time, and may have answered
  const listed = (await openQuestions(life)).map(({ id }) => id).toSorted()
  const pending = run.pending.map(({ id }) => id).toSorted()
  if (canonical(listed) !== canonical(pending)) world.violate('listApprovals and run.pending differ')
  return run
}

/** Reads a stream to its end. Its pieces are what the model has answered, and its last event says how it ended. */
async function read(world: World, stream: RunStream<AgentEvent>): Promise<Run> {
  let pieces = ''
  let last: AgentEvent | undefined
  for await (const event of stream) {
    last = event
    if (event.type === 'text') pieces += event.delta
    if (event.type === 'retracted') pieces = ''
    if (event.type !== 'responded') continue
    if (pieces !== '' && pieces !== event.text) world.violate(`the pieces of "${event.text}" are "${pieces}"`)
    pieces = ''
  }
  const run = await stream.run
  const expected = run.status === 'suspended' ? 'suspended' : 'finished'
  if (last?.type !== expected) world.violate(`a run that is ${run.status} has ${last?.type} as its last event`)
  return run
}

/** The run of the last message. Undefined if it was not stored. */
export async function lastRun(life: Life): Promise<StoredRun | undefined> {
  const runs = await storedRuns(life)
  return runs.length < life.world.inputs ? undefined : runs.at(-1)
}

export async function storedRuns(life: Life): Promise<readonly StoredRun[]> {
  return (await historyOf(life)).runs
}

/** What is stored of a session. */
export type History = { readonly runs: readonly StoredRun[]; readonly state: AgentState | undefined }

const MOST_REMEMBERED = 2_000
const CHECKSUM_CHARS = 24
/** What was read of sessions, by the checksum of their last line, which covers all lines before it. */
const memory = new Map<string, History>()

/** What is stored of a session. Its lines are read once for all of it. */
export async function historyOf({ store, session = SESSION }: Life): Promise<History> {
  const { lines = [] } = (await store.read(session)) ?? {}
  const key = `${lines.length} ${lines.at(-1)?.slice(-CHECKSUM_CHARS)}`
  if (memory.size > MOST_REMEMBERED) memory.clear()
  let history = memory.get(key)
  if (history === undefined) {
    const read = await loadSession(store, session, { runs: 'all' })
    const { runs = [], rewound = [] } = read?.recorded ?? {}
    history = { state: read?.state, runs: runs.map((run) => toStoredRun(run, rewound)) }
    memory.set(key, history)
  }
  return history
}

/** Works until the process has died, or the work is done. Returns whether it has died. */
export async function untilDeath(store: MortalStore, world: World, work: () => Promise<unknown>): Promise<boolean> {
  const working = work()
  working.catch(() => undefined) // after its death, no process waits for it
  try {
    await inTime(Promise.race([working, store.failed]))
  } catch (thrown) {
    if (!store.isDead()) world.violate(`threw ${textOf(thrown)}`)
  }
  if (store.isDead()) {
    await store.failed
    world.isDisturbed = true
    world.tell(() => `  the process dies at line ${store.written()}`)
  }
  return store.isDead()
}

const HANG_MS = 20_000

/** Rejects if nothing comes of it: the only use of real time, which no scenario needs. */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('It hangs.')), HANG_MS)
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

export function textOf(thrown: unknown): string {
  return thrown instanceof AgentError ? `${thrown.code}: ${thrown.message}` : String((thrown as Error)?.stack ?? thrown)
}
