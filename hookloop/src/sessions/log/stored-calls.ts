import type { FinishReason } from '../../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import type { Part } from '../../state/message.ts'
import type { ModelUsage, StoredCall, StoredCallKind } from '../../state/stored-run.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { addTokens, noTokens, type TokenUsage } from '../../state/usage.ts'
import { executionIn } from '../../agent/tools/execute-call.ts'
import type { RecordEntry } from '../../effects/recording.ts'
import { CallIds, placeOfKey, type CallPlace } from './call-keys.ts'
import type { RecordedRun } from './recorded-run.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
type Begin = Extract<RecordEntry, { type: 'begin' }> & { readonly seq: number }
type End = Extract<RecordEntry, { type: 'end' }>

/** The answer of a model. */
export type Answered = {
  readonly content: readonly Part[]
  readonly finishReason: FinishReason
  readonly usage: TokenUsage
}

/** What the calls of one tool call amount to. */
export type MadeToolCall = {
  /** As the model sent them, and as they were used. */
  sentArgs?: Json
  usedArgs?: Json
  result?: ToolExecution | undefined
  began?: number
  ended?: number
}

/** What the calls of one step of the agent itself amount to. */
export type MadeStep = {
  model?: string | undefined
  began?: number
  answer?: Answered
  readonly toolCalls: MadeToolCall[]
}

/** The calls of a run to the outside, in the order in which they began, and what they amount to by step. */
export class StoredCalls {
  readonly all: StoredCall[] = []
  readonly steps = new Map<number, MadeStep>()
  readonly #ids = new CallIds()
  readonly #open = new Map<string, { readonly call: Mutable<StoredCall>; readonly place: CallPlace }>()

  constructor({ input: { run }, records }: Pick<RecordedRun, 'input' | 'records'>) {
    for (const record of records) {
      if (record.type === 'begin') this.#begin(record, run)
      else if (record.type === 'end') this.#end(record)
    }
  }

  #begin({ key, kind, input, at, request, seq }: Begin, run: string): void {
    if (kind === 'tool' && /\/(?:subagent|guards)$/.test(key)) return // a fact, and no call
    const short = key.startsWith(run) ? key.slice(run.length) : key
    const place = placeOfKey(short)
    const { step, index, within, trigger, hook } = place
    const id = index === undefined ? undefined : this.#ids.id(within, step, index)
    const model = kind === 'inference' && isJsonObject(input) ? input['model'] : undefined
    const isOfHook = kind === 'hook' || kind === 'inference'
    const call: Mutable<StoredCall> = {
      key: short,
      kind: kind as StoredCallKind,
      step,
      ...(id !== undefined && { call: id }),
      ...(within.length > 0 && { path: this.#ids.path(within) }),
      ...(isOfHook && trigger !== undefined && { trigger, hook: hook! }),
      seq,
      ...(at !== undefined && { began: at }),
      ...(typeof model === 'string' && { model }),
      ...(request !== undefined && { request }),
      input,
    }
    this.all.push(call)
    this.#open.set(key, { call, place })
    const made = this.#madeCall(place, kind)
    if (made === undefined) return this.#startStep(place, call)
    if (at !== undefined) made.began ??= at
    if (within.length === 0) made.usedArgs = (input as JsonObject)['args']!
  }

  #startStep({ within, step }: CallPlace, { kind, trigger, model, began }: StoredCall): void {
    if (within.length > 0 || kind !== 'inference' || trigger !== undefined) return
    const made = this.#step(step)
    made.model = model
    if (began !== undefined) made.began ??= began
  }

  #end(end: End): void {
    const open = this.#open.get(end.key)
    if (open === undefined) return
    const { call, place } = open
    call.ended = end.at
    if ('error' in end) call.error = { code: end.error.code, message: end.error.message }
    else if (call.kind === 'inference') this.#answered(call, place, end.value)
    else call.output = call.kind === 'tool' ? executionIn(end.value as never) : end.value
    const made = this.#madeCall(place, call.kind)
    if (made === undefined) return
    made.ended = end.at
    if (place.within.length === 0) made.result = call.output as ToolExecution | undefined
  }

  #answered(call: Mutable<StoredCall>, place: CallPlace, value: Json): void {
    if (!isJsonObject(value)) return
    const response = isJsonObject(value['response']) ? value['response'] : value
    const { usage, error } = value
    const { content } = response
    if (isJsonObject(usage)) call.usage = { ...noTokens, ...usage }
    if (isJsonObject(error)) call.error = { code: error['code'], message: error['message'] } as StoredCall['error'] & {}
    if (!Array.isArray(content)) return
    call.output = content
    if (call.trigger !== undefined) return
    const parts = content as unknown as readonly Part[]
    const asked = parts.filter((part) => part.type === 'tool-call')
    this.#ids.set(
      place,
      asked.map(({ toolCallId }) => toolCallId),
    )
    if (place.within.length > 0) return
    const step = this.#step(place.step)
    step.answer = {
      content: parts,
      finishReason: response['finishReason'] as FinishReason,
      usage: call.usage ?? noTokens,
    }
    for (const [i, { input }] of asked.entries()) (step.toolCalls[i] ??= {}).sentArgs = input
  }

  #step(index: number): MadeStep {
    let step = this.steps.get(index)
    if (step === undefined) this.steps.set(index, (step = { toolCalls: [] }))
    return step
  }

  /** The tool call of the agent itself that a call performs: the tool, or a part of the subagent that works for it. */
  #madeCall({ within, step, index }: CallPlace, kind: string): MadeToolCall | undefined {
    const [at, position] = within[0] ?? [step, kind === 'tool' ? index : undefined]
    if (position === undefined || position < 0) return undefined
    return (this.#step(at).toolCalls[position] ??= {})
  }
}

/** What the models of a run have cost, by model. A call with attempts inside it counts only for what they leave over. */
export function modelsOf(calls: readonly StoredCall[]): readonly ModelUsage[] {
  const inside = new Map<string, TokenUsage>()
  const requests = calls.filter(({ kind, model }) => kind === 'inference' && model !== undefined)
  for (const { key, usage = noTokens, hook } of requests) {
    const [, around] = hook === undefined ? (ATTEMPT.exec(key) ?? []) : []
    if (around !== undefined) inside.set(around, addTokens(inside.get(around) ?? noTokens, usage))
  }
  const models = new Map<string, ModelUsage>()
  for (const { key, usage = noTokens, model = '' } of requests) {
    const attempts = inside.get(key)
    const before = models.get(model) ?? { model, calls: 0, ...noTokens }
    const cost = attempts === undefined ? usage : leftOver(usage, attempts)
    models.set(model, { model, calls: before.calls + (attempts === undefined ? 1 : 0), ...addTokens(before, cost) })
  }
  return [...models.values()]
}

const ATTEMPT = /^(.*\/inference(?:\.\d+)?(?:~\d+)?)\/\d+$/

function leftOver(all: TokenUsage, part: TokenUsage): TokenUsage {
  const names = Object.keys(noTokens) as (keyof TokenUsage)[]
  return Object.fromEntries(names.map((name) => [name, Math.max(0, all[name] - part[name])])) as TokenUsage
}
