import type { Execution, FinalRecord, Step } from '../../core/state/execution.ts'
import { textOf, type Part, type ToolCallPart } from '../../core/state/message.ts'
import type { StoredRun, StoredRunEvent, StoredStep } from '../../core/state/stored-run.ts'
import type { Answers } from '../../core/state/tool-call.ts'
import { addUsage, noTokens, noUsage } from '../../core/state/usage.ts'
import { warningsOf } from '../../core/explain/warnings.ts'
import { ofPause } from '../../core/effects/log.ts'
import type { Circumstances } from '../../core/effects/records.ts'
import type { RecordedRun, RewoundRecord } from './recorded-run.ts'
import { rewoundAt, type NumberedRecord } from './session-records.ts'
import { StoredCalls, storedToolCall } from './stored-calls.ts'

/** A recorded run as `readRuns` returns it. `rewound` are the rewinds of its session. */
export function toStoredRun(recorded: RecordedRun, rewound: readonly RewoundRecord[] = []): StoredRun {
  const { start, index, input, records, log } = recorded
  const execution = executionOf(recorded)
  const calls = new StoredCalls(records)
  const final = execution?.final ?? finalIn(records)
  const isOpen = final === undefined && !log.isOver
  const isSuspended = isOpen && log.pending !== undefined
  const paused = isSuspended ? records.findLast(({ t }) => t === 'pause') : undefined
  const ledger = records.flatMap((record) => {
    if (record.t === 'pause') return record === paused ? (record.ledger ?? []) : ofPause(record)
    return isCheckpoint(record) || record.t === 'resume' ? (record.ledger ?? []) : []
  })
  return {
    id: input.run,
    index,
    session: start.id,
    ...(start.from !== undefined && { forkedFrom: start.from }),
    agent: input.agent ?? start.agent,
    input: input.message,
    ...(input.metadata !== undefined && { metadata: input.metadata }),
    ...(input.turn !== undefined && { turn: input.turn }),
    ...circumstancesOf(recorded),
    hooks: execution?.hooks ?? (isOpen ? log.hooks : []),
    at: input.at,
    ...(final !== undefined && { endedAt: final.at }),
    waitedMs: (execution?.waitedMs ?? 0) + (isOpen ? log.waitedMs(log.root.at, paused?.at ?? log.at) : 0),
    status: final?.status ?? (isSuspended ? 'suspended' : 'running'),
    lines: { first: input.seq, last: records.at(-1)?.seq ?? input.seq },
    steps: [
      ...closedSteps(recorded, execution?.steps ?? [], { calls, rewound }),
      ...(isOpen ? openStep(execution, calls) : []),
    ],
    calls: calls.all,
    ledger,
    warnings: warningsOf(ledger),
    usage: addUsage(execution?.usage ?? noUsage, isOpen ? log.openUsage('') : {}),
    models: calls.models(),
    pending: isOpen ? log.questions() : [],
    events: eventsOf(recorded),
    ...(final !== undefined && { final }),
  }
}

/** Where it started, and the limits that it had last. */
function circumstancesOf({ input, records }: RecordedRun): Circumstances {
  const all = [input, ...records.filter(({ t }) => t === 'resume')] as readonly Circumstances[]
  const cwd = all.find((each) => each.cwd !== undefined)?.cwd
  const limits = all.findLast((each) => each.limits !== undefined)?.limits
  return { ...(cwd !== undefined && { cwd }), ...(limits !== undefined && { limits }) }
}

/** Whether a record closes a step of the agent itself, or ends the run. */
function isCheckpoint(record: NumberedRecord): record is Extract<NumberedRecord, { t: 'step' | 'final' }> {
  return record.t === 'final' || (record.t === 'step' && record.path === undefined)
}

/** The execution of this run. One whose input was blocked has none; the state may still have that of an earlier run. */
function executionOf({ records, state }: RecordedRun): Execution | undefined {
  const first = records.find(isCheckpoint)
  return first === undefined || (first.t === 'final' && first.final !== undefined) ? undefined : state?.execution
}

/** How a run ended without an execution, or because its session was rewound. */
function finalIn(records: readonly NumberedRecord[]): FinalRecord | undefined {
  const end = records.find((record) => record.t === 'final' || record.t === 'rewound')
  return end?.t === 'rewound' ? rewoundAt(end.at) : end?.final
}

function closedSteps(
  { records, stepStarts }: RecordedRun,
  steps: readonly Step[],
  { calls, rewound }: { readonly calls: StoredCalls; readonly rewound: readonly RewoundRecord[] },
): readonly StoredStep[] {
  return steps.map((step): StoredStep => {
    const { messageCount: _, toolCalls, toolExecutions, ...rest } = step
    const stored = records[stepStarts[step.index + 1]! - 1] ?? records.findLast(({ t }) => t === 'final') // it ended with the run
    const isRewound = rewound.some(({ seq, to }) => stored !== undefined && stored.seq < seq && stored.seq > to)
    const { facts, answer, made } = calls.step(step.index) ?? {}
    return {
      ...rest,
      ...facts,
      toolCalls: toolCalls.map(({ id, name, args }, i) => {
        const sent = callsIn(answer?.content).find(({ toolCallId }) => toolCallId === id)?.input
        return storedToolCall({ id, name, sent }, made, { args, result: toolExecutions[i]! })
      }),
      ...(stored !== undefined && { seq: stored.seq, at: stored.at }),
      ...(isRewound && { isRewound }),
    }
  })
}

/** The step that has not ended, as it is recorded since the last checkpoint. Hooks may still change its answer and its results. */
function openStep(execution: Execution | undefined, calls: StoredCalls): readonly StoredStep[] {
  const index = execution?.steps.length ?? 0
  const step = calls.step(index)
  if (step === undefined) return []
  const { facts, answer: { content = [], finishReason = 'other', usage = noTokens } = {}, made } = step
  const toolCalls = callsIn(content).map(({ toolCallId: id, toolName: name, input: sent }) =>
    storedToolCall({ id, name, sent }, made),
  )
  const type = toolCalls.length > 0 ? 'toolExecution' : 'finalResponse'
  return [{ index, type, text: textOf(content), toolCalls, errors: [], finishReason, usage, ...facts, isOpen: true }]
}

function callsIn(content: readonly Part[] = []): readonly ToolCallPart[] {
  return content.filter((part) => part.type === 'tool-call')
}

function eventsOf({ records, input }: RecordedRun): readonly StoredRunEvent[] {
  const events: StoredRunEvent[] = []
  let [step, last, isPaused] = [0, input.at, false]
  let isPrepared = input.hooks === undefined // a fork or a rewind has stored the input: it has not started
  let answers: Answers = {}
  for (const record of records) {
    const { at, seq } = record
    const place = { at, step, seq }
    const event = eventIn(record)
    if (event !== undefined) events.push({ ...place, ...event })
    if (record.t === 'step' && isCheckpoint(record)) step++
    if (record.t === 'answer') answers = { ...answers, [record.approval]: record.answer }
    if (record.t === 'resume') {
      if (isPaused) events.push({ type: 'resumed', ...place, answers })
      else if (!isPrepared) events.push({ type: 'interrupted', ...place, downMs: Math.max(0, at - last) })
      ;[isPrepared, answers] = [false, {}]
    }
    isPaused = record.t === 'pause' || (isPaused && record.t !== 'resume')
    last = at
  }
  return events
}

type WithoutPlace<E> = E extends StoredRunEvent ? Omit<E, 'at' | 'step' | 'seq'> : never

/** An event that a record has, whatever precedes it. */
function eventIn(record: NumberedRecord): WithoutPlace<StoredRunEvent> | undefined {
  switch (record.t) {
    case 'pause':
      return { type: 'suspended' }
    case 'answer': {
      const { approval, answer, by } = record
      return { type: 'answered', approval, answer, ...(by !== undefined && { by }) }
    }
    case 'suspended':
      return { type: 'sessionSuspended', ...(record.reason !== undefined && { reason: record.reason }) }
    case 'continued':
      return { type: 'sessionResumed' }
    case 'rewound':
      return { type: 'rewound', to: record.to }
    default:
      return undefined
  }
}
