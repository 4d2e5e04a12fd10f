import { keyId, type EffectKind } from '../../core/effects/keys.ts'
import type { RunLog } from '../../core/effects/log.ts'
import type { BeginRecord, EndOfRunRecord, EndRecord, StepRecord } from '../../core/effects/records.ts'
import type { EmittedEvent, OwnEvent } from '../../core/state/event.ts'
import { stepFinished, type FinalRecord } from '../../core/state/execution.ts'
import { textOf, type Message } from '../../core/state/message.ts'
import type { JsonObject } from '../../values/json.ts'
import type { AgentPath } from '../../core/state/subagent.ts'
import type { Answer, Approval } from '../../core/state/tool-call.ts'
import type { HooksRecord, NumberedRecord, SessionRecord } from './session-records.ts'

// The events of a session are what its records say. What happens inside a step is reported in pieces, which live as long as the turn.

/** Whether a record says that an event has happened. */
export function hasRecord(event: EmittedEvent): boolean {
  return recorded.has(event.type === 'subagent' ? `child ${event.event.type}` : event.type)
}

const ofAll = ['toolStarted', 'asked', 'answered', 'stepFinished', 'finished']
const recorded: ReadonlySet<string> = new Set([
  ...ofAll,
  ...ofAll.map((type) => `child ${type}`),
  'input',
  'suspended',
  'resumed',
  'rewound',
])

/** The events that a record stands for. `log` is the run before the record. */
export function eventsOf(record: SessionRecord, log: RunLog): readonly EmittedEvent[] {
  switch (record.t) {
    case 'input': {
      const { at, message, turn } = record
      return [{ type: 'input', step: 0, at, message, ...(turn !== undefined && { turn }) }]
    }
    case 'begin':
      return inSubagent(record, beginEvents(record))
    case 'end':
      return inSubagent(record, endEvents(record, log))
    case 'answer': {
      const { at, approval, answer, by } = record
      const step = stepOf(log, approval)
      return [{ type: 'answered', step, at, approval, answer, ...(by !== undefined && { by }) }]
    }
    case 'pause': {
      const { at, step } = record
      const open = log.openAsks().map(({ begin }) => begin!.input as unknown as Approval)
      const pending = record.pending.flatMap((id) => open.find((each) => each.id === id) ?? [])
      return [{ type: 'suspended', step, at, pending }]
    }
    case 'resume': {
      const { at, step } = record
      return step === undefined ? [] : [{ type: 'resumed', step, at }]
    }
    case 'step':
      return inSubagent(record, [...stepEvents(record), ...finalEvents(record)])
    case 'final':
      return [...stepEvents(record), ...finalEvents(record)]
    case 'rewound': {
      const { at, step, to, runs } = record
      return [{ type: 'rewound', step, at, to, runs }]
    }
    case 'hooks':
      return hookEvents(record)
    default:
      return []
  }
}

/** Events of a subagent as events of its run. */
export function inSubagent(
  { path = [], at }: { readonly path?: AgentPath | undefined; readonly at: number },
  events: readonly OwnEvent[],
): readonly EmittedEvent[] {
  if (path.length === 0) return events
  const places = path.map(({ agent, step, call }) => ({ agent, step, call }))
  return events.map((event) => ({ type: 'subagent', path: places, event, step: places[0]!.step, at }))
}

function beginEvents({ at, key: { kind, step, call: id = '', n }, input }: BeginRecord): readonly OwnEvent[] {
  if (kind === 'ask') return [{ type: 'asked', step, at, approval: input as unknown as Approval }]
  if ((kind !== 'tool' && kind !== 'child') || n !== 0) return []
  const { name, args } = input as { readonly name: string; readonly args: JsonObject }
  return [{ type: 'toolStarted', step, at, call: { id, name, args } }]
}

function endEvents({ at, path, key, value, input }: EndRecord, log: RunLog): readonly OwnEvent[] {
  const { kind, step } = key
  if (kind !== 'ask' || value === undefined) return []
  const begun = log.scope(path).entries.get(keyId(key))?.begin?.input
  const approval = (begun ?? input) as unknown as Approval
  const answered: OwnEvent = { type: 'answered', step, at, approval: approval.id, answer: value as Answer }
  return begun === undefined ? [{ type: 'asked', step, at, approval }, answered] : [answered]
}

/** The step of the run in which something was asked. */
function stepOf(log: RunLog, approval: string): number {
  const open = log.openAsks().find(({ begin }) => (begin!.input as unknown as Approval).id === approval)
  return open?.scope.path[0]?.step ?? open?.key.step ?? 0
}

function stepEvents({ at, change }: StepRecord | EndOfRunRecord): readonly OwnEvent[] {
  return (change.execution?.steps?.add ?? []).map((step): OwnEvent => ({ ...stepFinished(step), at }))
}

function finalEvents(record: StepRecord | EndOfRunRecord): readonly OwnEvent[] {
  const { at, change, ended: step } = record
  if (step === undefined) return []
  const final =
    (record.t === 'final' ? record.final : undefined) ?? (change.execution?.set?.['final'] as FinalRecord | undefined)
  return final === undefined ? [] : [{ type: 'finished', step, at, record: final }]
}

/** An event, and the line that it follows. */
type Placed = { readonly line: number; readonly event: EmittedEvent }

/**
 * What the record of a step says beside its end: the answer and the results, as they were used. Each follows the end of its
 * effect; that of a call that did not run, its question or the answer.
 */
export function insideOf(record: NumberedRecord, log: RunLog): readonly Placed[] {
  if (record.t !== 'step' && record.t !== 'final') return []
  const { at, change, seq } = record
  const path = record.t === 'step' ? record.path : undefined
  const entries = [...log.scope(path).entries.values()]
  const endOf = (kinds: readonly EffectKind[], id?: string): number | undefined => {
    const entry = entries.findLast(({ key, end }) => end !== undefined && key.call === id && kinds.includes(key.kind))
    return (entry?.end as { readonly seq?: number } | undefined)?.seq
  }
  const answerEnd = endOf(['model']) ?? seq - 1
  return (change.execution?.steps?.add ?? []).flatMap((each) => {
    const { index: step, text, usage, toolCalls, toolExecutions } = each
    const isAnswer = ({ role, content }: Message): boolean => role === 'assistant' && textOf(content) === text
    const reasoning = textOf(change.messages?.add.find(isAnswer)?.content ?? [], 'reasoning')
    const said = reasoning === '' ? { text } : { text, reasoning }
    const place = (line: number, event: OwnEvent): Placed => ({ line, event: inSubagent({ path, at }, [event])[0]! })
    const finished = toolCalls.map((call, i) => {
      const wasAsked = entries.some(({ key }) => key.kind === 'ask' && key.call === call.id)
      const line = endOf(['tool', 'child'], call.id) ?? (wasAsked ? seq - 1 : answerEnd)
      return place(line, { type: 'toolFinished', step, at, call, execution: toolExecutions[i]! })
    })
    if (each.type === 'error') return finished
    return [place(answerEnd, { type: 'responded', step, at, ...said, usage }), ...finished]
  })
}

/** What hooks did between two runs. */
function hookEvents({ at, ledger }: HooksRecord): readonly OwnEvent[] {
  return ledger.flatMap((entry): readonly OwnEvent[] => {
    const { step, warnings = [] } = entry
    return [
      { type: 'hook', step, at, entry },
      ...warnings.map((warning): OwnEvent => ({ type: 'warning', step, at, ...warning })),
    ]
  })
}
