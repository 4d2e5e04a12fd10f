import { AgentError } from '../errors.ts'
import { AgentState, STATE_VERSION, type StateFields } from './agent-state.ts'
import type { Execution, Step } from './execution.ts'
import { isJsonObject, type Json, type JsonObject } from './json.ts'
import { List } from './list.ts'
import type { Message } from './message.ts'
import { fromStateJson } from './saved-run.ts'

/**
 * A list that kept its beginning and got other items behind it. With `from`, its end came after those again, from that
 * place on, and then `more`: as when a summary takes the place of what stood in front.
 */
export type Grown<T> = {
  readonly keep: number
  readonly add: readonly T[]
  readonly from?: number
  readonly more?: readonly T[]
}

/** What an object has no longer, and then what it has now. */
type Changed = { readonly unset?: readonly string[]; readonly set?: JsonObject }

/**
 * What became of a state, as JSON: what a log holds in place of the whole, so that it grows with what happened and not
 * with its square. Patches are put together in order, beginning with one that was made of nothing.
 */
export type StatePatch = {
  readonly fields?: Changed
  readonly messages?: Grown<Message>
  readonly metadata?: Changed
  readonly execution?: Changed & { readonly steps?: Grown<Step> }
}

/** What is different in the later of two states. Parts that both share by identity are not looked into. */
export function patchBetween(before: AgentState | undefined, after: AgentState): StatePatch {
  const earlier = before && AgentState.fieldsOf(before)
  const later = AgentState.fieldsOf(after)
  const patch: { -readonly [K in keyof StatePatch]: StatePatch[K] } = {}
  const fields =
    earlier && isSamePlain(earlier, later) ? undefined : changed(earlier ? plainOf(earlier) : {}, plainOf(later))
  if (fields !== undefined) patch.fields = fields
  const messages = grown(earlier?.messages ?? List.empty<Message>(), later.messages)
  if (messages !== undefined) patch.messages = messages
  const metadata = changed(earlier?.metadata ?? {}, later.metadata)
  if (metadata !== undefined) patch.metadata = metadata
  const execution = executionPatch(earlier?.execution, later.execution)
  if (execution !== undefined) patch.execution = execution
  return patch
}

/** Puts patches together again. Throws STATE_INVALID when they do not make a state. */
export class StateBuilder {
  #fields: JsonObject = {}
  #messages: Message[] = []
  #metadata: JsonObject = {}
  #execution: JsonObject | undefined
  #steps: Step[] = []

  apply({ fields, messages, metadata, execution }: StatePatch): void {
    this.#fields = apply(this.#fields, fields)
    this.#metadata = apply(this.#metadata, metadata)
    if (messages !== undefined) this.#messages = regrown(this.#messages, messages)
    if (execution === undefined) return
    this.#execution = apply(this.#execution ?? {}, execution)
    if (execution.steps !== undefined) this.#steps = regrown(this.#steps, execution.steps)
  }

  build(): AgentState {
    return fromStateJson({
      ...this.#fields,
      messages: this.#messages as unknown as Json,
      metadata: this.#metadata,
      ...(this.#execution !== undefined && {
        execution: { ...this.#execution, steps: this.#steps as unknown as Json },
      }),
    })
  }
}

/** The fields of a state that are neither lists nor objects of their own, in the order of its JSON. */
function plainOf(fields: StateFields): JsonObject {
  const { agentId, parentId, systemPrompt, responseFormat, spentBefore, executionCount } = fields
  return {
    version: STATE_VERSION,
    agentId,
    ...(parentId !== undefined && { parentId }),
    systemPrompt,
    ...(responseFormat !== undefined && { responseFormat }),
    spentBefore,
    executionCount,
  }
}

/** Most steps change none of them, and are spared the objects that a comparison takes. */
function isSamePlain(before: StateFields, after: StateFields): boolean {
  return (
    before.agentId === after.agentId &&
    before.parentId === after.parentId &&
    before.systemPrompt === after.systemPrompt &&
    before.responseFormat === after.responseFormat &&
    before.spentBefore === after.spentBefore &&
    before.executionCount === after.executionCount
  )
}

/** Keeps the place of the steps among the fields, so that the text of a state is the same again. */
const inPlace: { readonly steps: readonly Json[] } = { steps: [] }

function executionPatch(before: Execution | undefined, after: Execution | undefined): StatePatch['execution'] {
  if (after === undefined || before === after) return undefined
  const earlier = before === undefined ? {} : { ...before, ...inPlace }
  const patch: { -readonly [K in keyof Executed]: Executed[K] } = changed(earlier, { ...after, ...inPlace }) ?? {}
  const steps = grown(before?.steps ?? List.empty<Step>(), after.steps)
  if (steps !== undefined) patch.steps = steps
  return patch
}

type Executed = NonNullable<StatePatch['execution']>

function grown<T>(before: List<T>, after: List<T>): Grown<T> | undefined {
  if (before === after) return undefined
  const keep = after.extends(before) ? before.length : sharedLength(before, after)
  if (keep === before.length && keep === after.length) return undefined
  const moved = keep === before.length ? undefined : movedEnd(before, after, keep)
  if (moved === undefined) return { keep, add: after.slice(keep) }
  const { from, at } = moved
  const more = after.slice(at + before.length - from)
  return { keep, add: after.slice(keep, at), from, ...(more.length > 0 && { more }) }
}

/** The end of a list in a later one: from where it was moved, and to where. */
function movedEnd<T>(before: List<T>, after: List<T>, keep: number): { from: number; at: number } | undefined {
  let last = after.length - 1
  while (last >= keep && after.at(last) !== before.at(-1)) last--
  let length = 0
  const isSame = (): boolean => after.at(last - length) === before.at(before.length - 1 - length)
  while (last - length >= keep && before.length - length > keep && isSame()) length++
  return length === 0 ? undefined : { from: before.length - length, at: last - length + 1 }
}

function sharedLength<T>(before: List<T>, after: List<T>): number {
  let length = 0
  while (length < before.length && length < after.length && before.at(length) === after.at(length)) length++
  return length
}

function changed(before: JsonObject, after: JsonObject): Changed | undefined {
  if (before === after) return undefined
  const [earlier, later] = [Object.keys(before), Object.keys(after)]
  if (earlier.length === later.length && later.every((key, i) => key === earlier[i]))
    return setTo(
      after,
      later.filter((key) => before[key] !== after[key]),
    )
  const gone = earlier.filter((key) => !Object.hasOwn(after, key))
  const isNew = (key: string): boolean => !Object.hasOwn(before, key)
  const order = [...earlier.filter((key) => Object.hasOwn(after, key)), ...later.filter(isNew)]
  const moved = later.some((key, i) => key !== order[i]) // as when a key was taken out and put in again
  const set = setTo(after, moved ? later : later.filter((key) => isNew(key) || before[key] !== after[key]))
  const unset = moved ? earlier : gone
  return unset.length === 0 ? set : { unset, ...set }
}

function setTo(after: JsonObject, keys: readonly string[]): Changed | undefined {
  return keys.length === 0 ? undefined : { set: Object.fromEntries(keys.map((key) => [key, after[key]!])) }
}

function apply(before: JsonObject, change: Changed | undefined): JsonObject {
  if (change === undefined) return before
  if (!isJsonObject(change)) throw malformed('a change is no object')
  const { unset = [], set = {} } = change
  if (!Array.isArray(unset) || !isJsonObject(set)) throw malformed('a change does not say what it changes')
  const after = Object.assign(Object.create(null), before) as { [key: string]: Json }
  for (const key of unset as readonly string[]) delete after[key]
  return Object.assign(after, set)
}

function regrown<T>(before: T[], grown: Grown<T>): T[] {
  const { keep, add, from = before.length, more = [] } = isJsonObject(grown) ? grown : ({} as Partial<Grown<T>>)
  const isPlace = (place: unknown): boolean => Number.isInteger(place) && Number(place) <= before.length
  if (!isPlace(keep) || !isPlace(from) || !(0 <= keep! && keep! <= from) || !Array.isArray(add) || !Array.isArray(more))
    throw malformed(`a list of ${before.length} cannot have kept ${String(keep)}`)
  const end = before.slice(from)
  before.length = keep!
  for (const items of [add, end, more]) for (const item of items as readonly T[]) before.push(item) // not more than a call can take
  return before
}

function malformed(why: string): AgentError {
  return new AgentError('STATE_INVALID', `The changes of a state cannot be put together: ${why}.`)
}
