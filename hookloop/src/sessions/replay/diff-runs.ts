import { isJsonObject } from '../../state/json.ts'
import { checkArgument, checkNoOptions } from '../../state/check-options.ts'
import { isStringList } from '../../state/option-types.ts'
import type { Run } from '../../agent/run.ts'
import { AgentState } from '../../state/agent-state.ts'
import type { ErrorRecord, Execution, ExecutionStatus, FinalRecord, HookRecord, Step } from '../../state/execution.ts'
import { sameJson, toJson, type Json, type JsonObject } from '../../state/json.ts'
import type { Change } from '../../state/ledger.ts'
import type { Message, Part } from '../../state/message.ts'
import { fromSavedRun, type SavedRun } from '../../state/saved-run.ts'
import type { StoredRun, StoredStep } from '../../state/stored-run.ts'
import { jsonChanges } from '../../state/state-diff.ts'
import type { Approval, ToolExecution } from '../../state/tool-call.ts'
import { noUsage, type Usage } from '../../state/usage.ts'
import { readRecordedRuns } from '../log/read-session.ts'
import { toStoredRun } from '../log/stored-run.ts'
import type { StoredSession } from '../stores/store.ts'

/**
 * A run, a saved run, a stored run from `readRuns`, or a session, of which the conversation and the last run are compared. The
 * conversation of a stored run is its input and its steps.
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
export function diffRuns(a: DiffedRun, b: DiffedRun, ...more: []): RunDiff {
  checkNoOptions('diffRuns', more)
  checkRun('a', a)
  checkRun('b', b)
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

function checkRun(name: string, run: unknown): void {
  const isRun =
    isStringList(run) || (isJsonObject(run) && ('state' in run || 'steps' in run || isStringList(run['lines'])))
  checkArgument('diffRuns', [name, run], isRun, 'a run, or a session as store.read() returns it')
}

function comparedRun(run: DiffedRun): ComparedRun {
  if ('steps' in run) return ofStoredRun(run)
  if (!('state' in run)) {
    const { runs, state } = readRecordedRuns('lines' in run ? run.lines : run)
    const last = runs.at(-1)
    const stored = last && ofStoredRun(toStoredRun(last))
    return {
      ...ofState(state, undefined),
      ...(stored && { steps: stored.steps, end: stored.end, hooks: stored.hooks }),
    }
  }
  const state = run.state instanceof AgentState ? run.state : fromSavedRun(run).state
  const { execution } = state
  const final = 'final' in run ? run.final : execution?.final
  // A blocked input has no execution; the state may still have an earlier one.
  const isOwn = 'final' in run ? execution?.final === run.final : execution?.status === run.status
  return {
    ...ofState(state, isOwn ? execution : undefined),
    end: endOf(
      run.status as ExecutionStatus,
      isOwn || 'final' in run ? final : undefined,
      'pending' in run ? run.pending : [],
    ),
  }
}

function ofState(state: AgentState | undefined, execution: Execution | undefined): ComparedRun {
  return {
    steps: execution?.steps.map((step) => comparedStep(step, step.toolExecutions)) ?? [],
    messages: state?.messages ?? [],
    end: endOf(),
    usage: state?.usage ?? noUsage,
    settings: {
      systemPrompt: state?.systemPrompt ?? '',
      responseFormat: state?.responseFormat ?? null,
      metadata: { ...state?.metadata },
    },
    hooks: execution?.hooks ?? [],
  }
}

function ofStoredRun({ steps, input, usage, hooks, status, final, pending }: StoredRun): ComparedRun {
  const closed = steps.filter(({ isOpen }) => isOpen !== true)
  const results = (step: StoredStep) => step.toolCalls.flatMap(({ result }) => result ?? [])
  return {
    steps: closed.map((step) => comparedStep(step, results(step))),
    messages: [input, ...closed.flatMap(messagesOf)],
    end: endOf(status, final, pending),
    usage,
    settings: {},
    hooks,
  }
}

/** The messages that a step has added, if no hook added others. */
function messagesOf({ text, toolCalls }: StoredStep): readonly Message[] {
  const said: readonly Part[] = text === '' ? [] : [{ type: 'text', text }]
  const calls = toolCalls.map(({ id, name, args, sentArgs = args }): Part => {
    return { type: 'tool-call', toolCallId: id, toolName: name, input: sentArgs }
  })
  const results = toolCalls.map(({ id, name, result }): Part => {
    return { type: 'tool-result', toolCallId: id, toolName: name, output: result?.output ?? null }
  })
  const asked: Message = { role: 'assistant', content: [...said, ...calls] }
  return results.length === 0 ? [asked] : [asked, { role: 'tool', content: results }]
}

function endOf(status: RunEnd['status'] = 'idle', final?: FinalRecord, asked: readonly Approval[] = []): RunEnd {
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
  const [first, second] = [a, b].map((hooks) => hooks.map(({ name }) => name))
  const only = {
    a: first!.filter((name) => !second!.includes(name)),
    b: second!.filter((name) => !first!.includes(name)),
  }
  return only.a.length === 0 && only.b.length === 0 ? undefined : only
}
