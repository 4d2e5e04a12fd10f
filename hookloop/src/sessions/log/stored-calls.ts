import type { FinishReason } from '../../core/state/inference.ts'
import { isJsonObject, sameJson, type Json } from '../../values/json.ts'
import type { Part } from '../../core/state/message.ts'
import type { ModelUsage, StoredCall, StoredCallKind, StoredToolCall } from '../../core/state/stored-run.ts'
import type { Approval, ToolExecution } from '../../core/state/tool-call.ts'
import { addTokens, noTokens, type TokenUsage } from '../../core/state/usage.ts'
import { keyId, pathId, type EffectKey, type EffectPath } from '../../core/effects/keys.ts'
import type { BeginRecord, EndRecord } from '../../core/effects/records.ts'
import type { NumberedRecord } from './session-records.ts'

/** An effect as it is recorded. */
type Effect = {
  readonly key: EffectKey
  readonly path: EffectPath
  readonly first: Numbered<BeginRecord | EndRecord>
  end?: Pick<EndRecord, 'value' | 'error' | 'at'>
}
type Numbered<T> = T & { readonly seq: number }

/** An effect as a call. */
type Made = { readonly call: StoredCall; readonly effect: Effect }

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
  readonly #made: readonly Made[]
  /** By the step that they are part of, in the agent itself or a subagent. */
  readonly #steps: ReadonlyMap<string, readonly Made[]>

  constructor(records: readonly NumberedRecord[]) {
    const effects = [...effectsIn(records)].filter(([, { key }]) => key.kind !== 'timeout')
    this.#made = effects.map(([id, effect]) => ({ effect, call: toCall(id, effect) }))
    this.#steps = Map.groupBy(this.#made, ({ effect: { path, key } }) => `${pathId(path)} ${key.step}`)
  }

  /** The calls of a subagent are those that it makes. */
  get all(): readonly StoredCall[] {
    return this.#made.filter(({ effect }) => effect.key.kind !== 'child').map(({ call }) => call)
  }

  /** What the models have cost, by model. A call with attempts inside it counts only for what they leave over. */
  models(): readonly ModelUsage[] {
    const models = new Map<string, ModelUsage>()
    for (const made of this.#steps.values()) {
      for (const { call, effect } of made) {
        const { kind, model, usage = noTokens } = call
        if (kind !== 'inference' || model === undefined) continue
        const inside = attemptsAt(effect.key, made)
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
    const models = inferences.filter(({ effect }) => effect.key.kind === 'model')
    const last = models.at(-1)
    const tried = last === undefined ? inferences : attemptsAt(last.effect.key, made)
    const { model } = (tried.findLast(({ call }) => call.error === undefined) ?? tried.at(-1) ?? last!).call
    const began = Math.min(...inferences.map(({ call }) => call.began ?? Infinity))
    const answered = models.findLast(({ call }) => call.output !== undefined)
    const facts = { ...(model !== undefined && { model }), ...(began < Infinity && { began }) }
    return { facts, answer: answered?.effect.end?.value as Answer | undefined, made }
  }
}

function effectsIn(records: readonly NumberedRecord[]): ReadonlyMap<string, Effect> {
  const effects = new Map<string, Effect>()
  for (const record of records) {
    if (record.t === 'answer') {
      const asked = [...effects.values()].findLast((each) => asksFor(each, record.approval))
      if (asked !== undefined) asked.end ??= { value: record.answer, at: record.at }
    }
    if (record.t !== 'begin' && record.t !== 'end') continue
    const { key, path = [] } = record
    const id = `${pathId(path)} ${keyId(key)}`
    const effect: Effect = effects.get(id) ?? { key, path, first: record }
    effects.set(id, effect)
    if (record.t === 'end') effect.end ??= record
  }
  return effects
}

function asksFor({ key, first }: Effect, approval: string): boolean {
  return key.kind === 'ask' && (first.input as Approval | undefined)?.id === approval
}

function toCall(id: string, { key, path, first, end }: Effect): StoredCall {
  const { step, call: of, trigger, hook } = key
  const { input = null, seq } = first
  const kind = key.kind === 'attempt' && of !== undefined ? 'tool' : kinds[key.kind]!
  const began = first.t === 'begin' ? first.at : first.began
  const model = kinds[key.kind] === 'inference' && isJsonObject(input) ? input['model'] : undefined
  return {
    key: id,
    kind,
    step,
    ...(of !== undefined && { call: of }),
    ...(path.length > 0 && { path: path.map((each) => ({ agent: each.agent, step: each.step, call: each.call })) }),
    ...(hook !== undefined && { trigger: trigger!, hook }),
    seq,
    ...(began !== undefined && { began }),
    ...(typeof model === 'string' && { model }),
    input,
    ...(end !== undefined && { ended: end.at, ...resultOf(kind, end) }),
  }
}

function resultOf(kind: StoredCallKind, { value = null, error }: Effect['end'] & {}): Partial<StoredCall> {
  if (error !== undefined) return { error: { code: error.code, message: error.message } }
  if (!isJsonObject(value)) return kind === 'inference' ? {} : { output: value }
  if (kind === 'tool') return { output: value['execution'] ?? value }
  if (kind !== 'inference') return { output: value }
  // What is recorded of a model call with the hooks around it, or of one attempt: its response.
  const { content, usage, error: failed } = value
  return {
    ...(isJsonObject(usage) && { usage: { ...noTokens, ...usage } }),
    ...(isJsonObject(failed) && {
      error: { code: failed['code'], message: failed['message'] } as StoredCall['error'] & {},
    }),
    ...(Array.isArray(content) && { output: content }),
  }
}

/** The attempts inside a model call: their number starts with that of the call. */
function attemptsAt({ kind, n }: EffectKey, made: readonly Made[]): readonly Made[] {
  if (kind !== 'model') return []
  return made.filter(
    ({ effect: { key }, call }) =>
      key.kind === 'attempt' && call.kind === 'inference' && `${key.n}`.startsWith(`${n}.`),
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
  const runs = made.filter(({ effect: { key } }) => key.call === id && (key.kind === 'tool' || key.kind === 'child'))
  const asked = made.findLast(({ effect: { key } }) => key.call === id && key.kind === 'ask')?.call
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
