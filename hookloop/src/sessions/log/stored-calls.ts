import type { FinishReason } from '../../state/inference.ts'
import { isJsonObject, sameJson, type Json } from '../../values/json.ts'
import type { Part } from '../../state/message.ts'
import type { ModelUsage, StoredCall, StoredCallKind, StoredToolCall } from '../../state/stored-run.ts'
import type { Approval, ToolExecution } from '../../state/tool-call.ts'
import { addTokens, noTokens, type TokenUsage } from '../../state/usage.ts'
import { partsOfEnd } from '../../effects/change.ts'
import { keyId, pathId, rootPath, type EffectKey } from '../../effects/keys.ts'
import type { BeginRecord, EndRecord } from '../../effects/records.ts'
import type { NumberedRecord } from './session-records.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** An effect as a call, and what it ended with. */
type Made = { readonly call: Mutable<StoredCall>; readonly key: EffectKey; value?: Json | undefined }

type Answer = { readonly content: readonly Part[]; readonly finishReason: FinishReason; readonly usage: TokenUsage }

const kinds: { readonly [kind in EffectKey['kind']]?: StoredCallKind } = {
  model: 'inference',
  attempt: 'inference',
  infer: 'inference',
  tool: 'tool',
  child: 'tool',
  ask: 'approval',
  hook: 'hook',
  sleep: 'sleep',
}

/** The calls of a run to the outside, in the order of their records. */
export class StoredCalls {
  readonly all: StoredCall[] = []
  readonly #made = new Map<string, Made>()
  /** By the step that they are part of, in the agent itself or a subagent. */
  readonly #steps = new Map<string, Made[]>()
  readonly #questions = new Map<string, Made>()

  constructor(records: readonly NumberedRecord[]) {
    for (const record of records) {
      if (record.t === 'begin') this.#add(record, record)
      else if (record.t === 'end' && record.key.kind !== 'timeout') {
        const { began: at, input = null } = record
        end(this.#made.get(idOf(record)) ?? this.#add(record, { at, input }), record)
      } else if (record.t === 'answer') {
        end(this.#questions.get(record.approval), { at: record.at, value: record.answer })
      }
    }
  }

  /** What the models have cost, by model. A call with attempts inside it counts only for what they leave over. */
  models(): readonly ModelUsage[] {
    const models = new Map<string, ModelUsage>()
    for (const made of this.#steps.values()) {
      for (const { call, key } of made) {
        const { kind, model, usage = noTokens } = call
        if (kind !== 'inference' || model === undefined) continue
        const inside = attemptsAt(key, made)
        const known = models.get(model) ?? { model, calls: 0, ...noTokens }
        const cost = inside.reduce((left, each) => leftOver(left, each.call.usage ?? noTokens), usage)
        models.set(model, { model, calls: known.calls + (inside.length > 0 ? 0 : 1), ...addTokens(known, cost) })
      }
    }
    return [...models.values()]
  }

  /** A step of the agent itself: the model that answered, when its first call started, and its effects. Undefined without a model. */
  step(index: number) {
    const made = this.#steps.get(` ${index}`) ?? []
    const inferences = made.filter(({ call: { kind, hook } }) => kind === 'inference' && hook === undefined)
    if (inferences.length === 0) return undefined
    const last = inferences.findLast(({ key }) => key.kind === 'model')
    const tried = last === undefined ? inferences : attemptsAt(last.key, made)
    const { model } = (tried.findLast(({ call }) => call.error === undefined) ?? tried.at(-1) ?? last!).call
    const began = Math.min(...inferences.map(({ call }) => call.began ?? Infinity))
    const answered = inferences.findLast((each) => each.key.kind === 'model' && each.call.output !== undefined)
    const facts = { ...(model !== undefined && { model }), ...(began < Infinity && { began }) }
    return { facts, answer: answered?.value as Answer | undefined, made }
  }

  #add(
    { path = rootPath, key, seq }: Pick<BeginRecord, 'path' | 'key'> & { readonly seq: number },
    { at, input }: { readonly at?: number | undefined; readonly input: Json },
  ): Made {
    const { step, kind, call: of, trigger, hook } = key
    const model = kinds[kind] === 'inference' && isJsonObject(input) ? input['model'] : undefined
    const call: Mutable<StoredCall> = {
      key: idOf({ path, key }),
      kind: kind === 'attempt' && of !== undefined ? 'tool' : kinds[kind]!,
      step,
      ...(of !== undefined && { call: of }),
      ...(path.length > 0 && { path: path.map((each) => ({ agent: each.agent, step: each.step, call: each.call })) }),
      ...(hook !== undefined && { trigger: trigger!, hook }),
      seq,
      ...(at !== undefined && { began: at }),
      ...(typeof model === 'string' && { model }),
      input,
    }
    const made = { call, key }
    this.#made.set(call.key, made)
    if (kind !== 'child') this.all.push(call) // the calls of a subagent are those that it makes
    if (kind === 'ask') this.#questions.set((input as unknown as Approval).id, made)
    const place = `${pathId(path)} ${step}`
    const others = this.#steps.get(place)
    if (others === undefined) this.#steps.set(place, [made])
    else others.push(made)
    return made
  }
}

function idOf({ path = rootPath, key }: Pick<BeginRecord, 'path' | 'key'>): string {
  return `${pathId(path)} ${keyId(key)}`
}

function end(made: Made | undefined, { at, value, error }: Partial<EndRecord>): void {
  if (made === undefined || made.call.ended !== undefined) return
  const { call } = made
  made.value = value
  if (at !== undefined) call.ended = at
  if (error !== undefined) call.error = { code: error.code, message: error.message }
  else if (call.kind === 'inference') noteAnswer(call, value!)
  else call.output = (call.kind === 'tool' ? partsOfEnd(value).execution : undefined) ?? value!
}

/** What is recorded of a model call with the hooks around it, or of one attempt: its response. */
function noteAnswer(call: Mutable<StoredCall>, value: Json): void {
  if (!isJsonObject(value)) return
  const { content, usage, error } = value
  if (isJsonObject(usage)) call.usage = { ...noTokens, ...usage }
  if (isJsonObject(error)) call.error = { code: error['code'], message: error['message'] } as StoredCall['error'] & {}
  if (Array.isArray(content)) call.output = content
}

/** The attempts inside a model call: their number starts with that of the call. */
function attemptsAt({ kind, n }: EffectKey, made: readonly Made[]): readonly Made[] {
  if (kind !== 'model') return []
  return made.filter(
    ({ key, call }) => key.kind === 'attempt' && call.kind === 'inference' && `${key.n}`.startsWith(`${n}.`),
  )
}

function leftOver(all: TokenUsage, part: TokenUsage): TokenUsage {
  const names = Object.keys(noTokens) as (keyof TokenUsage)[]
  return Object.fromEntries(names.map((name) => [name, Math.max(0, all[name] - part[name])])) as TokenUsage
}

/** A call of a step of the agent itself, and what became of it. Of a closed step, `closed` has what was used and returned. */
export function storedToolCall(
  { id, name, sent }: { readonly id: string; readonly name: string; readonly sent: Json | undefined },
  made: readonly Made[] = [],
  closed?: { readonly args: Json; readonly result: ToolExecution },
): StoredToolCall {
  const runs = made.filter(({ key }) => key.call === id && (key.kind === 'tool' || key.kind === 'child'))
  const asked = made.findLast(({ key }) => key.call === id && key.kind === 'ask')?.call
  const question = asked?.input as Approval | undefined
  const { began } = runs[0]?.call ?? {}
  const { ended, output, input } = runs.at(-1)?.call ?? {}
  const used = (input as { readonly args: Json } | undefined)?.args ?? question?.toolCall.args ?? sent!
  const { args, result } = closed ?? { args: used, result: output as ToolExecution | undefined }
  return {
    id,
    name,
    args,
    ...(sent !== undefined && !sameJson(sent, args) && { sentArgs: sent }),
    ...(began !== undefined && { began }),
    ...(ended !== undefined && { ended }),
    ...(result !== undefined && { result }),
    ...(result === undefined && question !== undefined && asked?.ended === undefined && { approval: question }),
  }
}
