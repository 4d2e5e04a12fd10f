import type { ErrorRecord, Step, StepType } from '../../state/execution.ts'
import { resultsMessage } from '../../effects/change.ts'
import { noVotes } from '../../state/continuation.ts'
import type { FinishReason, InferenceResponse } from '../../state/inference.ts'
import { isJsonObject, type Json, type JsonObject } from '../../state/json.ts'
import type { LedgerEntry, TimedLedgerEntry } from '../../state/ledger.ts'
import { withUniqueIds, type Message, type Part, type ToolCallPart } from '../../state/message.ts'
import type { ToolCall, ToolExecution } from '../../state/tool-call.ts'
import { addSpent, addTokens, noTokens, type TokenUsage, type Usage } from '../../state/usage.ts'

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
  /** What attempts at the current model call have cost. Billed when the call has ended. */
  inFlight = noTokens
  /** What was spent since the execution was billed last. Counted in place: a usage is created when one is needed. */
  #unbilled = noTokens
  #unbilledSteps = 0
  #unbilledCalls = 0
  /** The position of the results: after the message with the calls. */
  resultsAt = 0
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
  respond(response: InferenceResponse, messageCount: number): Message {
    const content = withUniqueIds(response.content)
    this.text = response.text
    this.finishReason = response.finishReason
    this.resultsAt = messageCount + 1
    this.calls = callsIn(content)
    this.asked = Object.freeze({ role: 'assistant', content })
    return this.asked
  }

  /** Counts what the model call of the step has spent. */
  spend(usage: TokenUsage): void {
    this.usage = sum(this.usage, usage)
    this.count(usage)
    this.inFlight = noTokens
  }

  /** Counts what a hook or a tool has spent on models of its own. */
  count(usage: TokenUsage): void {
    this.#unbilled = sum(this.#unbilled, usage)
  }

  /** Counts what a subagent has spent. */
  countChild(usage: Usage): void {
    this.count(usage)
    this.#unbilledSteps += usage.steps
    this.#unbilledCalls += usage.toolCalls
  }

  /** Counts a call of the model, whether or not it will run. */
  countCall(): void {
    this.#unbilledCalls++
  }

  get isBilled(): boolean {
    return this.#unbilled === noTokens && this.#unbilledCalls === 0 && this.#unbilledSteps === 0
  }

  /** A usage and what was spent since the execution was billed last. */
  addUnbilled(usage: Usage, steps = 0): Usage {
    return addSpent(usage, this.#unbilled, this.#unbilledSteps + steps, this.#unbilledCalls)
  }

  /** The execution is billed for everything that was spent. */
  setBilled(): void {
    this.#unbilled = noTokens
    this.#unbilledSteps = 0
    this.#unbilledCalls = 0
  }

  /** The results in the order of the calls, as one message. */
  results(): Message {
    return resultsMessage(
      this.calls.map(toToolCall),
      this.calls.map(({ result }) => result!),
    )
  }

  close(): Step {
    const toolCalls = this.calls.length === 0 ? none : Object.freeze(this.calls.map(toToolCall))
    const errors = this.errors.length === 0 ? none : Object.freeze(this.errors.slice())
    return Object.freeze({
      index: this.index,
      type: typeOfStep({ toolCalls }, this.asked !== undefined),
      text: this.text,
      toolCalls,
      toolExecutions: this.calls.length === 0 ? none : Object.freeze(this.calls.map((call) => call.result!)),
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

/** Most steps spend once: then nothing is created. */
function sum(before: TokenUsage, usage: TokenUsage): TokenUsage {
  return before === noTokens ? usage : addTokens(before, usage)
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
