import type { Run } from '../../core/agent/run.ts'
import { AgentState } from '../../core/state/agent-state.ts'
import type { ErrorRecord, ExecutionStatus, FinalRecord, HookRecord, Step } from '../../core/state/execution.ts'
import { sameJson, toJson, type Json, type JsonObject } from '../../values/json.ts'
import type { Change } from '../../core/state/ledger.ts'
import type { Message, Part } from '../../core/state/message.ts'
import { fromSavedRun, type SavedRun } from '../../core/state/saved-run.ts'
import type { StoredRun, StoredStep } from '../../core/state/stored-run.ts'
import { jsonChanges } from '../../core/state/state-diff.ts'
import type { Approval, ToolExecution } from '../../core/state/tool-call.ts'
import { noUsage, type Usage } from '../../core/state/usage.ts'
import { readSession } from '../log/read-session.ts'
import { toStoredRun } from '../log/stored-run.ts'
import type { StoredSession } from '../stores/store.ts'

/**
 * A run, a saved run, a stored run from `readRuns`, or a session, of which the conversation and the last run are compared. A
 * stored run has no conversation but its input and its steps.
 */
export type DiffedRun = Run<unknown> | SavedRun | StoredRun | StoredSession | readonly string[]

type Two<T> = { readonly a: T; readonly b: T }

/** How a run ended; `idle` or `suspended` if it has not. */
export type RunEnd = {
  readonly status: ExecutionStatus | 'idle'
  readonly reason?: string
  readonly by?: string
  readonly message?: string
  /** The calls that a suspended run waits for. */
  readonly pending?: readonly { readonly name: string; readonly args: Json }[]
}

/** A step as it is compared: without ids and times, which differ from run to run. */
export type ComparedStep = {
  readonly text: string
  readonly toolCalls: readonly { readonly name: string; readonly args: Json }[]
  readonly results: readonly Pick<ToolExecution, 'status' | 'output' | 'by' | 'withheld'>[]
  readonly votes: readonly { readonly decision: string; readonly source: string; readonly message: string }[]
  readonly errors: readonly ErrorRecord[]
}

/** A part of a step that `diffRuns` compares. */
export type StepAspect = keyof ComparedStep

/** A step that differs between two runs, or that only one of them has. */
export type StepDiff = {
  /** Counted from 0. */
  readonly step: number
  /** What differs; empty if only one run has the step. */
  readonly differs: readonly StepAspect[]
  readonly a?: ComparedStep
  readonly b?: ComparedStep
}

/** The differences between two runs. */
export type RunDiff = {
  readonly same: boolean
  /** The first step that differs, and in what. `end`: one run has ended before it. */
  readonly partsAt?: { readonly step: number; readonly in: StepAspect | 'end' }
  readonly steps: readonly StepDiff[]
  /** The lengths of both conversations, and how many first messages they share. */
  readonly messages: Two<number> & { readonly shared: number }
  readonly end?: Two<RunEnd>
  readonly usage?: Two<Usage>
  /** Changes of the system prompt, the response format and the metadata. */
  readonly changes: readonly Change[]
  /** Hooks that only one of the runs had. */
  readonly hooks?: Two<readonly string[]>
}

/**
 * Compares two runs, of the same agent or of different ones.
 *
 * @example
 * console.log(formatDiff(diffRuns(before, after)))
 */
export function diffRuns(a: DiffedRun, b: DiffedRun): RunDiff {
  const [first, second] = [comparedRun(a), comparedRun(b)]
  const steps = stepDiffs(first.steps, second.steps)
  const messages = sharedMessages(first.messages, second.messages)
  const end = unlessSame(first.end, second.end)
  const usage = unlessSame(first.usage, second.usage)
  const changes = [...jsonChanges('', first.settings, second.settings)]
  const hooks = hooksOf(first.hooks, second.hooks)
  const isSame = messages.shared === Math.max(messages.a, messages.b) && steps.length === 0 && changes.length === 0
  const [parting] = steps
  return {
    same: isSame && [end, usage, hooks].every((each) => each === undefined),
    ...(parting !== undefined && { partsAt: { step: parting.step, in: parting.differs[0] ?? 'end' } }),
    steps,
    messages,
    ...(end && { end }),
    ...(usage && { usage }),
    changes,
    ...(hooks && { hooks }),
  }
}

type ComparedRun = {
  readonly steps: readonly ComparedStep[]
  readonly messages: Iterable<Message>
  readonly end: RunEnd
  readonly usage: Usage
  /** System prompt, response format and metadata, where they are known. */
  readonly settings: JsonObject
  readonly hooks: readonly HookRecord[]
}

function comparedRun(run: DiffedRun): ComparedRun {
  if ('steps' in run) return { ...ofState(undefined), ...ofStoredRun(run), messages: [run.input], usage: run.usage }
  if (!('state' in run)) {
    const { recorded, state } = readSession('lines' in run ? run.lines : run)
    const last = recorded.runs.at(-1)
    return { ...ofState(state), ...(last && ofStoredRun(toStoredRun(last))) }
  }
  const state = run.state instanceof AgentState ? run.state : fromSavedRun(run).state
  const { execution } = state
  const final = 'final' in run ? run.final : execution?.final
  // A blocked input has no execution; the state may still have an earlier one.
  const isOwn = 'final' in run ? execution?.final === run.final : execution?.status === run.status
  const known = 'final' in run || isOwn ? final : undefined
  return {
    ...ofState(state),
    ...(isOwn && {
      steps: execution?.steps.map((step) => comparedStep(step, step.toolExecutions)) ?? [],
      hooks: execution?.hooks ?? [],
    }),
    end: endOf(run.status as ExecutionStatus, known, 'pending' in run ? run.pending : []),
  }
}

/** What of a run is in the state that it led to, whichever run that was. */
function ofState(state: AgentState | undefined): ComparedRun {
  return {
    steps: [],
    messages: state?.messages ?? [],
    end: { status: 'idle' },
    usage: state?.usage ?? noUsage,
    settings: {
      systemPrompt: state?.systemPrompt ?? '',
      responseFormat: state?.responseFormat ?? null,
      metadata: { ...state?.metadata },
    },
    hooks: [],
  }
}

function ofStoredRun({
  steps,
  hooks,
  status,
  final,
  pending,
}: StoredRun): Pick<ComparedRun, 'steps' | 'end' | 'hooks'> {
  const closed = steps.filter(({ isOpen }) => isOpen !== true)
  const results = (step: StoredStep) => step.toolCalls.flatMap(({ result }) => result ?? [])
  return {
    steps: closed.map((step) => comparedStep(step, results(step))),
    end: endOf(status, final, pending),
    hooks,
  }
}

function endOf(status: RunEnd['status'], final: FinalRecord | undefined, asked: readonly Approval[]): RunEnd {
  const pending = asked.map(({ toolCall: { name, args } }) => ({ name, args }))
  if (final === undefined) return { status, ...(pending.length > 0 && { pending }) }
  return { status, reason: final.reason, by: final.by, message: final.message }
}

function unlessSame<T extends object>(a: T, b: T): Two<T> | undefined {
  return sameJson(toJson(a), toJson(b)) ? undefined : { a, b }
}

const aspects: readonly StepAspect[] = ['text', 'toolCalls', 'results', 'votes', 'errors']

function stepDiffs(first: readonly ComparedStep[], second: readonly ComparedStep[]): readonly StepDiff[] {
  const length = Math.max(first.length, second.length)
  return Array.from({ length }, (_, step) => stepDiff(step, first[step], second[step])).filter(
    ({ a: one, b: other, differs }) => one === undefined || other === undefined || differs.length > 0,
  )
}

function stepDiff(step: number, a: ComparedStep | undefined, b: ComparedStep | undefined): StepDiff {
  if (a === undefined || b === undefined) return { step, differs: [], ...(a && { a }), ...(b && { b }) }
  return { step, differs: aspects.filter((each) => !sameJson(toJson(a[each]), toJson(b[each]))), a, b }
}

function comparedStep(
  { text, toolCalls, outcome, errors }: Pick<Step | StoredStep, 'text' | 'toolCalls' | 'outcome' | 'errors'>,
  results: readonly ToolExecution[],
): ComparedStep {
  return {
    text,
    toolCalls: toolCalls.map(({ name, args }) => ({ name, args })),
    results: results.map(({ status, output, by, withheld }) => ({
      status,
      output,
      ...(by !== undefined && { by }),
      ...(withheld !== undefined && { withheld }),
    })),
    votes: (outcome?.evaluations ?? []).map(({ decision, source, message }) => ({ decision, source, message })),
    errors,
  }
}

function sharedMessages(a: Iterable<Message>, b: Iterable<Message>): RunDiff['messages'] {
  const [first, second] = [textsOf(a), textsOf(b)]
  const end = first.findIndex((text, i) => text !== second[i])
  return { shared: end === -1 ? first.length : end, a: first.length, b: second.length }
}

/** Messages as comparable strings. Ids of calls come from the provider, so they are replaced by their order. */
function textsOf(messages: Iterable<Message>): readonly string[] {
  const ids = new Map<string, number>()
  const numbered = (part: Part): Json => {
    if (!('toolCallId' in part)) return part
    const number = ids.get(part.toolCallId) ?? ids.size
    ids.set(part.toolCallId, number)
    return { ...part, toolCallId: `${number}` }
  }
  return Array.from(messages, ({ role, content }) => JSON.stringify({ role, content: content.map(numbered) }))
}

function hooksOf(a: readonly HookRecord[], b: readonly HookRecord[]): RunDiff['hooks'] {
  const only = (these: readonly HookRecord[], others: readonly HookRecord[]): readonly string[] =>
    these.filter(({ name }) => !others.some((each) => each.name === name)).map(({ name }) => name)
  const found = { a: only(a, b), b: only(b, a) }
  return found.a.length + found.b.length === 0 ? undefined : found
}
