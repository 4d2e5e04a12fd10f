import type { AgentState } from '../../state/agent-state.ts'
import { identicalJson, isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import { textOf, type Message, type Part } from '../../state/message.ts'
import type { ListDiff, StateDiff } from '../../state/state-diff.ts'
import { noTokens } from '../../state/usage.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { expectedChange, expectedInput } from './expected-change.ts'
import { decodeLedger, encodeLedger, type CallNames, type KnownHook } from './ledger-codec.ts'
import type { SessionRecord, StateRecord } from './session-records.ts'

// A line holds a record without what follows from the lines before it. `k` is a key without the id of its run, `ms` the time
// since the record before, `b` the time from there to when a call began, `of` a request whose model and tools are those of the request before, `call` a model call that had
// ended when it was stored, `reply` and `ok` the usual form of results, `expected` which parts of a change follow from the calls.
// What differs from that is written in full, as version 1 writes it: a line of version 1 is read as it is.

/** What the codec remembers of earlier lines, in the reader and in the writer. It is reset by each run and each snapshot. */
export type CodecContext = {
  model: Json | undefined
  rest: Json | undefined
  /** The last request that was stored as a whole. */
  request: JsonObject | undefined
  readonly hooks: KnownHook[]
}

export function newContext(): CodecContext {
  return { model: undefined, rest: undefined, request: undefined, hooks: [] }
}

/** What is known of a session where a record is encoded or decoded. */
export type Known = {
  readonly state: AgentState | undefined
  readonly open: { readonly run: string; readonly phase: string; readonly input: Message } | undefined
  readonly entries: readonly RecordEntry[]
  readonly at: number
  readonly context: CodecContext
}

type Begin = Extract<RecordEntry, { type: 'begin' }>
type End = Extract<RecordEntry, { type: 'end' }>
type Mutable = { [key: string]: Json | undefined }

const [MESSAGES, STEP, USAGE] = [1, 2, 4]
const amountNames = Object.keys(noTokens)

export function encodeRecord(record: SessionRecord, known: Known): JsonObject {
  switch (record.type) {
    case 'begin':
      return compact({ type: 'begin', ...shortKey(record.key, known), ...shortBegin(record, known) })
    case 'end':
      return compact({ type: 'end', ...shortKey(record.key, known), ...shortEnd(record, known) })
    case 'state':
      return encodeState(record, known)
    default:
      return record
  }
}

/** One line for a model call that was started and has ended since the last line. */
export function encodeCall(begin: Begin, end: End, known: Known): JsonObject {
  return compact({ type: 'call', ...shortKey(begin.key, known), ...shortBegin(begin, known), ...shortEnd(end, known) })
}

/** The records of a line. They are checked later: what is missing or wrong in a line is missing or wrong in its records. */
export function decodeLine(line: JsonObject, known: Known): readonly JsonObject[] {
  switch (line['type']) {
    case 'begin':
      return [longBegin(line, known)]
    case 'end':
      return [longEnd(line, known)]
    case 'call':
      return [longBegin(line, known), longEnd(line, known)]
    case 'state':
      return [decodeState(line, known)]
    default:
      return [line]
  }
}

function shortKey(key: string, { open }: Known): Mutable {
  return open !== undefined && key.startsWith(open.run) ? { k: key.slice(open.run.length) } : { key }
}

function longKey(line: JsonObject, { open }: Known): Json | undefined {
  return line['key'] ?? (typeof line['k'] === 'string' && open !== undefined ? `${open.run}${line['k']}` : undefined)
}

function shortTime(at: number, { at: before }: Known): Mutable {
  return at >= before && Number.isInteger(at - before) ? { ms: at - before } : { at }
}

function longTime(line: JsonObject, { at }: Known): Json | undefined {
  return line['at'] ?? (typeof line['ms'] === 'number' ? at + line['ms'] : undefined)
}

function shortBegin(
  { key, kind, input, at, request, idempotent }: Begin,
  { context, entries, at: before }: Known,
): Mutable {
  const isLater = at !== undefined && at >= before && Number.isInteger(at - before)
  const short = {
    ...(!key.endsWith(`/${kind}`) && { kind }),
    ...(idempotent === true && { idempotent }),
    ...(at !== undefined && (isLater ? { b: at - before } : { began: at })),
    ...(request !== undefined && { request: shortRequest(request, context) }),
  }
  if (kind === 'tool' && identicalJson(input, expectedInput(key, entries))) return short
  if (kind !== 'inference' || !isRequest(input)) return { ...short, input }
  const { model, messages, conversation, rest } = input
  const isSame = context.model === model && context.rest === rest
  Object.assign(context, { model, rest })
  return { ...short, of: isSame ? [conversation, messages] : [conversation, messages, model, rest] }
}

function longBegin(line: JsonObject, known: Known): JsonObject {
  const { context, entries } = known
  const key = longKey(line, known)
  const name = typeof key === 'string' ? key : ''
  const kind = line['kind'] ?? name.slice(name.lastIndexOf('/') + 1)
  const of = line['of']
  let input = line['input'] ?? (kind === 'tool' ? expectedInput(name, entries) : undefined)
  if (Array.isArray(of)) {
    const [conversation, messages, model = context.model, rest = context.rest] = of as readonly Json[]
    Object.assign(context, { model, rest })
    input = compact({ model, messages, conversation, rest })
  }
  const { seq, idempotent, b, began, request } = line
  const at = typeof b === 'number' ? known.at + b : (began ?? (line['type'] === 'begin' ? line['at'] : undefined))
  const whole = isJsonObject(request) ? longRequest(request, context) : request
  return compact({ seq, type: 'begin', key, kind, input, at, request: whole, idempotent })
}

/**
 * A request without what is as in the one before: other fields, and `[n, …]` for the first n messages and others. Where the one
 * before is not known, as after a snapshot was restored, it is written whole.
 */
function shortRequest(request: JsonObject, context: CodecContext): JsonObject {
  const before = context.request
  context.request = request
  if (before === undefined) return request
  const short: { [key: string]: Json } = {}
  for (const key in before) if (request[key] === undefined) short[key] = null
  for (const key in request)
    if (key !== 'messages' && !identicalJson(request[key], before[key])) short[key] = request[key]!
  const [earlier, messages] = [messagesIn(before), messagesIn(request)]
  let same = 0
  while (same < earlier.length && earlier[same] === messages[same]) same++
  return { ...short, messages: [same, ...messages.slice(same)] }
}

/** The whole request; undefined if it differs from one that is not known. Only reading all lines needs it. */
function longRequest(short: JsonObject, context: CodecContext): JsonObject | undefined {
  const [same, ...added] = messagesIn(short)
  if (typeof same !== 'number') return (context.request = short)
  if (context.request === undefined) return undefined
  const fields = Object.entries({ ...context.request, ...short }).filter(([, value]) => value !== null)
  const messages = [...messagesIn(context.request).slice(0, same), ...added]
  return (context.request = { ...Object.fromEntries(fields), messages })
}

function messagesIn({ messages }: JsonObject): readonly Json[] {
  return Array.isArray(messages) ? messages : []
}

type Request = { readonly model: Json; readonly messages: Json; readonly conversation: Json; readonly rest: Json }

/** A request as `fingerprintRequest` describes it. */
function isRequest(input: Json): input is Request {
  return isJsonObject(input) && hasKeys(input, requestNames)
}

function shortEnd(end: End, known: Known): Mutable {
  const short = shortTime(end.at, known)
  if (!('value' in end)) return { ...short, error: end.error }
  const { value } = end
  if (isJsonObject(value) && value['status'] === 'ok' && hasKeys(value, resultNames))
    return { ...short, ok: value['output'] }
  const reply = shortReply(value)
  return reply === undefined ? { ...short, value } : { ...short, reply }
}

function longEnd(line: JsonObject, known: Known): JsonObject {
  const { seq, error, reply, ok } = line
  const value = ok !== undefined ? { status: 'ok', output: ok } : reply === undefined ? line['value'] : longReply(reply)
  return compact({ seq, type: 'end', key: longKey(line, known), at: longTime(line, known), value, error })
}

/** The usual record of a model call: a reply, no error, and nothing from hooks. */
function shortReply(value: Json): JsonObject | undefined {
  if (!isJsonObject(value) || !hasKeys(value, recordNames)) return undefined
  const { response, error, usage, trail, votes } = value
  if (error !== null || !isEmpty(trail) || !isEmpty(votes) || !isJsonObject(response)) return undefined
  const { content, text } = response
  const isUsual = Array.isArray(content) && text === textOf(content)
  if (!isUsual || !identicalJson(response['usage'], usage) || !isJsonObject(usage) || !hasKeys(usage, amountNames))
    return undefined
  const reply: { [key: string]: Json } = { content, usage: trimmed(usage) }
  let i = 0
  for (const key in response) {
    const isOwn = i < responseNames.length
    if (isOwn && key !== responseNames[i++]) return undefined
    if (!isOwn || (key === 'finishReason' && response[key] !== usualFinish(content))) reply[key] = response[key]!
  }
  return i === responseNames.length ? reply : undefined
}

const resultNames = ['status', 'output']
const requestNames = ['model', 'messages', 'conversation', 'rest']
const recordNames = ['response', 'error', 'usage', 'trail', 'votes']
const responseNames = ['content', 'text', 'usage', 'finishReason']

/** Whether an object has exactly these keys, in this order. */
export function hasKeys(object: JsonObject, names: readonly string[]): boolean {
  let i = 0
  for (const key in object) if (key !== names[i++]) return false
  return i === names.length
}

function isEmpty(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length === 0
}

function longReply(reply: Json): Json | undefined {
  if (!isJsonObject(reply)) return undefined
  const { content, usage, finishReason = usualFinish(content), ...rest } = reply
  const amounts = Array.isArray(usage) ? (usage as readonly Json[]) : []
  const spent: Mutable = {}
  for (const [i, key] of amountNames.entries()) spent[key] = amounts[i] ?? 0
  const text = Array.isArray(content) ? textOf(content.filter(isJsonObject) as unknown as readonly Part[]) : ''
  const response = compact({ content, text, usage: spent as JsonObject, finishReason, ...rest })
  return { response, error: null, usage: spent as JsonObject, trail: [], votes: [] }
}

function usualFinish(content: Json | undefined): string {
  const isCall = (part: Json): boolean => isJsonObject(part) && part['type'] === 'tool-call'
  return Array.isArray(content) && (content as readonly Json[]).some(isCall) ? 'tool-calls' : 'stop'
}

/** Amounts in the order of `noTokens`, without zeros at the end. */
function trimmed(usage: JsonObject): readonly Json[] {
  const amounts = amountNames.map((key) => usage[key] ?? 0)
  return amounts.slice(0, amounts.findLastIndex((amount) => amount !== 0) + 1)
}

function encodeState({ phase, at, diff, final, ledger }: StateRecord, known: Known): JsonObject {
  const expected = expectedChange(placeOf(known))
  const { rest, parts, step } =
    expected === undefined ? { rest: diff, parts: 0 } : withoutExpected(diff, expected, known)
  return compact({
    type: 'state',
    phase,
    ...shortTime(at, known),
    ...(parts > 0 && { expected: parts }),
    step,
    ...(Object.keys(rest).length > 0 && { diff: rest }),
    final,
    ledger: ledger && encodeLedger(ledger, known.context.hooks, callNames(known, expected)),
  })
}

function decodeState(line: JsonObject, known: Known): JsonObject {
  const { seq, phase, expected: parts = 0, step = {}, diff = {}, final, ledger } = line
  const expected = expectedChange(placeOf(known))
  return compact({
    seq,
    type: 'state',
    phase,
    at: longTime(line, known),
    diff: parts !== 0 && expected && isJsonObject(diff) ? withExpected(diff, { expected, parts, step, known }) : diff,
    final,
    ledger: Array.isArray(ledger)
      ? decodeLedger(ledger as readonly Json[], known.context.hooks, callNames(known, expected))
      : ledger,
  })
}

function placeOf({ state, entries, open }: Known): Parameters<typeof expectedChange>[0] {
  return { state, entries, input: open?.phase === 'input' ? open.input : undefined }
}

function callNames({ state }: Known, expected: Expected | undefined): CallNames {
  let ids: readonly string[] | undefined
  return {
    ids: (step) => (step === state?.stepCount ? (ids ??= expected?.step?.toolCalls.map(({ id }) => id) ?? []) : []),
  }
}

type Expected = NonNullable<ReturnType<typeof expectedChange>>

function withoutExpected(
  diff: StateDiff,
  expected: Expected,
  { state }: Known,
): { readonly rest: StateDiff; readonly parts: number; readonly step?: JsonObject | undefined } {
  const { messages, execution } = diff
  const { steps, set } = execution ?? {}
  let [parts, step] = [0, undefined as JsonObject | undefined]
  const isMessages = isAppended(messages, state?.messages.length ?? 0, expected.messages.length)
  if (isMessages && identicalJson(messages!.add, expected.messages)) parts |= MESSAGES
  if (expected.usage !== undefined && identicalJson(set?.['usage'], expected.usage)) parts |= USAGE
  if (expected.step !== undefined && isAppended(steps, state?.stepCount ?? 0, 1)) {
    const [added] = steps!.add as unknown as readonly JsonObject[]
    const other = overrides(added!, expected.step)
    if (other !== undefined) [parts, step] = [parts | STEP, hasKeys(other, []) ? undefined : other]
  }
  return { rest: parts === 0 ? diff : withoutParts(diff, parts), parts, step }
}

/** The values that differ from the usual ones; undefined if the keys differ. */
export function overrides(value: JsonObject, usual: JsonObject): JsonObject | undefined {
  if (!hasKeys(value, Object.keys(usual))) return undefined
  const other: { [key: string]: Json } = {}
  for (const key in value) if (!identicalJson(value[key], usual[key])) other[key] = value[key]!
  return other
}

function withoutParts(diff: StateDiff, parts: number): StateDiff {
  const rest: { [key: string]: Json } = {}
  for (const [key, value] of Object.entries(diff) as [string, Json][]) {
    const part = key === 'execution' && isJsonObject(value) ? withoutRun(value, parts) : value
    if (part !== undefined && (key !== 'messages' || (parts & MESSAGES) === 0)) rest[key] = part
  }
  return rest
}

function withoutRun(execution: JsonObject, parts: number): JsonObject | undefined {
  const rest: { [key: string]: Json } = {}
  for (const key in execution) if (key !== 'steps' || (parts & STEP) === 0) rest[key] = execution[key]!
  if ((parts & USAGE) !== 0) {
    const { usage: _usage, ...set } = rest['set'] as JsonObject
    if (hasKeys(set, [])) delete rest['set']
    else rest['set'] = set
  }
  return hasKeys(rest, []) ? undefined : rest
}

function withExpected(
  rest: JsonObject,
  {
    expected,
    parts,
    step,
    known: { state },
  }: { readonly expected: Expected; readonly parts: Json; readonly step: Json; readonly known: Known },
): JsonObject {
  const has = (part: number): boolean => (Number(parts) & part) !== 0
  const run = isJsonObject(rest['execution']) ? rest['execution'] : undefined
  const set = isJsonObject(run?.['set']) ? run['set'] : undefined
  const added = expected.step && { ...expected.step, ...(isJsonObject(step) && step) }
  const execution = {
    ...run,
    ...(has(USAGE) && { set: { ...set, usage: expected.usage! } }),
    ...(has(STEP) && { steps: { keep: state?.stepCount ?? 0, add: [added ?? null] } }),
  }
  return {
    ...rest,
    ...(has(MESSAGES) && { messages: { keep: state?.messages.length ?? 0, add: expected.messages } }),
    ...(Object.keys(execution).length > 0 && { execution }),
  }
}

function isAppended(diff: ListDiff<unknown> | undefined, length: number, added: number): boolean {
  return diff?.keep === length && diff.add.length === added && diff.from === undefined && diff.more === undefined
}

function compact(fields: Mutable): JsonObject {
  const result: { [key: string]: Json } = {}
  for (const key in fields) if (fields[key] !== undefined) result[key] = fields[key]
  return result
}
