import { fingerprintConversation, knowFingerprint } from '../../agent/model/fingerprint-request.ts'
import { AgentState, STATE_VERSION } from '../../state/agent-state.ts'
import type { Step } from '../../state/execution.ts'
import { hashText, isJsonObject, parsedJson, type Json, type JsonObject } from '../../state/json.ts'
import type { LedgerRow, TimedLedgerEntry } from '../../state/ledger.ts'
import { List } from '../../state/list.ts'
import { isMessage, type Message } from '../../state/message.ts'
import { checkedState, checkSteps } from '../../state/saved-run.ts'
import { applyObject } from '../../state/state-diff.ts'
import { noTokens } from '../../state/usage.ts'
import { AgentError } from '../../errors.ts'
import { expectedStep } from './expected-change.ts'
import { decodeLedger, encodeLedger } from './ledger-codec.ts'
import { hasKeys, overrides } from './record-codec.ts'
import { NO_SUM, SUM_LENGTH } from './session-log.ts'
import { SESSION_VERSION, type SnapshotRecord } from './session-records.ts'
import { SessionReader, type OpenRun, type SessionStart } from './session-reader.ts'
import type { PagesChange } from '../stores/store.ts'

// A snapshot is a record with everything that the records before it amount to. Messages, steps and the ledger of an open run
// are in pages of 64 items, which are written once and stay: a snapshot of a long conversation writes only what is new. The record
// has the checksum of all pages, so the chain of lines covers them.

const lists = ['messages', 'steps', 'ledger'] as const
type StoredEntry = TimedLedgerEntry | LedgerRow
type ListName = (typeof lists)[number]

/** Which pages are stored: how many, their checksum, and for each list its first page and the items in pages. */
export type StoredPages = {
  readonly count: number
  readonly sum: string
  readonly messages: PagedList<Message>
  readonly steps: PagedList<Step>
  readonly ledger: PagedList<StoredEntry>
}
type PagedList<T> = { readonly from: number; readonly list: List<T> }

const noList = { from: 0, list: List.empty<never>() }
export const noPages: StoredPages = { count: 0, sum: NO_SUM, messages: noList, steps: noList, ledger: noList }

/** A snapshot of a session at a checkpoint. */
export function takeSnapshot(
  { start, state, ledger, open, isSuspended, hasInput, runs, turns, at, runAt }: SessionReader,
  before: StoredPages,
): { readonly record: SnapshotRecord; readonly change: PagesChange; readonly pages: StoredPages } {
  const { messages, execution, ...plain } = AgentState.fieldsOf(state!)
  const items = {
    messages,
    steps: execution?.steps ?? List.empty<Step>(),
    ledger: open === undefined ? List.empty<StoredEntry>() : ledger,
  }
  const stored = hasTooMany(before, items) ? noPages : before
  const isLonger = items.messages.extends(stored.messages.list)
  const known = {
    messages: isLonger ? stored.messages : { from: stored.count, list: List.empty<Message>() },
    // Steps refer to messages, so they are written again with them.
    steps:
      isLonger && items.steps.extends(stored.steps.list)
        ? stored.steps
        : { from: stored.count, list: List.empty<Step>() },
    ledger: items.ledger.extends(stored.ledger.list)
      ? stored.ledger
      : { from: stored.count, list: List.empty<StoredEntry>() },
  }
  const texts = lists.flatMap((name) =>
    newChunks(items[name] as List<unknown>, known[name].list.length).map((from) => pageText(name, items, from)),
  )
  const sum = texts.reduce(pageSum, stored.sum)
  const count = stored.count + texts.length
  const paged = {
    messages: { from: known.messages.from, list: fullChunks(items.messages) },
    steps: { from: known.steps.from, list: fullChunks(items.steps) },
    ledger: { from: known.ledger.from, list: fullChunks(items.ledger) },
  }
  const pages = {
    count,
    sum,
    ...Object.fromEntries(lists.map((name) => [name, [paged[name].from, paged[name].list.length]])),
    fingerprint: fingerprintConversation(paged.messages.list),
    ...Object.fromEntries(
      lists.map((name) => [`${name}Rest`, encodeItems(name, items, paged[name].list.length, items[name].length)]),
    ),
  } as JsonObject
  const record: SnapshotRecord = {
    type: 'snapshot',
    at,
    start: start as unknown as JsonObject,
    state: {
      ...plainJson(plain),
      ...(execution !== undefined && { execution: { ...execution, steps: [] } }),
    },
    pages,
    ...(open !== undefined && { open: openJson(open, runAt) }),
    isSuspended,
    hasInput,
    ...(runs !== undefined && { runs }),
    ...(turns.known.length > 0 && { turns }),
  }
  return { record, change: { keep: stored.count, add: texts }, pages: { count, sum, ...paged } }
}

/** The session that a snapshot holds. Throws SESSION_CORRUPT if the pages are not those that it was taken with. */
export function restoreSnapshot(
  record: SnapshotRecord,
  texts: readonly string[],
): { readonly reader: SessionReader; readonly pages: StoredPages } {
  const { count, sum, fingerprint } = record.pages
  if (record.start['version'] !== 1 && record.start['version'] !== SESSION_VERSION)
    throw wrongPages('they are of another version')
  const known = texts.slice(0, Number(count))
  if (known.length !== count || known.reduce(pageSum, NO_SUM) !== sum) throw wrongPages('they were changed or removed')
  const messages = restoredList(record, known, 'messages', (values) => {
    if (values.every(isMessage)) return values
    throw wrongPages('one of them has no messages')
  })
  if (typeof fingerprint === 'string') knowFingerprint(messages.list, fingerprint)
  const steps = restoredList(record, known, 'steps', (values, from) => {
    const added = values.map((value, i) =>
      Object.freeze(decodeStep(value, from + i, messages.list)),
    ) as unknown as Step[]
    checkSteps(added)
    return added
  })
  const ids = (step: number): readonly string[] => steps.list.at(step)?.toolCalls.map(({ id }) => id) ?? []
  const ledger = restoredList(record, known, 'ledger', (values) => decodeLedger(values, [], { ids }))
  const { execution, metadata, ...plain } = record.state
  const reader = new SessionReader()
  reader.start = record.start as unknown as SessionStart
  reader.state = checkedState({
    plain: { version: STATE_VERSION, ...plain },
    metadata: isJsonObject(metadata) ? metadata : {},
    messages: { list: messages.list, added: [] },
    execution: isJsonObject(execution) ? applyObject({}, { set: execution }) : undefined,
    steps: { list: steps.list, added: [] },
    before: undefined,
  })
  reader.ledger = ledger.list
  const { run, phase, at: runAt = 0, input, metadata: facts, turn, requests = false } = record.open ?? {}
  if (record.open !== undefined)
    reader.open = {
      run,
      phase,
      input,
      metadata: facts,
      turn,
      recordsRequests: requests,
      downMs: 0,
      isClosing: false,
      ends: false,
      given: {},
      answers: undefined,
    } as unknown as NonNullable<SessionReader['open']>
  Object.assign(reader, {
    isSuspended: record.isSuspended,
    hasInput: record.hasInput,
    runs: record.runs,
    at: record.at,
    runAt,
  })
  reader.turns = record.turns ?? reader.turns
  const paged = { messages: messages.paged, steps: steps.paged, ledger: ledger.paged }
  return { reader, pages: { count, sum, ...paged } }
}

type Items = { readonly messages: List<Message>; readonly steps: List<Step>; readonly ledger: List<StoredEntry> }

/** Whether most of the pages belong to lists that have been replaced. */
function hasTooMany({ count }: StoredPages, items: Items): boolean {
  const needed = lists.reduce((sum, name) => sum + Math.floor(items[name].length / List.chunkLength), 0)
  return count > 2 * needed + 64
}

function fullChunks<T>(list: List<T>): List<T> {
  return list.take(list.length - (list.length % List.chunkLength))
}

/** Where the full chunks begin that are not in pages yet. */
function newChunks(list: List<unknown>, known: number): readonly number[] {
  const count = Math.floor(list.length / List.chunkLength) - known / List.chunkLength
  return Array.from({ length: Math.max(0, count) }, (_, i) => known + i * List.chunkLength)
}

function pageText(name: ListName, items: Items, from: number): string {
  return JSON.stringify({ [name]: encodeItems(name, items, from, from + List.chunkLength) })
}

function encodeItems(name: ListName, { messages, steps, ledger }: Items, from: number, to: number): Json {
  if (name === 'messages') return messages.slice(from, to)
  if (name === 'steps') return steps.slice(from, to).map((step, i) => encodeStep(step, from + i, messages))
  const ids = (step: number): readonly string[] => steps.at(step)?.toolCalls.map(({ id }) => id) ?? []
  return encodeLedger(ledger.slice(from, to), [], { ids })
}

/** A step without what the conversation has: the number of messages before it, its usage, and what differs. */
function encodeStep(step: Step, index: number, messages: List<Message>): Json {
  const value = step as unknown as JsonObject
  const other = overrides(value, expectedStep(index, messages, step.messageCount, step.usage))
  if (other === undefined) return value
  const usage = Object.keys(noTokens).map((key) => (step.usage as unknown as JsonObject)[key] ?? null)
  return hasKeys(other, []) ? [step.messageCount, usage] : [step.messageCount, usage, other]
}

function decodeStep(value: Json, index: number, messages: List<Message>): JsonObject {
  if (!Array.isArray(value)) return isJsonObject(value) ? value : {}
  const [messageCount, amounts, other] = value as readonly Json[]
  const usage = Object.fromEntries(Object.keys(noTokens).map((key, i) => [key, (amounts as readonly Json[])[i] ?? 0]))
  return { ...expectedStep(index, messages, Number(messageCount)), usage, ...(isJsonObject(other) && other) }
}

function restoredList<T>(
  { pages }: SnapshotRecord,
  texts: readonly string[],
  name: ListName,
  read: (values: readonly Json[], from: number) => readonly T[],
): { readonly list: List<T>; readonly paged: PagedList<T> } {
  const [from, length] = pages[name] as unknown as readonly [number, number]
  const start = `{"${name}":`
  const own = texts.slice(from).filter((text) => text.startsWith(start))
  if (own.length * List.chunkLength !== length) throw wrongPages(`${own.length} of them have ${name}`)
  const loads = own.map((text, i) => () => read(valuesIn(text, name), i * List.chunkLength))
  const paged = List.loaded(loads, [])
  const rest = pages[`${name}Rest`]
  const list = List.loaded(loads, []).concat(Array.isArray(rest) ? read(rest as readonly Json[], length) : [])
  return { list, paged: { from, list: paged } }
}

function valuesIn(text: string, name: ListName): readonly Json[] {
  const page = parsedJson(JSON.parse(text), 'page')
  const values = isJsonObject(page) ? page[name] : undefined
  if (Array.isArray(values) && values.length > 0) return values as readonly Json[]
  throw wrongPages('one of them is empty')
}

function pageSum(sum: string, text: string): string {
  return hashText(`${sum}${text}`).slice(0, SUM_LENGTH)
}

function plainJson(fields: { readonly [key: string]: unknown }): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject
}

function openJson(open: Omit<OpenRun, 'entries' | 'at'>, at: number): JsonObject {
  const { run, phase, input, metadata, turn, recordsRequests } = open
  return {
    run,
    phase,
    at,
    input,
    ...(metadata !== undefined && { metadata }),
    ...(turn !== undefined && { turn }),
    ...(recordsRequests && { requests: true }),
  }
}

function wrongPages(why: string): AgentError {
  return new AgentError('SESSION_CORRUPT', `The pages of a snapshot cannot be used: ${why}.`)
}
