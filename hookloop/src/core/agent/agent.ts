import { AgentState } from '../state/agent-state.ts'
import type { AgentEvent, EventListener } from '../state/event.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { Message } from '../state/message.ts'
import { fromSavedRun, type SavedRun } from '../state/saved-run.ts'
import { Effects, liveEffects, newRunId, toBoth } from '../effects/effects.ts'
import { Journal } from '../effects/journal.ts'
import { RunLog } from '../effects/log.ts'
import { RunTime } from '../effects/run-time.ts'
import { loadRun } from '../effects/save-run.ts'
import { AgentError, clause } from '../../errors.ts'
import type { AgentDescription } from './agent-description.ts'
import {
  createParts,
  rememberAgent,
  type AgentDefaults,
  type AgentParts,
  type PlainAgentOptions,
} from './agent-parts.ts'
import type { Use } from './capability.ts'
import { EventStamp } from './event-stamp.ts'
import { checkRunOptions, type RunOptions } from './run-options.ts'
import { describeAgent } from './describe-agent.ts'
import { inputFor, pauseWhen, resumeRun, startRun, stateFor } from '../loop/drive.ts'
import { checkResume, type ResumeOptions } from '../loop/resume.ts'
import { RunContext, type RunContextOptions } from '../context/run-context.ts'
import { iterateRun, streamRun, type RunStream } from './run-stream.ts'
import type { Run } from './run.ts'
import type { Session } from './session.ts'

/** An immutable agent. It has no state of its own, so it can serve any number of runs at once. */
export type Agent<O = string> = {
  /** A new agent with more capabilities, hooks or tools. This one does not change. */
  readonly with: (...use: readonly Use[]) => Agent<O>
  /** Resolves with every status, including `failed`. Rejects only when the run cannot start. */
  readonly run: (input: string | Message, options?: RunOptions) => Promise<Run<O>>
  /** The run as events. Leaving the loop does not stop the run. */
  readonly stream: (input: string | Message, options?: RunOptions) => RunStream<AgentEvent, O>
  /** The run as one state per step. Leaving the loop pauses the run; `resume` continues it. */
  readonly iterate: (input: string | Message, options?: RunOptions) => RunStream<AgentState, O>
  /**
   * Resumes a suspended run, here or in another process; or a session, by its id, that was suspended or whose process
   * died. Rejects, before anything runs, if it cannot be resumed.
   */
  readonly resume: (
    from: Run<unknown> | SavedRun | string,
    options?: ResumeOptions & Omit<RunOptions, 'from' | 'metadata' | 'session'>,
  ) => Promise<Run<O>>
  /** The same as events. */
  readonly resumeStream: (
    from: Run<unknown> | SavedRun | string,
    options?: ResumeOptions & Omit<RunOptions, 'from' | 'metadata' | 'session'>,
  ) => RunStream<AgentEvent, O>
  /** The same as one state per step. */
  readonly resumeIterate: (
    from: Run<unknown> | SavedRun | string,
    options?: ResumeOptions & Omit<RunOptions, 'from' | 'metadata' | 'session'>,
  ) => RunStream<AgentState, O>
  /** A conversation in the agent's store, new or existing. The id is generated if omitted. */
  readonly session: (id?: string) => Session<O>
  /** The model, tools, hooks and capabilities of the agent, as data. */
  readonly describe: () => AgentDescription
}

/** The options of one run in a session. */
export type SessionRunOptions = ResumeOptions &
  RunOptions &
  Watching & {
    readonly session: string
    /** The id that the run gets. Default: one of its effects. */
    readonly run?: string
    /** What hooks at `onSessionStart` did: it is part of the ledger of the run. */
    readonly startedWith?: readonly TimedLedgerEntry[]
  }

/** Runs agents in sessions. */
export type SessionPort = {
  readonly store: unknown
  readonly run: (parts: AgentParts, input: Message, options: SessionRunOptions) => Promise<Run>
  readonly resume: (parts: AgentParts, options: SessionRunOptions) => Promise<Run>
  readonly session: (parts: AgentParts, id: string | undefined) => Session
}

/** The defaults of an agent, and its sessions if it has a store. */
type AgentSetup = AgentDefaults & { readonly sessions?: SessionPort }

/** Creates an agent. */
export function buildAgent(options: PlainAgentOptions, defaults: AgentSetup): Agent {
  const parts = createParts(options, defaults)
  const start = (input: string | Message, given?: RunOptions, live: Watching = {}): Promise<Run> => {
    try {
      const message = inputFor(parts, input) // first: a prepared run listens to the signal until it has ended
      if (given === undefined) return startRun(prepare(parts, message, {}, live), message)
      checkRunOptions('run', given)
      const { session } = given
      if (session !== undefined) return sessionsOf(defaults).run(parts, message, { ...given, ...live, session })
      if (given.turn !== undefined) throw invalidRun('a turn needs a session: agent.run(input, { session, turn })')
      return startRun(prepare(parts, message, given, live), message)
    } catch (invalid) {
      return Promise.reject(invalid)
    }
  }
  const resume = async (
    from: Run<unknown> | SavedRun | string,
    given: ResumeOptions & RunOptions = {},
    live: Watching = {},
  ): Promise<Run> => {
    checkRunOptions('resume', given)
    if (typeof from === 'string' && from.startsWith('{') && from.includes('"state"')) {
      throw invalidRun('a saved run is passed as an object: agent.resume(JSON.parse(text))')
    }
    return typeof from === 'string'
      ? sessionsOf(defaults).resume(parts, { ...given, ...live, session: from })
      : resumeSaved(parts, from, given, live)
  }
  const agent = Object.freeze({
    with: (...use) => buildAgent({ ...options, use: [...(options.use ?? []), ...use] }, defaults),
    run: (input, given) => start(input, given),
    stream: (input, given) => streamRun((listener) => start(input, given, { listener })),
    iterate: (input, given) => iterateRun((shouldPause) => start(input, given, { shouldPause })),
    resume: (from, given) => resume(from, given),
    resumeStream: (from, given) => streamRun((listener) => resume(from, given, { listener })),
    resumeIterate: (from, given) => iterateRun((shouldPause) => resume(from, given, { shouldPause })),
    session: (id) => sessionsOf(defaults).session(parts, id),
    describe: () => describeAgent(parts),
  } satisfies Agent)
  rememberAgent(agent, parts, defaults.sessions?.store)
  return agent
}

/** How a run is observed while it runs. */
export type Watching = {
  readonly listener?: EventListener | undefined
  readonly shouldPause?: RunContextOptions['shouldPause']
}

function sessionsOf({ sessions }: AgentSetup): SessionPort {
  if (sessions !== undefined) return sessions
  throw invalidRun('a session needs a store: createAgent({ store: sqliteStore(path), … })')
}

function invalidRun(why: string): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `The run cannot start: ${clause(why)}.`)
}

/** Creates the context of a run. Throws for options that cannot be used, before anything runs. */
function prepare(
  parts: AgentParts,
  message: Message,
  given: RunOptions,
  { listener, shouldPause }: Watching,
): RunContext {
  const from = given.from && stateOf(given.from)
  const { clock, id = newRunId() } = given.effects ?? live
  const journal = new Journal(new RunLog(), { clock, isNew: true })
  const at = clock.now()
  journal.append({ t: 'input', at, run: id, message, hooks: parts.plans.records })
  const effects = effectsFor(journal, given, { listener, run: id })
  const state = stateFor(parts, { from, agentId: effects.agentId, metadata: given.metadata })
  journal.log.root.state = state
  return new RunContext(parts, effects, state, {
    shouldPause: pauseWhen({ ...given, shouldPause }),
    streams: listener !== undefined && given.deltas !== false,
    turn: given.turn,
  })
}

async function resumeSaved(
  parts: AgentParts,
  from: Run<unknown> | SavedRun,
  given: ResumeOptions & RunOptions,
  { listener, shouldPause }: Watching,
): Promise<Run> {
  const { log, state } = loadRun(isRun(from) ? from.toJSON() : from)
  const { clock } = given.effects ?? live
  const at = clock.now()
  const answers = await checkResume(parts, log, { ...given, now: at })
  const { run, message } = log.input!
  const effects = effectsFor(new Journal(log, { clock }), given, { listener, run })
  const context = new RunContext(parts, effects, state, {
    ledger: log.ledger,
    streams: listener !== undefined && given.deltas !== false,
    shouldPause: pauseWhen({ ...given, shouldPause }),
  })
  return resumeRun(context, message, { answers, at })
}

const live = liveEffects()

function effectsFor(
  journal: Journal,
  { signal, effects }: Pick<RunOptions, 'signal' | 'effects'>,
  { listener, run }: { readonly listener: EventListener | undefined; readonly run: string },
): Effects {
  const stamp = listener && new EventStamp(listener)
  if (stamp !== undefined) stamp.run = run
  const { root: scope } = journal.log
  const time = new RunTime(journal.clock, signal)
  const emit = toBoth(effects?.emit, stamp?.emit)
  return new Effects({ journal, scope, time, emit, run, now: scope.at })
}

function isRun(from: Run<unknown> | SavedRun | null | undefined): from is Run<unknown> {
  return from?.state instanceof AgentState
}

/** The state of a run that has ended. Throws STATE_SUSPENDED for a run that waits for answers or is paused. */
function stateOf(from: Run<unknown> | SavedRun | AgentState): AgentState {
  const state = from instanceof AgentState ? from : isRun(from) ? from.state : fromSavedRun(from).state
  const isSuspended = !(from instanceof AgentState) && from.status === 'suspended'
  if (!isSuspended && state.execution?.status !== 'suspended') return state
  const isWaiting = !(from instanceof AgentState) && (from as SavedRun).pending.length > 0
  const way = isWaiting
    ? 'The state is suspended: it waits for answers, not for input. Use agent.resume(run, { answers }).'
    : 'The run is paused and takes no new input. Use agent.resume(run) first.'
  throw new AgentError('STATE_SUSPENDED', way)
}
