import type { InferenceResponse } from '../../state/inference.ts'
import { isJsonObject, type Json } from '../../state/json.ts'
import type { ToolExecution } from '../../state/tool-call.ts'
import { addTokens, noTokens, type TokenUsage } from '../../state/usage.ts'
import { repeatedKey, type EndEntry, type RecordEntry } from '../../effects/recording.ts'
import type { ModelCallRecord } from '../model/call-record.ts'
import type { MadeCall } from '../subagents/closed-child.ts'
import { executionIn, interrupted } from '../tools/execute-call.ts'

/** What earlier processes have recorded of a step that they have not closed. */
export class StepRecord {
  readonly #begins = new Map<string, Json>()
  readonly #ends = new Map<string, EndEntry>()
  readonly #place: string
  /** The prefix of the keys of its subagents. */
  readonly #children: string

  constructor(
    entries: readonly RecordEntry[],
    { execution, step }: { readonly execution: string; readonly step: number },
  ) {
    for (const entry of entries) {
      if (entry.type === 'begin') this.#begins.set(entry.key, entry.input)
      if (entry.type === 'end') this.#ends.set(entry.key, entry)
    }
    this.#place = repeatedKey(`${execution}/${step}`, 1)
    this.#children = repeatedKey(`${execution.slice(0, execution.lastIndexOf('.'))}/${step}.`, 1)
  }

  /** The answer of the model, if there is one. */
  get response(): InferenceResponse | undefined {
    return this.#attempts()
      .flatMap(({ record }) => record?.response ?? [])
      .at(-1)
  }

  /** What the model calls of the step have cost. */
  get usage(): TokenUsage {
    return this.#attempts().reduce(
      (sum, { key, record }) => addTokens(sum, record?.usage ?? this.#spentInside(key)),
      noTokens,
    )
  }

  /** What the subagent of a call has spent on models. */
  usageOfChild(index: number): TokenUsage {
    return this.#usageOf(this.#keysOfChild(index).filter((key) => /\/inference(?:\.\d+)?$/.test(key)))
  }

  /** The calls that were started: by their position in the answer. */
  get started(): readonly number[] {
    const own = [...this.#begins.keys()].flatMap((key) => this.#indexIn(key, `${this.#place}/`, /^(\d+)\/tool$/))
    const delegated = [...this.#begins.keys()].flatMap((key) => this.#indexIn(key, this.#children, /^(\d+)[./]/))
    return [...new Set([...own, ...delegated])].toSorted((a, b) => a - b)
  }

  /** A call of a tool that was started, as it was executed last. */
  call(index: number): (MadeCall & { readonly execution: ToolExecution }) | undefined {
    let found: (MadeCall & { readonly execution: ToolExecution }) | undefined
    for (let times = 1; ; times++) {
      const key = `${this.#place}/${index}/tool${times === 1 ? '' : `~${times}`}`
      const input = this.#begins.get(key)
      if (input === undefined) return found
      found = { ...calledIn(input), execution: executionOf(this.#ends.get(key)) ?? interrupted }
    }
  }

  /** The result of the subagent of a call, if it has ended. */
  resultOfChild(index: number): ToolExecution | undefined {
    return executionOf(this.#ends.get(`${this.#place}/${index}/subagent`))
  }

  /** The tool calls of the subagent of a call, if it was started. */
  callsOfChild(index: number): readonly MadeCall[] | undefined {
    const keys = this.#keysOfChild(index)
    if (keys.length === 0) return undefined
    return keys
      .filter((key) => /\/\d+\/\d+\/tool(?:~\d+)?$/.test(key))
      .map((key) => ({ ...calledIn(this.#begins.get(key)!), execution: executionOf(this.#ends.get(key)) }))
  }

  #attempts(): readonly { readonly key: string; readonly record: ModelCallRecord | undefined }[] {
    const attempts: { key: string; record: ModelCallRecord | undefined }[] = []
    for (let attempt = 1; ; attempt++) {
      const key = attempt === 1 ? `${this.#place}/inference` : `${this.#place}/inference.${attempt}`
      if (!this.#begins.has(key)) return attempts
      const value = valueOf(this.#ends.get(key))
      attempts.push({ key, record: value as unknown as ModelCallRecord | undefined })
    }
  }

  /** What attempts have cost whose call has no end: hooks around it may have made several. */
  #spentInside(key: string): TokenUsage {
    return this.#usageOf([...this.#ends.keys()].filter((each) => each.startsWith(`${key}/`)))
  }

  #usageOf(keys: readonly string[]): TokenUsage {
    return keys.reduce((sum, key) => {
      const value = valueOf(this.#ends.get(key))
      return isJsonObject(value) && isJsonObject(value['usage']) ? addTokens(sum, value['usage'] as never) : sum
    }, noTokens)
  }

  #keysOfChild(index: number): readonly string[] {
    const prefix = `${this.#children}${index}`
    return [...this.#begins.keys()].filter((key) => key.startsWith(`${prefix}.`) || key.startsWith(`${prefix}/`))
  }

  #indexIn(key: string, prefix: string, pattern: RegExp): readonly number[] {
    const [, index] = (key.startsWith(prefix) && pattern.exec(key.slice(prefix.length))) || []
    return index === undefined ? [] : [Number(index)]
  }
}

function valueOf(end: EndEntry | undefined): Json | undefined {
  return end !== undefined && 'value' in end ? end.value : undefined
}

function executionOf(end: EndEntry | undefined): ToolExecution | undefined {
  const value = valueOf(end)
  return value === undefined ? undefined : executionIn(value as never)
}

function calledIn(input: Json): { readonly name: string; readonly args: Json } {
  return input as { readonly name: string; readonly args: Json }
}
