import type { AgentState } from '../../state/agent-state.ts'
import type { ErrorRecord, OpenStep as SavedStep, Step } from '../../state/execution.ts'
import { typeOfStep } from '../../state/execution.ts'
import { goOn } from '../../state/continuation.ts'
import type { FinishReason, InferenceResponse } from '../../state/inference.ts'
import { isJsonObject, sameJson, type Json, type JsonObject } from '../../state/json.ts'
import type { LedgerEntry } from '../../state/ledger.ts'
import { type Message, type Part, type ToolCallPart, type ToolResultPart } from '../../state/message.ts'
import type { OpenChild } from '../../state/subagent.ts'
import type { Answer, Answers, Approval, OpenCall, ToolCall, ToolExecution } from '../../state/tool-call.ts'
import { addTokens, addUsage, noTokens, noUsage, type TokenUsage, type Usage } from '../../state/usage.ts'

/** A call while its step is open. */
export type ActiveCall = {
  readonly index: number
  readonly id: string
  readonly name: string
  readonly originalArgs: Json
  args: Json
  /** The call in the form in which it was last shown; see `toToolCall`. */
  shown: ToolCall | undefined
  approval?: Approval
  answer?: Answer
  /** The agent that works for it, while that waits, and what was answered to it. */
  child?: OpenChild
  answers?: Answers
  result: ToolExecution | undefined
  /** Whether it was let through and begun. */
  ran?: boolean
  /** How often it was begun by a process that died, if a person is asked about that. */
  interruptions?: number
  /** How long it ran, if somebody watches. */
  ranMs?: number
  /** What hooks did around it. */
  trail?: { readonly entries: readonly LedgerEntry[]; readonly durations: readonly number[] }
}

const none: readonly never[] = Object.freeze([])
const oneCall = { toolCalls: 1 }
const noArguments: JsonObject = Object.freeze({})

/** The step being taken: what the model said and what became of its calls so far. */
export class OpenStep {
  readonly index: number
  readonly messageCount: number
  /** The beginning of every key of this step, once somebody needed it. */
  place: string | undefined
  text = ''
  finishReason: FinishReason = 'other'
  usage: TokenUsage = noTokens
  /** What attempts at the model call under way have cost. It is billed when the call as a whole has ended. */
  inFlight = noTokens
  /** What was spent since the step was opened or resumed. The execution is billed when it is closed or suspended. */
  unbilled = noUsage
  /** Where the results go: right behind the message that asked for them. */
  resultsAt = 0
  /** The tools the model was offered: hooks may have taken some away. */
  offered: readonly string[] = none
  /** The message with the calls, as it stands in the conversation. */
  asked: Message | undefined
  calls: readonly ActiveCall[] = []
  readonly errors: ErrorRecord[] = []
  /** How often a model was asked. */
  attempts = 0

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
    this.calls = callsIn(content)
    this.asked = Object.freeze({ role: 'assistant', content })
    return this.asked
  }

  spend(usage: TokenUsage): void {
    this.usage = this.usage === noTokens ? usage : addTokens(this.usage, usage)
    this.unbilled = addUsage(this.unbilled, usage)
    this.inFlight = noTokens
  }

  /** Counts what an agent inside the run has spent. */
  bill(usage: Usage): void {
    this.unbilled = addUsage(this.unbilled, usage)
  }

  /** Counts a call that was asked for, whatever becomes of it. */
  countCall(): void {
    this.unbilled = addUsage(this.unbilled, oneCall)
  }

  get pending(): readonly ActiveCall[] {
    return this.calls.every(hasEnded) ? none : this.calls.filter((call) => !hasEnded(call))
  }

  /** The results in the order of the calls, as one message. */
  results(): Message {
    return Object.freeze({ role: 'tool', content: Object.freeze(this.calls.map(resultPart)) })
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
      outcome: goOn,
    })
  }

  save(): SavedStep {
    const { text, finishReason, usage, messageCount, resultsAt } = this
    const calls = this.calls.map(
      ({ index: _index, shown: _shown, ran: _ran, ranMs: _ranMs, trail: _trail, result, ...call }): OpenCall =>
        Object.freeze(result === undefined ? call : { ...call, result }),
    )
    return Object.freeze({
      text,
      finishReason,
      usage,
      messageCount,
      asked: this.asked!,
      resultsAt,
      calls: Object.freeze(calls),
      errors: Object.freeze(this.errors.slice()),
    })
  }

  static restore(state: AgentState, saved: SavedStep): OpenStep {
    const step = new OpenStep(state.stepCount, saved.messageCount)
    const standing = state.messages.at(saved.resultsAt - 1)
    step.asked = standing !== undefined && sameJson(standing, saved.asked) ? standing : saved.asked
    step.text = saved.text
    step.finishReason = saved.finishReason
    step.usage = saved.usage
    step.resultsAt = saved.resultsAt
    step.calls = saved.calls.map((call, index) => ({ ...call, index, shown: undefined, result: call.result }))
    step.errors.push(...saved.errors)
    return step
  }
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

function hasEnded({ result }: ActiveCall): boolean {
  return result !== undefined
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

function resultPart({ id, name, result }: ActiveCall): ToolResultPart {
  const { output, status } = result!
  if (status === 'ok') return Object.freeze({ type: 'tool-result', toolCallId: id, toolName: name, output })
  return Object.freeze({ type: 'tool-result', toolCallId: id, toolName: name, output, isError: true })
}

/** Results are matched to calls by id, so a model that repeats or forgets one gets ids that differ. */
function withUniqueIds(content: readonly Part[]): readonly Part[] {
  const only = content[0]
  if (content.length === 1 && (only!.type !== 'tool-call' || only!.toolCallId !== '')) return content
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
