import type { Step } from '../state/execution.ts'
import { isJsonObject, type Json, type JsonObject } from '../values/json.ts'
import { textOf, type Message, type Part } from '../state/message.ts'
import type { ListDiff, StateDiff } from '../state/state-diff.ts'
import type { ToolCall, ToolExecution } from '../state/tool-call.ts'
import { AgentError, clause, messageOf } from '../errors.ts'

// A change of a state as it is stored. What an effect of the step has ended with is in its record: here it is only named.

/** A `StateDiff` in which parts that are recorded with an effect are replaced by its key: `{ end: key }`. */
export type StoredChange = JsonObject

/** What effects have ended with, for changes to refer to. */
export type Recorded = {
  /** The key of the effect that ended with exactly this object. */
  keyOf(value: unknown): string | undefined
  /** The answers of models, and results of calls, by key. */
  valueOf(key: string): Json | undefined
}

/** The content, the usage and the execution in what an effect has ended with. */
export function partsOfEnd(value: Json | undefined): {
  readonly content?: readonly Part[]
  readonly usage?: Json
  readonly execution?: Json
} {
  if (!isJsonObject(value)) return {}
  if (Array.isArray(value['content'])) {
    const { usage } = value
    return { content: value['content'], ...(usage !== undefined && { usage }) }
  }
  if (isJsonObject(value['execution'])) return { execution: value['execution'] }
  return 'status' in value ? { execution: value } : {}
}

export function encodeChange(diff: StateDiff, recorded: Recorded): StoredChange {
  const { messages, execution } = diff
  const added = execution?.steps?.add ?? []
  const encoded = {
    ...diff,
    ...(messages !== undefined && { messages: mapItems(messages, (each) => encodeMessage(each, added, recorded)) }),
    ...(execution?.steps !== undefined && {
      execution: { ...execution, steps: mapItems(execution.steps, (each) => encodeStep(each, recorded)) },
    }),
  }
  return encoded
}

/** Throws STATE_INVALID if it refers to an effect that has not ended, or is not a change at all. */
export function decodeChange(stored: StoredChange, recorded: Recorded): StateDiff {
  try {
    return decoded(stored, recorded)
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw new AgentError('STATE_INVALID', `A stored change cannot be read: ${clause(messageOf(error))}.`)
  }
}

function decoded(stored: StoredChange, recorded: Recorded): StateDiff {
  const { messages, execution } = stored as unknown as StateDiff
  const steps = execution?.steps && mapItems(execution.steps, (each) => decodeStep(each as never, recorded))
  const added = steps?.add ?? []
  return {
    ...stored,
    ...(messages !== undefined && { messages: mapItems(messages, (each) => decodeMessage(each, added, recorded)) }),
    ...(steps !== undefined && { execution: { ...execution, steps } }),
  }
}

function mapItems<T, R>(diff: ListDiff<T>, change: (item: T) => R): ListDiff<R> {
  if (!Array.isArray(diff.add)) return diff as unknown as ListDiff<R> // reported when it is applied
  const { more } = diff
  return { ...diff, add: diff.add.map(change), ...(Array.isArray(more) && { more: more.map(change) }) } as ListDiff<R>
}

type Reference = { readonly end: string }
type StoredMessage = Message | Reference | { readonly results: number }

function encodeMessage(message: Message, steps: readonly Step[], recorded: Recorded): StoredMessage {
  const isPlain = message.role === 'assistant' && Object.keys(message).length === 2
  const end = isPlain ? recorded.keyOf(message.content) : undefined
  if (end !== undefined) return { end }
  const step = message.role === 'tool' ? steps.findIndex((each) => isResultOf(each, message)) : -1
  return step === -1 ? message : { results: step }
}

/** Whether a message has just the results of a step. */
function isResultOf({ toolCalls, toolExecutions }: Step, { content }: Message): boolean {
  if (content.length !== toolCalls.length) return false
  return content.every((part, i) => {
    if (part.type !== 'tool-result' || Object.keys(part).length > 5) return false
    const [call, execution] = [toolCalls[i]!, toolExecutions[i]!]
    const isSame = part.toolCallId === call.id && part.toolName === call.name && part.output === execution.output
    return isSame && (part.isError === true) === (execution.status !== 'ok')
  })
}

function decodeMessage(stored: StoredMessage, steps: readonly Step[], recorded: Recorded): Message {
  if ('role' in stored) return stored
  if ('results' in stored) {
    const step = steps[stored.results]
    if (step === undefined) throw unknownReference(`step ${String(stored.results)}`)
    return resultsMessage(step.toolCalls, step.toolExecutions)
  }
  const { content } = partsOfEnd(recorded.valueOf(stored.end))
  if (content === undefined) throw unknownReference(stored.end)
  return Object.freeze({ role: 'assistant', content })
}

type StoredStep = Omit<Step, 'toolCalls' | 'toolExecutions' | 'usage' | 'text'> & {
  /** Undefined if it is that of the recorded answer. */
  readonly text?: string
  readonly toolCalls: readonly (Step['toolCalls'][number] | Reference)[]
  readonly toolExecutions: readonly (Step['toolExecutions'][number] | Reference)[]
  readonly usage: Step['usage'] | Reference
}

function encodeStep(step: Step, recorded: Recorded): StoredStep {
  const end = recorded.keyOf(step.usage)
  const asked = end === undefined ? undefined : partsOfEnd(recorded.valueOf(end)).content
  const referTo = <T>(value: T): T | Reference => {
    const known = recorded.keyOf(value)
    return known === undefined ? value : { end: known }
  }
  const { text, ...rest } = step
  return {
    ...rest,
    toolCalls: step.toolCalls.map((call) => {
      const part = asked?.find((each) => each.type === 'tool-call' && each.toolCallId === call.id)
      const isAsked = part?.type === 'tool-call' && part.toolName === call.name && part.input === call.args
      return isAsked ? { end: call.id } : call
    }),
    toolExecutions: step.toolExecutions.map(referTo),
    usage: referTo(step.usage),
    ...((asked === undefined || textOf(asked) !== text) && { text }),
  }
}

function decodeStep(stored: StoredStep, recorded: Recorded): Step {
  const end = 'end' in stored.usage ? stored.usage.end : undefined
  const { content, usage } = end === undefined ? {} : partsOfEnd(recorded.valueOf(end))
  if (end !== undefined && usage === undefined) throw unknownReference(end)
  const { index, type, text = textOf(content ?? []), ...rest } = stored
  return Object.freeze({
    index,
    type,
    text, // in the same place as before: the JSON of a state that is read back has the same text
    ...rest,
    toolCalls: Object.freeze(stored.toolCalls.map((call) => ('end' in call ? callIn(content, call.end) : call))),
    toolExecutions: Object.freeze(
      stored.toolExecutions.map((each) => {
        if (!('end' in each)) return each
        const { execution } = partsOfEnd(recorded.valueOf(each.end))
        if (execution === undefined) throw unknownReference(each.end)
        return execution as unknown as Step['toolExecutions'][number]
      }),
    ),
    usage: (usage ?? stored.usage) as Step['usage'],
  })
}

function callIn(content: readonly Part[] | undefined, id: string): Step['toolCalls'][number] {
  const part = content?.find((each) => each.type === 'tool-call' && each.toolCallId === id)
  if (part?.type !== 'tool-call') throw unknownReference(id)
  return Object.freeze({ id, name: part.toolName, args: part.input as JsonObject })
}

function unknownReference(to: string): AgentError {
  return new AgentError('STATE_INVALID', `A stored change refers to "${to}", which is not recorded.`, { value: to })
}

/** The results of the calls of a step, in their order, as one message. */
export function resultsMessage(calls: readonly ToolCall[], executions: readonly ToolExecution[]): Message {
  const content = calls.map(({ id, name }, i): Part => {
    const { output, status } = executions[i]!
    if (status === 'ok') return Object.freeze({ type: 'tool-result', toolCallId: id, toolName: name, output })
    return Object.freeze({ type: 'tool-result', toolCallId: id, toolName: name, output, isError: true })
  })
  return Object.freeze({ role: 'tool', content: Object.freeze(content) })
}
