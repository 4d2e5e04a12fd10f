import type { Execution, FinalRecord, Step } from '../../state/execution.ts'
import { sameJson, type Json } from '../../state/json.ts'
import type { TimedLedgerEntry } from '../../state/ledger.ts'
import { textOf } from '../../state/message.ts'
import { pendingIn } from '../../state/open-calls.ts'
import type { StoredRun, StoredRunEvent, StoredStep, StoredToolCall } from '../../state/stored-run.ts'
import type { OpenCall, ToolCall, ToolExecution } from '../../state/tool-call.ts'
import { noTokens, noUsage } from '../../state/usage.ts'
import { warningsOf } from '../../agent/explain/warnings.ts'
import { toLedger, type NumberedRecord } from './session-records.ts'
import type { RecordedRun, RewoundRecord } from './recorded-run.ts'
import { modelsOf, StoredCalls, type MadeStep, type MadeToolCall } from './stored-calls.ts'

/**
 * A recorded run as `readRuns` returns it. `rewound` are the rewinds of its session. With `from`, it has only the steps from that
 * one on, with their calls, ledger, models, warnings and events, and costs as much as they do; all else is of the whole run.
 */
export function toStoredRun(recorded: RecordedRun, rewound: readonly RewoundRecord[] = [], from = 0): StoredRun {
  const { start, index, input, records, open, stepStarts } = recorded
  const execution = executionOf(recorded)
  const first = stepStarts[from]!
  const ledger = toLedger(recorded.ledger.slice(first.ledger))
  const calls = new StoredCalls({ input, records: records.slice(first.records) })
  const final = execution === undefined ? blockedInput(recorded, ledger) : execution.final
  const isWaiting = execution?.status === 'suspended' && open?.answers === undefined
  const answered = { ...open?.given, ...open?.answers }
  return {
    id: input.run,
    index,
    session: start.id,
    ...(start.from !== undefined && { forkedFrom: start.from }),
    agent: input.agent ?? start.agent,
    input: input.message,
    ...(input.metadata !== undefined && { metadata: input.metadata }),
    ...(input.turn !== undefined && { turn: input.turn }),
    ...recorded.circumstances,
    hooks: execution?.hooks ?? [],
    at: input.at,
    ...(final !== undefined && { endedAt: final.at }),
    waitedMs: execution?.waitedMs ?? 0,
    status: final?.status ?? (isWaiting ? 'suspended' : 'running'),
    lines: { first: input.seq, last: records.at(-1)?.seq ?? input.seq },
    steps: stepsOf(recorded, execution, { calls, rewound, from }),
    calls: calls.all,
    ledger,
    warnings: warningsOf(ledger),
    usage: execution?.usage ?? noUsage,
    models: modelsOf(calls.all),
    pending:
      execution?.final !== undefined ? [] : pendingIn(execution).filter(({ id }) => !Object.hasOwn(answered, id)),
    events: eventsOf(recorded, from),
    ...(final !== undefined && { final }),
  }
}

/** The execution of this run. A run whose input was blocked has none; the state may still have an earlier one. */
function executionOf({ records, state }: RecordedRun): Execution | undefined {
  const hasStarted = records.some(
    (record) => record.type === 'state' && record.phase !== 'inputBlocked' && record.phase !== 'changed',
  )
  return hasStarted ? state?.execution : undefined
}

/** How a run ended that has no execution. In records of version 0.1, only the ledger says which hook blocked its input. */
function blockedInput({ records }: RecordedRun, ledger: readonly TimedLedgerEntry[]): FinalRecord | undefined {
  const blocked = records.find((record) => record.type === 'state' && record.phase === 'inputBlocked')
  if (blocked?.type !== 'state') return undefined
  if (blocked.final !== undefined) return blocked.final
  const by = ledger.findLast(({ decision, error }) => decision?.includes('block') === true || error !== undefined)
  return {
    status: by?.error === undefined ? 'stopped' : 'failed',
    reason: by?.error === undefined ? 'inputBlocked' : 'errorForbade',
    by: by?.hook ?? 'hookloop',
    message: by?.error ?? by?.message ?? 'The input was blocked.',
    votes: [],
    at: blocked.at,
  }
}

type Surroundings = {
  readonly calls: StoredCalls
  readonly rewound: readonly RewoundRecord[]
  readonly from: number
}

function stepsOf(
  { records, open, stepStarts }: RecordedRun,
  execution: Execution | undefined,
  { calls, rewound, from }: Surroundings,
): readonly StoredStep[] {
  if (execution === undefined) return []
  const places = placesOf(records.slice(stepStarts[from]!.records))
  const closed = execution.steps.slice(from).map((step): StoredStep => {
    const place = places.get(step.index)
    const isRewound = rewound.some(({ seq, to }) => place !== undefined && place.seq < seq && place.seq > to)
    const made = calls.steps.get(step.index) ?? nothingMade
    return {
      ...storedStep(step, made),
      toolCalls: step.toolCalls.map((call, i) => storedCall(call, step.toolExecutions[i], made.toolCalls[i])),
      ...(step.outcome !== undefined && { outcome: step.outcome }),
      ...place,
      ...(isRewound && { isRewound }),
    }
  })
  const unfinished = execution.final === undefined && open !== undefined ? openStep(execution, calls) : undefined
  return unfinished === undefined ? closed : [...closed, unfinished]
}

/** Where each step was stored, and when. */
function placesOf(
  records: RecordedRun['records'],
): ReadonlyMap<number, Pick<StoredStep, 'seq' | 'at'> & { seq: number }> {
  const places = new Map<number, { readonly seq: number; readonly at: number }>()
  for (const record of records) {
    if (record.type !== 'state') continue
    const { seq, at, diff } = record
    for (const { index } of diff.execution?.steps?.add ?? []) places.set(index, { seq, at })
  }
  return places
}

const nothingMade: MadeStep = { toolCalls: [] }

type PlainStep = Pick<Step, 'index' | 'type' | 'text' | 'errors' | 'finishReason' | 'usage'>

function storedStep(step: PlainStep, { model, began }: MadeStep): StoredStep {
  const { index, type, text, errors, finishReason, usage } = step
  return {
    index,
    type,
    text,
    toolCalls: [],
    errors,
    finishReason,
    usage,
    ...(model !== undefined && { model }),
    ...(began !== undefined && { began }),
  }
}

function storedCall(
  { id, name, args }: Pick<ToolCall<Json>, 'id' | 'name' | 'args'>,
  result: ToolExecution | undefined,
  { sentArgs = args, began, ended }: MadeToolCall = {},
): StoredToolCall {
  return {
    id,
    name,
    args,
    ...(sentArgs !== args && !sameJson(sentArgs, args) && { sentArgs }),
    ...(result !== undefined && { result }),
    ...(began !== undefined && { began }),
    ...(ended !== undefined && { ended }),
  }
}

/** The step that has not ended: that of a suspended run, or what is recorded since the last checkpoint. */
function openStep({ steps, cursor }: Execution, calls: StoredCalls): StoredStep | undefined {
  const index = steps.length
  const made = calls.steps.get(index)
  if (cursor?.phase === 'tools') {
    const { step } = cursor
    const toolCalls = step.calls.map((call, i) => waitingCall(call, made?.toolCalls[i]))
    return { ...storedStep({ ...step, index, type: 'toolExecution' }, made ?? nothingMade), toolCalls, isOpen: true }
  }
  if (made === undefined) return undefined
  const { content = [], finishReason = 'other', usage = noTokens } = made.answer ?? {}
  const asked = content.filter((part) => part.type === 'tool-call')
  const plain = {
    index,
    type: asked.length > 0 ? 'toolExecution' : 'finalResponse',
    text: textOf(content),
    errors: [],
  } as const
  return {
    ...storedStep({ ...plain, finishReason, usage }, made),
    toolCalls: asked.map(({ toolCallId: id, toolName: name, input }, i) => {
      const call = made.toolCalls[i]
      return storedCall({ id, name, args: call?.usedArgs ?? input }, call?.result, call)
    }),
    isOpen: true,
  }
}

/** A call of a suspended step, which may have run since. */
function waitingCall(
  { id, name, args, originalArgs, approval, result }: OpenCall,
  made?: MadeToolCall,
): StoredToolCall {
  const known = result ?? made?.result
  const call = storedCall({ id, name, args: made?.usedArgs ?? args }, known, { sentArgs: originalArgs, ...made })
  return known !== undefined || approval === undefined ? call : { ...call, approval }
}

/** Whether a fork or a rewind has stored the input, so that this is where the run started. */
function isPrepared(input: RecordedRun['input'], record: NumberedRecord, records: readonly NumberedRecord[]): boolean {
  return input.cwd === undefined && record === records[0] && 'cwd' in record
}

function eventsOf({ records, input, stepStarts }: RecordedRun, from: number): readonly StoredRunEvent[] {
  const events: StoredRunEvent[] = []
  const first = stepStarts[from]!.records
  let [step, last] = [from, timeOf(records[first - 1]) ?? input.at]
  for (const record of records.slice(first)) {
    const { seq } = record
    switch (record.type) {
      case 'state':
        step += record.diff.execution?.steps?.add.length ?? 0
        if (record.phase === 'suspended') events.push({ type: 'suspended', at: record.at, step, seq })
        break
      case 'answer': {
        const { approval, answer, by, at } = record
        events.push({ type: 'answered', at, step, seq, approval, answer, ...(by !== undefined && { by }) })
        break
      }
      case 'answers':
        events.push({ type: 'resumed', at: record.at, step, seq, answers: record.answers })
        break
      case 'runResumed':
        if (isPrepared(input, record, records)) break
        events.push({ type: 'interrupted', at: record.at, step, seq, downMs: Math.max(0, record.at - last) })
        break
      case 'stepClosing':
        events.push({ type: 'closed', at: record.at, step, seq })
        break
      case 'sessionSuspended': {
        const { at, reason } = record
        events.push({ type: 'sessionSuspended', at, step, seq, ...(reason !== undefined && { reason }) })
        break
      }
      case 'sessionResumed':
        events.push({ type: 'sessionResumed', at: record.at, step, seq })
        break
      case 'rewound':
        events.push({ type: 'rewound', at: record.at, step, seq, to: record.to })
        break
      default:
    }
    last = timeOf(record) ?? last
  }
  return events
}

function timeOf(record: NumberedRecord | undefined): number | undefined {
  return record !== undefined && 'at' in record ? record.at : undefined
}
