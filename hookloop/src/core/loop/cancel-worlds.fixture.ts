import type { Execution, FinalRecord } from '../state/execution.ts'
import type { Message } from '../state/message.ts'
import type { Answer, Approval, ToolExecution } from '../state/tool-call.ts'

// For the exhaustive exploration in `cancel-worlds.test.ts`: all worlds, and what must be true in each.

/** What the guard and then the approver decide about a call. `later` leaves the approval pending once. */
export type Fate = 'free' | 'blocked' | 'allow' | 'block' | 'edit' | 'later allow' | 'later block' | 'later edit'

/** One step with that many calls, each with its decisions, of a tool that is concurrent or not. */
export type World = { readonly calls: readonly Fate[]; readonly concurrent: boolean }

/** A started tool: its call, its arguments, and what was known then. */
export type Doing = {
  readonly call: number
  readonly text: string
  readonly key: string
  readonly answers: readonly number[]
  readonly doneBefore: readonly number[]
  readonly afterCancel: boolean
  /** Whether its effect happened. */
  had: boolean
}

/** Everything that is visible of a world that has ended. */
export type Story = {
  readonly world: World
  /** The point at which it was cancelled, if it was. */
  readonly at: number | undefined
  readonly doings: readonly Doing[]
  /** The trigger or effect at which it was cancelled. */
  readonly cancelledAt: string | undefined
  readonly modelCallsAfterCancel: number
  /** How often `afterExecution` fired in processes that ended suspended, and in the last one. */
  readonly endings: { readonly suspended: number; readonly last: number }
  readonly status: string
  readonly final: FinalRecord
  /** Undefined if it was cancelled before its input was taken. */
  readonly execution: Execution | undefined
  readonly messages: readonly Message[]
}

const few: readonly Fate[] = ['free', 'allow', 'later allow']
const most: readonly Fate[] = [...few, 'blocked', 'block', 'edit']
const all: readonly Fate[] = [...most, 'later block', 'later edit']

/** All decisions for each of one or two calls; for three calls, those that can interfere. */
export const worlds: readonly World[] = [
  ...[1, 2]
    .flatMap((size) => combinations(all, size))
    .flatMap((calls) => [false, true].map((concurrent) => ({ calls, concurrent }))),
  ...combinations(most, 3).map((calls) => ({ calls, concurrent: false })),
  ...combinations(few, 3).map((calls) => ({ calls, concurrent: true })),
]

function combinations(fates: readonly Fate[], size: number): readonly (readonly Fate[])[] {
  if (size === 0) return [[]]
  return combinations(fates, size - 1).flatMap((rest) => fates.map((fate) => [...rest, fate]))
}

export function isAsked(fate: Fate): boolean {
  return fate !== 'free' && fate !== 'blocked'
}

/** The answers of the approver in the n-th round, by the number of the call. */
export function answersIn(world: World, round: number, pending: readonly Approval[]): ReadonlyMap<number, Answer> {
  const answers = new Map<number, Answer>()
  for (const { toolCall } of pending) {
    const n = toolCall.args['n'] as number
    const fate = world.calls[n]!
    if (round > 1 || !fate.startsWith('later')) answers.set(n, answerOf(fate, n))
  }
  return answers
}

function answerOf(fate: Fate, n: number): Answer {
  if (fate.endsWith('block')) return { block: refusal(n) }
  return fate.endsWith('edit') ? { allow: { n, text: rightText(fate, n) } } : 'allow'
}

const refusal = (n: number): string => `No to ${n}.`

/** The arguments that a call may be executed with, if any. */
export function rightText(fate: Fate, n: number): string {
  return fate.endsWith('edit') ? `edited ${n}` : `original ${n}`
}

/** The problems of a story. */
export function* wrongs(story: Story): Generator<string> {
  yield* wrongDoings(story)
  for (const [n, fate] of story.world.calls.entries()) {
    const execution = story.execution?.steps.at(0)?.toolExecutions[n]
    if (execution !== undefined) yield* wrongResult(story, { n, fate, execution })
    else if (doingsOf(story, n).length > 0) yield `call ${n} ran and has no result`
  }
  yield* wrongEnding(story)
  yield* wrongHistory(story.messages)
}

const mayRun = (fate: Fate): boolean => fate === 'free' || fate.endsWith('allow') || fate.endsWith('edit')
const doingsOf = ({ doings }: Story, n: number): readonly Doing[] => doings.filter((doing) => doing.call === n)

function* wrongDoings(story: Story): Generator<string> {
  const { world, doings } = story
  for (const [n, fate] of world.calls.entries()) {
    const mine = doingsOf(story, n)
    if (mine.length > 1) yield `call ${n} ran ${mine.length} times`
    for (const doing of mine) {
      const { text, answers, doneBefore, afterCancel, key } = doing
      if (!mayRun(fate)) yield `call ${n} (${fate}) ran`
      if (isAsked(fate) && !answers.includes(n)) yield `call ${n} ran before it was answered`
      if (text !== rightText(fate, n)) yield `call ${n} ran with ${text}`
      if (doneBefore.includes(n)) yield `call ${n} ran although it had run before the run was saved`
      if (afterCancel) yield `call ${n} was started after the cancel`
      if (doings.some((other) => other.key === key && other.call !== n)) yield `call ${n} shares its key`
    }
  }
  if (story.modelCallsAfterCancel > 0) yield 'the model was called after the cancel'
}

type Result = { readonly n: number; readonly fate: Fate; readonly execution: ToolExecution }

function* wrongResult(story: Story, { n, fate, execution }: Result): Generator<string> {
  const { status, by, output } = execution
  const cancelled = story.cancelledAt !== undefined
  const had = doingsOf(story, n).some((doing) => doing.had)
  if (mayRun(fate)) {
    if (!cancelled && status !== 'ok') yield `call ${n} (${fate}) is ${status}`
    if (status === 'ok' && !had) yield `call ${n} is ok and had no effect`
    if (status === 'blocked' && had) yield `call ${n} had an effect and looks as if it had not`
    if (status === 'failed') yield `call ${n} failed`
  } else if (status !== 'blocked') {
    yield `call ${n} (${fate}) is ${status}`
  } else if (!cancelled && fate !== 'blocked' && (by !== 'approval' || output !== refusal(n))) {
    yield `the refusal of call ${n} is lost: ${JSON.stringify(execution)}`
  }
}

function* wrongEnding(story: Story): Generator<string> {
  const { status, final, execution, endings, cancelledAt } = story
  if (final.status !== status || (execution !== undefined && execution.final !== final))
    yield `${status} has the final records ${JSON.stringify([final, execution?.final])}`
  if (endings.suspended !== 0) yield 'a suspended run has fired afterExecution'
  if (execution === undefined && cancelledAt !== 'onUserInput') yield 'there is no execution'
  if (endings.last !== (execution === undefined ? 0 : 1)) yield `afterExecution fired ${endings.last} times`
  const late = cancelledAt === 'onStop' || cancelledAt === 'afterExecution'
  if (status !== (cancelledAt === undefined || late ? 'completed' : 'cancelled')) yield `it ended as ${status}`
}

/** Every call has exactly one result, in the message right after the one that requested it. */
function* wrongHistory(messages: readonly Message[]): Generator<string> {
  for (const [i, { role, content }] of messages.entries()) {
    const asked = content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))
    if (asked.length === 0) continue
    const next = messages[i + 1]?.content ?? []
    const answered = next.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []))
    if (asked.join() !== answered.join()) yield `the ${role} asked for ${asked.join()} and got ${answered.join()}`
  }
  const results = messages.filter(({ role }) => role === 'tool').length
  if (results > 1) yield 'there are results twice'
}
