import type { Agent } from '../../core/agent/agent.ts'
import { partsOf, type AgentParts } from '../../core/agent/agent-parts.ts'
import type { Capability } from '../../core/agent/capability.ts'
import { startRun, stateFor } from '../../core/loop/drive.ts'
import { RunContext } from '../../core/context/run-context.ts'
import type { Run } from '../../core/agent/run.ts'
import { AgentError } from '../../errors.ts'
import { Effects } from '../../core/effects/effects.ts'
import { Journal } from '../../core/effects/journal.ts'
import { RunLog } from '../../core/effects/log.ts'
import { RunTime } from '../../core/effects/run-time.ts'
import { RecordTape, type TapeMode } from '../../core/effects/tape.ts'
import { isHook, type Hook } from '../../core/hooks/hook.ts'
import { HookPlans } from '../../core/hooks/hook-plans.ts'
import { isAround } from '../../core/hooks/triggers.ts'
import { readSession } from '../log/read-session.ts'
import type { RecordedRun } from '../log/recorded-run.ts'
import { isOfRun } from '../log/session-records.ts'
import type { StoredSession } from '../stores/store.ts'
import { compareStep, type ReplayDifferences } from './compare-ledgers.ts'

/**
 * Options of `replay`.
 *
 * @interface
 */
export type ReplayOptions = OtherHooks & {
  /** The agent that made the record. Its model, tools and observers are not used. */
  readonly agent: Agent<unknown>
  /** The index of the run in the session; a negative index counts from the end. Default: the last run. */
  readonly run?: number
}

type OtherHooks = {
  /** Hooks to add. A hook with the name of an existing one replaces it. */
  readonly hooks?: readonly (Hook | Capability)[]
  /** Names of hooks to remove. */
  readonly without?: readonly string[]
}

/** What `replay` found. */
export type ReplayReport = ReplayDifferences & {
  /** The number of places at which hooks decided something, in the record or now. */
  readonly events: number
  readonly unjudged: readonly Unjudged[]
  /** Whether the record is what this agent does: it may have no end, or be of another agent. */
  readonly record: { readonly status: 'complete' | 'incomplete' | 'diverged'; readonly message?: string }
  /** The run as it was replayed. */
  readonly run: Run
}

/** A hook that cannot be judged. */
type Unjudged = { readonly hook: string; readonly why: string }

/**
 * Replays a run of a session: no model is called, no tool runs, no approver is asked and no observer fires. Every call, decision
 * and state must be as recorded. With other hooks, it reports what they would have decided: the replay continues with what was
 * recorded, whatever they decide.
 *
 * @example
 * const stored = (await store.read('chat-1'))!
 * assert.equal((await replay(stored, { agent })).record.status, 'complete')
 * console.log(formatReplay(await replay(stored, { agent, hooks: [noPush] })))
 */
export async function replay(record: StoredSession | readonly string[], options: ReplayOptions): Promise<ReplayReport> {
  const parts = partsOf(options.agent)
  const { hooks, given, gone } = changedHooks(parts, options)
  const recorded = runIn(record, options.run)
  const own = await play(parts, { recorded, hooks: inForce(parts), mode: 'strict' })
  const changed = [...given, ...gone]
  const kept = inForce(parts).filter((each) => !isJudged(each)) // around hooks and observers: no replay runs them
  const judged = [...hooks.filter(isJudged), ...kept]
  const { run, steps } = changed.some(isJudged) ? await play(parts, { recorded, hooks: judged, mode: 'whatIf' }) : own
  const known = own.record.status === 'diverged' ? steps.slice(0, own.steps.length) : steps
  const compared = known.map((step) => compareStep(step, toolIn(run)))
  const divergesAt = compared.find((step) => step.divergesAt !== undefined)?.divergesAt
  const unrecorded = known.flatMap(({ divergences }) =>
    divergences.flatMap(({ hook, why }) => (hook ? { hook, why } : [])),
  )
  const unjudged = [...changed.filter((each) => !isJudged(each)).map(whyUnjudged), ...unrecorded]
  return {
    events: compared.reduce((sum, { places }) => sum + places, 0),
    differences: compared.flatMap(({ differences }) => differences),
    ...(divergesAt !== undefined && { divergesAt }),
    unjudged: [...new Map(unjudged.map((each) => [each.hook, each])).values()],
    record: own.record,
    run,
  }
}

function runIn(record: StoredSession | readonly string[], index = -1): RecordedRun {
  const { runs } = readSession('lines' in record ? record.lines : record).recorded
  const run = Number.isInteger(index) ? runs.at(index) : undefined
  if (run !== undefined) return run
  throw invalid(`There is no run ${index}: the session has ${runs.length} runs.`, index)
}

type Playing = { readonly recorded: RecordedRun; readonly hooks: readonly Hook[]; readonly mode: TapeMode }

/** Runs an agent with some hooks over the records of a run. */
async function play(agent: AgentParts, { recorded, hooks, mode }: Playing) {
  const { start, input, before, records } = recorded
  const parts = { ...agent, plans: new HookPlans(hooks, agent.toolNames) }
  const log = new RunLog({ keepsChildren: false })
  log.root.state = before
  log.apply(input)
  const end = records.findIndex(({ t }) => t === 'rewound')
  const known = end === -1 ? records : records.slice(0, end)
  const tape = new RecordTape(
    log,
    known.flatMap((each) => (isOfRun(each) ? [each] : [])),
    mode,
  )
  const journal = new Journal(log, { clock: undefined, tape })
  const { root: scope } = log
  const time = new RunTime(undefined, undefined)
  const effects = new Effects({ journal, scope, time, emit: undefined, run: input.run, now: scope.at })
  const state = stateFor(parts, { from: before, agentId: effects.agentId, metadata: input.metadata })
  const context = new RunContext(parts, effects, state, { session: start.id, turn: input.turn })
  const run = await startRun(context, input.message)
  return { run, steps: tape.steps, record: endOf(run) }
}

function endOf(run: Run): ReplayReport['record'] {
  const { code, message } = run.status === 'failed' ? run.error : {}
  if (code === 'REPLAY_INCOMPLETE') return { status: 'incomplete', message: message! }
  return code === 'REPLAY_DIVERGED' ? { status: 'diverged', message: message! } : { status: 'complete' }
}

/** The hooks of an agent, with others. */
export function hooksWith(agent: object, others: OtherHooks): readonly Hook[] {
  return changedHooks(partsOf(agent), others).hooks
}

/**
 * The hooks of an agent that are in force, in order, with some replaced or removed, and then the added ones; which were given
 * and which are gone. Throws AGENT_INVALID_OPTION for a hook to remove that the agent does not have.
 */
function changedHooks(
  parts: AgentParts,
  { hooks = [], without = [] }: OtherHooks,
): { readonly [which in 'hooks' | 'given' | 'gone']: readonly Hook[] } {
  const given = hooks.flatMap(hooksIn)
  const own = inForce(parts)
  const known = own.map(({ name }) => name)
  const unknown = without.find((name) => !known.includes(name))
  if (unknown !== undefined)
    throw invalid(`The agent has no hook "${unknown}" to remove. It has: ${known.join(', ')}.`, unknown)
  const replacement = new Map(given.filter((each) => each.named).map((each) => [each.name, each]))
  const remaining = own.filter((each) => !without.includes(each.name)).map((each) => replacement.get(each.name) ?? each)
  const added = given.filter((each) => !remaining.includes(each))
  return { hooks: [...remaining, ...added], given, gone: own.filter((each) => !remaining.includes(each)) }
}

function inForce({ plans }: AgentParts): readonly Hook[] {
  return plans.hooks.filter(({ shadow }) => !shadow)
}

/** A hook in shadow mode is judged as if it were in force. */
function hooksIn(given: Hook | Capability): readonly Hook[] {
  const hooks = isHook(given) ? [given] : (given.hooks ?? [])
  return hooks.map((each) => (each.shadow ? { ...each, shadow: false } : each))
}

function isJudged({ mode, triggers }: Hook): boolean {
  return mode !== 'observe' && !triggers.some(isAround)
}

function whyUnjudged({ name: hook, mode }: Hook): Unjudged {
  const around = 'it wraps a call, and a call is recorded together with the hooks around it'
  return { hook, why: mode === 'observe' ? 'it decides nothing' : around }
}

function toolIn({ state }: Run): (step: number, call: string) => string {
  const steps = state.execution?.steps
  return (step, call) => steps?.at(step)?.toolCalls.find(({ id }) => id === call)?.name ?? call
}

function invalid(message: string, value: unknown): AgentError {
  return new AgentError('AGENT_INVALID_OPTION', message, { value })
}
