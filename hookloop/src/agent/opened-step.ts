import type { AgentState } from '../data/agent-state.ts'
import type { ErrorRecord, OpenStep, Step } from '../data/execution.ts'
import { stepType } from '../data/execution.ts'
import { goOn } from '../data/continuation.ts'
import { toolCallsOf, type FinishReason, type InferenceResponse } from '../data/inference.ts'
import type { Json } from '../data/json.ts'
import { type Message, type Part, type ToolCallPart, type ToolResultPart } from '../data/message.ts'
import type { Answer, Approval, OpenCall, ToolCall, ToolExecution } from '../data/tool-call.ts'
import { noTokens, type TokenUsage } from '../data/usage.ts'

/** A call while its step is open. */
export type OpenedCall = {
  readonly index: number
  readonly id: string
  readonly name: string
  readonly originalArgs: Json
  args: Json
  approval?: Approval
  answer?: Answer
  result?: ToolExecution
}

/** The step being taken: what the model said and what became of its calls so far. */
export class OpenedStep {
  readonly index: number
  readonly messageCount: number
  text = ''
  finishReason: FinishReason = 'other'
  usage: TokenUsage = noTokens
  /** Where the results go: right behind the message that asked for them. */
  resultsAt = 0
  /** The message with the calls, as it stands in the conversation. */
  asked: Message | undefined
  calls: readonly OpenedCall[] = []
  readonly errors: ErrorRecord[] = []
  #calledAs: readonly ToolCall[] | undefined

  constructor(index: number, messageCount: number) {
    this.index = index
    this.messageCount = messageCount
  }

  /** Takes the response over and gives back the message to remember it by. */
  respond(response: InferenceResponse, messageCount: number): Message {
    const content = withUniqueIds(response.content)
    this.text = response.text
    this.finishReason = response.finishReason
    this.resultsAt = messageCount + 1
    this.calls = toolCallsOf({ ...response, content }).map(({ toolCallId, toolName, input }, index) => ({
      index,
      id: toolCallId,
      name: toolName,
      originalArgs: input,
      args: input,
    }))
    this.asked = Object.freeze({ role: 'assistant', content })
    return this.asked
  }

  get pending(): readonly OpenedCall[] {
    return this.calls.filter((call) => call.result === undefined)
  }

  /** The results in the order of the calls, as one message. */
  results(): Message {
    const content = this.calls.map(
      ({ id, name, result }): ToolResultPart =>
        Object.freeze({
          type: 'tool-result',
          toolCallId: id,
          toolName: name,
          output: result!.output,
          ...(result!.status !== 'ok' && { isError: true }),
        }),
    )
    return Object.freeze({ role: 'tool', content: Object.freeze(content) })
  }

  close(): Step {
    this.#calledAs ??= this.calls.map(({ id, name, args }) => Object.freeze({ id, name, args } as ToolCall))
    const toolCalls = Object.freeze(this.#calledAs)
    const errors = Object.freeze(this.errors.slice())
    return Object.freeze({
      index: this.index,
      type: stepType({ toolCalls, errors }),
      text: this.text,
      toolCalls,
      toolExecutions: Object.freeze(this.calls.map((call) => call.result!)),
      errors,
      finishReason: this.finishReason,
      usage: this.usage,
      messageCount: this.messageCount,
      outcome: goOn,
    })
  }

  save(): OpenStep {
    const { text, finishReason, usage, messageCount, resultsAt } = this
    const calls = this.calls.map(({ index: _index, ...call }): OpenCall => Object.freeze({ ...call }))
    return Object.freeze({
      text,
      finishReason,
      usage,
      messageCount,
      resultsAt,
      calls: Object.freeze(calls),
      errors: Object.freeze(this.errors.slice()),
    })
  }

  static restore(state: AgentState, saved: OpenStep): OpenedStep {
    const step = new OpenedStep(state.stepCount, saved.messageCount)
    step.asked = state.messages.at(saved.resultsAt - 1)
    step.text = saved.text
    step.finishReason = saved.finishReason
    step.usage = saved.usage
    step.resultsAt = saved.resultsAt
    step.calls = saved.calls.map((call, at) => ({ ...call, index: at }))
    step.errors.push(...saved.errors)
    return step
  }
}

/** Results are matched to calls by id, so a model that repeats or forgets one gets ids that differ. */
function withUniqueIds(content: readonly Part[]): readonly Part[] {
  const seen = new Set<string>()
  let changed = false
  const parts = content.map((part, index): Part => {
    if (part.type !== 'tool-call') return part
    const unique = uniqueId(part, index, seen)
    seen.add(unique)
    if (unique === part.toolCallId) return part
    changed = true
    return Object.freeze({ ...part, toolCallId: unique })
  })
  return changed ? Object.freeze(parts) : content
}

function uniqueId({ toolCallId }: ToolCallPart, index: number, seen: ReadonlySet<string>): string {
  if (toolCallId !== '' && !seen.has(toolCallId)) return toolCallId
  let id = `${toolCallId || 'call'}-${index}`
  while (seen.has(id)) id += '-'
  return id
}
