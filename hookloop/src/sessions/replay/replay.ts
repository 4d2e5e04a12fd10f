import { isJsonObject } from '../../state/json.ts'
import { checkArgument, checkOptions, optionNames } from '../../state/check-options.ts'
import { isStringList } from '../../state/option-types.ts'
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
import { readRecordedRuns } from '../log/read-session.ts'
import {
  replaySessionRun,
  replayRecording,
  type RunStart,
  type ReplayedRun,
  type RecordEnd,
} from './replay-recording.ts'
import { RecordedAnswers } from './recorded-answers.ts'
import { isRecording, type Recording } from '../../effects/recording.ts'
import { Rejudger } from './rejudge.ts'
import type { StoredSession } from '../stores/store.ts'
import type { RecordedEvent } from './event-recorder.ts'

/** Options of `replay`. */
export type ReplayOptions = RunStart & {
  /** The agent that made the record. Its model, tools and observers are not used. */
  readonly agent: Agent<unknown>
  /** Hooks to add. A hook with the name of an existing one replaces it. */
  readonly hooks?: readonly (Hook | Capability)[]
  /** Names of hooks to remove. */
  readonly without?: readonly string[]
  /** The index of the run in a session; a negative index counts from the end. Default: the last run. */
  readonly run?: number
}

/** A place in a run. */
export type ReplayPlace = {
  readonly step: number
  readonly trigger: HookTrigger
  readonly call?: { readonly id: string; readonly name: string }
}

/** An event at which the changed hooks would have decided differently. */
export type ReplayDifference = ReplayPlace & Disagreement

/** What would have been different with other hooks, as `replay` reports it. */
export type ReplayReport = {
  /** The number of events that were judged again. */
  readonly events: number
  readonly differences: readonly ReplayDifference[]
  /** The first difference after which a live run would diverge from the recording. Later differences are less reliable. */
  readonly divergesAt?: ReplayPlace & { readonly why: string }
  /** Hooks that cannot be judged, and why. */
  readonly unjudged: readonly { readonly hook: string; readonly why: string }[]
  readonly record: RecordEnd
}

/**
 * Tests changed hooks against a recorded run: every event is judged again, on the recorded state plus what these hooks would
 * have changed in it. No model is called, no tool runs and no observer fires. The replay continues with what was recorded,
 * whatever the changed hooks decide.
 *
 * @example
 * const report = await replay((await store.read('chat-1'))!, { agent, hooks: [noPush] })
 * console.log(formatReplay(report))
 */
export async function replay(
  record: Recording | StoredSession | readonly string[],
  options: ReplayOptions,
): Promise<ReplayReport> {
  checkOptions('replay', options, names)
  checkRecord('replay', record)
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

const names = optionNames<ReplayOptions>({
  agent: true,
  hooks: true,
  without: true,
  run: true,
  input: true,
  from: true,
  metadata: true,
  answers: true,
  acceptMissing: true,
  onChange: true,
})

/** Throws unless a value is a recording, a stored session or its lines. */
export function checkRecord(where: string, record: unknown): void {
  const isRecord =
    isStringList(record) || (isJsonObject(record) && (isRecording(record) || isStringList(record['lines'])))
  checkArgument(where, ['record', record], isRecord, 'a recording, or a session as store.read() returns it')
}

async function play(
  parts: AgentParts,
  record: Recording | StoredSession | readonly string[],
  options: ReplayOptions,
): Promise<ReplayedRun> {
  if (isRecording(record)) return replayRecording(parts, record, options)
  const { runs } = readRecordedRuns('lines' in record ? record.lines : record)
  const { run: index = -1 } = options
  const run = Number.isInteger(index) ? runs.at(index) : undefined
  if (run !== undefined) return replaySessionRun(parts, run)
  throw new AgentError('AGENT_INVALID_OPTION', `There is no run ${index}: the session has ${runs.length} runs.`, {
    value: index,
  })
}

/** The hooks to judge with. */
function changedStack(
  parts: AgentParts,
  options: OtherHooks,
): { readonly stack: HookStack; readonly unjudged: ReplayReport['unjudged'] } {
  const { hooks, given, gone } = changedHooks(parts, options)
  return {
    stack: new HookStack(hooks.filter(isJudged), parts.toolNames),
    unjudged: [...new Map([...given, ...gone].filter((each) => !isJudged(each)).map(whyUnjudged)).values()],
  }
}

type OtherHooks = Pick<ReplayOptions, 'hooks' | 'without'>

/**
 * The hooks of an agent that are in force, in order, with some replaced or removed, and then the added ones; which were given
 * and which are gone. Throws AGENT_INVALID_OPTION for a hook to remove that the agent does not have.
 */
export function changedHooks(
  parts: AgentParts,
  { hooks = [], without = [] }: OtherHooks,
): { readonly [which in 'hooks' | 'given' | 'gone']: readonly Hook[] } {
  const given = hooks.flatMap(hooksIn)
  const own = parts.stack.hooks.filter((each) => !each.shadow)
  for (const name of without) {
    if (!own.some((each) => each.name === name)) throw unknownHook(name, own)
  }
  const replacement = new Map(given.filter((each) => each.named).map((each) => [each.name, each]))
  const remaining = own.filter((each) => !without.includes(each.name)).map((each) => replacement.get(each.name) ?? each)
  const added = given.filter((each) => !remaining.includes(each))
  return { hooks: [...remaining, ...added], given, gone: own.filter((each) => !remaining.includes(each)) }
}

/** A hook in shadow mode is judged as if it were in force. */
function hooksIn(given: Hook | Capability): readonly Hook[] {
  const hooks = isHook(given) ? [given] : (given?.hooks ?? [])
  if (hooks.length === 0 || !hooks.every(isHook)) {
    throw new AgentError('AGENT_INVALID_OPTION', '"hooks" must be an array of hooks, and of capabilities with hooks.', {
      value: given,
    })
  }
  return hooks.map((each) => (each.shadow ? { ...each, shadow: false } : each))
}

function isJudged({ mode, triggers }: Hook): boolean {
  return mode !== 'observe' && !triggers.some(isAround)
}

function whyUnjudged({ name, mode }: Hook): [string, ReplayReport['unjudged'][number]] {
  const around = 'it wraps a call, and a call is recorded together with the hooks around it'
  return [name, { hook: name, why: mode === 'observe' ? 'it decides nothing' : around }]
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
  return new AgentError('AGENT_INVALID_OPTION', `The agent has no hook "${name}" to remove. It has: ${known}.`, {
    value: name,
  })
}
