import { startRun, readyState, stateFor } from '../../agent/loop/start.ts'
import { savedOf, type RunOptions } from '../../agent/agent.ts'
import { RunContext, type RunWitness } from '../../agent/loop/run-context.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import { checkResume, resumeRun, type ResumeOptions } from '../../agent/loop/resume.ts'
import type { Run } from '../../agent/run.ts'
import { AgentState } from '../../state/agent-state.ts'
import { toInput, type Message } from '../../state/message.ts'
import { AgentError } from '../../errors.ts'
import { RunReplayer, type RecordedRun } from '../log/read-run.ts'
import type { Recording, RecordEntry } from '../../effects/recording.ts'
import { replayEffects } from '../../effects/replay-effects.ts'
import { EventRecorder, watchedParts, type RecordedEvent } from './watched-run.ts'

/** How a recorded run was begun: a recording holds what happened, not what was said. */
export type RunStart = Pick<RunOptions, 'metadata' | 'from'> &
  ResumeOptions & {
    /** What was said. A run that was resumed has `from` and `answers` in place of it. */
    readonly input?: string | Message
  }

/** How far a record went. */
export type RecordEnd = {
  readonly status: 'complete' | 'incomplete' | 'diverged'
  /** Why it is not whole. */
  readonly message?: string
}

/** A run that was replayed as it was, without its model, its tools or its observers. */
export type ReplayedRun = {
  readonly events: readonly RecordedEvent[]
  readonly entries: readonly RecordEntry[]
  readonly end: RecordEnd
}

/** Replays a recording, with the agent that it was made with. */
export async function replayRecording(parts: AgentParts, recording: Recording, begun: RunStart): Promise<ReplayedRun> {
  const watched = watchedParts(parts)
  const effects = replayEffects(recording)({ signal: new AbortController().signal, emit: undefined })
  const { events, witness } = new EventRecorder()
  const { input, from, metadata } = begun
  let playing: Promise<Run> | undefined
  if (input !== undefined) {
    const before = from === undefined ? undefined : readyState(from instanceof AgentState ? from : savedOf(from).state)
    const state = stateFor(parts, { from: before, agentId: () => effects.newId(), metadata })
    playing = startRun(new RunContext(watched, effects, state, { witness }), toInput(input))
  } else if (from !== undefined && !(from instanceof AgentState)) {
    const { state, ledger } = savedOf(from)
    const answers = await checkResume(parts, state, { ...begun, now: effects.now() })
    playing = resumeRun(new RunContext(watched, effects, state, { ledger, witness }), answers)
  }
  if (playing === undefined) throw missingStart()
  return played(await playing, { events, entries: recording.entries(), isCutOff: () => true })
}

/** Replays one run of a session, with the agent that it was made with. */
export async function replaySessionRun(parts: AgentParts, kept: RecordedRun): Promise<ReplayedRun> {
  const watched = watchedParts(parts)
  const signal = new AbortController().signal
  const reading = new RunReplayer(kept, signal)
  const events: RecordedEvent[] = []
  const shouldPause = async (): Promise<boolean> => reading.piece.phase === 'suspended'
  const play = async (
    now: number,
    begin: (effects: RunContext['effects'], witness: RunWitness) => RunContext,
    go: (run: RunContext) => Promise<Run>,
  ) => {
    const recorder = new EventRecorder()
    recorder.downMs = () => reading.piece.downMs
    recorder.resumedAt = () => reading.piece.takenOverAt
    const result = await go(begin(reading.effects(now)({ signal, emit: undefined }), recorder.witness))
    events.push(...recorder.events)
    return result
  }
  let result = await play(
    reading.piece.heardAt,
    (effects, witness) => {
      const { before: from, metadata } = kept
      const state = stateFor(parts, { from, agentId: () => effects.newId(), metadata })
      return new RunContext(watched, effects, state, { shouldPause, witness })
    },
    (run) => startRun(run, kept.input),
  )
  for (let piece = reading.piece; result.status === 'suspended' && piece.answers !== undefined; piece = reading.piece) {
    const { answers } = piece.answers
    const { state, ledger } = result
    result = await play(
      resumedAt(piece, state),
      (effects, witness) => new RunContext(watched, effects, state, { ledger, shouldPause, witness }),
      (run) => resumeRun(run, answers),
    )
    if (reading.piece === piece) break // a hook failed when it was resumed, and it stayed as it was
  }
  const entries = kept.pieces.flatMap((piece) => piece.entries)
  return played(result, { events, entries, isCutOff: () => reading.isLast, problem: reading.problem })
}

/**
 * When a run went on with its answers. If the process that took them died, the one that went on for good did so later:
 * how long was waited in all is in what it kept.
 */
function resumedAt({ answers, diff, entries }: RunReplayer['piece'], { execution }: AgentState): number {
  const waitedMs = diff?.execution?.set?.['waitedMs']
  const wasAsked = entries.some((entry) => entry.type === 'begin' && entry.kind === 'approval')
  if (typeof waitedMs !== 'number' || wasAsked || execution?.cursor === undefined) return answers!.at
  return execution.cursor.waitingSince + waitedMs - execution.waitedMs
}

function played(
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
    'A recording does not hold how the run was begun. Give "input" as it was given to agent.run, or "from" and "answers" as they were given to agent.resume.',
  )
}
