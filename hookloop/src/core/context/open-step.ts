import type { ErrorRecord, Step, StepType } from '../state/execution.ts'
import { noVotes } from '../state/continuation.ts'
import type { FinishReason, InferenceResponse } from '../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../values/json.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../state/ledger.ts'
import { withUniqueIds, type Message, type Part, type ToolCallPart } from '../state/message.ts'
import { namedExecution, type ToolCall, type ToolExecution } from '../state/tool-call.ts'
import { noTokens, type TokenUsage } from '../state/usage.ts'

/** A tool call while its step is open. */
export type ActiveCall = {
  readonly index: number
  readonly id: string
  readonly name: string
  readonly originalArgs: Json
  args: Json
  /** The last result of `toToolCall`. */
  shown: ToolCall | undefined
  result: ToolExecution | undefined
  /** How long it ran, if there are observers or listeners. */
  ranMs?: number
  /** What hooks did around it. */
  trail?: { readonly entries: readonly LedgerEntry[]; readonly durations: readonly number[] }
  /** What hooks of its subagents did, until it is part of the ledger. */
  inside?: readonly TimedLedgerEntry[] | undefined
}

const none: readonly never[] = Object.freeze([])
const noArguments: JsonObject = Object.freeze({})

/** The current step: the response of the model, and its calls with their results so far. */
export class OpenStep {
  readonly index: number
  readonly messageCount: number
  text = ''
  finishReason: FinishReason = 'other'
  usage: TokenUsage = noTokens
  /** What attempts at the current model call have cost. The execution is billed when the call has ended. */
  inFlight = noTokens
  /** The tools that the model was offered: hooks may have removed some. */
  offered: readonly string[] = none
  /** The message with the calls, as it is in the conversation. */
  asked: Message | undefined
  calls: readonly ActiveCall[] = none
  readonly errors: ErrorRecord[] = []
  /** How often a model was called. */
  attempts = 0

  constructor(index: number, messageCount: number) {
    this.index = index
    this.messageCount = messageCount
  }

  /** Stores the response and returns the message for the conversation. */
  respond(response: InferenceResponse): Message {
    const content = withUniqueIds(response.content)
    this.text = response.text
    this.finishReason = response.finishReason
    this.calls = callsIn(content)
    this.asked = Object.freeze({ role: 'assistant', content })
    return this.asked
  }

  /** The results in the order of the calls, as one message. */
  results(): Message {
    const content = this.calls.map(({ id, name, result }): Part => {
      const { output, status } = result!
      const part = { type: 'tool-result', toolCallId: id, toolName: name, output } as const
      return Object.freeze(status === 'ok' ? part : { ...part, isError: true })
    })
    return Object.freeze({ role: 'tool', content: Object.freeze(content) })
  }

  close(): Step {
    const toolCalls = this.calls.length === 0 ? none : Object.freeze(this.calls.map(toToolCall))
    const errors = this.errors.length === 0 ? none : Object.freeze(this.errors.slice())
    return Object.freeze({
      index: this.index,
      type: typeOfStep({ toolCalls }, this.asked !== undefined),
      text: this.text,
      toolCalls,
      toolExecutions:
        this.calls.length === 0
          ? none
          : Object.freeze(this.calls.map((call) => namedExecution(call.result!, call.name))),
      errors,
      finishReason: this.finishReason,
      usage: this.usage,
      messageCount: this.messageCount,
      outcome: noVotes,
    })
  }
}

/** A step without a response is an error step. Failed calls, and failures that were recovered, are not. */
function typeOfStep(step: Pick<Step, 'toolCalls'>, answered: boolean): StepType {
  if (!answered) return 'error'
  return step.toolCalls.length > 0 ? 'toolExecution' : 'finalResponse'
}

/** A call as hooks and the record see it: its arguments as JSON, as they are now. */
export function toToolCall(call: ActiveCall): ToolCall {
  const { id, name, args } = call
  if (call.shown?.args !== args) call.shown = Object.freeze({ id, name, args: isJsonObject(args) ? args : noArguments })
  return call.shown
}

function callsIn(content: readonly Part[]): readonly ActiveCall[] {
  const only = content[0]
  if (content.length === 1 && only!.type === 'tool-call') return [openCall(only!, 0)] // as most steps are
  return content.filter((part) => part.type === 'tool-call').map(openCall)
}

function openCall({ toolCallId, toolName, input }: ToolCallPart, index: number): ActiveCall {
  return {
    index,
    id: toolCallId,
    name: toolName,
    originalArgs: input,
    args: input,
    shown: undefined,
    result: undefined,
  }
}
