import { checkNoOptions } from '../state/check-options.ts'
import { AgentState } from '../state/agent-state.ts'
import type { Execution } from '../state/execution.ts'
import type { AgentEvent, EventListener } from '../state/event.ts'
import type { TimedLedgerEntry } from '../state/ledger.ts'
import type { Message } from '../state/message.ts'
import { fromSavedRun, type SavedRun } from '../state/saved-run.ts'
import { liveEffects, makeEffects, type Effects } from '../effects/effects.ts'
import { AgentError, clause } from '../errors.ts'
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
import { checkRunOptions, pauseWhen, type RunOptions } from './run-options.ts'
import { describeAgent } from './describe-agent.ts'
import { checkResume, resumeRun, type ResumeOptions } from './loop/resume.ts'
import { RunContext } from './loop/run-context.ts'
import { inputFor, readyState, startRun, stateFor } from './loop/start.ts'
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
  readonly run: (parts: AgentParts, input: Message, how: SessionRunOptions) => Promise<Run>
  readonly resume: (parts: AgentParts, how: SessionRunOptions) => Promise<Run>
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
      if (given === undefined) return startRun(prepare(parts, {}, live), message)
      checkRunOptions('run', given)
      const { session } = given
      if (session !== undefined) return sessionsOf(defaults).run(parts, message, { ...given, ...live, session })
      if (given.turn !== undefined) throw invalidRun('a turn needs a session: agent.run(input, { session, turn })')
      return startRun(prepare(parts, given, live), message)
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
    session: (id, ...more: readonly unknown[]) => {
      checkNoOptions('agent.session', more)
      return sessionsOf(defaults).session(parts, id)
    },
    describe: (...more: readonly unknown[]) => {
      checkNoOptions('agent.describe', more)
      return describeAgent(parts)
    },
  } satisfies Agent)
  rememberAgent(agent, parts, defaults.sessions?.store)
  return agent
}

/** How a run is observed while it runs. */
export type Watching = {
  readonly listener?: EventListener | undefined
  readonly shouldPause?: RunContext['shouldPause']
}

function sessionsOf({ sessions }: AgentSetup): SessionPort {
  if (sessions !== undefined) return sessions
  throw invalidRun('a session needs a store: createAgent({ store: sqliteStore(path), … })')
}

function invalidRun(why: string): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', `The run cannot start: ${clause(why)}.`)
}

/** Creates the context of a run. Throws for options that cannot be used, before anything runs. */
function prepare(parts: AgentParts, given: RunOptions, { listener, shouldPause }: Watching): RunContext {
  const from = given.from && readyState(stateOf(given.from))
  const effects = effectsFor(given, listener)
  const state = stateFor(parts, { from, agentId: () => effects.newId(), metadata: given.metadata })
  return new RunContext(parts, effects, state, {
    shouldPause: given.drain === undefined ? shouldPause : pauseWhen({ ...given, shouldPause }),
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
  const { state, ledger } = savedOf(from)
  const effects = effectsFor(given, listener, runIdOf(state.execution))
  const answers = await checkResume(parts, state, { ...given, now: effects.now() })
  const streams = listener !== undefined && given.deltas !== false
  return resumeRun(
    new RunContext(parts, effects, state, { ledger, streams, shouldPause: pauseWhen({ ...given, shouldPause }) }),
    answers,
  )
}

const live = liveEffects()

function effectsFor(
  { effects = live, signal }: Pick<RunOptions, 'effects' | 'signal'>,
  listener: EventListener | undefined,
  run?: string,
): Effects {
  if (listener === undefined) return makeEffects(effects, { signal, emit: undefined })
  const stamp = new EventStamp(listener)
  const made = makeEffects(effects, { signal, emit: stamp.emit })
  stamp.run = run ?? made.run
  return made
}

/** The id of the run that an execution is part of: its own id without the number. */
function runIdOf(execution: Execution | undefined): string | undefined {
  return execution?.id.replace(/\.\d+$/, '')
}

/** The state and the ledger of a run, live or saved. */
export function savedOf(from: Run<unknown> | SavedRun): ReturnType<typeof fromSavedRun> {
  return isRun(from) ? { state: from.state, ledger: from.ledger } : fromSavedRun(from)
}

function isRun(from: Run<unknown> | SavedRun | null | undefined): from is Run<unknown> {
  return from?.state instanceof AgentState
}

function stateOf(from: Run<unknown> | SavedRun | AgentState): AgentState {
  return from instanceof AgentState ? from : savedOf(from).state
}
