import { partsOfEnd } from '../../effects/change.ts'
import { keyId } from '../../effects/keys.ts'
import type { RunLog, Scope } from '../../effects/log.ts'
import type { BeginRecord, EndOfRunRecord, EndRecord, StepRecord } from '../../effects/records.ts'
import type { EmittedEvent, OwnEvent } from '../../state/event.ts'
import { stepFinished, type FinalRecord, type Step } from '../../state/execution.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import { textOf } from '../../state/message.ts'
import type { AgentPath } from '../../state/subagent.ts'
import type { Answer, Approval } from '../../state/tool-call.ts'
import { AgentError } from '../../errors.ts'
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
      return within(record, beginEvents(record))
    case 'end':
      return within(record, endEvents(record, log))
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
      return within(record, [...stepEvents(record, log.scope(record.path)), ...finalEvents(record)])
    case 'final':
      return [...stepEvents(record, log.root), ...finalEvents(record)]
    case 'rewound': {
      const { at, step, to, runs } = record
      return [{ type: 'rewound', step, at, to, runs }]
    }
    case 'event':
      return [readEvent(record, log)]
    default:
      return []
  }
}

/** Events of a subagent as events of its run. */
export function within(
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

function stepEvents({ at, change }: StepRecord | EndOfRunRecord, scope: Scope): readonly OwnEvent[] {
  const { execution } = change as { readonly execution?: { readonly steps?: { readonly add?: readonly Step[] } } }
  return (execution?.steps?.add ?? []).map((step): OwnEvent => {
    const { end } = step.usage as { readonly end?: string }
    const usage = end === undefined ? step.usage : (partsOfEnd(scope.valueOf(end)).usage as Step['usage'] | undefined)
    if (usage === undefined) throw unreadable(end)
    return { ...stepFinished({ ...step, usage }), at }
  })
}

function finalEvents(record: StepRecord | EndOfRunRecord): readonly OwnEvent[] {
  const { at, change, ended: step } = record
  if (step === undefined) return []
  const { execution } = change as { readonly execution?: { readonly set?: { readonly final?: FinalRecord } } }
  const final = (record.t === 'final' ? record.final : undefined) ?? execution?.set?.final
  return final === undefined ? [] : [{ type: 'finished', step, at, record: final }]
}

/** An event as a record. What is the same in the records of effects is only named there, by its key. */
export function eventRecord(event: EmittedEvent, log: RunLog): EventRecord {
  const path = event.type === 'subagent' ? event.path : undefined
  const { at, ...own } = event.type === 'subagent' ? event.event : event
  const stored = shortened(own as OwnEvent, log, path ?? []) as JsonObject
  return { t: 'event', at, ...(path !== undefined && { path }), event: stored }
}

function shortened(event: OwnEvent, log: RunLog, path: AgentPath): object {
  if (event.type === 'responded') {
    const { usage, text, reasoning = '', ...rest } = event
    const scope = scopeOf(log, path)
    const end = scope?.keyOf(usage)
    if (end === undefined) return event
    const { content = [] } = partsOfEnd(scope!.valueOf(end))
    const isSame = textOf(content) === text && textOf(content, 'reasoning') === reasoning
    return isSame ? { ...rest, end } : event
  }
  if (event.type === 'toolFinished') {
    const { call, execution, ...rest } = event
    const scope = scopeOf(log, path)
    const end = scope?.keyOf(execution)
    if (end === undefined) return event
    const begun = scope!.entries.get(end)?.begin?.input
    const isSame = isJsonObject(begun) && begun['args'] === call.args && begun['name'] === call.name
    return { ...rest, call: isSame ? { id: call.id } : call, end }
  }
  return event
}

export function readEvent({ at, path, event }: EventRecord, log: RunLog): EmittedEvent {
  const own = { ...restored(event, log, path ?? []), at } as unknown as OwnEvent
  return path === undefined ? own : { type: 'subagent', path, event: own, step: path[0]!.step, at }
}

function restored(stored: JsonObject, log: RunLog, path: AgentPath): JsonObject {
  const { end, ...event } = stored
  if (typeof end !== 'string') return stored
  const entry = scopeOf(log, path)?.entries.get(end)
  const { content, usage, execution } = partsOfEnd(entry?.end?.value)
  if (content !== undefined && usage !== undefined) {
    const reasoning = textOf(content, 'reasoning')
    return { ...event, text: textOf(content), ...(reasoning !== '' && { reasoning }), usage }
  }
  const begun = entry?.begin?.input
  if (execution === undefined || !isJsonObject(begun)) throw unreadable(end)
  const { name, args } = begun as { readonly name: Json; readonly args: Json }
  return { ...event, call: { name, args, ...(event['call'] as JsonObject) }, execution }
}

/** The run, or a subagent in it. */
function scopeOf(log: RunLog, path: AgentPath): Scope | undefined {
  if (path.length === 0) return log.root
  const isAt = (scope: Scope): boolean =>
    scope.path.length === path.length &&
    scope.path.every(({ step, call }, i) => step === path[i]!.step && call === path[i]!.call)
  return [...log.scopes.values()].findLast(isAt)
}

function unreadable(end: string | undefined): AgentError {
  return new AgentError('STATE_INVALID', `A stored event refers to "${end}", which is not recorded.`, {
    value: end ?? '',
  })
}
