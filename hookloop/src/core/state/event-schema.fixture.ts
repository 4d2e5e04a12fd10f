import type { ContinuationDecision, ContinuationEvaluation, ContinuationOutcome } from './continuation.ts'
import { continuationDecisions } from './continuation.ts'
import type { AgentEvent, EmittedEvent, EventPlace, OwnEvent } from './event.ts'
import { stepTypes, type ErrorRecord, type FinalRecord } from './execution.ts'
import { finishReasons } from './inference.ts'
import type { Json, JsonObject } from '../../values/json.ts'
import type { Change, EntryWarning, TimedLedgerEntry } from './ledger.ts'
import type { FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart } from './message.ts'
import type { AgentPlace } from './subagent.ts'
import { askTriggers, type Answer, type Approval, type Ask, type ToolCall, type ToolExecution } from './tool-call.ts'
import type { TokenUsage } from './usage.ts'

// The JSON Schema of events. The compiler compares it with the types: a property that is missing, of another type, or required in
// one and optional in the other is an error. Write it with: node hookloop/src/state/event-schema.fixture.ts > hookloop/events.schema.json

declare const of: unique symbol

/** A schema of values of one type. */
type Schema<T> = JsonObject & { readonly [of]?: (value: T) => T }
type Optional<T> = { readonly optional: Schema<T> }

/** A schema for each property. It is `optional(…)` where the property is optional. */
type Properties<T> = {
  readonly [P in keyof T]-?: object extends Pick<T, P> ? Optional<Exclude<T[P], undefined>> : Schema<T[P]>
}

/** Whether objects may have properties that the schema does not know. Later versions may add some. */
let isOpen = true

const definitions = new Map<string, () => JsonObject>()

const text: Schema<string> = { type: 'string' }
const number: Schema<number> = { type: 'number' }
const count: Schema<number> = { type: 'integer', minimum: 0 }
const boolean: Schema<boolean> = { type: 'boolean' }
const anything: Schema<Json> = {}
const anyObject: Schema<JsonObject> = { type: 'object' }
const yes: Schema<true> = { const: true }

function optional<T>(schema: Schema<T>): Optional<T> {
  return { optional: schema }
}

/** A text of which later versions may have more. */
function openText<T extends string>(): Schema<T> {
  return { type: 'string' }
}

function oneOf<T extends string>(...values: readonly T[]): Schema<T> {
  return { enum: values }
}

function list<T>(items: Schema<T>): Schema<readonly T[]> {
  return { type: 'array', items }
}

function either<T extends readonly unknown[]>(
  ...schemas: { readonly [I in keyof T]: Schema<T[I]> }
): Schema<T[number]> {
  return { anyOf: schemas }
}

function object<T>(properties: Properties<T>): Schema<T> {
  const entries = Object.entries(
    properties as { readonly [name: string]: JsonObject | { readonly optional: JsonObject } },
  )
  const isOptional = (schema: object): schema is { readonly optional: JsonObject } => 'optional' in schema
  return {
    type: 'object',
    required: entries.flatMap(([name, schema]) => (isOptional(schema) ? [] : [name])),
    properties: Object.fromEntries(
      entries.map(([name, schema]) => [name, isOptional(schema) ? schema.optional : schema]),
    ),
    ...(!isOpen && { additionalProperties: false }),
  }
}

/** A schema that others refer to by its name. */
function named<T>(name: string, schema: () => Schema<T>): Schema<T> {
  definitions.set(name, schema)
  return { $ref: `#/definitions/${name}` }
}

const usage = named('usage', () =>
  object<TokenUsage>({
    inputTokens: number,
    outputTokens: number,
    cachedInputTokens: number,
    cacheWriteTokens: number,
    reasoningTokens: number,
    costUsd: number,
  }),
)
const options = { providerOptions: optional(anyObject) }
const part: Schema<Part> = named('part', () =>
  either(
    object<TextPart>({ type: oneOf('text'), text, ...options }),
    object<ReasoningPart>({ type: oneOf('reasoning'), text, ...options }),
    object<FilePart>({ type: oneOf('file'), mediaType: text, data: text, filename: optional(text), ...options }),
    object<ToolCallPart>({ type: oneOf('tool-call'), toolCallId: text, toolName: text, input: anything, ...options }),
    object<ToolResultPart>({
      type: oneOf('tool-result'),
      toolCallId: text,
      toolName: text,
      output: anything,
      isError: optional(yes),
      ...options,
    }),
  ),
)
const message = named('message', () =>
  object<Message>({ role: oneOf('system', 'user', 'assistant', 'tool'), content: list(part) }),
)
const call = named('call', () => object<ToolCall>({ id: text, name: text, args: anyObject }))
const execution = named('execution', () =>
  object<ToolExecution>({
    name: optional(text),
    status: oneOf('ok', 'failed', 'blocked', 'outcomeUnknown'),
    output: anything,
    by: optional(text),
    withheld: optional(yes),
    truncated: optional(yes),
    rejected: optional(yes),
    interrupted: optional(yes),
    usage: optional(usage),
  }),
)
const path = named('path', () => list(object<AgentPlace>({ agent: text, step: count, call: text })))
const approval = named('approval', () =>
  object<Approval>({
    trigger: optional(oneOf(...askTriggers)),
    id: text,
    toolCall: call,
    message: text,
    by: text,
    asks: list(object<Ask>({ by: text, message: text })),
    hash: text,
    tool: optional(text),
    expiresAt: optional(number),
    expiresInMs: optional(number),
    path: optional(path),
    interruptions: optional(count),
  }),
)
const answer: Schema<Answer> = named('answer', () =>
  either(
    oneOf<'allow'>('allow'),
    object<{ readonly allow: JsonObject }>({ allow: anyObject }),
    object<{ readonly block: string }>({ block: text }),
  ),
)
const vote = named('vote', () =>
  object<ContinuationEvaluation>({
    decision: oneOf<ContinuationDecision>(...continuationDecisions),
    reason: openText(),
    message: text,
    source: text,
    value: optional(anything),
  }),
)
const outcome = named('outcome', () =>
  object<ContinuationOutcome>({
    shouldContinue: boolean,
    stopReason: optional(openText()),
    resolvedBy: optional(text),
    evaluations: list(vote),
  }),
)
const record = named('record', () =>
  object<FinalRecord>({
    status: oneOf('completed', 'stopped', 'failed', 'cancelled'),
    reason: openText(),
    by: text,
    message: text,
    value: optional(anything),
    votes: list(vote),
    at: number,
  }),
)
const entry = named('entry', () =>
  object<TimedLedgerEntry>({
    step: count,
    trigger: text,
    hook: text,
    mode: oneOf('transform', 'guard', 'observe', 'loop'),
    call: optional(text),
    decision: optional(text),
    message: optional(text),
    value: optional(anything),
    changes: optional(
      list(
        object<Change>({ path: text, before: optional(anything), after: optional(anything), added: optional(text) }),
      ),
    ),
    error: optional(text),
    code: optional(openText()),
    warnings: optional(list(object<EntryWarning>({ code: openText(), message: text, definedAt: optional(text) }))),
    definedAt: optional(text),
    bookkeeping: optional(yes),
    shadow: optional(yes),
    path: optional(path),
    tool: optional(text),
    durationMs: number,
  }),
)

type Type = EmittedEvent['type']
type EventOf<T extends Type> = Extract<EmittedEvent, { type: T }>
type Place = 'type' | 'step' | 'at'

const attempt = { attempt: count, model: text, hook: optional(text) }

/** The properties of each type of event beside its place, in the order of the types. */
const events: { readonly [T in Type]: () => Properties<Omit<EventOf<T>, Place>> } = {
  input: () => ({ message, turn: optional(text) }),
  started: () => ({ executionId: text, agentId: text }),
  stepStarted: () => ({}),
  inferenceStarted: () => attempt,
  text: () => ({ delta: text }),
  reasoning: () => ({ delta: text }),
  toolCallDelta: () => ({ callId: text, toolName: text, delta: text }),
  retracted: () => ({ why: text }),
  inferenceFailed: () => ({ ...attempt, error: object({ code: openText(), message: text }) }),
  warning: () => ({ code: openText(), message: text, definedAt: optional(text) }),
  responded: () => ({ text, reasoning: optional(text), usage }),
  toolStarted: () => ({ call }),
  toolProgress: () => ({ callId: text, update: anything }),
  toolFinished: () => ({ call, execution, durationMs: optional(number) }),
  hook: () => ({ entry }),
  compacted: () => ({ by: text, before: count, after: count, summary: text }),
  asked: () => ({ approval }),
  answered: () => ({ approval: text, answer, by: optional(text) }),
  stepFinished: () => ({
    kind: oneOf(...stepTypes),
    finishReason: oneOf(...finishReasons),
    usage,
    toolCalls: count,
    outcome,
  }),
  error: () => ({ error: object<ErrorRecord>({ code: openText(), message: text, during: text }) }),
  resumed: () => ({}),
  rewound: () => ({ to: number, runs: list(text) }),
  suspended: () => ({ pending: list(approval) }),
  finished: () => ({ record }),
  subagent: () => ({
    path,
    event: named('event', () => either<OwnEvent[]>(...ownTypes.map((type) => eventOf<OwnEvent>(type)))),
  }),
}

export const eventNames = Object.keys(events) as readonly Type[]
const ownTypes = eventNames.filter((type) => type !== 'subagent')

const place: Properties<EventPlace & Pick<OwnEvent, 'step' | 'at'>> = {
  seq: { type: 'integer', minimum: 1 },
  session: optional(text),
  run: text,
  step: count,
  at: number,
}

/** The schema of one type of event, for an event of a subagent without the place in the run. */
function eventOf<E>(type: Type, where: object = { step: place.step, at: place.at }): Schema<E> {
  return object<E>({ type: { const: type }, ...where, ...events[type]() } as unknown as Properties<E>)
}

/** The JSON Schema of an event. A strict one rejects properties that it does not know. */
export function eventSchema({ isStrict = false } = {}): JsonObject {
  isOpen = !isStrict
  definitions.delete('event')
  const event = either<AgentEvent[]>(...eventNames.map((type) => eventOf<AgentEvent>(type, place)))
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Events of Hookloop',
    ...event,
    definitions: Object.fromEntries([...definitions].map(([name, schema]) => [name, schema()])),
  }
}

if (import.meta.main) console.log(JSON.stringify(eventSchema(), undefined, 2))
