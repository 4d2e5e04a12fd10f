import { keyId } from '../../core/effects/keys.ts'
import type { RunLog } from '../../core/effects/log.ts'
import type { BeginRecord, EndOfRunRecord, EndRecord, StepRecord } from '../../core/effects/records.ts'
import type { EmittedEvent, OwnEvent } from '../../core/state/event.ts'
import { stepFinished, type FinalRecord } from '../../core/state/execution.ts'
import type { JsonObject } from '../../values/json.ts'
import type { AgentPath } from '../../core/state/subagent.ts'
import type { Answer, Approval } from '../../core/state/tool-call.ts'
import type { EventRecord, SessionRecord } from './session-records.ts'

// The events of a session are what its records say. What no other record says is a record of the kind "event".

/** Whether a record of another kind says that an event has happened. */
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
    case 'event':
      return [readEvent(record)]
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

/** An event as a record. */
export function eventRecord(event: EmittedEvent): EventRecord {
  const path = event.type === 'subagent' ? event.path : undefined
  const { at, ...own } = event.type === 'subagent' ? event.event : event
  return { t: 'event', at, ...(path !== undefined && { path }), event: own }
}

function readEvent({ at, path, event }: EventRecord): EmittedEvent {
  const own = { ...event, at } as unknown as OwnEvent
  return path === undefined ? own : { type: 'subagent', path, event: own, step: path[0]!.step, at }
}
