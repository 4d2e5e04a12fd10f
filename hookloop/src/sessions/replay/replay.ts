import type { Agent } from '../../agent/agent.ts'
import { partsOf } from '../../agent/agent-parts.ts'
import type { Capability } from '../../agent/capability.ts'
import type { AgentParts } from '../../agent/agent-parts.ts'
import type { ToolCall } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
import { isHook, type Hook } from '../../hooks/hook.ts'
import { HookStack, type StackedHook } from '../../hooks/stack.ts'
import { isAround, type HookTrigger } from '../../hooks/triggers.ts'
import { compareJudged, type Disagreement } from './compare-judged.ts'
import { readRun } from './read-run.ts'
import { readSession } from '../log/read-session.ts'
import {
  replaySessionRun,
  replayRecording,
  type RunStart,
  type ReplayedRun,
  type RecordEnd,
} from './replay-recording.ts'
import { RecordedAnswers } from './recorded-answers.ts'
import type { Recording } from '../../effects/recording.ts'
import { Rejudger } from './rejudge.ts'
import type { StoredSession } from '../stores/store.ts'
import type { RecordedEvent } from './watched-run.ts'

/** Options of `replay`. */
export type ReplayOptions = RunStart & {
  /** The agent the record was made with. Its model, its tools and its observers are not used. */
  readonly agent: Agent<unknown>
  /** Hooks to judge with as well, or in place of those of the same name. */
  readonly hooks?: readonly (Hook | Capability)[]
  /** Names of hooks to judge without. */
  readonly without?: readonly string[]
  /** Which run of a session, counted from 0; a negative number counts from the end. Default: the last. */
  readonly run?: number
}

/** Where in a run something is. */
export type ReplayPlace = {
  readonly step: number
  readonly trigger: HookTrigger
  readonly call?: { readonly id: string; readonly name: string }
}

/** An event at which the changed set of hooks would have decided otherwise. */
export type ReplayDifference = ReplayPlace & Disagreement

/** What would have been different with other hooks, as `replay` reports it. */
export type ReplayReport = {
  /** How many events were judged again. */
  readonly events: number
  readonly differences: readonly ReplayDifference[]
  /** The first difference after which a live run would have taken another way: from there on the record is of another run. */
  readonly divergesAt?: ReplayPlace & { readonly why: string }
  /** Hooks that could not be judged, and why. */
  readonly unjudged: readonly { readonly hook: string; readonly why: string }[]
  readonly record: RecordEnd
}

/**
 * A recorded run under other hooks: every event is judged again, on the recorded state and what these hooks would have
 * put into it. No model is called, no tool is run, and nothing is observed. The replay goes on with what was recorded,
 * whatever would have been decided.
 */
export async function replay(
  record: Recording | StoredSession | readonly string[],
  options: ReplayOptions,
): Promise<ReplayReport> {
  const parts = partsOf(options.agent)
  const { stack, unjudged } = changedStack(parts, options)
  const { events, entries, end } = await play(parts, record, options)
  const opinion = new Rejudger(parts, stack, new RecordedAnswers(entries))
  const differences: ReplayDifference[] = []
  for (const event of events) {
    const found = await compareJudged(parts, event, await opinion.judge(event))
    if (found !== undefined) differences.push({ ...placeOf(event), ...found })
  }
  const first = differences.find(({ divergence }) => divergence !== undefined)
  return {
    events: events.length,
    differences,
    ...(first !== undefined && { divergesAt: divergencePlace(first) }),
    unjudged,
    record: end,
  }
}

function play(
  parts: AgentParts,
  record: Recording | StoredSession | readonly string[],
  options: ReplayOptions,
): Promise<ReplayedRun> {
  if ('entries' in record && 'append' in record) return replayRecording(parts, record, options)
  const { records } = readSession('lines' in record ? record.lines : record)
  return replaySessionRun(parts, readRun(records, options.run ?? -1))
}

/** The hooks to judge with: those of the agent in their order, some replaced or left out, and others behind them. */
function changedStack(
  parts: AgentParts,
  { hooks = [], without = [] }: ReplayOptions,
): { readonly stack: HookStack; readonly unjudged: ReplayReport['unjudged'] } {
  const given = hooks.flatMap(hooksIn)
  const own = parts.stack.hooks.filter((each) => !each.shadow)
  for (const name of without) {
    if (!own.some((each) => each.name === name)) throw unknownHook(name, own)
  }
  const replacement = new Map(given.filter((each) => each.named).map((each) => [each.name, each]))
  const kept = own.filter((each) => !without.includes(each.name)).map((each) => replacement.get(each.name) ?? each)
  const added = given.filter((each) => !kept.includes(each))
  const gone = own.filter((each) => !kept.includes(each))
  return {
    stack: new HookStack([...kept, ...added].filter(isJudged), parts.toolNames),
    unjudged: [...new Map([...given, ...gone].filter((each) => !isJudged(each)).map(whyUnjudged)).values()],
  }
}

/** A shadow is judged as if it were in force: that is what one wants to know of it. */
function hooksIn(given: Hook | Capability): readonly Hook[] {
  const hooks = isHook(given) ? [given] : (given?.hooks ?? [])
  if (hooks.length === 0 || !hooks.every(isHook)) {
    throw new AgentError('AGENT_INVALID_OPTION', '"hooks" takes hooks, and capabilities that have some.', {
      value: given,
    })
  }
  return hooks.map((each) => (each.shadow ? { ...each, shadow: false } : each))
}

function isJudged({ mode, triggers }: Hook): boolean {
  return mode !== 'observe' && !triggers.some(isAround)
}

function whyUnjudged({ name, mode }: Hook): [string, ReplayReport['unjudged'][number]] {
  const whole = 'it wraps a call, and the record holds a call with everything around it as one'
  return [name, { hook: name, why: mode === 'observe' ? 'it decides nothing' : whole }]
}

function placeOf({ step, trigger, start }: RecordedEvent): ReplayPlace {
  const call = start.facts['toolCall'] as ToolCall | undefined
  return { step, trigger, ...(call !== undefined && { call: { id: call.id, name: call.name } }) }
}

function divergencePlace({
  step,
  trigger,
  call,
  divergence,
}: ReplayDifference): NonNullable<ReplayReport['divergesAt']> {
  return { step, trigger, ...(call !== undefined && { call }), why: divergence! }
}

function unknownHook(name: string, hooks: readonly StackedHook[]): AgentError {
  const known = hooks.map((each) => each.name).join(', ')
  return new AgentError('AGENT_INVALID_OPTION', `The agent has no hook "${name}" to leave out. It has: ${known}.`, {
    value: name,
  })
}
