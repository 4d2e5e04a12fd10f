import { readyState, startRun, stateFor } from '../../agent/loop/start.ts'
import { savedOf } from '../../agent/agent.ts'
import type { RunOptions } from '../../agent/run-options.ts'
import { RunContext, type RunWitness } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { checkResume, resumeRun, type ResumeOptions } from '../../agent/loop/resume.ts'
import { pendingOf, type Run } from '../../agent/run.ts'
import { AgentState } from '../../state/agent-state.ts'
import { isJsonObject, sameJson, toJson, type Json, type JsonObject } from '../../state/json.ts'
import type { List } from '../../state/list.ts'
import { toInput, type Message } from '../../state/message.ts'
import type { ListDiff, StateDiff } from '../../state/state-diff.ts'
import type { Checkpoint, EffectsFactory } from '../../effects/effects.ts'
import type { Answers } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import type { RecordedRun } from '../log/recorded-run.ts'
import { noSegment, segmentsOf, type Segment } from './segments.ts'
import { RecordIndex, type Recording, type RecordEntry } from '../../effects/recording.ts'
import { Replayer, ReplayEffects, replayEffects } from '../../effects/replay-effects.ts'
import { EventRecorder, watchedParts, type RecordedEvent } from './event-recorder.ts'

/** How a recorded run was started. A recording has what happened in a run, not its input. */
export type RunStart = Pick<RunOptions, 'metadata' | 'from'> &
  ResumeOptions & {
    /** The input of the run. A run that was resumed has `from` and `answers` instead. */
    readonly input?: string | Message
  }

/** How far the record could be replayed. */
export type RecordEnd = {
  readonly status: 'complete' | 'incomplete' | 'diverged'
  /** Why it is not complete. */
  readonly message?: string
}

/** A run that was replayed as recorded, without its model, tools and observers. */
export type ReplayedRun = {
  readonly events: readonly RecordedEvent[]
  readonly entries: readonly RecordEntry[]
  readonly end: RecordEnd
}

/** Replays a recording with the agent that it was made with. */
export async function replayRecording(parts: AgentParts, recording: Recording, start: RunStart): Promise<ReplayedRun> {
  const watched = watchedParts(parts)
  const effects = replayEffects(recording)({ signal: new AbortController().signal, emit: undefined })
  const { events, witness } = new EventRecorder()
  const { input, from, metadata } = start
  let running: Promise<Run> | undefined
  if (input !== undefined) {
    const before = from === undefined ? undefined : readyState(from instanceof AgentState ? from : savedOf(from).state)
    const state = stateFor(parts, { from: before, agentId: () => effects.newId(), metadata })
    running = startRun(new RunContext(watched, effects, state, { witness }), toInput(input))
  } else if (from !== undefined && !(from instanceof AgentState)) {
    const { state, ledger } = savedOf(from)
    const answers = await checkResume(parts, state, { ...start, now: effects.now() })
    running = resumeRun(new RunContext(watched, effects, state, { ledger, witness }), answers)
  }
  if (running === undefined) throw missingStart()
  return replayed(await running, { events, entries: recording.entries(), isCutOff: () => true })
}

/** Replays one run of a session with the agent that it was made with. */
export async function replaySessionRun(parts: AgentParts, recorded: RecordedRun): Promise<ReplayedRun> {
  const watched = watchedParts(parts)
  const signal = new AbortController().signal
  const replayer = new RunReplayer(recorded, signal)
  const events: RecordedEvent[] = []
  const shouldPause = async (): Promise<boolean> => replayer.segment.phase === 'suspended'
  const replay = async (
    now: number,
    create: (effects: RunContext['effects'], witness: RunWitness) => RunContext,
    work: (run: RunContext) => Promise<Run>,
  ) => {
    const recorder = new EventRecorder()
    recorder.downMs = () => replayer.segment.downMs
    recorder.resumedAt = () => replayer.segment.resumedAt
    const result = await work(create(replayer.effects(now)({ signal, emit: undefined }), recorder.witness))
    events.push(...recorder.events)
    return result
  }
  let result = await replay(
    replayer.segment.lastAt,
    (effects, witness) => {
      const { before: from, input } = recorded
      const { metadata } = input
      const state = stateFor(parts, { from, agentId: () => effects.newId(), metadata })
      return new RunContext(watched, effects, state, { shouldPause, witness })
    },
    (run) => startRun(run, recorded.input.message),
  )
  while (result.status === 'suspended' && replayer.segment.answers !== undefined) {
    const { segment } = replayer
    const { answers, ends } = replayer.segment.answers
    const { state, ledger } = result
    result = await replay(
      resumedAt(segment, state),
      (effects, witness) => new RunContext(watched, effects, state, { ledger, shouldPause, witness }),
      (run) => resumeRun(run, answersNow(state, answers), { ends }),
    )
    if (replayer.segment === segment) break // a hook failed at onResume, and the run stayed suspended
  }
  const entries = replayer.segments.flatMap((segment) => segment.entries)
  return replayed(result, { events, entries, isCutOff: () => replayer.isLast, problem: replayer.problem })
}

/**
 * When a run resumed with its answers. If the process that got them died, another one resumed later: then the stored
 * waiting time says when.
 */
function resumedAt({ answers, diff, entries }: Segment, { execution }: AgentState): number {
  const waitedMs = diff?.execution?.set?.['waitedMs']
  const wasAsked = entries.some((entry) => entry.type === 'begin' && entry.kind === 'approval')
  if (typeof waitedMs !== 'number' || wasAsked || execution?.cursor === undefined) return answers!.at
  return execution.cursor.waitingSince + waitedMs - execution.waitedMs
}

function replayed(
  result: Run,
  {
    events,
    entries,
    isCutOff,
    problem,
  }: Pick<ReplayedRun, 'events' | 'entries'> & {
    readonly isCutOff: () => boolean
    readonly problem?: AgentError | undefined
  },
): ReplayedRun {
  const error = result.status === 'failed' && result.error.code.startsWith('REPLAY_') ? result.error : problem
  if (error === undefined) return { events, entries, end: { status: 'complete' } }
  const status = error.code === 'REPLAY_INCOMPLETE' && isCutOff() ? 'incomplete' : 'diverged'
  return { events, entries, end: { status, message: error.message } }
}

function missingStart(): AgentError {
  return new AgentError(
    'AGENT_INVALID_OPTION',
    'A recording does not have the input of the run. Pass "input" as it was passed to agent.run, or "from" and "answers" as they were passed to agent.resume.',
  )
}

/** Replays a run of a session, one segment after the other. */
class RunReplayer {
  readonly segments: readonly Segment[]
  readonly #id: string
  readonly #replayer: Replayer
  #index = 0
  #problem: AgentError | undefined

  constructor(run: RecordedRun, signal: AbortSignal) {
    this.segments = segmentsOf(run)
    this.#id = run.input.run
    this.#replayer = new Replayer(new RecordIndex(this.segments[0]!.entries), signal)
  }

  get segment(): Segment {
    return this.segments[this.#index] ?? noSegment
  }

  /** Whether the record ends in the current segment. */
  get isLast(): boolean {
    return this.segment.phase === undefined
  }

  /** Set when the replay reached another state than was recorded. */
  get problem(): AgentError | undefined {
    return this.#problem
  }

  effects(now: number): EffectsFactory {
    const onCheckpoint = (checkpoint: Checkpoint): number => this.#nextSegment(checkpoint)
    return ({ emit }) => new ReplayEffects(this.#replayer, emit, { run: this.#id, now, onCheckpoint })
  }

  #nextSegment({ phase, state }: Checkpoint): number {
    const { phase: recorded, diff } = this.segment
    const difference =
      recorded !== undefined && recorded !== phase ? `phase "${recorded}"` : diff && firstDifference(state, diff)
    if (difference !== undefined) {
      this.#problem ??= new AgentError(
        'REPLAY_DIVERGED',
        `At the checkpoint "${phase}" the replay has a different ${difference} than was recorded.`,
      )
      throw this.#problem
    }
    this.#index++
    this.#replayer.next(new RecordIndex(this.segment.entries))
    return this.segment.lastAt
  }
}

/** The first part of a state that differs from what was recorded. The hooks in force are not compared. */
function firstDifference(state: AgentState, diff: StateDiff): string | undefined {
  const { execution: now, messages: conversation, metadata: current, ...plain } = AgentState.fieldsOf(state)
  const { version: _version, removed: _removed, metadata, execution, messages, ...own } = diff
  const { hooks: _hooks, steps: _steps, ...set } = execution?.set ?? {}
  return (
    differentKey('', plain, own) ??
    differentKey('metadata.', current, metadata ?? {}) ??
    differentKey('execution.', now ?? {}, set) ??
    (isDifferent(messages, conversation) ? 'conversation' : undefined) ??
    (now !== undefined && isDifferent(execution?.steps, now.steps) ? 'list of steps' : undefined)
  )
}

function differentKey(path: string, now: object, recorded: JsonObject): string | undefined {
  const values = now as { readonly [key: string]: unknown }
  const found = Object.entries(recorded).find(([key, value]) => !isSame(toJson(values[key] ?? null), value))
  return found === undefined ? undefined : `${path}${found[0]}`
}

function isSame(now: Json, recorded: Json): boolean {
  return sameJson(now, recorded) || (isJsonObject(now) && sameJson(comparable(now), comparable(recorded)))
}

/** Without the hooks that a run and its subagents ran under, and without what version 0.1 did not store of approvals. */
function comparable(value: Json): Json {
  if (Array.isArray(value)) return value.map(comparable)
  if (!isJsonObject(value)) return value
  const isRun = 'waitedMs' in value || 'waitingSince' in value
  const isApproval = 'asks' in value && 'hash' in value
  const isLeftOut = (key: string): boolean =>
    (isRun && key === 'hooks') || (isApproval && ['id', 'hash', 'tool'].includes(key))
  const entries = Object.entries(value).filter(([key]) => !isLeftOut(key))
  return Object.fromEntries(entries.map(([key, part]) => [key, comparable(part)]))
}

/** The answers by the ids that approvals have now: those of version 0.1 did not cover the tool. */
function answersNow(state: AgentState, answers: Answers): Answers {
  const placeOf = (id: string): string => id.slice(0, id.lastIndexOf('#'))
  const given = new Map(Object.entries(answers).map(([id, answer]) => [placeOf(id), answer]))
  const known = pendingOf(state).flatMap(({ id }) => {
    const answer = answers[id] ?? given.get(placeOf(id))
    return answer === undefined ? [] : [[id, answer] as const]
  })
  return { ...answers, ...Object.fromEntries(known) }
}

function isDifferent<T extends Json>(diff: ListDiff<T> | undefined, now: List<T>): boolean {
  if (diff === undefined) return false
  const { keep, add, from, more = [] } = diff
  const [known, end] = [keep + add.length + more.length, now.length - more.length]
  if (from === undefined ? now.length !== known : now.length < known) return true
  return (
    add.some((item, i) => !sameJson(item, now.at(keep + i)!)) ||
    more.some((item, i) => !sameJson(item, now.at(end + i)!))
  )
}
